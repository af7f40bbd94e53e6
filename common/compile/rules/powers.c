/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/powers.c - powers and quotients that are products, with the same bits. */
#include "common/compile/rules/rules.h"
#include <math.h>
#include <stdlib.h>

/* x^2 is x x, and one pass that a chain can take in. */
static wf_status square(wf_rewrite *r)
{
    wf_value *x = r->n->in[0];
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    double exponent;

    if (!wf_dtype_is_float(x->dtype) || !wf_scalar_of(r->n->in[1], &exponent) || exponent != 2.0 ||
        !wf_same_shape(x, r->n->out[0]))
        return WF_OK;
    r->instead = wf_emit_mul(&e, x, x);
    return wf_emit_end(&e);
}

/* A quotient by a power of two is a product with its inverse, which is exact. */
static wf_status quotient(wf_rewrite *r)
{
    wf_value *x = r->n->in[0];
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    double divisor;
    int exponent;

    if (!wf_dtype_is_float(x->dtype) || !wf_scalar_of(r->n->in[1], &divisor) ||
        !wf_same_shape(x, r->n->out[0]) || fabs(frexp(divisor, &exponent)) != 0.5 ||
        abs(exponent) > 64 || divisor == 1.0)
        return WF_OK;
    r->instead = wf_emit_mul(&e, x, wf_emit_scalar(&e, x->dtype, 1.0 / divisor));
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_powers[] = {
    {WF_DOMAIN_ONNX, "Pow", square},
    {WF_DOMAIN_ONNX, "Div", quotient},
    {0},
};
