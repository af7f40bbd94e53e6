/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/mean_variance_normalization.c - MeanVarianceNormalization. */
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/proto.h"

/* (x - mean) / (deviation + 1e-9) over attr axes, by default all but the channels of an image. */
static wf_status mean_variance_normalization(wf_call *c, wf_err *err)
{
    static const int64_t images[] = {0, 2, 3};
    wf_value *x = c->in[0], *d, *deviation;
    const int64_t *axes;
    size_t n;

    WF_TRY(wf_call_need_rank(c, 0, 1, WF_MAX_RANK, err));
    axes = wf_onnx_ints(c->p, "axes", &n);
    if (!axes) {
        axes = images;
        n = WF_COUNT(images);
    }
    if (n < 1 || n > WF_MAX_RANK)
        return wf_fail(err, WF_SHAPE, NULL, "it has %zu axes", n);
    d = wf_emit_sub(c->e, x, wf_emit_reduce_mean(c->e, x, (uint32_t)n, axes, true));
    deviation = wf_emit_unary(
        c->e, "Sqrt", wf_emit_reduce_mean(c->e, wf_emit_mul(c->e, d, d), (uint32_t)n, axes, true));
    deviation = wf_emit_add(c->e, deviation, wf_emit_scalar(c->e, x->dtype, 1e-9));
    c->out[0] = wf_emit_div(c->e, d, deviation);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"axes", WF_ATTR_INTS, false}, {0}};

const wf_expansion wf_expansion_mean_variance_normalization =
    WF_EXPANDS(WF_DOMAIN_ONNX, "MeanVarianceNormalization", 13, 1, 1, 1, 1,
               mean_variance_normalization, .note = WF_EXPANDED, .attrs = attrs);
