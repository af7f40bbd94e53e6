/* SPDX-License-Identifier: Apache-2.0 */
/* master/training.c - splits are dealt and come back, epochs end with an evaluation.
 *
 * The place of a checkpoint is a place in the data: the split that holds the batch of planned step
 * k * every_steps is dealt with a mark, and the worker that gets there says so. With one worker
 * that is exactly step k * every_steps, in every run.
 */
#include "common/base/size.h"
#include "common/compile/compile.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPLITS_PER_WORKER = 16, MOST_BATCHES = 64, MOST_HELD = 512 };

static uint64_t batches(uint64_t records, uint64_t batch)
{
    return records / batch + (records % batch != 0);
}

uint64_t wf_training_global_step(const wf_master *m, const wf_job *j)
{
    uint64_t steps = j->base_step + j->lost_steps;

    /* Members work for one job at a time; generations of two jobs may have one number. */
    for (uint32_t i = 0; j == m->job && i < m->n_members; i++)
        if (m->members[i].task.role == WF_ROLE_WORKER &&
            m->members[i].generation == j->generation && m->members[i].incarnation)
            steps += m->members[i].steps;
    return steps;
}

/* The planned step before position `at` of the open epoch. */
static uint64_t planned_step(const wf_job *j, uint64_t at)
{
    return j->ledger.epoch * batches(j->train_records, j->prepared->batch) +
           batches(at, j->prepared->batch);
}

/* Small enough that no worker waits long for another at an epoch's end, large enough that a split's
 * word to the master is rare. */
static uint64_t choose_split(const wf_master *m, const wf_job *j)
{
    const wf_prepared *p = j->prepared;
    uint64_t n = batches(j->train_records, p->batch);
    uint64_t each = n / ((uint64_t)m->n_workers * SPLITS_PER_WORKER);

    if (p->split_records)
        return (p->split_records + p->batch - 1) / p->batch * p->batch;
    return WF_MAX(WF_MIN(each, (uint64_t)MOST_BATCHES), 1) * p->batch;
}

/* A value that is no mean stands as a mean of itself. */
static void keep_tally(wf_tally *t, wf_measure *m)
{
    snprintf(t->name, sizeof t->name, "%s", m->name);
    if (!wf_metric_mean(m, &t->sum, &t->count)) {
        t->sum = wf_metric_value(m);
        t->count = 1;
    }
}

/* What one message says of a metric. */
static wf_status take_metric(wf_tally *t, const Weft__Metric *from, wf_err *err)
{
    wf_measure m = {.sum = from->sum, .count = from->count};
    wf_status rc = WF_OK;

    snprintf(m.name, sizeof m.name, "%s", from->name);
    snprintf(m.metric, sizeof m.metric, "%s", from->metric);
    if (from->sums.len)
        rc = wf_sums_decode(&m.sums, from->sums.data, from->sums.len, err);
    if (rc == WF_OK)
        keep_tally(t, &m);
    wf_sums_close(&m.sums);
    return rc;
}

static wf_status take_metrics(wf_tally to[], uint32_t *n, size_t count, Weft__Metric *const from[],
                              wf_err *err)
{
    *n = 0;
    for (size_t i = 0; i < count && *n < WF_MASTER_METRICS; i++) {
        WF_TRY(take_metric(&to[*n], from[i], err));
        ++*n;
    }
    return WF_OK;
}

size_t wf_training_callbacks(const wf_job *j, Weft__Option rows[], Weft__Option *list[])
{
    const char *names[WF_CALLBACKS_NUMBERS];
    double values[WF_CALLBACKS_NUMBERS];
    uint32_t kept = j->prepared ? j->prepared->callbacks.n : WF_CONF_MAX_CALLBACKS;
    size_t n = wf_callbacks_put(&j->callbacks, kept, names, values);

    for (size_t i = 0; i < n; i++) {
        weft__option__init(&rows[i]);
        rows[i].name = (char *)names[i];
        rows[i].value = values[i];
        list[i] = &rows[i];
    }
    return n;
}

/* The last evaluation, as means: whoever starts anew can still say what it was. */
static size_t list_eval(const wf_job *j, Weft__Metric rows[], Weft__Metric *list[])
{
    for (uint32_t i = 0; i < j->n_eval; i++) {
        weft__metric__init(&rows[i]);
        rows[i].name = (char *)j->eval[i].name;
        rows[i].sum = j->eval[i].sum;
        rows[i].count = j->eval[i].count;
        list[i] = &rows[i];
    }
    return j->n_eval;
}

wf_status wf_training_journal(wf_master *m, const wf_job *j, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__EpochRecord r = WEFT__EPOCH_RECORD__INIT;
    Weft__Split *rows = calloc(j->ledger.n + 1, sizeof *rows);
    Weft__Split **list = calloc(j->ledger.n + 1, sizeof(*list));
    Weft__Option numbers[WF_CALLBACKS_NUMBERS], *numbers_list[WF_CALLBACKS_NUMBERS];
    Weft__Metric eval[WF_MASTER_METRICS], *eval_list[WF_MASTER_METRICS];
    wf_status rc;

    record.epoch = &r;
    record.number = j->number;
    r.epoch = j->ledger.epoch;
    r.records = j->ledger.records;
    r.train_records = j->train_records;
    r.split_records = j->ledger.split_records;
    r.evaluated = j->evaluated;
    r.base_step = j->base_step;
    r.next_cut = j->next_cut;
    r.callbacks = numbers_list;
    r.n_callbacks = wf_training_callbacks(j, numbers, numbers_list);
    r.eval = eval_list;
    r.n_eval = list_eval(j, eval, eval_list);
    r.eval_epoch = j->eval_epoch;
    r.finished = list;
    for (uint64_t i = 0; rows && list && i < j->ledger.n; i++) {
        uint64_t begin = wf_ledger_begins(&j->ledger, i);
        Weft__Split *row = &rows[r.n_finished];

        if (j->ledger.rows[i].next == begin)
            continue;
        if (r.n_finished > 0 && row[-1].end == begin) { /* many splits, few ranges */
            row[-1].end = j->ledger.rows[i].next;
            continue;
        }
        weft__split__init(row);
        row->begin = begin;
        row->end = j->ledger.rows[i].next;
        list[r.n_finished++] = row;
    }
    rc = rows && list ? wf_journal_append(m->journal, &record, err)
                      : wf_fail_nomem(err, j->ledger.n * sizeof *rows);
    free(rows);
    free(list);
    return rc;
}

/* Records of the epoch, cut short where `steps:` bounds the job. */
static uint64_t epoch_records(const wf_job *j, uint32_t epoch)
{
    const wf_prepared *p = j->prepared;
    uint64_t before = epoch * batches(j->train_records, p->batch);

    if (!p->steps)
        return j->train_records;
    if (p->steps <= before)
        return 0;
    return WF_MIN(j->train_records, (p->steps - before) * p->batch);
}

wf_status wf_training_begin_epoch(wf_master *m, wf_job *j, uint32_t epoch, wf_err *err)
{
    wf_err why;
    wf_status rc;

    rc = wf_ledger_begin(&j->ledger, epoch, epoch_records(j, epoch), choose_split(m, j), &why);
    if (rc != WF_OK)
        return wf_job_enter(m, j, WF_JOB_FAILED, &why, err);
    wf_rollback_apply(j);
    j->evaluated = false;
    wf_evaluation_close(j);
    if (!j->next_cut)
        j->next_cut = j->prepared->every_steps;
    return wf_training_journal(m, j, err);
}

wf_status wf_training_restore(wf_master *m, wf_job *j, const Weft__Ledger *l, wf_err *err)
{
    wf_err why;
    wf_status rc;

    j->train_records = l->records;
    j->next_cut = l->next_cut;
    rc = wf_ledger_begin(&j->ledger, l->epoch, epoch_records(j, l->epoch), l->split_records, &why);
    if (rc != WF_OK) { /* a job file of fewer steps than are made */
        wf_err_wrap(&why, rc, "epoch %u of the checkpoint, with \"steps\" as it is now",
                    l->epoch + 1);
        return wf_job_enter(m, j, WF_JOB_FAILED, &why, err);
    }
    j->evaluated = l->evaluated;
    for (size_t i = 0; i < l->n_finished; i++)
        wf_ledger_restore(&j->ledger, l->finished[i]->begin, l->finished[i]->end);
    wf_rollback_apply(j);
    return wf_training_journal(m, j, err);
}

wf_status wf_training_replay(wf_master *m, const Weft__EpochRecord *r, wf_err *err)
{
    wf_job *j = m->job;

    if (!j)
        return WF_OK;
    j->train_records = r->train_records;
    j->base_step = r->base_step;
    j->next_cut = r->next_cut;
    wf_ledger_close(&j->ledger);
    if (r->records) /* 0: no epoch is open */
        WF_TRY(wf_ledger_begin(&j->ledger, r->epoch, r->records, r->split_records, err));
    j->evaluated = r->evaluated;
    j->callbacks = (wf_callbacks_state){0};
    for (size_t i = 0; i < r->n_callbacks; i++)
        wf_callbacks_take(&j->callbacks, r->callbacks[i]->name, r->callbacks[i]->value);
    WF_TRY(take_metrics(j->eval, &j->n_eval, r->n_eval, r->eval, err));
    j->eval_epoch = r->eval_epoch;
    for (size_t i = 0; j->ledger.n && i < r->n_finished; i++)
        wf_ledger_restore(&j->ledger, r->finished[i]->begin, r->finished[i]->end);
    return WF_OK;
}

/* 1 + the position in split [begin, end) where a checkpoint is due, or 0. One split carries the
 * mark of a cut, so that two workers do not each announce it. */
static uint64_t cut_place(const wf_job *j, uint64_t next, uint64_t end)
{
    uint64_t before = planned_step(j, next), ahead;

    if (!j->prepared->every_steps || !j->next_cut || j->marked_cut == j->next_cut)
        return 0;
    if (j->next_cut <= before)
        return before == 0 ? 0 : 1 + next;
    ahead = (j->next_cut - before) * j->prepared->batch;
    return ahead < end - next ? 1 + next + ahead : 0;
}

static wf_status grant(wf_master *m, wf_job *j, wf_member *who, uint64_t id, wf_err *err)
{
    Weft__Split body = WEFT__SPLIT__INIT;

    body.id = id;
    body.epoch = j->ledger.epoch;
    body.begin = wf_ledger_begins(&j->ledger, id);
    body.next = j->ledger.rows[id].next;
    body.end = wf_ledger_ends(&j->ledger, id);
    body.cut_at = cut_place(j, body.next, body.end);
    if (body.cut_at)
        j->marked_cut = j->next_cut;
    who->wants = false;
    if (!j->began_ns) /* the time that a job takes begins with its first records */
        j->began_ns = m->now_ns;
    return wf_master_say(m, who, WF_SPLIT, &body.base, err);
}

/* After a restart nothing is dealt before each worker that may hold a split has claimed it or is
 * given up; once all have, waiting longer would only keep workers idle. */
static wf_status deal(wf_master *m, wf_job *j, wf_err *err)
{
    if (wf_master_facts(m)->claims_out || j->stop_asked || j->cut.state == WF_CUT_HOLDING)
        return WF_OK;
    for (uint64_t i = 0; wf_ledger_any_to_do(&j->ledger) && wf_todo_next(&m->wanting, i, &i); i++) {
        wf_member *who = &m->members[i];
        uint64_t id;

        if (!who->wants)
            wf_todo_remove(&m->wanting, i);
        else if (wf_member_trains(who, j) && wf_ledger_deal(&j->ledger, who->incarnation, &id))
            WF_TRY(grant(m, j, who, id, err));
    }
    return WF_OK;
}

bool wf_training_was_last(const wf_job *j)
{
    return j->callbacks.stopped || j->ledger.epoch + 1 >= j->prepared->epochs ||
           epoch_records(j, j->ledger.epoch + 1) == 0;
}

static wf_status say_rate(wf_master *m, const wf_job *j, wf_member *who, wf_err *err)
{
    Weft__Tune body = WEFT__TUNE__INIT;

    body.learning_rate = j->callbacks.rate;
    who->tune_sent = true;
    return wf_master_say(m, who, WF_TUNE, &body.base, err);
}

wf_status wf_training_on_tuned(const wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    Weft__Tune *body = NULL;

    if (!wf_job_of(m, who, msg)) /* a set-up has given it another rate since */
        return WF_OK;
    WF_TRY(wf_control_get(msg, &weft__tune__descriptor, &body, err));
    who->tuned = body->learning_rate;
    who->tune_sent = false;
    wf_control_free(&body);
    return WF_OK;
}

/* Nothing is in flight between two epochs: once every ps has the rate, the next may begin. */
static wf_status next_epoch(wf_master *m, wf_job *j, wf_err *err)
{
    bool all = true;

    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (who->task.role != WF_ROLE_PS || who->tuned == j->callbacks.rate)
            continue;
        all = false;
        if (!who->tune_sent && who->registered && who->peer)
            WF_TRY(say_rate(m, j, who, err));
    }
    return all ? wf_training_begin_epoch(m, j, j->ledger.epoch + 1, err) : WF_OK;
}

/* The job ends with the weights of its best checkpoint: a generation begins there, in which nothing
 * is trained. */
static wf_status end_with_the_best(wf_master *m, wf_job *j, wf_err *err)
{
    if (j->cut.state != WF_CUT_NONE)
        return WF_OK; /* one that is still being written */
    j->ending_from = j->callbacks.best_step;
    j->from_step = -1;
    wf_master_note(m, j, "job.restores_best", "the weights after epoch %u are the job's",
                   j->callbacks.best_epoch + 1);
    return wf_job_enter(m, j, WF_JOB_RECOVERING, NULL, err);
}

wf_status wf_training_advance(wf_master *m, wf_job *j, wf_err *err)
{
    if (j->ledger.n == 0) /* until a worker says how many records there are */
        return j->train_records ? wf_training_begin_epoch(m, j, 0, err) : WF_OK;
    if (j->ending_from) { /* a later generation may have saved that step at the next epoch's start
                           */
        j->cut_wanted = true;
        return WF_OK;
    }
    if (!wf_ledger_complete(&j->ledger))
        return deal(m, j, err);
    if (j->cut.state == WF_CUT_HOLDING)
        return WF_OK;
    if (j->prepared->evaluates && !j->evaluated)
        return wf_evaluation_advance(m, j, err);
    j->evaluated = true;
    if (j->callbacks.save) { /* before anything changes these weights */
        j->cut_wanted = true;
        return WF_OK;
    }
    if (!wf_training_was_last(j))
        return next_epoch(m, j, err);
    if (wf_callbacks_restores(&j->prepared->callbacks, &j->callbacks, j->ledger.epoch))
        return end_with_the_best(m, j, err);
    j->cut_wanted = true; /* the last checkpoint; cuts.c ends the job with it */
    return WF_OK;
}

static void take_rate(wf_master *m, wf_member *who, uint64_t samples)
{
    double seconds = (double)(m->now_ns - who->rate_ns) / 1e9;

    if (who->rate_ns && seconds > 0 && seconds < 10) {
        double rate = (double)samples / seconds;

        who->samples_per_sec =
            who->samples_per_sec > 0 ? 0.7 * who->samples_per_sec + 0.3 * rate : rate;
    }
    who->rate_ns = m->now_ns;
}

static wf_status on_progress(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                             wf_err *err)
{
    Weft__Progress *body = NULL;
    wf_status rc = WF_OK;

    WF_TRY(wf_control_get(msg, &weft__progress__descriptor, &body, err));
    who->steps = WF_MAX(who->steps, body->steps);
    for (size_t i = 0; i < body->n_open; i++)
        if (body->open[i]->epoch == j->ledger.epoch && j->ledger.n)
            wf_ledger_progress(&j->ledger, body->open[i]->id, who->incarnation,
                               body->open[i]->next);
    if (body->n_metrics)
        rc = take_metrics(j->metrics, &j->n_metrics, body->n_metrics, body->metrics, err);
    take_rate(m, who, body->samples);
    j->dropped_steps += body->dropped;
    if (body->dropped)
        wf_master_note(m, j, "job.dropped", "%lu steps of worker %u had NaN or infinite gradients",
                       (unsigned long)body->dropped, who->task.index);
    who->compute_ns += body->compute_ns;
    who->wait_ns += body->wait_ns;
    who->transfer_ns += body->transfer_ns;
    who->data_ns += body->data_ns;
    wf_control_free(&body);
    return rc;
}

static wf_status finish(wf_master *m, wf_job *j, const wf_member *who, Weft__Split *const list[],
                        size_t n, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__SplitDone done = WEFT__SPLIT_DONE__INIT;
    Weft__Split **kept = calloc(n + 1, sizeof(*kept));
    wf_status rc = WF_OK;

    if (!kept)
        return wf_fail_nomem(err, n * sizeof(*kept));
    for (size_t i = 0; i < n; i++)
        if (list[i]->epoch == j->ledger.epoch && j->ledger.n &&
            wf_ledger_finish(&j->ledger, list[i]->id, who->incarnation))
            kept[done.n_splits++] = list[i];
    done.splits = kept;
    record.finished = &done;
    record.number = j->number;
    done.steps = who->steps;
    done.incarnation = who->incarnation;
    if (done.n_splits)
        j->set_aside = 0; /* so it is not that workers die whatever they train */
    if (done.n_splits)
        rc = wf_journal_append(m->journal, &record, err); /* M1 */
    free(kept);
    return rc;
}

static wf_status on_done(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg, wf_err *err)
{
    Weft__SplitDone *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(msg, &weft__split_done__descriptor, &body, err));
    who->steps = WF_MAX(who->steps, body->steps);
    rc = finish(m, j, who, body->splits, body->n_splits, err);
    if (rc == WF_OK)
        rc = wf_master_say(m, who, WF_SPLIT_DONE_OK, &body->base, err);
    wf_control_free(&body);
    return rc;
}

wf_status wf_training_check_held(const wf_member *who, size_t n_open, size_t n_finished,
                                 wf_err *err)
{
    char text[32];

    if (n_open <= MOST_HELD && n_finished <= MOST_HELD)
        return WF_OK;
    return wf_fail(err, WF_PROTO, NULL, "%s says that it holds %zu splits and has done %zu",
                   wf_task_str(who->task, text, sizeof text), n_open, n_finished);
}

/* What a worker holds after the master was away, or after a new link: claims are taken, what it
 * does not hold goes back. */
wf_status wf_training_claim(wf_master *m, wf_member *who, const Weft__Register *r, wf_err *err)
{
    Weft__SplitDone ok = WEFT__SPLIT_DONE__INIT;
    wf_job *j = m->job;

    if (!j || wf_job_over(j->state) || !who->ready)
        return WF_OK;
    who->steps = WF_MAX(who->steps, r->steps);
    WF_TRY(wf_job_take_records(m, j, r->train_records, r->eval_records, err));
    if (wf_job_over(j->state) || !j->ledger.n)
        return WF_OK;
    wf_ledger_release(&j->ledger, who->incarnation, false);
    j->marked_cut = 0; /* it lets go of its mark when the link breaks */
    for (size_t i = 0; i < r->n_open; i++)
        if (r->open[i]->epoch == j->ledger.epoch)
            wf_ledger_claim(&j->ledger, r->open[i]->id, who->incarnation, r->open[i]->next);
    for (size_t i = 0; i < r->n_finished; i++)
        if (r->finished[i]->epoch == j->ledger.epoch)
            wf_ledger_claim(&j->ledger, r->finished[i]->id, who->incarnation, r->finished[i]->next);
    WF_TRY(finish(m, j, who, r->finished, r->n_finished, err));
    wf_evaluation_lost(j, who); /* dealt anew: the answer may have been lost with the link */
    ok.splits = r->finished;
    ok.n_splits = r->n_finished;
    WF_TRY(wf_cuts_on_register(m, j, who, r->cut, err));
    return wf_master_say(m, who, WF_SPLIT_DONE_OK, &ok.base, err);
}

static void decide(wf_master *m, wf_job *j)
{
    wf_callbacks_metric metrics[WF_MASTER_METRICS];
    char said[512], *line, *rest = said;

    for (uint32_t i = 0; i < j->n_eval; i++)
        metrics[i] = (wf_callbacks_metric){j->eval[i].name, j->eval[i].count > 0
                                                                ? j->eval[i].sum / j->eval[i].count
                                                                : (double)NAN};
    wf_callbacks_step(&j->prepared->callbacks, &j->callbacks, j->ledger.epoch, metrics, j->n_eval,
                      said, sizeof said);
    while ((line = strsep(&rest, "\n")))
        if (line[0])
            wf_master_note(m, j, "job.callback", "%s", line);
}

wf_status wf_training_evaluated(wf_master *m, wf_job *j, wf_measure measures[], uint32_t n,
                                const char *failed, wf_err *err)
{
    uint32_t epoch = j->ledger.epoch;
    char facts[256] = "";

    j->evaluated = true;
    if (failed) {
        snprintf(facts, sizeof facts, "failed: %s", failed);
    } else {
        j->n_eval = n;
        j->eval_epoch = epoch + 1;
    }
    for (uint32_t i = 0; !failed && i < n; i++) {
        size_t at = strlen(facts);

        keep_tally(&j->eval[i], &measures[i]);
        snprintf(facts + at, sizeof facts - at, "%s%s %.4f", at ? "  " : "", j->eval[i].name,
                 j->eval[i].count > 0 ? j->eval[i].sum / j->eval[i].count : 0);
    }
    wf_evaluation_close(j);
    wf_master_note(m, j, "job.evaluated", "epoch %u: %s", epoch + 1, facts);
    if (!failed)
        decide(m, j);
    return wf_training_journal(m, j, err);
}

wf_status wf_training_on_message(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    wf_job *j = wf_job_of(m, who, msg);

    if (!j)
        return WF_OK;
    switch (msg->head.kind) {
    case WF_SPLIT_WANT:
        who->wants = true;
        wf_todo_add(&m->wanting, (uint64_t)(who - m->members));
        return WF_OK;
    case WF_SPLIT_DONE:
        return on_done(m, j, who, msg, err);
    case WF_PROGRESS:
        return on_progress(m, j, who, msg, err);
    case WF_EVAL_RESULT:
        return j->evaluated ? WF_OK : wf_evaluation_on_result(m, j, who, msg, err);
    default:
        return WF_OK;
    }
}
