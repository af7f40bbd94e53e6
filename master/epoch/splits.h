/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/splits.h - splits are dealt to workers that want one, and come back.
 *
 * The place of a checkpoint is a place in the data: the split that holds the batch of planned step
 * k * every_steps is dealt with a mark, and the worker that gets there says so. With one worker
 * that is exactly step k * every_steps, in every run.
 */
#ifndef WF_MASTER_EPOCH_SPLITS_H
#define WF_MASTER_EPOCH_SPLITS_H

#include "master/epoch/ledger.h"
#include "master/job/job.h"

/* Deals what is to do. After a restart nothing is dealt before each worker that may hold a split
 * has claimed it or is given up; once all have, waiting longer would only keep workers idle. */
WF_MUST_USE wf_status wf_splits_deal(wf_master *m, wf_job *j, wf_err *err);
void wf_splits_on_want(wf_master *m, wf_member *who);
WF_MUST_USE wf_status wf_splits_on_progress(wf_master *m, wf_job *j, wf_member *who,
                                            const wf_msg *msg, wf_err *err);
WF_MUST_USE wf_status wf_splits_on_done(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                                        wf_err *err);
/* What a worker holds after the master was away, or over a new link: claims are taken, what it does
 * not hold goes back. */
WF_MUST_USE wf_status wf_splits_claim(wf_master *m, wf_job *j, const wf_member *who,
                                      const Weft__Register *r, wf_err *err);
/* Whether the lists of a report fit into what is sent because of it: a worker has few splits.
 * Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_splits_check_held(const wf_member *who, size_t n_open, size_t n_finished,
                                           wf_err *err);
/* The place of the next checkpoint moves behind what is trained. */
void wf_splits_move_next_cut(wf_job *j);

/* The trained ranges, as begin and end, into rows and list [l->n]; how many. `leased_too`: what is
 * known to be trained of splits that are leased. */
size_t wf_splits_ranges(const wf_ledger *l, bool leased_too, Weft__Split rows[],
                        Weft__Split *list[]);
/* The trained ranges that the master answers for: what is done, and what a lost lease left behind.
 * Leased splits are in their holders' reports. */
typedef struct wf_splits_ledger {
    Weft__Ledger body;
    Weft__Split *rows, **list;
    wf_round_message round; /* of data that grows */
} wf_splits_ledger;
WF_MUST_USE wf_status wf_splits_ledger_make(const wf_job *j, wf_splits_ledger *out, wf_err *err);
void wf_splits_ledger_free(wf_splits_ledger *l);
/* What a worker holds, into rows and list [most]; how many. */
size_t wf_splits_held(const wf_job *j, const wf_member *who, Weft__Split rows[],
                      Weft__Split *list[], size_t most);

#endif
