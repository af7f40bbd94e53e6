/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/older_softmax.c - Softmax, LogSoftmax and Hardmax before opset 13: over all
 * axes from attr axis on, which were one axis of a matrix. */
#include "common/onnx/call.h"
#include "common/onnx/expand/older.h"
#include "common/onnx/proto.h"

static wf_status over_the_rest(wf_call *c, wf_err *err)
{
    wf_attr begin = wf_attr_int("axis", wf_onnx_int(c->p, "axis", 1));
    wf_value *x = c->in[0], *matrix;

    WF_TRY(wf_call_need_rank(c, 0, 0, WF_MAX_RANK, err));
    begin.i += begin.i < 0 ? x->rank : 0;
    if (begin.i < 0 || begin.i > x->rank)
        return wf_fail(err, WF_SHAPE, NULL, "axis %lld of a tensor of %d",
                       (long long)wf_onnx_int(c->p, "axis", 1), x->rank);
    if (begin.i == x->rank - 1) { /* of the last axis the two forms mean the same */
        c->out[0] = wf_emit_unary(c->e, wf_onnx_op(c->p), x);
        return WF_OK;
    }
    matrix = wf_emit_op(c->e, "Flatten", 1, &x, 1, &begin);
    matrix = wf_emit_unary(c->e, wf_onnx_op(c->p), matrix);
    c->out[0] = matrix ? wf_emit_reshape_like(c->e, matrix, x) : NULL;
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

WF_OLDER(hardmax, "Hardmax", 1, 13, 1, 1, 1, attrs, over_the_rest)
WF_OLDER(log_softmax, "LogSoftmax", 1, 13, 1, 1, 1, attrs, over_the_rest)
WF_OLDER(softmax, "Softmax", 1, 13, 1, 1, 1, attrs, over_the_rest)
