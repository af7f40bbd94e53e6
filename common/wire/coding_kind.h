/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/coding_kind.h - what a coding is: a row, in a file of its own. For coding.c. */
#ifndef WF_WIRE_CODING_KIND_H
#define WF_WIRE_CODING_KIND_H

#include "common/wire/coding.h"

typedef struct wf_coding_kind {
    const char *name;
    uint32_t limit; /* the first magnitude that it cannot say, as bits of a float32 */
    uint64_t (*bytes)(uint64_t n, uint64_t kept);
    /* The number that c->bytes may be; coding.c compares what `bytes` makes of it. *kept is 0. */
    uint64_t (*count)(const wf_coded *c, uint64_t *kept);
    wf_status (*check)(const wf_coded *c, wf_err *err); /* NULL: any bits are a number */
    void (*read)(const wf_coded *c, uint64_t begin, uint64_t n, float out[]);
    /* Writes numbers [begin, begin + n) of c; begin is a multiple of WF_CODING_BLOCK. NULL: they
     * are written all at once, with their residual, by write_all; float32 has neither. */
    void (*write)(const wf_coded *c, uint64_t begin, const float x[], uint64_t n);
    void (*write_all)(const float x[], float residual[], uint64_t n, uint64_t kept, void *to);
} wf_coding_kind;

extern const wf_coding_kind wf_coding_bf16, wf_coding_f16, wf_coding_int8, wf_coding_top_k;

#endif
