/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/grid_sample.c - GridSample and GridSampleGrad. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* GridSample: y = x, images [n, c, h, w] or volumes [n, c, d, h, w], taken at the places in the
 * grid [n, ..., 2 or 3]: -1 to 1 along each axis, the last axis first. attr mode: (bi)linear,
 * (bi)cubic or nearest; padding_mode: what lies outside. */

static wf_status check_sampling(const wf_node *n, wf_err *err)
{
    static const char *const modes[] = {"linear", "bilinear", "cubic", "bicubic", "nearest", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};

    WF_TRY(wf_need_choice(n, "mode", modes, err));
    return wf_need_choice(n, "padding_mode", paddings, err);
}

static wf_status infer_grid_sample(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *grid = n->in[1];
    char a[WF_VALUE_STR], b[WF_VALUE_STR];
    wf_axis axes[WF_MAX_RANK];
    uint32_t rank;
    bool fits;

    (void)g;
    WF_TRY(check_sampling(n, err));
    WF_TRY(wf_need_float(n, 0, "X", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0 || grid->rank < 0)
        return WF_OK;
    rank = (uint32_t)x->rank;
    fits = (rank == 4 || rank == 5) && grid->rank == x->rank &&
           !wf_axes_clash(&x->axes[0], &grid->axes[0]) &&
           (grid->axes[rank - 1].size < 0 || grid->axes[rank - 1].size == rank - 2);
    for (uint32_t i = 2; fits && i < rank; i++)
        fits = x->axes[i].size != 0;
    if (!fits)
        return wf_fail(err, WF_SHAPE, NULL,
                       "X is %s and the grid %s, which must be [n, c, h, w] and [n, h', w', 2], or "
                       "one axis more",
                       wf_value_str(x, a, sizeof a), wf_value_str(grid, b, sizeof b));
    axes[0] = wf_axis_merge(&x->axes[0], &grid->axes[0]);
    axes[1] = x->axes[1];
    for (uint32_t i = 2; i < rank; i++)
        axes[i] = grid->axes[i - 1];
    wf_out_axes(n, 0, x->dtype, rank, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"align_corners", WF_ATTR_INT, false},
                                    {"mode", WF_ATTR_STRING, false},
                                    {"padding_mode", WF_ATTR_STRING, false},
                                    {0}};

const wf_op wf_op_grid_sample = WF_FOLDABLE(
    WF_DOMAIN_ONNX, "GridSample", 20, 2, 2, infer_grid_sample, .note = "images and volumes",
    .attrs = attrs, WF_GRAD_NODE("GridSampleGrad", "d0 x0 x1"));

/* ai.weft GridSampleGrad: d loss / d X and d loss / d grid of GridSample with the same attributes.
 */

static wf_status infer_grid_sample_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(check_sampling(n, err));
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[1]);
    wf_out_like(n, 1, n->in[0]->dtype, n->in[2]);
    return WF_OK;
}

const wf_op wf_op_grid_sample_grad = WF_OPERATION(
    WF_DOMAIN_WEFT, "GridSampleGrad", 1, 3, 3, 1, 2, WF_OP_FOLDABLE, infer_grid_sample_grad,
    .means = "(dy, x, grid) -> dx, (dgrid); attrs mode, padding_mode, align_corners; "
             "the gradient of GridSample by both",
    .attrs = attrs);
