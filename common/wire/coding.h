/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/coding.h - how the numbers of a part are written: as float32, or in fewer bytes.
 *
 * bf16 and f16 take 2 bytes a number, rounded to nearest even.
 *
 * int8 writes for each block of 128 a float32 scale, its largest magnitude / 127; behind all scales
 * stands a byte a number, x / scale to the nearest even (absmax quantisation, Dettmers et al. 2022,
 * "8-bit Optimizers via Block-wise Quantization", section 2.1, with evenly spaced steps).
 *
 * top-k writes the k numbers of largest magnitude, of equal ones the first (Stich et al. 2018,
 * "Sparsified SGD with Memory"): n u32, k rising indices u32, k float32.
 *
 * What a coding loses stays with its sender: the residual, one float32 for each number, is added to
 * what comes next before that is written (error feedback: Seide et al. 2014, "1-Bit Stochastic
 * Gradient Descent"; Karimireddy et al. 2019, "Error Feedback Fixes SignSGD", Algorithm 2, with the
 * gradient in place of the step). So what has been sent and the residual are together what was to
 * be sent, but for float32's rounding of the sums.
 *
 * Equal bits everywhere, as of common/optim.
 */
#ifndef WF_WIRE_CODING_H
#define WF_WIRE_CODING_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As the wire has them. */
typedef enum wf_coding {
    WF_CODING_F32 = 0,
    WF_CODING_BF16,
    WF_CODING_F16,
    WF_CODING_INT8,
    WF_CODING_TOPK,
    WF_N_CODINGS
} wf_coding;

enum {
    WF_CODING_BLOCK = 128, /* of int8: numbers that share a scale */
    WF_CODING_LEAST = 1024 /* a part with fewer numbers, 4 KiB, is sent as float32 */
};

/* "f32", "bf16", "f16", "int8", "topk"; "?" for a number that is none. */
const char *wf_coding_name(uint32_t coding);
/* The coding of a name; WF_N_CODINGS: there is none. */
wf_coding wf_coding_find(const char *name);

/* The numbers that top-k keeps of n at a ratio from 0 to 1: at least 1, if there are any. */
uint64_t wf_coding_kept(uint64_t n, double ratio);
/* Bytes of n numbers; `kept` is of top-k. n is below 2^32. */
uint64_t wf_coding_bytes(wf_coding coding, uint64_t n, uint64_t kept);

/* Numbers as they are written, borrowed. `data` is aligned to 4 bytes. */
typedef struct wf_coded {
    wf_coding coding;
    const uint8_t *data;
    uint64_t bytes;
    uint64_t n;
} wf_coded;

/* Sets c->n by the bytes (for top-k, by what they say). False: no number of numbers is so long. */
bool wf_coded_count(wf_coded *c);
/* Whether the bytes of a peer can be read: scales and numbers are finite, indices rise and are
 * below n. Errors: WF_PROTO. float32 is not looked at. */
WF_MUST_USE wf_status wf_coded_check(const wf_coded *c, wf_err *err);
/* The numbers [begin, begin + n) of what was checked, into out [n]. */
void wf_coded_read(const wf_coded *c, uint64_t begin, uint64_t n, float out[]);

/* Writes x [n] plus residual [n] (NULL: none) as `coding` says, and keeps in the residual what is
 * lost. `to` has room for wf_coding_bytes and is aligned to 4 bytes. False: a sum is not finite, or
 * beyond what the coding can say; the residual is as it was then, and x is to be sent as float32.
 */
bool wf_coding_write(wf_coding coding, uint64_t kept, const float x[], float residual[], uint64_t n,
                     void *to);

#endif
