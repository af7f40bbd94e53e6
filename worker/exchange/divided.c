/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/divided.c - the model is divided among workers: each holds the variables of its
 * stage, and updates them by itself. The worker of the first stage has the job; to its logic this
 * exchange looks as one whose variables are all here. What it does for all stages is given to it
 * (wf_exchange_stages): a step that is computed has been applied by all of them.
 *
 * When a stage is lost, its variables are: the job goes back to its newest checkpoint.
 */
#include "common/base/status.h"
#include "worker/exchange.h"
#include "worker/exchange/local_state.h"

#include <stdlib.h>

typedef struct divided {
    wf_exchange base; /* first */
    wf_exchange_conf conf;
} divided;

static const wf_exchange_stages *stages_of(const wf_exchange *x)
{
    return ((const divided *)x)->conf.place.stages;
}

static void divided_free(wf_exchange *x)
{
    free(x); /* the stage is its owner's */
}

static wf_status want(wf_exchange *x, int set, uint32_t step, wf_err *err)
{
    const wf_exchange_stages *s = stages_of(x);
    bool ignored;

    (void)set, (void)step;
    return s->ready(s->arg, &ignored, err);
}

static bool ready(const wf_exchange *x, int set)
{
    const wf_exchange_stages *s = stages_of(x);
    bool all;
    wf_err ignored;

    (void)set;
    return s->ready(s->arg, &all, &ignored) == WF_OK && all;
}

/* Nobody but the stages has any. */
static const float *weights(const wf_exchange *x, int set, uint32_t number)
{
    (void)x, (void)set, (void)number;
    return NULL;
}

static float *gradient(wf_exchange *x, uint32_t step, uint32_t number)
{
    (void)x, (void)step, (void)number;
    return NULL;
}

static wf_status push(wf_exchange *x, uint32_t step, uint32_t number, wf_err *err)
{
    (void)x, (void)step, (void)number, (void)err;
    return WF_OK;
}

static wf_status drop_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    (void)x, (void)step, (void)err;
    return WF_OK;
}

static wf_status end_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    (void)err;
    wf_assert(step == x->acked + 1);
    x->begun = x->acked = step;
    return WF_OK;
}

static wf_status tune(wf_exchange *x, double learning_rate, wf_err *err)
{
    const wf_exchange_stages *s = stages_of(x);

    return s->tune(s->arg, learning_rate, err);
}

static uint32_t count_shards(const wf_exchange *x)
{
    return (uint32_t)((const divided *)x)->conf.start->n_stages;
}

static wf_status save(wf_exchange *x, wf_err *err)
{
    const wf_exchange_stages *s = stages_of(x);

    return s->save(s->arg, err);
}

static void name_late(const wf_exchange *x, wf_exchange_wait wait, uint32_t of, wf_waiting *out)
{
    const wf_exchange_stages *s = stages_of(x);

    (void)wait, (void)of;
    s->name_late(s->arg, out);
}

static const wf_exchange_ops ops = {
    .free = divided_free,
    .want = want,
    .ready = ready,
    .weights = weights,
    .gradient = gradient,
    .push = push,
    .drop_step = drop_step,
    .end_step = end_step,
    .tune = tune,
    .count_shards = count_shards,
    .save = save,
    .name_late = name_late,
};

static wf_status divided_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err)
{
    const wf_exchange_stages *s = conf->place.stages;
    divided *d;
    wf_status rc;

    if (!s || conf->start->n_stages < 2 || conf->start->stage != 0)
        return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                       "a start of a divided model that names no stages");
    d = calloc(1, sizeof *d);
    if (!d)
        return wf_fail_nomem(err, sizeof *d);
    d->base.ops = &ops;
    d->conf = *conf;
    *out = &d->base;
    rc = s->open(s->arg, &d->conf, &d->base, err);
    if (rc != WF_OK)
        wf_exchange_free(out);
    return rc;
}

const wf_exchange_kind wf_exchange_divided = {
    .name = "stages",
    .open = divided_open,
    .home = wf_local_home, /* of a stage's own (exchange/local.c) */
};
