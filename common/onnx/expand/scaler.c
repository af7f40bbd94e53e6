/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/scaler.c - Scaler of ai.onnx.ml. */
#include "common/onnx/expand.h"
#include "common/onnx/expand/ml.h"
#include "common/onnx/proto.h"

/* (x - offset) scale */
static wf_status scaler(wf_call *c, wf_err *err)
{
    wf_value *x = wf_emit_cast(c->e, c->in[0], WF_F32);
    const float *offset, *scale;
    size_t n, m;

    WF_TRY(wf_ml_list(c, "offset", &offset, &n, err));
    WF_TRY(wf_ml_list(c, "scale", &scale, &m, err));
    x = wf_emit_sub(c->e, x, wf_ml_constant(c, "offset", n, offset));
    c->out[0] = wf_emit_mul(c->e, x, wf_ml_constant(c, "scale", m, scale));
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"offset", WF_ATTR_FLOATS, true}, {"scale", WF_ATTR_FLOATS, true}, {0}};

const wf_expansion wf_expansion_scaler =
    WF_EXPANDS(WF_DOMAIN_ML, "Scaler", 1, 1, 1, 1, 1, scaler, .note = WF_EXPANDED, .attrs = attrs);
