/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/pow.c - Pow: y = a^b, of a's dtype; b may be of another. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_value *b = n->in[1];
    wf_dtype own = b->dtype;
    wf_status rc;

    if (own == WF_BOOL)
        return wf_fail(err, WF_SHAPE, "Cast it first", "the exponent is bool");
    /* The shapes are those of any arithmetic; only the dtypes are free. */
    b->dtype = n->in[0]->dtype;
    rc = wf_infer_arithmetic(g, n, NULL, err);
    b->dtype = own;
    return rc;
}

/* The one number that b is in every run, if it is. */
static bool constant_exponent(const wf_value *b, double *out)
{
    if (!wf_value_is_constant(b) || wf_elems(b->known) != 1)
        return false;
    switch (b->known->dtype) {
    case WF_F32:
        *out = wf_f32(b->known)[0];
        return true;
    case WF_F64:
        *out = *(const double *)b->known->data;
        return true;
    case WF_I64:
        *out = (double)*(const int64_t *)b->known->data;
        return true;
    case WF_I32:
        *out = *(const int32_t *)b->known->data;
        return true;
    default:
        return false;
    }
}

/* d/da = b a^(b-1); for a constant b without the detour over Pow where it can be helped. */
static wf_value *grad_of_base(wf_grads *g, const wf_node *n, wf_value *dy)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *a = n->in[0], *b = n->in[1], *power;
    double exponent;

    if (constant_exponent(b, &exponent)) {
        if (exponent == 1)
            return dy;
        power = exponent == 2 ? a : wf_emit_pow(e, a, wf_emit_scalar(e, a->dtype, exponent - 1));
        return wf_emit_scale(e, wf_emit_mul(e, dy, power), exponent);
    }
    b = wf_emit_cast(e, b, a->dtype);
    power = wf_emit_pow(e, a, wf_emit_sub(e, b, wf_emit_scalar(e, a->dtype, 1)));
    return wf_emit_mul(e, dy, wf_emit_mul(e, b, power));
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *a = n->in[0], *b = n->in[1], *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    if (wf_grads_wanted(g, n, 0))
        WF_TRY(wf_grads_add(g, n, 0, wf_emit_sum_to(e, grad_of_base(g, n, dy), a)));
    if (wf_grads_wanted(g, n, 1)) {
        /* d/db = y ln a, and 0 where a is 0, as PyTorch has it. */
        wf_value *zero = wf_emit_scalar(e, a->dtype, 0);
        wf_value *ln =
            wf_emit_where(e, wf_emit_binary(e, "Equal", a, zero), zero, wf_emit_log(e, a));
        wf_value *db = wf_emit_mul(e, dy, wf_emit_mul(e, n->out[0], ln));

        WF_TRY(wf_grads_add(g, n, 1, wf_emit_cast(e, wf_emit_sum_to(e, db, b), b->dtype)));
    }
    return wf_emit_end(e);
}

const wf_op wf_op_pow = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Pow", 15, 2, infer, .grad = grad);
