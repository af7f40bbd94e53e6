/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/attention.h - attention in cuDNN's terms: one kernel makes all of
 * softmax(scale q k^T + mask) v, and one its gradients; scores are never stored (Dao and others,
 * "FlashAttention", 2022). cuDNN has such kernels for factors of 16 bits alone.
 *
 * The graphs are those that cuDNN knows as attention ("Supported graphs", fused attention): it
 * recognises them by their operations and the order of these.
 */
#ifndef WF_KERNELS_CUDA_DNN_ATTENTION_H
#define WF_KERNELS_CUDA_DNN_ATTENTION_H

#include "common/kernels/cuda/dnn/graph.h"

/* Tensors: q, y and their gradients are of the case's narrow type [groups, heads, t, d or e], k and
 * v and theirs likewise [groups, heads, s, d or e], without gaps, or where `side` is above 1 with
 * the rows of so many heads side by side: [groups, t or s, side, d or e], of which `heads` are
 * meant. STATS are float32 [groups, heads, t], the logarithm of the sum of each row's exponentials,
 * which the forward pass makes and the gradient reads; ROOM is float32 [groups, heads, t], where
 * the gradient keeps sums. MASK, float32 [t, s], is added to the scores of each head: the last one,
 * if the case has it. */
enum { WF_DNN_ATT_Q, WF_DNN_ATT_K, WF_DNN_ATT_V, WF_DNN_ATT_Y, WF_DNN_ATT_STATS };
enum { WF_DNN_ATT_MASK = WF_DNN_ATT_STATS + 1 }; /* of the forward pass */
enum {
    WF_DNN_ATT_DY = WF_DNN_ATT_STATS + 1,
    WF_DNN_ATT_DQ,
    WF_DNN_ATT_DK,
    WF_DNN_ATT_DV,
    WF_DNN_ATT_ROOM,
    WF_DNN_ATT_GRAD_MASK,
    WF_DNN_ATT_TENSORS
};

/* int64_t and double alone: without gaps. */
typedef struct wf_dnn_attention {
    int64_t is_grad;
    int64_t dtype; /* WF_BF16 or WF_F16 */
    int64_t groups, heads, side, t, s, d, e;
    int64_t causal;    /* row i sees columns 0 to i alone */
    int64_t adds_mask; /* not with causal */
    double scale;
} wf_dnn_attention;

/* Whether cuDNN may be asked: it wants extents, and d and e that are multiples of 8. */
bool wf_dnn_attention_fits(const wf_dnn_attention *a);
/* The question for it; borrows a. */
wf_dnn_asked wf_dnn_ask_attention(const wf_dnn_attention *a);

#endif
