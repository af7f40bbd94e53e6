/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/product.c - ai.weft Product(a, b): MatMul that reads a, b or both with their
 * last two axes exchanged. The compiler makes it of MatMul and Transpose, once gradients are built;
 * so it needs none of its own. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* v as the product reads it. */
static wf_value as_read(const wf_value *v, bool transposed)
{
    wf_value turned = *v;

    if (transposed) {
        turned.axes[v->rank - 1] = v->axes[v->rank - 2];
        turned.axes[v->rank - 2] = v->axes[v->rank - 1];
    }
    return turned;
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *a = n->in[0], *b = n->in[1];
    char text_a[WF_VALUE_STR], text_b[WF_VALUE_STR];
    wf_axis axes[WF_MAX_RANK];
    wf_value rows, columns;
    uint32_t rank = 0;

    (void)g;
    WF_TRY(wf_need_float(n, 0, "A", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    wf_out_unknown(n, 0, a->dtype);
    if (a->rank < 0 || b->rank < 0)
        return WF_OK;
    wf_value_str(a, text_a, sizeof text_a);
    wf_value_str(b, text_b, sizeof text_b);
    if (a->rank < 2 || b->rank < 2)
        return wf_fail(err, WF_SHAPE, NULL, "A is %s and B is %s, and both must be matrices",
                       text_a, text_b);
    rows = as_read(a, wf_node_int(n, "transA", 0) != 0);
    columns = as_read(b, wf_node_int(n, "transB", 0) != 0);
    if (wf_axes_clash(&rows.axes[a->rank - 1], &columns.axes[b->rank - 2]))
        return wf_fail(err, WF_SHAPE, NULL, "A is %s, B is %s, which do not fit each other", text_a,
                       text_b);
    rows.rank -= 2;
    columns.rank -= 2;
    WF_TRY(wf_axes_broadcast(axes, &rank, &rows, err));
    WF_TRY(wf_err_wrap(err, wf_axes_broadcast(axes, &rank, &columns, err), "A is %s, B is %s",
                       text_a, text_b));
    axes[rank++] = rows.axes[a->rank - 2];
    axes[rank++] = columns.axes[b->rank - 1];
    wf_out_axes(n, 0, a->dtype, rank, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"transA", WF_ATTR_INT, false}, {"transB", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_product = {
    .name = "Product",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
};
