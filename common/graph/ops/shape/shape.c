/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/shape.c - Shape and Size. */
#include "common/base/size.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Shape: the sizes of axes start to end, int64. Here carried integers begin. */

static wf_status infer_shape(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    int64_t rank = x->rank, start = wf_node_int(n, "start", 0), end = wf_node_int(n, "end", rank);
    wf_axis count = wf_axis_unknown(WF_MAX_RANK);
    wf_elem elems[WF_MAX_RANK];

    wf_out_axes(n, 0, WF_I64, 1, &count);
    if (rank < 0)
        return WF_OK;
    start = WF_MIN(WF_MAX(start < 0 ? start + rank : start, (int64_t)0), rank);
    end = WF_MIN(WF_MAX(end < 0 ? end + rank : end, start), rank);
    count = wf_axis_of(end - start);
    wf_out_axes(n, 0, WF_I64, 1, &count);
    for (int64_t i = start; i < end; i++)
        elems[i - start] = wf_elem_of_axis(&x->axes[i]);
    return wf_out_carry(g, n, 0, (uint32_t)(end - start), elems, err);
}

static const wf_attr_row attrs[] = {
    {"start", WF_ATTR_INT, false}, {"end", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_shape = WF_FOLDABLE(WF_DOMAIN_ONNX, "Shape", 15, 1, 1, infer_shape,
                                      .no_grad_in = 1u << 0, .attrs = attrs);

/* Size: the number of elements, an int64 scalar. */

static wf_status infer_size(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_elem count = wf_elem_of(1);

    wf_out_axes(n, 0, WF_I64, 0, NULL);
    if (x->rank < 0)
        return WF_OK;
    for (int32_t i = 0; i < x->rank; i++) {
        wf_elem size = wf_elem_of_axis(&x->axes[i]);

        count = wf_elem_mul(&count, &size);
    }
    return wf_out_carry(g, n, 0, 1, &count, err);
}

const wf_op wf_op_size =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Size", 13, 1, 1, infer_size, .no_grad_in = 1u << 0);
