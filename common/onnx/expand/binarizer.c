/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/binarizer.c - Binarizer of ai.onnx.ml. */
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/proto.h"

/* 1 above the threshold, else 0 */
static wf_status binarizer(wf_call *c, wf_err *err)
{
    wf_value *x = c->in[0];
    double threshold = (double)wf_onnx_float(c->p, "threshold", 0);

    (void)err;
    x = wf_emit_binary(c->e, "Greater", x, wf_emit_scalar(c->e, x->dtype, threshold));
    c->out[0] = wf_emit_cast(c->e, x, c->in[0]->dtype);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"threshold", WF_ATTR_FLOAT, false}, {0}};

const wf_expansion wf_expansion_binarizer =
    WF_EXPANDS(WF_DOMAIN_ML, "Binarizer", 1, 1, 1, 1, 1, binarizer, .note = WF_EXPANDED,
               .no_grad_in = 1, .attrs = attrs);
