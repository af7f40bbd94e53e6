/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/left_out.c */
#include "master/epoch/left_out.h"
#include "master/epoch/epoch.h"

#include <stdio.h>

enum {
    MOST = 3,      /* rollbacks without a newer checkpoint between them */
    MOST_ASIDE = 3 /* splits that kill, without one between them that was finished */
};

static const char hint[] = "lower the learning rate, clip the gradients (global_clipnorm: 1.0), "
                           "or look at the data of the splits that were left out";

/* Notes that a split of the open epoch is left out: all of it, for of one that goes back to a
 * checkpoint nothing is trained. */
static const Weft__Split *leave_out(wf_job *j, uint64_t id)
{
    Weft__Split *row = &j->left_out_rows[j->n_left_out];

    wf_assert(j->n_left_out < WF_LEFT_OUT && id < j->epoch->ledger.n);
    weft__split__init(row);
    row->id = id;
    row->epoch = j->epoch->ledger.epoch;
    row->begin = wf_ledger_begins(&j->epoch->ledger, id);
    row->next = row->end = wf_ledger_ends(&j->epoch->ledger, id);
    j->left_out[j->n_left_out++] = row;
    j->left_out_records += row->end - row->begin;
    return row;
}

static bool is_open(const wf_job *j, const Weft__Split *split)
{
    return split && j->epoch->ledger.n && split->epoch == j->epoch->ledger.epoch &&
           split->id < j->epoch->ledger.n;
}

bool wf_left_out_roll_back(wf_master *m, wf_job *j, const Weft__Split *split, wf_err *why)
{
    char where[64] = "the beginning", without[160] = "";
    wf_err last = *why;

    if (!j->prepared || !j->prepared->rolls_back || j->stop_asked)
        return false;
    if (j->latest != UINT64_MAX)
        snprintf(where, sizeof where, "step %lu", (unsigned long)j->latest);
    if (j->latest != j->rollback_latest)
        j->rollbacks = 0;
    if (j->rollbacks == MOST || j->n_left_out == WF_LEFT_OUT) {
        wf_fail(why, last.status, hint, "%.700s; going back to %s %u times has not helped",
                last.what, where, j->rollbacks);
        return false;
    }
    j->rollbacks++;
    j->rollback_latest = j->latest;
    if (is_open(j, split)) {
        const Weft__Split *row = leave_out(j, split->id);

        snprintf(without, sizeof without,
                 " without split %lu of epoch %u (positions %lu to %lu of its order)",
                 (unsigned long)row->id, row->epoch + 1, (unsigned long)row->begin,
                 (unsigned long)row->end - 1);
    }
    wf_job_note(m, j, "job.rolled_back", "%s; back to %s%s", last.what, where, without);
    return true;
}

bool wf_left_out_set_aside(wf_master *m, wf_job *j, const char *death, wf_err *why)
{
    uint64_t id;

    while (wf_ledger_deadly(&j->epoch->ledger, &id)) {
        const Weft__Split *row;

        if (j->epoch->set_aside == MOST_ASIDE || j->n_left_out == WF_LEFT_OUT) {
            wf_fail(why, WF_INVALID, "see the workers' logs; if memory is short, lower \"batch\"",
                    "workers die whatever they train, the last one: %.300s", death);
            return false;
        }
        j->epoch->set_aside++;
        row = leave_out(j, id);
        wf_job_note(m, j, "split.set_aside",
                    "split %lu of epoch %u (positions %lu to %lu of its order) is left out: %d "
                    "workers have died of it, the last one: %s",
                    (unsigned long)id, row->epoch + 1, (unsigned long)row->begin,
                    (unsigned long)row->end - 1, WF_SPLIT_DEATHS, death);
        wf_ledger_finish(&j->epoch->ledger, id, 0);
    }
    return true;
}

void wf_left_out_apply(wf_job *j)
{
    size_t n = 0;

    for (size_t i = 0; i < j->n_left_out; i++) {
        const Weft__Split row = *j->left_out[i];

        if (row.epoch < j->latest_epoch)
            continue; /* no checkpoint to go back to is of before it */
        j->left_out_rows[n] = row;
        j->left_out[n] = &j->left_out_rows[n];
        n++;
        if (row.epoch == j->epoch->ledger.epoch)
            wf_ledger_restore(&j->epoch->ledger, row.begin, row.end);
    }
    j->n_left_out = n;
}

void wf_left_out_forget_later(wf_job *j, uint32_t epoch)
{
    size_t n = 0;

    for (size_t i = 0; i < j->n_left_out; i++) {
        const Weft__Split row = *j->left_out[i];

        if (row.epoch > epoch)
            continue;
        j->left_out_rows[n] = row;
        j->left_out[n] = &j->left_out_rows[n];
        n++;
    }
    j->n_left_out = n;
}

void wf_left_out_replay(wf_job *j, const Weft__JobRecord *r)
{
    j->rollbacks = r->rollbacks;
    j->rollback_latest = r->rollback_latest;
    j->left_out_records = r->left_out_records;
    j->n_left_out = 0;
    for (size_t i = 0; i < r->n_left_out && i < WF_LEFT_OUT; i++) {
        Weft__Split *row = &j->left_out_rows[i];

        weft__split__init(row);
        row->id = r->left_out[i]->id;
        row->epoch = r->left_out[i]->epoch;
        row->begin = r->left_out[i]->begin;
        row->next = row->end = r->left_out[i]->end;
        j->left_out[j->n_left_out++] = row;
    }
}
