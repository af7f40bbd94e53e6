/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/imputer.c - Imputer of ai.onnx.ml. */
#include "common/onnx/expand.h"
#include "common/onnx/expand/ml.h"
#include "common/onnx/proto.h"

#include <math.h>

/* What a missing value (by default NaN) is replaced with, feature by feature. */
static wf_status imputer(wf_call *c, wf_err *err)
{
    float missing = wf_onnx_float(c->p, "replaced_value_float", NAN);
    wf_value *x = wf_emit_cast(c->e, c->in[0], WF_F32), *is_missing;
    const float *values;
    size_t n;

    WF_TRY(wf_ml_list(c, "imputed_value_floats", &values, &n, err));
    is_missing = isnan(missing) ? wf_emit_unary(c->e, "IsNaN", x)
                                : wf_emit_binary(c->e, "Equal", x,
                                                 wf_emit_scalar(c->e, WF_F32, (double)missing));
    c->out[0] = wf_emit_where(c->e, is_missing, wf_ml_constant(c, "imputed", n, values), x);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"imputed_value_floats", WF_ATTR_FLOATS, true},
                                    {"replaced_value_float", WF_ATTR_FLOAT, false},
                                    {0}};

const wf_expansion wf_expansion_imputer = WF_EXPANDS(WF_DOMAIN_ML, "Imputer", 1, 1, 1, 1, 1,
                                                     imputer, .note = WF_EXPANDED, .attrs = attrs);
