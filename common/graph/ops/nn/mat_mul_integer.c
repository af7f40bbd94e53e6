/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/mat_mul_integer.c - MatMulInteger: the product of uint8 matrices in int32,
 * the zero points (inputs 2 and 3: of A one, or one a row; of B one, or one a column) taken off
 * first.
 */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status check_zero(const wf_node *n, uint32_t i, const char *letter, wf_err *err)
{
    if (!wf_node_has_in(n, i))
        return WF_OK;
    WF_TRY(wf_need_dtype(n, i, WF_U8, letter, err));
    if (n->in[i]->rank > 1)
        return wf_fail(err, WF_UNSUPPORTED, "weft has one zero point, and one a row or column",
                       "%s has %d axes", letter, n->in[i]->rank);
    return WF_OK;
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *a = n->in[0], *b = n->in[1];
    char ta[WF_VALUE_STR], tb[WF_VALUE_STR];
    wf_axis axes[2];

    (void)g;
    WF_TRY(wf_need_dtype(n, 0, WF_U8, "A", err));
    WF_TRY(wf_need_dtype(n, 1, WF_U8, "B", err));
    WF_TRY(check_zero(n, 2, "a_zero_point", err));
    WF_TRY(check_zero(n, 3, "b_zero_point", err));
    wf_out_unknown(n, 0, WF_I32);
    if (a->rank < 0 || b->rank < 0)
        return WF_OK;
    if (a->rank != 2 || b->rank != 2)
        return wf_fail(err, WF_UNSUPPORTED, "weft multiplies matrices", "A is %s and B is %s",
                       wf_value_str(a, ta, sizeof ta), wf_value_str(b, tb, sizeof tb));
    if (wf_axes_clash(&a->axes[1], &b->axes[0]))
        return wf_fail(err, WF_SHAPE, NULL,
                       "A is %s and B is %s; A's last and B's first axis must "
                       "agree",
                       wf_value_str(a, ta, sizeof ta), wf_value_str(b, tb, sizeof tb));
    axes[0] = a->axes[0];
    axes[1] = b->axes[1];
    wf_out_axes(n, 0, WF_I32, 2, axes);
    return WF_OK;
}

const wf_op wf_op_mat_mul_integer = WF_FOLDABLE(WF_DOMAIN_ONNX, "MatMulInteger", 10, 2, 4, infer,
                                                .note = "two matrices of uint8", .no_grad_in = 15);
