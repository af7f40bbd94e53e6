/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/stages.c - a model is divided into stages, each on a worker or a device of one
 * (stage_homes.c): which stage computes a node, and holds a variable.
 *
 * Forward nodes, which an output needs, follow their inputs: a node's stage is the latest of those
 * of its inputs, and of its variables, which the job's patterns place. A variable that no pattern
 * names, and what is computed of feeds and constants alone, are where they are read first.
 *
 * The others compute gradients, which go back from stage to stage. Such a node is at the latest
 * stage of the forward values that it reads, of whoever reads it, and of the variable that it is
 * the gradient of. One that reads gradients alone, as a sum of them does, is with them, so that the
 * sum travels and not what it is of.
 *
 * So activations go to later stages and gradients to earlier ones, which is what the order of
 * micro-batches relies on (worker/stages/schedule.h).
 */
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/compile/pass.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- variables by patterns ---- */

static uint32_t stage_of_rule(const wf_compile_spec *spec, const wf_conf_stage *rule)
{
    uint32_t s = 0;

    while (s + 1 < spec->n_stages &&
           (spec->stage_homes[s].worker != rule->worker ||
            !wf_stage_same_device(spec->stage_homes[s].device, rule->device)))
        s++;
    return s;
}

static wf_status matches_nothing(const wf_stages *s, const wf_conf_stage *rule, wf_err *err)
{
    const wf_compiled *c = s->u->c;
    const char **names = calloc(c->n_variables + 1, sizeof(*names)), *near = NULL;
    wf_status rc;

    for (size_t i = 0; names && i < c->n_variables; i++)
        names[i] = c->variables[i].name;
    if (names && c->n_variables)
        near = wf_nearest(rule->match, names, c->n_variables);
    if (names && c->n_variables && !near)
        near = names[0];
    rc = wf_unit_in_file(
        s->u, rule->line,
        wf_fail(err, WF_USAGE, NULL, "place: \"%.200s\" matches no variable of the model%s%s%s",
                rule->match, near ? "; there is \"" : "", near ? near : "", near ? "\"" : ""),
        err);
    free(names);
    return rc;
}

static void place(wf_stages *s, size_t variable, uint32_t stage)
{
    if (!s->placed[variable])
        s->u->c->variables[variable].stage = stage;
    s->placed[variable] = true;
}

/* In the eval graph only those variables are left that it alone has. */
static wf_status place_variables(wf_stages *s, wf_err *err)
{
    const wf_compile_spec *spec = s->u->spec;
    wf_compiled *c = s->u->c;

    for (size_t i = 0; i < spec->n_settled; i++) {
        int64_t at = wf_compiled_find(c, spec->settled[i].name);

        if (at >= 0)
            place(s, (size_t)at, spec->settled[i].stage);
    }
    for (size_t k = 0; k < spec->n_stage_rules; k++) {
        const wf_conf_stage *rule = &spec->stages[k];
        bool any = spec->mode != WF_COMPILE_TRAIN;

        for (size_t i = 0; i < c->n_variables; i++) {
            if (fnmatch(rule->match, c->variables[i].name, 0) != 0)
                continue;
            place(s, i, stage_of_rule(spec, rule));
            any = true;
        }
        if (!any)
            return matches_nothing(s, rule, err);
    }
    return WF_OK;
}

/* ---- forward nodes ---- */

static bool has(const wf_stages *s, const wf_node *n, uint8_t kind)
{
    return s->kinds[n->index] & kind;
}

static wf_status mark_forward(wf_stages *s, wf_err *err)
{
    const wf_graph *g = s->u->graph;
    bool *wanted = calloc(g->n_values + 1, sizeof *wanted);

    if (!wanted)
        return wf_fail_nomem(err, g->n_values);
    for (size_t i = 0; i < g->n_outputs; i++)
        wanted[g->outputs[i]->index] = true;
    for (size_t i = g->n_nodes; i-- > 0;) {
        const wf_node *n = g->nodes[i];
        bool needed = false;

        for (uint32_t k = 0; k < n->n_out; k++)
            needed |= n->out[k] && wanted[n->out[k]->index];
        for (uint32_t k = 0; needed && k < n->n_in; k++)
            if (n->in[k])
                wanted[n->in[k]->index] = true;
        if (needed)
            s->kinds[i] |= WF_STAGE_FORWARD;
    }
    free(wanted);
    return WF_OK;
}

/* Marks what floats, and what computes with variables. */
static void mark_floating(wf_stages *s)
{
    const wf_graph *g = s->u->graph;

    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];
        int64_t v = s->variable[i];
        uint8_t kinds = WF_STAGE_FLOATS;

        if (v >= 0)
            kinds =
                s->placed[v] || n->n_in > 0 ? WF_STAGE_WEIGHS : WF_STAGE_WEIGHS | WF_STAGE_FLOATS;
        for (uint32_t k = 0; k < n->n_in; k++) {
            const wf_node *p = n->in[k] ? n->in[k]->producer : NULL;

            if (p && !has(s, p, WF_STAGE_FLOATS))
                kinds &= (uint8_t)~WF_STAGE_FLOATS;
            if (p)
                kinds |= s->kinds[p->index] & WF_STAGE_WEIGHS;
        }
        s->kinds[i] |= kinds;
    }
}

static void follow_inputs(wf_stages *s)
{
    const wf_graph *g = s->u->graph;

    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];

        if (!has(s, n, WF_STAGE_FORWARD) || has(s, n, WF_STAGE_FLOATS))
            continue;
        if (s->variable[i] >= 0)
            s->of[i] = s->u->c->variables[s->variable[i]].stage;
        for (uint32_t k = 0; k < n->n_in; k++) {
            const wf_node *p = n->in[k] ? n->in[k]->producer : NULL;

            if (p && !has(s, p, WF_STAGE_FLOATS))
                s->of[i] = WF_MAX(s->of[i], s->of[p->index]);
        }
    }
}

/* The first stage that reads a node, of the forward pass or of all; or `otherwise`. */
static uint32_t first_reader(const wf_stages *s, const wf_node *n, bool forward, uint32_t otherwise)
{
    uint32_t first = UINT32_MAX;

    for (uint32_t k = 0; k < n->n_out; k++)
        for (const wf_use *u = n->out[k] ? n->out[k]->first_use : NULL; u; u = u->next)
            if (!forward || has(s, u->node, WF_STAGE_FORWARD))
                first = WF_MIN(first, s->of[u->node->index]);
    return first == UINT32_MAX ? otherwise : first;
}

/* What floats goes where it is read first, and with it variables that have no stage. */
static void settle_floating(wf_stages *s, bool forward)
{
    const wf_graph *g = s->u->graph;

    for (size_t i = g->n_nodes; i-- > 0;) {
        const wf_node *n = g->nodes[i];

        if (!has(s, n, WF_STAGE_FLOATS) || has(s, n, WF_STAGE_FORWARD) != forward)
            continue;
        s->of[i] = first_reader(s, n, forward, 0);
        if (s->variable[i] >= 0)
            place(s, (size_t)s->variable[i], s->of[i]);
        if (s->variable[i] >= 0)
            s->of[i] = s->u->c->variables[s->variable[i]].stage;
    }
}

/* ---- gradients ---- */

/* The least stage that a node of the backward pass may have, by what it reads. */
static uint32_t least_by_inputs(const wf_stages *s, const wf_node *n)
{
    uint32_t least = 0;

    for (uint32_t k = 0; k < n->n_in; k++) {
        const wf_node *p = n->in[k] ? n->in[k]->producer : NULL;

        if (p && has(s, p, WF_STAGE_FORWARD) &&
            (!has(s, p, WF_STAGE_FLOATS) || has(s, p, WF_STAGE_WEIGHS)))
            least = WF_MAX(least, s->of[p->index]);
    }
    return least;
}

static void find_least(wf_stages *s)
{
    const wf_graph *g = s->u->graph;

    for (size_t i = g->n_nodes; i-- > 0;) {
        const wf_node *n = g->nodes[i];
        int64_t v = s->variable[i];

        if (has(s, n, WF_STAGE_FORWARD) || has(s, n, WF_STAGE_FLOATS))
            continue;
        s->of[i] = WF_MAX(s->of[i], least_by_inputs(s, n));
        if (v >= 0 && s->placed[v])
            s->of[i] = WF_MAX(s->of[i], s->u->c->variables[v].stage);
        for (uint32_t k = 0; k < n->n_in; k++) {
            const wf_node *p = n->in[k] ? n->in[k]->producer : NULL;

            if (p && !has(s, p, WF_STAGE_FORWARD) && !has(s, p, WF_STAGE_FLOATS))
                s->of[p->index] = WF_MAX(s->of[p->index], s->of[i]);
        }
    }
}

static bool is_for_pushes(const wf_node *n)
{
    bool all = true;

    for (uint32_t k = 0; k < n->n_out; k++)
        for (const wf_use *u = n->out[k] ? n->out[k]->first_use : NULL; u; u = u->next)
            all &= u->node->op->flags & WF_OP_SINK;
    return all;
}

/* A node of gradients alone is with them, but for one that a variable waits for. */
static void join_gradients(wf_stages *s)
{
    const wf_graph *g = s->u->graph;

    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];
        uint32_t first = UINT32_MAX;
        bool reads_forward = false;

        if (has(s, n, WF_STAGE_FORWARD) || has(s, n, WF_STAGE_FLOATS) || s->variable[i] >= 0 ||
            is_for_pushes(n))
            continue;
        for (uint32_t k = 0; k < n->n_in; k++) {
            const wf_node *p = n->in[k] ? n->in[k]->producer : NULL;

            if (p && has(s, p, WF_STAGE_FORWARD))
                reads_forward |= !has(s, p, WF_STAGE_FLOATS);
            else if (p && !has(s, p, WF_STAGE_FLOATS))
                first = WF_MIN(first, s->of[p->index]);
        }
        if (!reads_forward && first != UINT32_MAX)
            s->of[i] = WF_MAX(s->of[i], first);
    }
}

/* Statistics that the training graph does not read are where they are made. */
static void place_pushed(wf_stages *s)
{
    const wf_graph *g = s->u->graph;

    for (size_t i = 0; i < g->n_nodes; i++)
        if (s->variable[i] >= 0 && (g->nodes[i]->op->flags & WF_OP_SINK))
            place(s, (size_t)s->variable[i], s->of[i]);
}

/* ---- what must hold ---- */

/* A forward value that a reader of the variable takes from a later stage; NULL: some reader is with
 * the variable. */
static const wf_value *comes_late(const wf_stages *s, const wf_node *pull)
{
    const wf_value *late = NULL;

    for (const wf_use *u = pull->out[0]->first_use; u; u = u->next) {
        const wf_node *n = u->node;

        if (!has(s, n, WF_STAGE_FORWARD))
            continue;
        if (s->of[n->index] == s->of[pull->index])
            return NULL;
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k]->producer && s->of[n->in[k]->producer->index] == s->of[n->index])
                late = n->in[k];
    }
    return late;
}

static wf_status goes_back(const wf_compile_spec *spec, const char *variable, uint32_t on,
                           const char *late, uint32_t from, wf_err *err)
{
    const wf_stage_home *a = &spec->stage_homes[on], *b = &spec->stage_homes[from];
    bool same = a->worker == b->worker;
    char here[96], there[96];

    return wf_fail(err, WF_USAGE,
                   same ? "what computes first goes to the device that cluster.yaml lists first"
                        : "what computes first goes to the worker with the lower number",
                   "place: \"%.200s\" is on %s, and what it is used with, \"%.200s\", comes from "
                   "%s: values go from a %s to those %s alone",
                   variable, wf_stage_home_str(a, here, sizeof here), late,
                   wf_stage_home_str(b, there, sizeof there), same ? "device" : "worker",
                   same ? "behind it in the list of the worker's devices" : "with higher numbers");
}

/* A variable lies where it is first used; in later stages it may be used again, as tied weights
 * are. */
static wf_status check_order(const wf_stages *s, wf_err *err)
{
    const wf_graph *g = s->u->graph;
    const wf_compile_spec *spec = s->u->spec;

    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];
        const wf_value *late;

        if (s->variable[i] < 0 || !(n->op->flags & WF_OP_SOURCE) || !has(s, n, WF_STAGE_FORWARD))
            continue;
        late = comes_late(s, n);
        if (late)
            return wf_unit_in_file(s->u, spec->place_line,
                                   goes_back(spec, s->u->c->variables[s->variable[i]].name,
                                             s->of[i], late->name, s->of[late->producer->index],
                                             err),
                                   err);
    }
    return WF_OK;
}

/* Each stage has something to train, or would only pass on what it gets. */
static wf_status check_stages(const wf_stages *s, wf_err *err)
{
    const wf_compile_spec *spec = s->u->spec;
    const wf_compiled *c = s->u->c;

    for (uint32_t stage = 0; stage < spec->n_stages && spec->mode == WF_COMPILE_TRAIN; stage++) {
        bool any = false;
        char home[96];

        for (size_t i = 0; i < c->n_variables; i++)
            any |= c->variables[i].stage == stage;
        if (!any)
            return wf_unit_in_file(
                s->u, spec->place_line,
                wf_fail(err, WF_USAGE, "give it a layer, or leave it out",
                        "place: %s gets no variable, since patterns before its own match all that "
                        "it could have",
                        wf_stage_home_str(&spec->stage_homes[stage], home, sizeof home)),
                err);
    }
    return WF_OK;
}

static wf_status assign(wf_stages *s, wf_err *err)
{
    WF_TRY(mark_forward(s, err));
    WF_TRY(place_variables(s, err));
    if (s->u->spec->finds_stages && !s->u->spec->n_settled)
        WF_TRY(wf_stages_find(s, err));
    mark_floating(s);
    follow_inputs(s);
    settle_floating(s, true);
    find_least(s);
    join_gradients(s);
    settle_floating(s, false);
    place_pushed(s);
    WF_TRY(check_order(s, err));
    WF_TRY(check_stages(s, err));
    return wf_stages_connect(s, err);
}

static wf_status begin(wf_stages *s, wf_err *err)
{
    const wf_graph *g = s->u->graph;

    s->of = calloc(g->n_nodes + 1, sizeof *s->of);
    s->kinds = calloc(g->n_nodes + 1, sizeof *s->kinds);
    s->variable = calloc(g->n_nodes + 1, sizeof *s->variable);
    s->placed = calloc(s->u->c->n_variables + 1, sizeof *s->placed);
    if (!s->of || !s->kinds || !s->variable || !s->placed)
        return wf_fail_nomem(err, g->n_nodes * sizeof *s->variable);
    for (size_t i = 0; i < g->n_nodes; i++)
        s->variable[i] =
            g->nodes[i]->op->flags & (WF_OP_SOURCE | WF_OP_SINK)
                ? wf_compiled_find(s->u->c, wf_node_string(g->nodes[i], "variable", ""))
                : -1;
    return WF_OK;
}

wf_status wf_stages_assign(wf_unit *u, wf_err *err)
{
    wf_stages s = {.u = u};
    wf_status rc;

    wf_assert(u->spec->n_stages > 0);
    WF_TRY(wf_stages_name(u, err));
    rc = begin(&s, err);
    if (rc == WF_OK)
        rc = assign(&s, err);
    free(s.of);
    free(s.kinds);
    free(s.variable);
    free(s.placed);
    return rc;
}
