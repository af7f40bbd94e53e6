/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/unit.c - what every pass needs: warnings, fetches, rewiring, questions. */
#include "common/base/text.h"
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WARNING_BYTES = 512 };

/* Room for one more element; arenas cannot grow in place, so lists double. */
static void *grown(wf_arena *a, void *list, size_t n, size_t *room, size_t size)
{
    size_t more = *room ? *room * 2 : 8;
    void *fresh;

    if (n < *room)
        return list;
    fresh = wf_arena_array(a, more, size);
    if (!fresh)
        return NULL;
    if (n)
        memcpy(fresh, list, n * size);
    *room = more;
    return fresh;
}

wf_status wf_unit_warn(wf_unit *u, wf_err *err, const char *fmt, ...)
{
    char text[WARNING_BYTES], safe[WARNING_BYTES];
    const char **list, *kept;
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    wf_text_escape(text, false, safe, sizeof(safe));
    kept = wf_arena_strdup(u->arena, safe);
    list = grown(u->arena, u->c->warnings, u->c->n_warnings, &u->warnings_room, sizeof(*list));
    if (!kept || !list)
        return wf_fail_nomem(err, sizeof(text));
    u->c->warnings = list;
    list[u->c->n_warnings++] = kept;
    return WF_OK;
}

wf_status wf_unit_in_file(const wf_unit *u, int line, wf_status rc, wf_err *err)
{
    return u->spec->file ? wf_err_wrap(err, rc, "%s:%d", u->spec->file, line) : rc;
}

const wf_table *wf_unit_table(const wf_unit *u, const char *name)
{
    for (size_t i = 0; i < u->n_tables; i++)
        if (u->tables[i].initial && strcmp(u->tables[i].name, name) == 0)
            return &u->tables[i];
    return NULL;
}

wf_status wf_unit_fetch(wf_unit *u, wf_fetch f, wf_err *err)
{
    wf_fetch *list =
        grown(u->arena, u->fetches, u->n_fetches, &u->fetches_room, sizeof(*u->fetches));

    if (!list)
        return wf_fail_nomem(err, sizeof(f) * (u->n_fetches + 1));
    u->fetches = list;
    list[u->n_fetches++] = f;
    return WF_OK;
}

/* What a pass made gets its plain name, "loss" or "accuracy", unless the model uses that. */
static wf_status name_output(wf_unit *u, const wf_fetch *f, wf_err *err)
{
    for (size_t i = 0; i < u->n_model_outputs; i++)
        if (u->model_outputs[i] == f->value)
            return WF_OK;
    if (f->meaning == WF_MEANS_GRADIENT || f->meaning == WF_MEANS_OUTPUT ||
        wf_graph_value(u->graph, f->label))
        return WF_OK;
    return wf_graph_rename_value(u->graph, f->value, f->label, err);
}

wf_status wf_unit_set_outputs(wf_unit *u, wf_err *err)
{
    u->graph->n_outputs = 0;
    for (size_t i = 0; i < u->n_fetches; i++)
        if (u->fetches[i].value && !wf_is_output(u->graph, u->fetches[i].value)) {
            WF_TRY(name_output(u, &u->fetches[i], err));
            WF_TRY(wf_graph_add_output(u->graph, u->fetches[i].value, err));
        }
    return WF_OK;
}

bool wf_node_is(const wf_node *n, const char *domain, const char *op)
{
    return n && !strcmp(n->op->name, op) && !strcmp(n->op->domain, domain);
}

bool wf_is_output(const wf_graph *g, const wf_value *v)
{
    for (size_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == v)
            return true;
    return false;
}

size_t wf_uses(const wf_graph *g, const wf_value *v)
{
    return v->n_uses + wf_is_output(g, v);
}

static bool is_pushed(const wf_value *v)
{
    for (const wf_use *u = v->first_use; u; u = u->next)
        if (u->node->op->flags & WF_OP_SINK)
            return true;
    return false;
}

bool wf_scalar_of(const wf_value *v, double *out)
{
    const wf_tensor *t = v ? v->known : NULL;

    if (!t || !wf_value_is_constant(v) || wf_elems(t) != 1)
        return false;
    switch (t->dtype) {
    case WF_F32:
        *out = *(const float *)t->data;
        return true;
    case WF_F64:
        *out = *(const double *)t->data;
        return true;
    case WF_I64:
        *out = (double)*(const int64_t *)t->data;
        return true;
    case WF_I32:
        *out = *(const int32_t *)t->data;
        return true;
    case WF_BOOL:
        *out = *(const uint8_t *)t->data != 0;
        return true;
    default:
        return false;
    }
}

bool wf_may_hand_over(const wf_graph *g, const wf_value *from, const wf_value *to)
{
    bool owned = wf_is_output(g, from) || is_pushed(from);

    return !owned || (to->producer && !(to->producer->op->flags & WF_OP_SOURCE) &&
                      !wf_is_output(g, to) && !is_pushed(to));
}

/* The unit's pointers follow what flows. */
static void follow(wf_unit *u, const wf_value *from, wf_value *to)
{
    if (u->loss == from)
        u->loss = to;
    for (size_t i = 0; i < u->n_goals; i++) {
        wf_goal *goal = &u->goals[i];
        wf_value **own[] = {&goal->scores, &goal->labels, &goal->weights, &goal->loss};

        for (size_t k = 0; k < WF_COUNT(own); k++)
            if (*own[k] == from)
                *own[k] = to;
    }
    for (size_t i = 0; i < u->n_targets; i++)
        if (u->targets[i].gradient == from)
            u->targets[i].gradient = to;
    for (size_t i = 0; i < u->n_fetches; i++)
        if (u->fetches[i].value == from)
            u->fetches[i].value = to;
    for (size_t i = 0; i < u->n_model_outputs; i++)
        if (u->model_outputs[i] == from)
            u->model_outputs[i] = to;
}

/* Gives `to` the name of `from`, which gets a new one. */
static wf_status take_name(wf_graph *g, wf_value *from, wf_value *to, wf_err *err)
{
    const char *name = from->name;
    wf_value *spare; /* makes a free name */
    char *old, *fresh;

    WF_TRY(wf_graph_add_value_like(g, name, &spare, err));
    old = wf_arena_printf(g->arena, "%s/bypassed", spare->name);
    fresh = wf_arena_printf(g->arena, "%s/renamed", spare->name);
    if (!old || !fresh)
        return wf_fail_nomem(err, strlen(spare->name));
    WF_TRY(wf_graph_rename_value(g, to, fresh, err));
    WF_TRY(wf_graph_rename_value(g, from, old, err));
    return wf_graph_rename_value(g, to, name, err);
}

wf_status wf_hand_over(wf_unit *u, wf_value *from, wf_value *to, wf_err *err)
{
    if (from == to)
        return WF_OK;
    if (!wf_may_hand_over(u->graph, from, to)) {
        wf_emit e = wf_emit_begin(u->graph, from->name, err);

        to = wf_emit_identity(&e, to);
        WF_TRY(wf_emit_end(&e));
    }
    if (wf_is_output(u->graph, from))
        WF_TRY(take_name(u->graph, from, to, err));
    wf_graph_replace_uses(u->graph, from, to);
    follow(u, from, to);
    return WF_OK;
}
