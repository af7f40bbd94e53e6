/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/recurrent/plan.h - what LSTM, GRU, RNN and their gradients prepare: the
 * products, and where arrays lie in the workspace. */
#ifndef WF_KERNELS_CUDA_RECURRENT_PLAN_H
#define WF_KERNELS_CUDA_RECURRENT_PLAN_H

#include "common/kernels/cuda/product/product.h"
#include "common/kernels/shape/recurrent.h"

/* The products of a node: those ending in LATE are of gate h, where it comes after the others. */
typedef enum wf_layer_product {
    WF_LAYER_INPUT,
    WF_LAYER_STATE,
    WF_LAYER_STATE_LATE,
    WF_LAYER_STATE_BACK, /* added to what goes straight to the state before */
    WF_LAYER_STATE_BACK_LATE,
    WF_LAYER_DX,      /* of the first direction */
    WF_LAYER_DX_MORE, /* added to that of the first */
    WF_LAYER_DX_LATE, /* added to that of the other gates */
    WF_LAYER_DW,
    WF_LAYER_DW_LATE,
    WF_LAYER_DR,
    WF_LAYER_DR_LATE,
    WF_LAYER_PRODUCTS
} wf_layer_product;

/* The most units, and gates times units, of a layer of float32 whose steps are one kernel
 * (steps.h), and the rows of a block of it. */
enum { WF_STEPS_HIDDEN = 256, WF_STEPS_GATES = 1024, WF_STEPS_ROWS = 2 };

/* Where the arrays of the workspace begin, in bytes. See wf_layer. */
typedef struct wf_layer_rooms {
    size_t x, dx; /* [steps batch, input], time first: batch-first files only */
    size_t activations, slope, beside, one, late, h, cell, turned;
    size_t before, dearly, dlate, drecurrent, dh, dc, dreset;
} wf_layer_rooms;

typedef struct wf_layer_plan {
    wf_recurrent_sizes of;
    bool back;                                     /* of a gradient */
    bool at_once;                                  /* all steps of a direction by one kernel */
    wf_cuda_gemm_way *products[WF_LAYER_PRODUCTS]; /* NULL: none, or there is nothing to add up */
    size_t zeros[WF_LAYER_PRODUCTS]; /* bytes of a result of which nothing adds up, else 0 */
    wf_layer_rooms at;
} wf_layer_plan;

/* Each leaves a wf_layer_plan in the state. */
wf_prepare_fn wf_layer_prepare, wf_layer_prepare_grad;

/* Gates that are worked out at once: all, or those before gate h. */
static inline int64_t wf_layer_early(const wf_recurrent_sizes *s)
{
    return wf_recurrent_two(s) ? 2 : s->gates;
}

#endif
