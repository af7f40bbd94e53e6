/* SPDX-License-Identifier: Apache-2.0 */
/* master/callbacks/callbacks.c */
#include "master/callbacks/callbacks.h"
#include "common/base/nearest.h"
#include "common/base/size.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- out of a job file ---- */

static wf_status find_metric(const wf_job_conf *job, const wf_conf_item *item,
                             const char *const metrics[], size_t n, char *out, size_t size,
                             wf_err *err)
{
    const char *monitor = wf_conf_text(item, "monitor", "val_loss"), *near;
    const char *plain = strncmp(monitor, "val_", 4) == 0 ? monitor + 4 : monitor;

    for (size_t i = 0; i < n; i++) {
        if (strcmp(metrics[i], plain) != 0)
            continue;
        if (plain == monitor)
            return wf_fail(err, WF_UNSUPPORTED, "metrics of training batches are not watched",
                           "%s:%d: %s: monitor is \"val_%.60s\", not \"%.60s\"", job->path,
                           item->line, item->type, monitor, monitor);
        snprintf(out, size, "%s", plain);
        return WF_OK;
    }
    near = wf_nearest(plain, metrics, n);
    return wf_fail(err, WF_USAGE, near ? NULL : "name it in \"metrics\"",
                   "%s:%d: %s: the evaluation gives no \"%.60s\"%s%s%s", job->path, item->line,
                   item->type, monitor, near ? "; did you mean \"val_" : "", near ? near : "",
                   near ? "\"?" : "");
}

/* As Keras guesses: what is a score grows. */
static bool grows(const wf_conf_item *item, const char *metric)
{
    static const char *const scores[] = {"acc", "auc", "precision", "recall", "f1", "r2"};
    const char *mode = wf_conf_text(item, "mode", "auto");

    if (strcmp(mode, "auto") != 0)
        return strcmp(mode, "max") == 0;
    for (size_t i = 0; i < sizeof scores / sizeof scores[0]; i++)
        if (strstr(metric, scores[i]))
            return true;
    return false;
}

static wf_status read_one(wf_callback *c, const wf_job_conf *job, const wf_conf_item *item,
                          const char *const metrics[], size_t n, wf_err *err)
{
    bool stop = strcmp(item->type, "early_stopping") == 0;
    bool rate = strcmp(item->type, "reduce_lr_on_plateau") == 0;

    *c = (wf_callback){
        .kind = stop   ? WF_CALLBACK_STOP
                : rate ? WF_CALLBACK_RATE
                       : WF_CALLBACK_SAVE,
        .min_delta = fabs(wf_conf_number(item, "min_delta", rate ? 1e-4 : 0)),
        .baseline = wf_conf_number(item, "baseline", (double)NAN),
        .factor = wf_conf_number(item, "factor", 0.1),
        .min_rate = wf_conf_number(item, "min_lr", 0),
        .patience = (uint32_t)wf_conf_int(item, "patience", rate ? 10 : 0),
        .cooldown = (uint32_t)wf_conf_int(item, "cooldown", 0),
        .start_from_epoch = (uint32_t)wf_conf_int(item, "start_from_epoch", 0),
        .restore_best = wf_conf_int(item, "restore_best_weights", 0) != 0,
        .best_only = wf_conf_int(item, "save_best_only", 0) != 0,
    };
    WF_TRY(find_metric(job, item, metrics, n, c->metric, sizeof c->metric, err));
    c->larger_is_better = grows(item, c->metric);
    return WF_OK;
}

/* Whether a callback says which checkpoint is the best; there is room for one such. */
static bool chooses(const wf_callback *c)
{
    return c->kind == WF_CALLBACK_SAVE || (c->kind == WF_CALLBACK_STOP && c->restore_best);
}

static wf_status check_choice(const wf_callbacks *c, const wf_job_conf *job,
                              const wf_conf_item *item, wf_err *err)
{
    const wf_callback *last = &c->rows[c->n - 1], *first = NULL;

    for (uint32_t i = 0; i + 1 < c->n && !first; i++)
        if (chooses(&c->rows[i]))
            first = &c->rows[i];
    if (!first || !chooses(last))
        return WF_OK;
    if (strcmp(first->metric, last->metric) == 0 && first->min_delta == last->min_delta &&
        first->larger_is_better == last->larger_is_better && !last->start_from_epoch &&
        !first->start_from_epoch)
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "give both the same monitor, mode, and no min_delta",
                   "%s:%d: %s chooses another best checkpoint than the callback before it; a job "
                   "has one",
                   job->path, item->line, item->type);
}

wf_status wf_callbacks_init(wf_callbacks *c, const wf_job_conf *job, const char *const metrics[],
                            size_t n_metrics, double rate, wf_err *err)
{
    *c = (wf_callbacks){.rate = isnan(rate) ? 0 : rate, .epochs = job->epochs};
    for (size_t i = 0; i < job->n_callbacks; i++) {
        const wf_conf_item *item = &job->callbacks[i];

        if (strcmp(item->type, "terminate_on_nan") == 0)
            continue;
        WF_TRY(read_one(&c->rows[c->n], job, item, metrics, n_metrics, err));
        if (c->rows[c->n++].kind == WF_CALLBACK_RATE && isnan(rate))
            return wf_fail(err, WF_USAGE, "take one of the two",
                           "%s:%d: %s changes a learning rate that follows a schedule", job->path,
                           item->line, item->type);
        WF_TRY(check_choice(c, job, item, err));
    }
    return WF_OK;
}

/* ---- after an evaluation ---- */

static void add_sentence(char *said, size_t size, const char *fmt, ...) WF_PRINTF(3, 4);
static void add_sentence(char *said, size_t size, const char *fmt, ...)
{
    size_t at = strlen(said);
    va_list args;

    if (at + 1 < size && at)
        said[at++] = '\n';
    va_start(args, fmt);
    vsnprintf(said + at, size - at, fmt, args);
    va_end(args);
}

/* NaN is better than nothing, and nothing is better than NaN. */
static bool is_better(const wf_callback *c, double value, double than)
{
    return c->larger_is_better ? value - c->min_delta > than : value + c->min_delta < than;
}

static bool improves(const wf_callback *c, struct wf_callback_state *s, double value)
{
    if (s->any ? !is_better(c, value, s->best) : isnan(value))
        return false;
    s->any = true;
    s->best = value;
    return true;
}

static void want_best(wf_callbacks_state *s)
{
    s->save = s->best = true;
}

static void step_stop(const wf_callback *c, struct wf_callback_state *own, wf_callbacks_state *s,
                      uint64_t epochs, uint32_t epoch, double value, char *said, size_t size)
{
    if (epoch < c->start_from_epoch)
        return;
    own->wait++;
    if (improves(c, own, value)) {
        if (c->restore_best)
            want_best(s);
        if (isnan(c->baseline) || is_better(c, value, c->baseline))
            own->wait = 0;
        return;
    }
    if (own->wait < c->patience || epoch == 0)
        return;
    s->stopped = epochs;
    add_sentence(said, size,
                 "early stopping after epoch %u: val_%s has not improved on %.6g for %u epochs",
                 epoch + 1, c->metric, own->best, own->wait);
}

static void step_rate(const wf_callback *c, struct wf_callback_state *own, wf_callbacks_state *s,
                      double configured, double value, char *said, size_t size)
{
    double rate = s->rate > 0 ? s->rate : configured, lower = WF_MAX(rate * c->factor, c->min_rate);

    if (own->cooldown > 0) {
        own->cooldown--;
        own->wait = 0;
    }
    if (improves(c, own, value)) {
        own->wait = 0;
        return;
    }
    if (own->cooldown > 0 || ++own->wait < c->patience || rate <= c->min_rate)
        return;
    own->cooldown = c->cooldown;
    own->wait = 0;
    s->rate = lower;
    s->configured = configured;
    add_sentence(said, size, "val_%s has not improved on %.6g: learning rate %g from here on",
                 c->metric, own->best, lower);
}

void wf_callbacks_step(const wf_callbacks *c, wf_callbacks_state *s, uint32_t epoch,
                       const wf_callbacks_metric metrics[], size_t n, char *said, size_t size)
{
    said[0] = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const wf_callback *row = &c->rows[i];
        size_t k = 0;

        while (k < n && strcmp(metrics[k].name, row->metric) != 0)
            k++;
        if (k == n)
            continue; /* the evaluation failed */
        if (row->kind == WF_CALLBACK_STOP)
            step_stop(row, &s->each[i], s, c->epochs, epoch, metrics[k].value, said, size);
        else if (row->kind == WF_CALLBACK_RATE)
            step_rate(row, &s->each[i], s, c->rate, metrics[k].value, said, size);
        else if (improves(row, &s->each[i], metrics[k].value))
            want_best(s);
        else
            s->save = s->save || !row->best_only;
    }
}

void wf_callbacks_saved(wf_callbacks_state *s, uint64_t step, uint32_t epoch)
{
    if (s->best) {
        s->best_step = step + 1;
        s->best_epoch = epoch;
    }
    s->save = s->best = false;
}

void wf_callbacks_not_saved(wf_callbacks_state *s)
{
    s->save = s->best = false;
}

bool wf_callbacks_restores(const wf_callbacks *c, const wf_callbacks_state *s, uint32_t epoch)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->rows[i].kind == WF_CALLBACK_STOP && c->rows[i].restore_best && s->best_step &&
            !s->best && s->best_epoch != epoch)
            return true;
    return false;
}

/* ---- as numbers ---- */

static const char *const any_names[] = {"0.any", "1.any", "2.any", "3.any",
                                        "4.any", "5.any", "6.any", "7.any"};
static const char *const best_names[] = {"0.best", "1.best", "2.best", "3.best",
                                         "4.best", "5.best", "6.best", "7.best"};
static const char *const wait_names[] = {"0.wait", "1.wait", "2.wait", "3.wait",
                                         "4.wait", "5.wait", "6.wait", "7.wait"};
static const char *const cooldown_names[] = {"0.cooldown", "1.cooldown", "2.cooldown",
                                             "3.cooldown", "4.cooldown", "5.cooldown",
                                             "6.cooldown", "7.cooldown"};

size_t wf_callbacks_put(const wf_callbacks_state *s, uint32_t n, const char *names[],
                        double values[])
{
    const wf_callbacks_metric head[] = {
        {"learning_rate", s->rate},
        {"configured_rate", s->configured},
        {"stopped", (double)s->stopped},
        {"save", s->save},
        {"best", s->best},
        {"best_step", (double)s->best_step},
        {"best_epoch", s->best_epoch},
    };
    size_t used = 0;

    if (n == 0)
        return 0;
    for (; used < sizeof head / sizeof head[0]; used++) {
        names[used] = head[used].name;
        values[used] = head[used].value;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct wf_callback_state *e = &s->each[i];
        const wf_callbacks_metric own[] = {{any_names[i], e->any},
                                           {best_names[i], e->best},
                                           {wait_names[i], e->wait},
                                           {cooldown_names[i], e->cooldown}};

        for (size_t k = 0; k < sizeof own / sizeof own[0]; k++, used++) {
            names[used] = own[k].name;
            values[used] = own[k].value;
        }
    }
    return used;
}

/* A number of a file as a count: what is none counts as 0. */
static uint32_t count_of(double value)
{
    return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static void take_own(wf_callbacks_state *s, const char *name, double value)
{
    for (int i = 0; i < WF_CONF_MAX_CALLBACKS; i++) {
        struct wf_callback_state *e = &s->each[i];

        if (strcmp(name, any_names[i]) == 0)
            e->any = value != 0;
        else if (strcmp(name, best_names[i]) == 0)
            e->best = value;
        else if (strcmp(name, wait_names[i]) == 0)
            e->wait = count_of(value);
        else if (strcmp(name, cooldown_names[i]) == 0)
            e->cooldown = count_of(value);
    }
}

void wf_callbacks_take(wf_callbacks_state *s, const char *name, double value)
{
    if (strcmp(name, "learning_rate") == 0)
        s->rate = value > 0 && isfinite(value) ? value : 0;
    else if (strcmp(name, "configured_rate") == 0)
        s->configured = value;
    else if (strcmp(name, "stopped") == 0)
        s->stopped = value >= 0 && value < 9e15 ? (uint64_t)value : 0;
    else if (strcmp(name, "save") == 0)
        s->save = value != 0;
    else if (strcmp(name, "best") == 0)
        s->best = value != 0;
    else if (strcmp(name, "best_step") == 0)
        s->best_step = value >= 0 && value < 9e15 ? (uint64_t)value : 0;
    else if (strcmp(name, "best_epoch") == 0)
        s->best_epoch = count_of(value);
    else
        take_own(s, name, value);
}

void wf_callbacks_restored(const wf_callbacks *c, wf_callbacks_state *s, uint64_t step,
                           uint32_t epoch)
{
    wf_callbacks_saved(s, step, epoch);
    if (s->stopped && s->stopped != c->epochs) {
        s->stopped = 0;
        for (uint32_t i = 0; i < c->n; i++)
            s->each[i].wait = 0;
    }
    if (s->rate > 0 && s->configured != c->rate) /* the job file has another now: that counts */
        s->rate = 0;
}
