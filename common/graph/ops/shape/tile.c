/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/tile.c - Tile and TileGrad. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Tile: x repeated along each axis as often as input 1 says. */

static wf_status infer_tile(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_elem repeats[WF_MAX_CARRIED];
    wf_axis axes[WF_MAX_RANK];
    uint32_t count;
    bool known;

    (void)g;
    WF_TRY(wf_need_int(n, 1, "repeats", err));
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    known = wf_value_elems(n->in[1], repeats, &count);
    if (known && count != (uint32_t)x->rank)
        return wf_fail(err, WF_SHAPE, NULL, "%u repeats for a tensor of %d axes", count, x->rank);
    for (int32_t i = 0; i < x->rank; i++) {
        axes[i] = wf_axis_unknown(-1);
        if (!known)
            continue;
        if (repeats[i].is_known && repeats[i].value < 0)
            return wf_fail(err, WF_SHAPE, NULL, "axis %d is repeated %lld times", i,
                           (long long)repeats[i].value);
        axes[i] = wf_axis_of_elem(&repeats[i]);
        axes[i] = wf_axis_mul(&axes[i], &x->axes[i]);
    }
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

const wf_op wf_op_tile = WF_FOLDABLE(WF_DOMAIN_ONNX, "Tile", 13, 2, 2, infer_tile,
                                     .no_grad_in = 1u << 1, WF_GRAD_NODE("TileGrad", "d0 x0"));

/* ai.weft TileGrad: dy's copies of each element of x, added up. */

static wf_status infer_tile_grad(wf_graph *g, wf_node *n, wf_err *err)
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

const wf_op wf_op_tile_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "TileGrad", 1, 2, 2, infer_tile_grad,
                .means = "(dy, x) -> as x; dy's copies of each element of x, added up; of x only "
                         "the shape is read");
