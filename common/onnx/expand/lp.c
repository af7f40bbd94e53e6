/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/lp.c - LpNormalization and GlobalLpPool: the p-norm along axes. */
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/proto.h"

#include <inttypes.h>

/* The p-norm along axes [n], which stay. */
static wf_value *p_norm(wf_call *c, wf_value *x, int64_t p, uint32_t n, const int64_t axes[])
{
    wf_value *sum, *list = wf_emit_ints(c->e, n, axes);

    if (p == 1 || p == 2)
        return wf_emit_binary(c->e, p == 1 ? "ReduceL1" : "ReduceL2", x, list);
    sum =
        wf_emit_pow(c->e, wf_emit_unary(c->e, "Abs", x), wf_emit_scalar(c->e, x->dtype, (double)p));
    sum = wf_emit_reduce_sum(c->e, sum, n, axes, true);
    return wf_emit_pow(c->e, sum, wf_emit_scalar(c->e, x->dtype, 1 / (double)p));
}

/* x by its norm along one axis; zeros stay zeros. */
static wf_status lp_normalization(wf_call *c, wf_err *err)
{
    int64_t axis = wf_onnx_int(c->p, "axis", -1), p = wf_onnx_int(c->p, "p", 2);
    wf_value *x = c->in[0], *norm, *zero, *one;

    WF_TRY(wf_call_need_rank(c, 0, 1, WF_MAX_RANK, err));
    if (p != 1 && p != 2)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "p is %" PRId64 "; weft has 1 and 2", p);
    norm = p_norm(c, x, p, 1, &axis);
    zero = wf_emit_scalar(c->e, x->dtype, 0);
    one = wf_emit_scalar(c->e, x->dtype, 1);
    norm = wf_emit_where(c->e, wf_emit_binary(c->e, "Equal", norm, zero), one, norm);
    c->out[0] = wf_emit_div(c->e, x, norm);
    return WF_OK;
}

static wf_status global_lp_pool(wf_call *c, wf_err *err)
{
    int64_t p = wf_onnx_int(c->p, "p", 2), axes[WF_MAX_RANK];
    uint32_t n;

    WF_TRY(wf_call_need_rank(c, 0, 3, WF_MAX_RANK, err));
    if (p < 1 || p > 64)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "p is %" PRId64 "; weft has 1 to 64", p);
    n = (uint32_t)c->in[0]->rank - 2;
    for (uint32_t i = 0; i < n; i++)
        axes[i] = i + 2;
    c->out[0] = p_norm(c, c->in[0], p, n, axes);
    return WF_OK;
}

static const wf_attr_row normalization_attrs[] = {
    {"axis", WF_ATTR_INT, false}, {"p", WF_ATTR_INT, false}, {0}};

static const wf_attr_row pool_attrs[] = {{"p", WF_ATTR_INT, false}, {0}};

const wf_expansion wf_expansion_global_lp_pool =
    WF_EXPANDS(WF_DOMAIN_ONNX, "GlobalLpPool", 2, 1, 1, 1, 1, global_lp_pool, .note = WF_EXPANDED,
               .attrs = pool_attrs);

const wf_expansion wf_expansion_lp_normalization =
    WF_EXPANDS(WF_DOMAIN_ONNX, "LpNormalization", 1, 1, 1, 1, 1, lp_normalization,
               .note = WF_EXPANDED, .attrs = normalization_attrs);
