/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/gelu.c - Gelu, as files of opsets below 20 write it out:
 *
 *     x (1 + erf(x / sqrt 2)) / 2
 *     x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
 *
 * with the factors in any order. One kernel instead of five to nine, and one for the gradient; near
 * the left end 1 + erf would lose its digits, Gelu does not.
 */
#include "common/compile/rules/rules.h"
#include <math.h>
#include <string.h>

enum { MOST_FACTORS = 4 };

/* The factors of a product of Mul and of Div by a number: numbers collected, values listed. */
typedef struct product {
    const wf_rewrite *r;
    double number;
    wf_value *values[MOST_FACTORS];
    uint32_t n;
} product;

/* False when there are too many. `whole`: v is the product itself, not a factor that others could
 * read. */
static bool list_factors(product *p, wf_value *v, bool whole)
{
    const wf_node *mul = wf_rewrite_maker(v, "Mul"), *div = wf_rewrite_maker(v, "Div");
    double number;

    if (wf_rewrite_uniform(v, &number)) {
        p->number *= number;
        return true;
    }
    if (mul && (whole || wf_rewrite_sole(p->r, v)))
        return list_factors(p, mul->in[0], false) && list_factors(p, mul->in[1], false);
    if (div && (whole || wf_rewrite_sole(p->r, v)) && wf_rewrite_uniform(div->in[1], &number)) {
        p->number /= number;
        return list_factors(p, div->in[0], false);
    }
    if (p->n == MOST_FACTORS)
        return false;
    p->values[p->n++] = v;
    return true;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

/* v - 1, when v is a sum with 1. */
static wf_value *less_one(const wf_value *v)
{
    const wf_node *add = wf_rewrite_maker(v, "Add");

    for (uint32_t i = 0; add && i < 2; i++)
        if (wf_rewrite_is(add->in[i], 1.0))
            return add->in[1 - i];
    return NULL;
}

/* Whether v is x times that number. */
static bool is_multiple(const wf_rewrite *r, wf_value *v, const wf_value *x, double number)
{
    product p = {.r = r, .number = 1.0};

    return list_factors(&p, v, true) && p.n == 1 && p.values[0] == x && near(p.number, number);
}

/* Whether v is 0.044715 x^3, with the power as Pow or as products. */
static bool is_cubic(const wf_rewrite *r, wf_value *v, const wf_value *x)
{
    product p = {.r = r, .number = 1.0};
    uint32_t degree = 0;

    if (!list_factors(&p, v, true))
        return false;
    for (uint32_t i = 0; i < p.n; i++) {
        const wf_node *pow = wf_rewrite_maker(p.values[i], "Pow");

        if (p.values[i] == x)
            degree++;
        else if (pow && pow->in[0] == x && wf_rewrite_is(pow->in[1], 3.0))
            degree += 3;
        else if (pow && pow->in[0] == x && wf_rewrite_is(pow->in[1], 2.0))
            degree += 2;
        else
            return false;
    }
    return degree == 3 && near(p.number, 0.044715);
}

/* Whether v is sqrt(2 / pi) (x + 0.044715 x^3). */
static bool is_tanh_argument(const wf_rewrite *r, wf_value *v, const wf_value *x)
{
    product p = {.r = r, .number = 1.0};
    const wf_node *add;

    if (!list_factors(&p, v, true) || p.n != 1 || !near(p.number, 0.7978845608028654))
        return false;
    add = wf_rewrite_maker(p.values[0], "Add");
    for (uint32_t i = 0; add && i < 2; i++)
        if (add->in[i] == x && is_cubic(r, add->in[1 - i], x))
            return true;
    return false;
}

/* "none" or "tanh" when 1 + f is the bell's sum over x, else NULL. */
static const char *way_of(const wf_rewrite *r, const wf_value *sum, const wf_value *x)
{
    wf_value *f = less_one(sum);
    const wf_node *erf = wf_rewrite_maker(f, "Erf"), *tanh = wf_rewrite_maker(f, "Tanh");

    if (!f || !wf_rewrite_sole(r, sum) || !wf_rewrite_sole(r, f))
        return NULL;
    if (erf && is_multiple(r, erf->in[0], x, 0.7071067811865475))
        return "none";
    return tanh && is_tanh_argument(r, tanh->in[0], x) ? "tanh" : NULL;
}

static wf_status gelu(wf_rewrite *r)
{
    product p = {.r = r, .number = 1.0};
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);

    if (!list_factors(&p, r->n->out[0], true) || p.n != 2 || !near(p.number, 0.5) ||
        !wf_dtype_is_float(r->n->out[0]->dtype))
        return WF_OK;
    for (uint32_t i = 0; i < 2 && !r->instead; i++) {
        wf_value *x = p.values[i];
        const char *way = way_of(r, p.values[1 - i], x);
        wf_attr approximate = wf_attr_string("approximate", way);

        if (way && wf_same_shape(x, r->n->out[0]))
            r->instead = wf_emit_op(&e, "Gelu", 1, &x, !strcmp(way, "tanh"), &approximate);
    }
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_gelu[] = {
    {WF_DOMAIN_ONNX, "Div", gelu},
    {WF_DOMAIN_ONNX, "Mul", gelu},
    {0},
};
