/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/recurrent/recurrent.h - what LSTM, GRU and RNN share. */
#ifndef WF_GRAPH_OPS_RECURRENT_H
#define WF_GRAPH_OPS_RECURRENT_H

#include "common/graph/emit.h"
#include "common/graph/op.h"

/* Attributes of all three and of their gradients. */
extern const wf_attr_row wf_recurrent_rows[];

/* Outputs Y, Y_h (and Y_c) of X, W, R, B, sequence_lens, initial_h, ... `gates` of hidden rows
 * each. activations [n]: the only ones there are, in order; others are WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_infer_recurrent(wf_node *n, int64_t gates, uint32_t n_states,
                                         uint32_t n_activations, const char *const activations[],
                                         wf_err *err);
/* Outputs behind those: activations [dirs, steps, batch, gates hidden], and [dirs, steps, batch,
 * hidden]. With clip, WF_UNSUPPORTED: they do not tell where it cut. */
WF_MUST_USE wf_status wf_infer_recurrent_kept(wf_node *n, uint32_t n_states, wf_err *err);
/* Outputs like the inputs from X on, without sequence_lens: dX, dW, dR, dB, dh0, ...
 * X is input x of n_in, and Y the last; W and R must be there too. What was kept may follow, both
 * of it. */
WF_MUST_USE wf_status wf_infer_recurrent_grad(wf_node *n, uint32_t x, uint32_t n_in, wf_err *err);
/* Emits the node op(dY, dY_h, (dY_c), inputs..., Y) and adds what it gives. `n_states` as above. */
wf_status wf_grad_recurrent(wf_grads *g, const wf_node *n, const char *op, uint32_t n_states);

#endif
