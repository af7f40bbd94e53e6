/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/rounding.c - Ceil, Floor, Round (halves to even) and Sign: steps, whose slope is
 * 0 wherever there is one, so that no gradient passes them. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

const wf_op wf_op_ceil =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Ceil", 13, 1, wf_infer_like_float, .no_grad_in = 1u << 0);
const wf_op wf_op_floor =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Floor", 13, 1, wf_infer_like_float, .no_grad_in = 1u << 0);
const wf_op wf_op_round =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Round", 11, 1, wf_infer_like_float, .no_grad_in = 1u << 0);
const wf_op wf_op_sign =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Sign", 13, 1, wf_infer_like_number, .no_grad_in = 1u << 0);
