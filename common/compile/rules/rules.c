/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/rules.c - the driver, and what rules ask. */
#include "common/compile/rules/rules.h"
#include <math.h>

/* No chain of rewrites that one makes possible for the next came near it. */
enum { MOST_SWEEPS = 100 };

wf_node *wf_rewrite_maker(const wf_value *v, const char *op)
{
    return v && wf_node_is(v->producer, WF_DOMAIN_ONNX, op) ? v->producer : NULL;
}

wf_node *wf_rewrite_made_by(const wf_node *n, uint32_t i, const char *op)
{
    return wf_node_has_in(n, i) ? wf_rewrite_maker(n->in[i], op) : NULL;
}

bool wf_rewrite_sole(const wf_rewrite *r, const wf_value *v)
{
    size_t readers = 0;

    /* Who asks for a dtype alone can ask it of another. */
    for (const wf_use *u = v->first_use; u && readers < 2; u = u->next)
        readers += !wf_node_is(u->node, WF_DOMAIN_ONNX, "CastLike") || u->node->in[0] == v;
    return readers == 1 && !wf_is_output(r->u->graph, v);
}

bool wf_rewrite_uniform(const wf_value *v, double *out)
{
    const wf_node *n;
    const wf_attr *value;

    if (wf_scalar_of(v, out))
        return true;
    n = v ? v->producer : NULL;
    if (wf_node_is(n, WF_DOMAIN_ONNX, "Expand"))
        return wf_scalar_of(n->in[0], out);
    if (wf_node_is(n, WF_DOMAIN_ONNX, "Cast") || wf_node_is(n, WF_DOMAIN_ONNX, "CastLike"))
        return wf_dtype_is_float(n->out[0]->dtype) && wf_scalar_of(n->in[0], out);
    if (!wf_node_is(n, WF_DOMAIN_ONNX, "ConstantOfShape"))
        return false;
    value = wf_node_attr(n, "value");
    if (!value || !value->t) {
        *out = 0.0;
        return true;
    }
    if (value->t->dtype != WF_F32)
        return false;
    *out = *(const float *)value->t->data;
    return true;
}

bool wf_rewrite_is(const wf_value *v, double number)
{
    double found;

    return wf_rewrite_uniform(v, &found) && fabs(found - number) <= 1e-6 * fabs(number);
}

static bool looks_at(const wf_rewrite_rule *rule, const wf_node *n)
{
    return !rule->op || wf_node_is(n, rule->domain, rule->op);
}

static wf_status apply(wf_unit *u, const wf_rewrite_rule *rule, wf_node *n, bool *changed,
                       wf_err *err)
{
    wf_rewrite r = {.u = u, .n = n, .err = err};
    wf_status rc;

    u->graph->device = n->device; /* what takes its place runs there too */
    rc = rule->run(&r);
    u->graph->device = NULL;
    WF_TRY(rc);
    *changed = *changed || r.changed;
    if (r.instead && wf_may_hand_over(u->graph, n->out[0], r.instead)) {
        WF_TRY(wf_hand_over(u, n->out[0], r.instead, err));
        *changed = true;
    }
    return WF_OK;
}

static wf_status apply_all(wf_unit *u, const wf_rewrite_rule *const lists[], wf_node *n,
                           bool *changed, wf_err *err)
{
    for (size_t i = 0; lists[i]; i++)
        for (const wf_rewrite_rule *rule = lists[i]; rule->run; rule++) {
            if (!looks_at(rule, n))
                continue;
            if (!wf_node_has_out(n, 0) || !wf_uses(u->graph, n->out[0]))
                return WF_OK; /* bypassed before: pruning takes it */
            WF_TRY(apply(u, rule, n, changed, err));
        }
    return WF_OK;
}

wf_status wf_rules_apply(wf_unit *u, const wf_rewrite_rule *const lists[], bool prunes, wf_err *err)
{
    bool changed = true;

    for (int sweep = 0; changed && sweep < MOST_SWEEPS; sweep++) {
        size_t n_nodes = u->graph->n_nodes; /* those made in a sweep wait for the next */

        changed = false;
        for (size_t i = 0; i < n_nodes; i++)
            WF_TRY(apply_all(u, lists, u->graph->nodes[i], &changed, err));
        if (changed)
            WF_TRY(prunes ? wf_pass_prune(u, err) : wf_graph_sort(u->graph, err));
    }
    return wf_infer(u->graph, err);
}
