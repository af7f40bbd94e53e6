/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/blocks.c - DepthToSpace, DepthToSpaceGrad and SpaceToDepth. */
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* DepthToSpace: [n, c b b, h, w] to [n, c, h b, w b], with b attr blocksize. attr mode says which
 * part of the channels counts the place in a block: the leading (DCR) or the trailing one (CRD). */

static wf_status infer_blocks(wf_node *n, bool to_space, wf_err *err)
{
    const wf_value *x = n->in[0];
    int64_t block = wf_node_int(n, "blocksize", 0);
    static const char *const modes[] = {"DCR", "CRD", NULL};
    char text[WF_VALUE_STR];
    wf_axis axes[4], side;

    WF_TRY(wf_need_choice(n, "mode", modes, err));
    if (block < 1 || block > INT16_MAX)
        return wf_fail(err, WF_SHAPE, NULL, "a block of %lld", (long long)block);
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    if (x->rank != 4)
        return wf_fail(err, WF_SHAPE, NULL, "the input is %s, and must have four axes",
                       wf_value_str(x, text, sizeof text));
    memcpy(axes, x->axes, sizeof axes);
    side = wf_axis_of(to_space ? block * block : block);
    for (uint32_t i = 1; i < 4; i++) {
        bool grows = (i > 1) == to_space;
        wf_axis by = wf_axis_of(i > 1 ? block : block * block);

        if (grows)
            axes[i] = wf_axis_mul(&axes[i], &by);
        else if (axes[i].size < 0)
            axes[i] = block == 1 ? axes[i] : wf_axis_unknown(axes[i].bound);
        else if (axes[i].size % side.size)
            return wf_fail(err, WF_SHAPE, NULL, "axis %u of %s does not divide into blocks of %lld",
                           i, wf_value_str(x, text, sizeof text), (long long)side.size);
        else
            axes[i] = wf_axis_of(axes[i].size / side.size);
    }
    wf_out_axes(n, 0, x->dtype, 4, axes);
    return WF_OK;
}

static wf_status infer_depth_to_space(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return infer_blocks(n, true, err);
}

static const wf_attr_row depth_to_space_attrs[] = {
    {"blocksize", WF_ATTR_INT, true}, {"mode", WF_ATTR_STRING, false}, {0}};

const wf_op wf_op_depth_to_space =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "DepthToSpace", 13, 1, 1, infer_depth_to_space,
                .attrs = depth_to_space_attrs, WF_GRAD_NODE("DepthToSpaceGrad", "d0"));

/* ai.weft DepthToSpaceGrad: dy's elements back where DepthToSpace with the same attributes took
 * them from. */

static wf_status infer_to_depth(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return infer_blocks(n, false, err);
}

const wf_op wf_op_depth_to_space_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "DepthToSpaceGrad", 1, 1, 1, infer_to_depth,
                .means = "(dy) -> dx; attrs blocksize, mode = \"DCR\"; dy's elements where "
                         "DepthToSpace took them from",
                .attrs = depth_to_space_attrs);

/* SpaceToDepth: [n, c, h b, w b] to [n, b b c, h, w], with b attr blocksize: what DepthToSpace
 * (DCR) undoes. */

static const wf_attr_row space_to_depth_attrs[] = {{"blocksize", WF_ATTR_INT, true}, {0}};

const wf_op wf_op_space_to_depth =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "SpaceToDepth", 13, 1, 1, infer_to_depth,
                .attrs = space_to_depth_attrs, WF_GRAD_NODE("DepthToSpace", "d0"));
