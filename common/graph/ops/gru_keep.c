/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/gru_keep.c - ai.weft GRUKeep(X, W, R, ...) -> Y, Y_h, gates, resets: GRU that
 * keeps its activations [directions, steps, batch, 3 hidden] and, [directions, steps, batch,
 * hidden], what gate r makes of the state before (linear_before_reset: what it multiplies) for
 * GRUGrad. Zero behind the end of a row. */
#include "common/graph/ops/ops.h"
#include "common/graph/ops/recurrent.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    static const char *const activations[] = {"Sigmoid", "Tanh"};

    (void)g;
    WF_TRY(wf_infer_recurrent(n, 3, 1, 2, activations, err));
    return wf_infer_recurrent_kept(n, 1, err);
}

const wf_op wf_op_gru_keep = {
    .name = "GRUKeep",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 6,
    .n_out_min = 0,
    .n_out_max = 4,
    .flags = WF_OP_FOLDABLE,
    .attrs = wf_recurrent_rows,
    .infer = infer,
};
