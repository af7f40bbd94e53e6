/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/metric.c - the metrics that a job names, attached to the goals that they are of.
 */
#include "common/base/nearest.h"
#include "common/compile/metrics/metrics.h"
#include <stdio.h>
#include <string.h>

enum { MOST_NAMES = 96, MOST_OPTIONS = 16 };

/* The row of any loss function's name: the mean of its values. */
static wf_status attach_loss(const wf_metric *m, wf_err *err)
{
    return wf_metric_fetch_loss(m, wf_loss_find(m->item->type), err);
}

static wf_status unknown(const char *name, wf_err *err)
{
    const char *names[MOST_NAMES];
    char hint[WF_NEAREST_HINT];
    size_t n = 0;

    for (size_t i = 0; wf_metric_name_at(i) && n < MOST_NAMES; i++)
        names[n++] = wf_metric_name_at(i);
    for (size_t i = 0; wf_loss_at(i) && n < MOST_NAMES; i++)
        names[n++] = wf_loss_at(i)->name;
    return wf_fail(err, WF_USAGE, wf_nearest_hint(name, names, n, "weft help metrics", hint),
                   "unknown metric \"%.64s\"", name);
}

static const wf_goal *goal_of(const wf_unit *u, const char *output)
{
    for (size_t i = 0; i < u->n_goals; i++)
        if (!output || (u->goals[i].output && !strcmp(u->goals[i].output, output)))
            return &u->goals[i];
    return NULL;
}

static bool is_taken(const wf_unit *u, const char *label)
{
    for (size_t i = 0; i < u->n_fetches; i++)
        if (!strcmp(u->fetches[i].label, label))
            return true;
    return false;
}

/* "auc", with several losses "out_a_auc", and "auc_1" for the second one. */
static wf_status make_label(wf_metric *m, const char *name, wf_err *err)
{
    bool several = m->u->n_goals > 1;
    char text[WF_MEASURE_NAME];
    size_t n;

    name = wf_conf_text(m->item, "name", name);
    n = (size_t)snprintf(text, sizeof(text), "%s%s%s", several ? m->goal->output : "",
                         several ? "_" : "", name);
    if (n + 4 > sizeof(text))
        return wf_fail(err, WF_USAGE, "give it a shorter name, with the option name",
                       "the metric's name \"%s...\" has more than %d letters", text,
                       (int)sizeof(text) - 4);
    for (int i = 1; is_taken(m->u, text) && i < 100; i++)
        snprintf(text + n, sizeof(text) - n, "_%d", i);
    m->label = wf_arena_strdup(m->u->arena, text);
    return m->label ? WF_OK : wf_fail_nomem(err, n);
}

static wf_status check_goal(const wf_metric *m, wf_err *err)
{
    const wf_goal *g = m->goal;
    const char *loss = g->item ? g->item->type : m->u->loss->name;

    if (!g->scores || !g->labels)
        return wf_fail(err, WF_UNSUPPORTED, "leave it out, or name a loss function in the job",
                       "metric %s: what the model's own loss compares is not known", m->item->type);
    if (m->row->kinds & WF_METRIC_OF(g->kind))
        return WF_OK;
    return wf_fail(err, WF_USAGE,
                   g->kind == WF_LOSS_REGRESSION
                       ? "use mean_absolute_error, root_mean_squared_error or r2_score"
                       : "use accuracy, which goes with all losses over classes",
                   "metric %s does not go with the loss \"%s\"", m->item->type, loss);
}

static wf_status attach_one(wf_unit *u, const wf_conf_term *term, wf_err *err)
{
    wf_metric m = {.u = u, .goal = goal_of(u, term->output), .item = &term->item};
    const wf_loss_row *loss = wf_loss_find(term->item.type);
    wf_metric_row of_loss = {.name = "", .attach = attach_loss};

    m.row = wf_metric_find(term->item.type);
    if (!m.row && loss) {
        of_loss.kinds = WF_METRIC_OF(loss->kind);
        m.row = &of_loss;
    }
    if (!m.row)
        return unknown(term->item.type, err);
    if (!m.goal)
        return wf_fail(err, WF_USAGE, "name an output that \"loss\" names",
                       "metric %s is of the output \"%.64s\", which has no loss", term->item.type,
                       term->output);
    WF_TRY(check_goal(&m, err));
    WF_TRY(make_label(&m, m.row == &of_loss ? loss->name : m.row->name, err));
    return m.row->attach(&m, err);
}

/* The options of a loss function that bear on its values, and the name. */
static void options_of_loss(const wf_loss_row *loss, wf_option_row out[MOST_OPTIONS])
{
    size_t n = 0;

    for (const wf_option_row *o = loss->options; o && o->name && n < MOST_OPTIONS - 2; o++)
        if (o->kind == WF_CONF_NUMBER || o->kind == WF_CONF_BOOL)
            out[n++] = *o;
    out[n++] = (wf_option_row)WF_METRIC_NAME;
    out[n] = (wf_option_row){0};
}

static wf_status check_options(const wf_unit *u, const wf_conf_item *item, wf_err *err)
{
    const wf_metric_row *row = wf_metric_find(item->type);
    const wf_loss_row *loss = wf_loss_find(item->type);
    wf_option_row options[MOST_OPTIONS];

    if (row)
        return wf_conf_check_item(item, "metric", row->options, u->spec->file, err);
    if (!loss)
        return WF_OK; /* an unknown name is told as that */
    options_of_loss(loss, options);
    return wf_conf_check_item(item, "metric", options, u->spec->file, err);
}

wf_status wf_attach_metrics(wf_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->spec->n_metrics; i++) {
        const wf_conf_term *t = &u->spec->metrics[i];

        WF_TRY(check_options(u, &t->item, err));
        WF_TRY(wf_unit_in_file(u, t->item.line, attach_one(u, t, err), err));
    }
    return WF_OK;
}
