/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/normalizer.c - Normalizer of ai.onnx.ml. */
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/proto.h"

/* x by the norm of its row; zeros stay zeros. */
static wf_value *by_norm(wf_call *c, const char *reduce, wf_value *x)
{
    wf_value *norm = wf_emit_binary(c->e, reduce, x, wf_emit_ints(c->e, 1, (int64_t[]){-1}));
    wf_value *zero = wf_emit_scalar(c->e, WF_F32, 0), *one = wf_emit_scalar(c->e, WF_F32, 1);

    norm = wf_emit_where(c->e, wf_emit_binary(c->e, "Equal", norm, zero), one, norm);
    return wf_emit_div(c->e, x, norm);
}

static wf_status normalizer(wf_call *c, wf_err *err)
{
    wf_value *x = wf_emit_cast(c->e, c->in[0], WF_F32);

    WF_TRY(wf_call_need_rank(c, 0, 1, 2, err));
    c->out[0] = by_norm(c,
                        wf_onnx_says(c->p, "norm", "L1")   ? "ReduceL1"
                        : wf_onnx_says(c->p, "norm", "L2") ? "ReduceL2"
                                                           : "ReduceMax",
                        x);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"norm", WF_ATTR_STRING, false}, {0}};

const wf_expansion wf_expansion_normalizer = WF_EXPANDS(
    WF_DOMAIN_ML, "Normalizer", 1, 1, 1, 1, 1, normalizer, .note = WF_EXPANDED, .attrs = attrs);
