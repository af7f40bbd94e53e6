/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_stacks.h - which pixels of small images a convolution multiplies,
 * where the pixels of several images lie stacked: taps that lie outside are left out.
 */
#ifndef WF_KERNELS_CPU_CONV_STACKS_H
#define WF_KERNELS_CPU_CONV_STACKS_H

#include "common/base/arena.h"
#include "common/kernels/cpu/nn/conv.h"

/* Lists of places to read at: list i is [begin[i], begin[i + 1]), in bytes. */
typedef struct wf_stack_hops {
    int64_t n_from, n_to; /* pixels that are read, and made */
    int64_t *begin, *a_at, *b_at;
} wf_stack_hops;

/* Whether stacks multiply a seventh less than padded planes would, and the batch fills them. */
bool wf_stack_wants(const wf_conv *v);

/* A list for each pixel that is made, over its taps in order: a_at = tap * a_size, b_at = pixel
 * read
 * * b_size. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stack_hops_by_result(wf_arena *arena, const wf_conv *v, int64_t a_size,
                                              int64_t b_size, wf_stack_hops *out, wf_err *err);
/* For gradients of weights: a list for each `some` pixels of maps and each tap, taps inside: a_at =
 * pixel of the image * a_size, b_at = pixel of the map * b_size. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stack_hops_by_tap(wf_arena *arena, const wf_conv *v, int64_t some,
                                           int64_t a_size, int64_t b_size, wf_stack_hops *out,
                                           wf_err *err);

#endif
