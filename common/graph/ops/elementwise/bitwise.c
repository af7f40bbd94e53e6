/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/bitwise.c - BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, and
 * BitShift by attr direction, "LEFT" or "RIGHT"; of integers. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status need_integers(const wf_node *n, wf_err *err)
{
    wf_dtype dtype = n->in[0]->dtype;

    if (!wf_dtype_is_float(dtype) && dtype != WF_BOOL)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "Cast it first", "A is %s, and must be an integer",
                   wf_dtype_name(dtype));
}

static wf_status infer_one(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(need_integers(n, err));
    return wf_infer_like_input(g, n, err);
}

static wf_status infer_two(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(need_integers(n, err));
    return wf_infer_arithmetic(g, n, NULL, err);
}

static wf_status infer_shift(wf_graph *g, wf_node *n, wf_err *err)
{
    static const char *const directions[] = {"LEFT", "RIGHT", NULL};

    WF_TRY(wf_need_choice(n, "direction", directions, err));
    return infer_two(g, n, err);
}

static const wf_attr_row shift_attrs[] = {{"direction", WF_ATTR_STRING, true}, {0}};

const wf_op wf_op_bit_shift =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "BitShift", 11, 2, infer_shift, .attrs = shift_attrs);
const wf_op wf_op_bitwise_and = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "BitwiseAnd", 18, 2, infer_two);
const wf_op wf_op_bitwise_not = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "BitwiseNot", 18, 1, infer_one);
const wf_op wf_op_bitwise_or = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "BitwiseOr", 18, 2, infer_two);
const wf_op wf_op_bitwise_xor = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "BitwiseXor", 18, 2, infer_two);
