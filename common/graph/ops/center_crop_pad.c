/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/center_crop_pad.c - CenterCropPad: the middle of x, or x in the middle of zeros,
 * so that attr axes (all when absent) get the sizes in input 1. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include <string.h>

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_elem sizes[WF_MAX_CARRIED];
    wf_axis axes[WF_MAX_RANK];
    size_t n_named;
    const int64_t *named = wf_node_ints(n, "axes", &n_named);
    uint32_t count, mask = 0;
    bool known;

    (void)g;
    WF_TRY(wf_need_int(n, 1, "shape", err));
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    if (!named)
        n_named = (size_t)x->rank;
    known = wf_value_elems(n->in[1], sizes, &count);
    if (n_named > WF_MAX_RANK || (known && count != n_named))
        return wf_fail(err, WF_SHAPE, NULL, "the shape must have a size for each of %zu axes",
                       n_named);
    memcpy(axes, x->axes, sizeof axes);
    for (uint32_t i = 0; i < n_named; i++) {
        uint32_t at;

        WF_TRY(wf_axis_number(named ? named[i] : i, (uint32_t)x->rank, &at, err));
        if (mask >> at & 1u || (known && sizes[i].is_known && sizes[i].value < 0))
            return wf_fail(err, WF_SHAPE, NULL, "axis %u is named twice, or has a negative size",
                           at);
        mask |= 1u << at;
        axes[at] = known ? wf_axis_of_elem(&sizes[i]) : wf_axis_unknown(-1);
    }
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

/* Padding what was cropped, and cropping what was padded: both round the middle down, so the same
 * operation towards the shape of x undoes either. */
static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *in[] = {wf_grads_upstream(g, n, 0), wf_emit_shape_of(e, n->in[0])};

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_op(e, "CenterCropPad", 2, in, 0, NULL));
}

static const wf_attr_row attrs[] = {{"axes", WF_ATTR_INTS, false}, {0}};

const wf_op wf_op_center_crop_pad = {
    .name = "CenterCropPad",
    .domain = WF_DOMAIN_ONNX,
    .since = 18,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 1,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
