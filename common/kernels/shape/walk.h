/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/walk.h - going through tensors by strides, several at once.
 *
 * A walk lists the axes of an output and, for up to three operands, how far each moves per axis.
 * Axes that all operands pass in one go are merged, so that most walks have one or two axes and the
 * inner one is long enough to vectorise.
 */
#ifndef WF_KERNELS_SHAPE_WALK_H
#define WF_KERNELS_SHAPE_WALK_H

#include "common/tensor/tensor.h"
#include <stdint.h>

enum { WF_WALK_OPERANDS = 3 };

typedef struct wf_walk {
    uint32_t rank; /* at least 1 */
    uint32_t n;    /* operands */
    int64_t elems;
    int64_t dims[WF_MAX_RANK];
    int64_t strides[WF_WALK_OPERANDS][WF_MAX_RANK]; /* in elements */
} wf_walk;

/* Row-major strides of dims. */
void wf_strides(uint32_t rank, const int64_t dims[], int64_t strides[]);
/* A walk over dims[rank] with the given strides of n operands, axes of 1 dropped and neighbours
 * merged. */
void wf_walk_strided(wf_walk *w, uint32_t rank, const int64_t dims[], uint32_t n,
                     const int64_t strides[][WF_MAX_RANK]);
/* The operands in[n] broadcast to the shape of out, as numpy does. */
void wf_walk_broadcast(wf_walk *w, const wf_tensor *out, uint32_t n, const wf_tensor *const in[]);

/* A stretch along the inner axis: operand k begins at[k] elements in and moves by step[k] for each
 * of `count` elements; the first is number `first` of the walk. */
typedef struct wf_span {
    int64_t first, count;
    int64_t at[WF_WALK_OPERANDS], step[WF_WALK_OPERANDS];
} wf_span;
typedef void wf_span_fn(void *arg, const wf_span *span);

/* Calls fn for spans that cover elements [begin, end) of the walk in order. */
void wf_walk_range(const wf_walk *w, int64_t begin, int64_t end, wf_span_fn *fn, void *arg);

#endif
