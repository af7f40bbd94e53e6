/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/strategies/ports.c - variables become Pull, and gradients and statistics Push: the
 * ends of a worker's exchange.
 *
 * The pulled value takes the variable's name, so that nodes read as before. The variable's content
 * leaves the graph: whoever holds it gets it once, at the start of a job, and it
 * does not travel with the graph. Frozen
 * variables leave it later, in frozen.c, when no other pass looks at their content any more.
 */
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include <string.h>

static wf_status hold(wf_unit *u, const wf_value *v, const char *variable, wf_var_kind kind,
                      wf_err *err)
{
    wf_held *h = &u->held[u->n_held];

    h->name = variable;
    h->kind = kind;
    h->momentum = 0;
    WF_TRY(wf_unit_share(u, v->known, &h->initial, err));
    u->n_held++;
    return WF_OK;
}

wf_status wf_make_pull(wf_unit *u, wf_value *v, const char *variable, wf_var_kind kind, wf_err *err)
{
    wf_graph *g = u->graph;
    const wf_op *op = wf_op_find(WF_DOMAIN_WEFT, "Pull");
    const char *name = v->name;
    char *aside = wf_arena_printf(g->arena, "%s/on-ps", name);
    char *node = wf_arena_printf(g->arena, "pull/%s", variable);
    wf_value *pulled;
    wf_node *n;

    wf_assert(op);
    if (!aside || !node)
        return wf_fail_nomem(err, strlen(name));
    WF_TRY(hold(u, v, variable, kind, err));
    WF_TRY(wf_graph_rename_value(g, v, aside, err));
    WF_TRY(wf_graph_add_value(g, name, &pulled, err));
    wf_value_set_type(pulled, v->dtype, v->known->rank, v->known->dims);
    WF_TRY(wf_graph_add_node(g, op, node, 0, NULL, 1, &pulled, &n, err));
    WF_TRY(wf_node_set_string(g, n, "variable", variable, err));
    wf_graph_replace_uses(g, v, pulled);
    v->variable = WF_VAR_NOT; /* what is left of it goes when the graph is pruned */
    return WF_OK;
}

static wf_status make_push(wf_unit *u, wf_value *pushed, const char *name, wf_err *err)
{
    wf_graph *g = u->graph;
    const wf_op *op = wf_op_find(WF_DOMAIN_WEFT, "Push");
    char *node = wf_arena_printf(g->arena, "push/%s", name);
    wf_value *in[1] = {pushed};
    wf_node *n;

    wf_assert(op);
    if (!node)
        return wf_fail_nomem(err, strlen(name));
    WF_TRY(wf_graph_add_node(g, op, node, 1, in, 0, NULL, &n, err));
    return wf_node_set_string(g, n, "variable", name, err);
}

/* Gradients are pushed, not fetched. */
static void drop_gradient_fetches(wf_unit *u)
{
    size_t kept = 0;

    for (size_t i = 0; i < u->n_fetches; i++)
        if (u->fetches[i].meaning != WF_MEANS_GRADIENT)
            u->fetches[kept++] = u->fetches[i];
    u->n_fetches = kept;
}

static bool is_exchanged(const wf_value *v)
{
    return v->variable == WF_VAR_TRAINABLE || v->variable == WF_VAR_STATISTIC;
}

/* What is held of a variable already, or a new entry. */
static wf_held *held_as(wf_unit *u, const char *name)
{
    for (size_t i = 0; i < u->n_held; i++)
        if (!strcmp(u->held[i].name, name))
            return &u->held[i];
    return &u->held[u->n_held++];
}

/* The train graph makes a batch's statistics and pushes them; it does not read the running ones.
 * These may have a Pull all the same, until the graph is pruned. */
static wf_status push_statistics(wf_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->n_statistics; i++) {
        const wf_statistic *s = &u->statistics[i];

        if (s->initial->dtype != WF_F32)
            return wf_fail(err, WF_UNSUPPORTED, "export the model with float32 weights",
                           "statistic \"%s\" is %s, and weft trains float32", s->name,
                           wf_dtype_name(s->initial->dtype));
        *held_as(u, s->name) = (wf_held){.name = s->name,
                                         .kind = WF_VAR_STATISTIC,
                                         .initial = s->initial,
                                         .momentum = s->momentum};
        WF_TRY(make_push(u, s->batch, s->name, err));
    }
    return WF_OK;
}

wf_status wf_rewrite_to_ports(wf_unit *u, wf_err *err)
{
    size_t n_values = u->graph->n_values;

    for (size_t i = 0; i < n_values; i++) {
        const wf_value *v = u->graph->values[i];

        if (is_exchanged(v) && v->dtype != WF_F32)
            return wf_fail(err, WF_UNSUPPORTED, "export the model with float32 weights",
                           "variable \"%s\" is %s, and weft trains float32", v->name,
                           wf_dtype_name(v->dtype));
    }
    u->held = wf_arena_array(u->arena, n_values + u->n_statistics, sizeof(*u->held));
    if (!u->held)
        return wf_fail_nomem(err, n_values * sizeof(*u->held));
    /* Pushes first: they are named after the variable while its value still has the name. */
    for (size_t i = 0; i < u->n_targets; i++)
        if (u->targets[i].gradient && u->spec->mode == WF_COMPILE_TRAIN)
            WF_TRY(make_push(u, u->targets[i].gradient, u->targets[i].variable->name, err));
    for (size_t i = 0; i < n_values; i++)
        if (is_exchanged(u->graph->values[i]))
            WF_TRY(wf_make_pull(u, u->graph->values[i], u->graph->values[i]->name,
                                u->graph->values[i]->variable, err));
    WF_TRY(push_statistics(u, err));
    drop_gradient_fetches(u);
    WF_TRY(wf_unit_set_outputs(u, err));
    return wf_graph_sort(u->graph, err);
}
