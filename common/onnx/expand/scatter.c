/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/scatter.c - Scatter, which ScatterElements took the place of. */
#include "common/onnx/call.h"
#include "common/onnx/expand/older.h"
#include "common/onnx/proto.h"

static wf_status scatter(wf_call *c, wf_err *err)
{
    wf_attr axis = wf_attr_int("axis", wf_onnx_int(c->p, "axis", 0));

    (void)err;
    c->out[0] = wf_emit_op(c->e, "ScatterElements", 3, c->in, 1, &axis);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

WF_OLDER(scatter, "Scatter", 9, 11, 3, 3, 1, attrs, scatter)
