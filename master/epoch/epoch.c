/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/epoch.c */
#include "master/epoch/epoch.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/conf/conf.h"
#include "common/wire/control.h"
#include "master/epoch/growth.h"
#include "master/epoch/left_out.h"
#include "master/epoch/metrics.h"
#include "master/epoch/split_size.h"
#include "master/epoch/splits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the life cycle ---- */

static const char *const states[] = {"none", "training", "evaluating", "evaluated"};
static const char *const events[] = {"opened", "evaluation begun", "evaluated", "closed"};

enum {
    NONE = WF_STATE(WF_EPOCH_NONE),
    TRAINING = WF_STATE(WF_EPOCH_TRAINING),
    EVALUATING = WF_STATE(WF_EPOCH_EVALUATING),
    EVALUATED = WF_STATE(WF_EPOCH_EVALUATED),
};

static const wf_edge edges[] = {
    {NONE | EVALUATED, WF_EPOCH_WAS_OPENED, WF_EPOCH_TRAINING},
    {TRAINING, WF_EPOCH_EVALUATION_BEGUN, WF_EPOCH_EVALUATING},
    {TRAINING | EVALUATING, WF_EPOCH_WAS_EVALUATED, WF_EPOCH_EVALUATED},
    {NONE | TRAINING | EVALUATING | EVALUATED, WF_EPOCH_WAS_CLOSED, WF_EPOCH_NONE},
};

const wf_states wf_epoch_states = WF_STATES("epochs", states, events, edges);

static void move(wf_job *j, wf_epoch_event event)
{
    wf_epoch *e = j->epoch;

    e->state = (wf_epoch_state)wf_states_take(&wf_epoch_states, e->state, event, j->name);
    wf_assert((e->ledger.n == 0) == (e->state == WF_EPOCH_NONE));
    wf_assert(e->state == WF_EPOCH_EVALUATING || e->evaluation.units.n == 0);
}

/* ---- the journal ---- */

size_t wf_epoch_callbacks(const wf_job *j, Weft__Option rows[], Weft__Option *list[])
{
    const char *names[WF_CALLBACKS_NUMBERS];
    double values[WF_CALLBACKS_NUMBERS];
    uint32_t kept = j->prepared ? j->prepared->callbacks.n : WF_CONF_MAX_CALLBACKS;
    size_t n = wf_callbacks_put(&j->epoch->callbacks, kept, names, values);

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
    for (uint32_t i = 0; i < j->epoch->n_eval; i++) {
        weft__metric__init(&rows[i]);
        rows[i].name = (char *)j->epoch->eval[i].name;
        rows[i].sum = j->epoch->eval[i].sum;
        rows[i].count = j->epoch->eval[i].count;
        list[i] = &rows[i];
    }
    return j->epoch->n_eval;
}

wf_status wf_epoch_journal(wf_master *m, const wf_job *j, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__EpochRecord r = WEFT__EPOCH_RECORD__INIT;
    Weft__Split *rows = calloc(j->epoch->ledger.n + 1, sizeof *rows);
    Weft__Split **list = calloc(j->epoch->ledger.n + 1, sizeof(*list));
    Weft__Option numbers[WF_CALLBACKS_NUMBERS], *numbers_list[WF_CALLBACKS_NUMBERS];
    Weft__Metric eval[WF_MASTER_METRICS], *eval_list[WF_MASTER_METRICS];
    wf_status rc;

    record.epoch = &r;
    record.number = j->number;
    r.epoch = j->epoch->ledger.epoch;
    r.records = j->epoch->ledger.records;
    r.train_records = j->epoch->train_records;
    r.split_records = j->epoch->ledger.split_records;
    r.evaluated = wf_epoch_is_evaluated(j);
    r.base_step = j->base_step;
    r.next_cut = j->next_cut;
    r.callbacks = numbers_list;
    r.n_callbacks = wf_epoch_callbacks(j, numbers, numbers_list);
    r.eval = eval_list;
    r.n_eval = list_eval(j, eval, eval_list);
    r.eval_epoch = j->epoch->eval_epoch;
    r.elapsed_ms = j->elapsed_ms;
    r.steps_before = j->epoch->steps_before;
    r.records_before = j->epoch->records_before;
    r.train_digest = wf_job_grows(j) ? j->epoch->train_digest : 0;
    r.file_ends = j->epoch->shards.ends;
    r.n_file_ends = j->epoch->shards.n;
    r.finished = list;
    if (rows && list)
        r.n_finished = wf_splits_ranges(&j->epoch->ledger, true, rows, list);
    rc = rows && list ? wf_journal_append(m->journal, &record, err)
                      : wf_fail_nomem(err, j->epoch->ledger.n * sizeof *rows);
    free(rows);
    free(list);
    return rc;
}

/* The epoch has changed. */
static wf_status journal_now(wf_master *m, wf_job *j, wf_err *err)
{
    if (j->began_ns)
        j->elapsed_ms = (uint64_t)((m->now_ns - j->began_ns) / WF_NS_PER_MS);
    return wf_epoch_journal(m, j, err);
}

/* ---- sizes ---- */

/* The planned steps before an epoch, the open one or the next. */
static uint64_t steps_before(const wf_job *j, uint32_t epoch)
{
    const wf_epoch *e = j->epoch;
    uint64_t each = wf_shards_batches(&e->shards, e->train_records, j->prepared->batch);

    if (!wf_job_grows(j))
        return epoch * each;
    return e->steps_before + (e->ledger.n && epoch > e->ledger.epoch ? each : 0);
}

/* Records of an epoch behind so many steps, cut short where `steps:` bounds the job. */
static uint64_t records_behind(const wf_job *j, uint64_t before)
{
    const wf_prepared *p = j->prepared;

    if (!p->steps)
        return j->epoch->train_records;
    if (p->steps <= before)
        return 0;
    return wf_shards_records(&j->epoch->shards, j->epoch->train_records, p->steps - before,
                             p->batch);
}

/* Of the next round's it is only known whether there may be any. */
static uint64_t epoch_records(const wf_job *j, uint32_t epoch)
{
    return records_behind(j, steps_before(j, epoch));
}

/* A split that is left out after NaN should not be half an epoch. */
static uint64_t choose_split(const wf_master *m, const wf_job *j)
{
    const wf_prepared *p = j->prepared;
    uint64_t n = wf_epoch_batches(j->epoch->train_records, p->batch);
    wf_split_job job = {0};

    if (p->split_records)
        return (p->split_records + p->batch - 1) / p->batch * p->batch;
    if (!p->rolls_back)
        job = (wf_split_job){.drains = p->drains, .in_step = p->in_step};
    return wf_split_size(n, m->n_workers, &job) * p->batch;
}

/* ---- opened and closed ---- */

static wf_status open_epoch(wf_job *j, uint32_t epoch, uint64_t records, uint64_t split_records,
                            wf_err *err)
{
    WF_TRY(wf_ledger_begin_files(&j->epoch->ledger, epoch, records, split_records,
                                 j->epoch->shards.n, j->epoch->shards.ends, err));
    j->epoch->shard_files = j->epoch->shards.n;
    wf_epoch_forget_trained(j->epoch);
    move(j, WF_EPOCH_WAS_OPENED);
    wf_near_apply(j);
    return WF_OK;
}

static void close_epoch(wf_job *j)
{
    wf_ledger_close(&j->epoch->ledger);
    wf_evaluation_close(&j->epoch->evaluation);
    move(j, WF_EPOCH_WAS_CLOSED);
}

static wf_status begin_epoch(wf_master *m, wf_job *j, uint32_t epoch, wf_err *err)
{
    uint64_t before;
    wf_err why;

    if (wf_shards_choose(m, j, &why) != WF_OK)
        return wf_job_enter(m, j, WF_JOB_FAIL, &why, err);
    before = steps_before(j, epoch);
    if (wf_job_grows(j))
        wf_growth_begin_round(j, before);
    if (open_epoch(j, epoch, records_behind(j, before), choose_split(m, j), &why) != WF_OK)
        return wf_job_enter(m, j, WF_JOB_FAIL, &why, err);
    wf_left_out_apply(j);
    if (!j->next_cut)
        j->next_cut = j->prepared->every_steps;
    return journal_now(m, j, err);
}

wf_status wf_epoch_restore(wf_master *m, wf_job *j, const Weft__Ledger *l, wf_err *err)
{
    wf_err why;
    wf_status rc;

    j->epoch->train_records = l->records;
    j->next_cut = l->next_cut;
    wf_epoch_restore_metrics(j->epoch, l);
    if (j->prepared->grows) {
        if (wf_growth_restore(j, l, &why) != WF_OK)
            return wf_job_enter(m, j, WF_JOB_FAIL, &why, err);
        WF_TRY(wf_growth_journal(m, j, err));
    }
    /* The open epoch goes on as it began, whatever "shard" is now: its positions have that order.
     */
    rc = wf_shards_take(&j->epoch->shards, l->n_file_ends, l->file_ends, l->records, &why);
    if (rc == WF_OK)
        rc = open_epoch(j, l->epoch, epoch_records(j, l->epoch), l->split_records, &why);
    if (rc != WF_OK) { /* a job file of fewer steps than are made */
        wf_err_wrap(&why, rc, "epoch %u of the checkpoint, with \"steps\" as it is now",
                    l->epoch + 1);
        return wf_job_enter(m, j, WF_JOB_FAIL, &why, err);
    }
    if (l->evaluated)
        move(j, WF_EPOCH_WAS_EVALUATED);
    for (size_t i = 0; i < l->n_finished; i++)
        wf_ledger_restore(&j->epoch->ledger, l->finished[i]->begin, l->finished[i]->end);
    wf_left_out_apply(j);
    wf_growth_end_round(j);
    return journal_now(m, j, err);
}

wf_status wf_epoch_replay(const wf_master *m, wf_job *j, const Weft__EpochRecord *r, wf_err *err)
{
    wf_epoch *e = j->epoch;

    e->train_records = r->train_records;
    wf_growth_replay_epoch(j, r);
    j->base_step = r->base_step;
    j->next_cut = r->next_cut;
    close_epoch(j);
    WF_TRY(wf_shards_take(&e->shards, r->n_file_ends, r->file_ends, r->train_records, err));
    if (r->records) { /* 0: no epoch is open */
        WF_TRY(open_epoch(j, r->epoch, r->records, r->split_records, err));
        if (r->evaluated)
            move(j, WF_EPOCH_WAS_EVALUATED);
    }
    e->callbacks = (wf_callbacks_state){0};
    for (size_t i = 0; i < r->n_callbacks; i++)
        wf_callbacks_take(&e->callbacks, r->callbacks[i]->name, r->callbacks[i]->value);
    WF_TRY(wf_tallies_take(e->eval, &e->n_eval, r->n_eval, r->eval, err));
    e->eval_epoch = r->eval_epoch;
    j->elapsed_ms = r->elapsed_ms;
    if (r->elapsed_ms) /* without the time since it was written */
        j->began_ns = m->now_ns - (int64_t)r->elapsed_ms * WF_NS_PER_MS;
    for (size_t i = 0; e->ledger.n && i < r->n_finished; i++)
        wf_ledger_restore(&e->ledger, r->finished[i]->begin, r->finished[i]->end);
    wf_growth_end_round(j);
    return WF_OK;
}

void wf_epoch_close(wf_job *j)
{
    wf_epoch *e = j->epoch;

    if (e->ledger.n) {
        e->last_epoch = e->ledger.epoch + 1;
        e->last_trained = wf_ledger_trained(&e->ledger);
    }
    close_epoch(j);
    wf_near_close(&e->near);
    wf_shards_close(&e->shards);
    wf_rounds_end(&j->rounds);
}

void wf_epoch_begin_generation(wf_job *j)
{
    close_epoch(j);
    wf_near_close(&j->epoch->near);
    wf_shards_close(&j->epoch->shards);
    wf_rounds_close(&j->rounds);
    j->epoch->steps_before = j->epoch->records_before = 0;
    j->epoch->marked_cut = 0;
    wf_epoch_forget_trained(j->epoch);
    j->epoch->callbacks = (wf_callbacks_state){0};
}

void wf_epoch_lost(wf_job *j, const wf_member *who, bool died)
{
    if (j->epoch->ledger.n)
        wf_ledger_release(&j->epoch->ledger, who->incarnation, died);
    j->epoch->marked_cut = 0; /* it may have carried the mark */
    wf_evaluation_lost(j, who);
}

/* ---- the evaluation, and what follows from it ---- */

static void decide(wf_master *m, wf_job *j)
{
    wf_callbacks_metric metrics[WF_MASTER_METRICS];
    char said[512], *line, *rest = said;

    for (uint32_t i = 0; i < j->epoch->n_eval; i++)
        metrics[i] = (wf_callbacks_metric){j->epoch->eval[i].name,
                                           wf_tally_mean(&j->epoch->eval[i], (double)NAN)};
    wf_callbacks_step(&j->prepared->callbacks, &j->epoch->callbacks, j->epoch->ledger.epoch,
                      metrics, j->epoch->n_eval, said, sizeof said);
    while ((line = strsep(&rest, "\n")))
        if (line[0])
            wf_job_note(m, j, "job.callback", "%s", line);
}

/* The open epoch is evaluated: all of its records, or it could not be. */
static wf_status evaluated(wf_master *m, wf_job *j, const char *failed, wf_err *err)
{
    wf_evaluation *from = &j->epoch->evaluation;
    wf_epoch *e = j->epoch;

    wf_assert(e->state == WF_EPOCH_EVALUATING && wf_ledger_complete(&e->ledger));
    if (!failed[0]) {
        e->n_eval = from->n_measures;
        e->eval_epoch = e->ledger.epoch + 1;
    }
    for (uint32_t i = 0; !failed[0] && i < from->n_measures; i++)
        wf_tally_keep(&e->eval[i], &from->measures[i]);
    wf_evaluation_close(from);
    move(j, WF_EPOCH_WAS_EVALUATED);
    wf_epoch_tell(m, j, failed);
    if (!failed[0])
        decide(m, j);
    return journal_now(m, j, err);
}

static wf_status evaluate(wf_master *m, wf_job *j, wf_err *err)
{
    wf_evaluation_end end = {0};

    if (j->epoch->state == WF_EPOCH_TRAINING)
        move(j, WF_EPOCH_EVALUATION_BEGUN);
    WF_TRY(wf_evaluation_advance(m, j, &end, err));
    return end.over ? evaluated(m, j, end.failed, err) : WF_OK;
}

static wf_status on_result(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg, wf_err *err)
{
    wf_evaluation_end end = {0};

    if (j->epoch->state != WF_EPOCH_EVALUATING)
        return WF_OK;
    WF_TRY(wf_evaluation_on_result(m, j, who, msg, &end, err));
    return end.over ? evaluated(m, j, end.failed, err) : WF_OK;
}

/* ---- one epoch after the other ---- */

static bool was_last(const wf_job *j)
{
    const wf_epoch *e = j->epoch;

    return e->callbacks.stopped || j->rounds.is_idle ||
           e->ledger.epoch + 1 >= j->prepared->epochs || epoch_records(j, e->ledger.epoch + 1) == 0;
}

/* Whether the job is to end with the weights of another epoch. */
static bool restores_best(const wf_job *j)
{
    return wf_callbacks_restores(&j->prepared->callbacks, &j->epoch->callbacks,
                                 j->epoch->ledger.epoch);
}

bool wf_epoch_is_at_end(const wf_job *j)
{
    return wf_epoch_is_evaluated(j) && wf_ledger_complete(&j->epoch->ledger) && was_last(j) &&
           !restores_best(j);
}

static wf_status send_rate(wf_master *m, const wf_job *j, wf_member *who, wf_err *err)
{
    Weft__Tune body = WEFT__TUNE__INIT;

    body.learning_rate = j->epoch->callbacks.rate;
    who->tune_sent = true;
    return wf_member_send(m, who, WF_TUNE, &body.base, err);
}

wf_status wf_epoch_on_tuned(wf_member *who, const wf_msg *msg, wf_err *err)
{
    Weft__Tune *body = NULL;

    WF_TRY(wf_control_get(msg, &weft__tune__descriptor, &body, err));
    who->tuned = body->learning_rate;
    who->tune_sent = false;
    wf_control_free(&body);
    return WF_OK;
}

/* Nothing is in flight between two epochs: once all who apply updates have the rate, the next may
 * begin. */
static wf_status next_epoch(wf_master *m, wf_job *j, wf_err *err)
{
    bool all = wf_shards_known(j);

    if (wf_job_grows(j))
        WF_TRY(wf_growth_advance(m, j, j->epoch->ledger.epoch + 1, &all, err));
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (!wf_member_holds_variables(m, who) || who->tuned == j->epoch->callbacks.rate ||
            (who->task.role == WF_ROLE_WORKER &&
             who->generation != j->generation)) /* its start will tell it */
            continue;
        all = false;
        if (!who->tune_sent && wf_member_is_registered(who))
            WF_TRY(send_rate(m, j, who, err));
    }
    return all ? begin_epoch(m, j, j->epoch->ledger.epoch + 1, err) : WF_OK;
}

/* The job ends with the weights of its best checkpoint: a generation begins there, in which nothing
 * is trained. */
static wf_status end_with_the_best(wf_master *m, wf_job *j, wf_err *err)
{
    j->ending_from = j->epoch->callbacks.best_step;
    j->from_step = -1;
    wf_job_note(m, j, "job.restores_best", "the weights after epoch %u are restored",
                j->epoch->callbacks.best_epoch + 1);
    return wf_job_enter(m, j, WF_JOB_GOES_BACK, NULL, err);
}

/* Opens it once a worker has said how many records there are. */
static wf_status first_epoch(wf_master *m, wf_job *j, wf_err *err)
{
    bool ready = j->epoch->train_records > 0 && wf_shards_known(j);

    if (j->prepared->grows)
        WF_TRY(wf_growth_advance(m, j, 0, &ready, err));
    return ready && !wf_job_over(j->state) ? begin_epoch(m, j, 0, err) : WF_OK;
}

wf_status wf_epoch_advance(wf_master *m, wf_job *j, bool holding, bool cut_open, wf_err *err)
{
    wf_epoch *e = j->epoch;

    if (e->state == WF_EPOCH_NONE)
        return first_epoch(m, j, err);
    if (j->ending_from) { /* a later generation may have saved that step at the next epoch's start
                           */
        j->cut_wanted = true;
        return WF_OK;
    }
    if (!wf_ledger_complete(&e->ledger))
        return holding ? WF_OK : wf_splits_deal(m, j, err);
    wf_growth_end_round(j);
    if (holding)
        return WF_OK;
    if (j->prepared->evaluates && e->state != WF_EPOCH_EVALUATED)
        return evaluate(m, j, err);
    if (e->state == WF_EPOCH_TRAINING) {
        move(j, WF_EPOCH_WAS_EVALUATED);
        if (!j->prepared->predicts)
            wf_epoch_tell(m, j, "");
    }
    if (e->callbacks.save) { /* before anything changes these weights */
        j->cut_wanted = true;
        return WF_OK;
    }
    if (!was_last(j))
        return next_epoch(m, j, err);
    if (restores_best(j)) /* a checkpoint that is still being written ends first */
        return cut_open ? WF_OK : end_with_the_best(m, j, err);
    j->cut_wanted = true; /* the last checkpoint, with which the job ends */
    return WF_OK;
}

wf_status wf_epoch_on_message(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                              wf_err *err)
{
    switch (msg->head.kind) {
    case WF_SPLIT_WANT:
        wf_splits_on_want(m, who);
        return WF_OK;
    case WF_SPLIT_DONE:
        return wf_splits_on_done(m, j, who, msg, err);
    case WF_PROGRESS:
        return wf_splits_on_progress(m, j, who, msg, err);
    case WF_EVAL_RESULT:
        return on_result(m, j, who, msg, err);
    default:
        return WF_OK;
    }
}
