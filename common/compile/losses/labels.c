/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/losses/labels.c - the feed that holds a goal's labels. */
#include "common/base/nearest.h"
#include "common/compile/losses/losses.h"
#include <stdio.h>
#include <string.h>

enum { FIELDS_SHOWN = 32 };

static bool same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

/* The field that the job names for the labels is one of the data's. */
static wf_status check_named(const wf_unit *u, const wf_conf_said *said, wf_err *err)
{
    const char *names[FIELDS_SHOWN], *near;
    char hint[160] = "name it in data.train";
    size_t n = 0;

    for (size_t i = 0; i < u->spec->n_fields; i++) {
        if (!strcmp(u->spec->fields[i].name, said->text))
            return WF_OK;
        if (n < WF_COUNT(names))
            names[n++] = u->spec->fields[i].name;
    }
    if (!u->spec->n_fields)
        return WF_OK;
    near = wf_nearest(said->text, names, n);
    if (near)
        snprintf(hint, sizeof(hint), "did you mean \"%.100s\"?", near);
    return wf_fail(err, WF_USAGE, hint, "labels: the data has no field \"%.64s\"", said->text);
}

/* What the labels' feed is called. */
static wf_status label_name(const wf_unit *u, const wf_goal *g, const char **out, wf_err *err)
{
    const wf_compile_spec *s = u->spec;

    for (size_t i = 0; i < s->n_labels; i++)
        if (same(s->labels[i].output, g->output) || (!s->labels[i].output && u->n_goals == 1)) {
            *out = s->labels[i].text;
            return check_named(u, &s->labels[i], err);
        }
    for (size_t i = 0; i < s->n_fields; i++) {
        const wf_value *v = wf_graph_value(u->graph, s->fields[i].name);
        bool fits = u->n_goals == 1 && (!v || !v->is_input);

        *out = s->fields[i].name;
        if (fits || (g->output && !strcmp(*out, g->output)))
            return WF_OK;
    }
    if (u->n_goals > 1 && s->n_fields)
        return wf_fail(err, WF_USAGE, "name it there, or write labels: {output: field}",
                       "no field of data.train has the labels of output \"%.64s\"", g->output);
    *out = u->n_goals > 1 ? g->output : "y";
    return WF_OK;
}

/* The labels of an output may be called as it is: in a graph that trains it is the output that
 * gives way, since nobody fetches it there. */
static wf_status give_way(wf_unit *u, wf_value *v, const char *name, wf_err *err)
{
    for (size_t i = 0; i < u->n_model_outputs; i++) {
        char *aside;

        if (u->model_outputs[i] != v)
            continue;
        aside = wf_arena_printf(u->graph->arena, "%s/prediction", name);
        if (!aside)
            return wf_fail_nomem(err, strlen(name));
        return wf_graph_rename_value(u->graph, v, aside, err);
    }
    return wf_fail(err, WF_EXISTS, "name the labels differently in the job's data",
                   "the labels' feed \"%s\" has the name of a value inside the model", name);
}

static wf_status make_feed(wf_unit *u, const wf_goal *g, const char *name, wf_value **out,
                           wf_err *err)
{
    bool sparse = g->kind == WF_LOSS_SPARSE;
    wf_value *v;

    WF_TRY(wf_graph_add_value(u->graph, name, &v, err));
    v->dtype = sparse ? WF_I64 : g->scores->dtype;
    v->rank = g->scores->rank - sparse;
    memcpy(v->axes, g->scores->axes, (size_t)v->rank * sizeof(*v->axes));
    *out = v;
    return wf_graph_add_input(u->graph, v, err);
}

static wf_status check_feed(const wf_goal *g, const wf_value *v, wf_err *err)
{
    bool sparse = g->kind == WF_LOSS_SPARSE;
    bool clash = false;
    char type[128], scores[128];

    if (wf_dtype_is_float(v->dtype) == sparse)
        return wf_fail(err, WF_SHAPE, "choose the loss that fits the labels",
                       "the labels' feed \"%s\" is %s, and loss %s takes %s", v->name,
                       wf_value_str(v, type, sizeof(type)), g->row->name,
                       sparse ? "classes, which are integers" : wf_dtype_name(g->scores->dtype));
    for (int32_t i = 1; i < v->rank && i < g->scores->rank; i++)
        clash = clash || (v->axes[i].size >= 0 && g->scores->axes[i].size >= 0 &&
                          v->axes[i].size != g->scores->axes[i].size);
    if (clash || v->rank != g->scores->rank - sparse)
        return wf_fail(err, WF_SHAPE, "give each output labels of its own",
                       "the labels' feed \"%s\" is %s, which does not go with scores %s", v->name,
                       wf_value_str(v, type, sizeof(type)),
                       wf_value_str(g->scores, scores, sizeof(scores)));
    return WF_OK;
}

wf_status wf_goal_find_labels(wf_unit *u, wf_goal *g, wf_err *err)
{
    const char *name = NULL;
    wf_value *v;

    WF_TRY(label_name(u, g, &name, err));
    v = wf_graph_value(u->graph, name);
    if (v && !v->is_input) {
        WF_TRY(give_way(u, v, name, err));
        v = NULL;
    }
    if (v)
        WF_TRY(check_feed(g, v, err));
    else
        WF_TRY(make_feed(u, g, name, &v, err));
    g->labels = v;
    g->label_feed = v;
    return WF_OK;
}
