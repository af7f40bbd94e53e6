/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/tile_grad.c - ai.weft TileGrad: dy's copies of each element of x, added up. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *dy = n->in[0], *x = n->in[1];

    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    for (int32_t i = 0; i < x->rank && dy->rank >= 0; i++)
        if (dy->rank != x->rank ||
            (x->axes[i].size > 0 && dy->axes[i].size >= 0 && dy->axes[i].size % x->axes[i].size))
            return wf_fail(err, WF_SHAPE, NULL, "dy does not consist of copies of x");
    wf_out_like(n, 0, dy->dtype, x);
    return WF_OK;
}

const wf_op wf_op_tile_grad = {
    .name = "TileGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .infer = infer,
};
