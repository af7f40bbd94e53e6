/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/index/one_hot.c - OneHot: a new axis of `depth` places (input 1) at attr axis,
 * with the second of `values` (input 2) at the index and the first elsewhere; for indices out of
 * range, everywhere. */
#include "common/base/size.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* depth may be of any type, and has one element. */
static wf_status depth_of(const wf_value *v, wf_axis *axis, wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED] = {wf_elem_unknown()};
    uint32_t count = 1;

    if (!wf_value_elems(v, elems, &count) && wf_value_is_constant(v) && wf_elems(v->known) == 1) {
        double number = -1;

        if (v->dtype == WF_F32)
            number = *(const float *)v->known->data;
        else if (v->dtype == WF_F64)
            number = *(const double *)v->known->data;
        else if (v->dtype == WF_U8)
            number = *(const uint8_t *)v->known->data;
        if (number >= 0 && number < 0x1p53)
            elems[0] = wf_elem_of((int64_t)number);
    }
    if (count != 1 || (elems[0].is_known && elems[0].value < 0))
        return wf_fail(err, WF_SHAPE, NULL, "depth must be one number, and not negative");
    *axis = wf_axis_of_elem(&elems[0]);
    return WF_OK;
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *ids = n->in[0];
    wf_axis axes[WF_MAX_RANK], depth;
    uint32_t axis, rank = 0;

    (void)g;
    wf_out_unknown(n, 0, n->in[2]->dtype);
    WF_TRY(depth_of(n->in[1], &depth, err));
    if (n->in[2]->rank >= 0 &&
        (n->in[2]->rank != 1 || (n->in[2]->axes[0].size >= 0 && n->in[2]->axes[0].size != 2)))
        return wf_fail(err, WF_SHAPE, NULL, "values must be two: off and on");
    if (ids->rank < 0)
        return WF_OK;
    WF_TRY(wf_need_rank(ids->rank + 1, err));
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)ids->rank + 1, &axis, err));
    for (int32_t i = 0; i <= ids->rank; i++)
        axes[i] = (uint32_t)i == axis ? depth : ids->axes[rank++];
    wf_out_axes(n, 0, n->in[2]->dtype, (uint32_t)ids->rank + 1, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_one_hot =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "OneHot", 11, 3, 3, infer, .no_grad_in = 7, .attrs = attrs);
