/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/growth.h - data that grows: the next epoch's files are waited for, written to the
 * journal, and made known to workers, which then say what they hold (master/job/rounds.h).
 *
 * The open epoch is round epoch + 1. When all of it is trained and evaluated, the next listing that
 * has files which are whole brings the next round; it is pending until a worker has opened it, and
 * only then its epoch opens. A worker is given splits once it has the open round.
 */
#ifndef WF_MASTER_EPOCH_GROWTH_H
#define WF_MASTER_EPOCH_GROWTH_H

#include "master/job/job.h"

/* The round of epoch `epoch` is wanted, and no record is left before it. *ready: it was taken, and
 * a worker has said how many records it has. */
WF_MUST_USE wf_status wf_growth_advance(wf_master *m, wf_job *j, uint32_t epoch, bool *ready,
                                        wf_err *err);
/* Whether files are to be listed now; the time counts from the call that said so. */
bool wf_growth_wants_listing(const wf_master *m, wf_job *j);
/* A listing of the job's patterns, or why there is none. */
WF_MUST_USE wf_status wf_growth_on_listed(wf_master *m, wf_job *j, const wf_listed list[], size_t n,
                                          const wf_err *why, wf_err *err);
/* Tells a worker of the newest round unless it has it open (*has), once over each link. */
WF_MUST_USE wf_status wf_growth_tell(wf_master *m, const wf_job *j, wf_member *who, bool *has,
                                     wf_err *err);
/* What workers have found in the files of the pending round is the next epoch's, which is about to
 * open behind so many planned steps. */
void wf_growth_begin_round(wf_job *j, uint64_t before);
/* Nobody needs the files of a round all of which is trained: they may go. */
void wf_growth_end_round(wf_job *j);
/* Goes on with the rounds that a checkpoint's ledger names; files of later ones are new again.
 * Errors: WF_MISMATCH for a checkpoint of data that did not grow; those of wf_rounds_set. */
WF_MUST_USE wf_status wf_growth_restore(wf_job *j, const Weft__Ledger *l, wf_err *err);

/* All that is known of rounds, into the journal, and back. Errors: WF_CORRUPT, WF_NOMEM. */
WF_MUST_USE wf_status wf_growth_journal(wf_master *m, const wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_growth_replay(wf_job *j, const Weft__RoundRecord *r, wf_err *err);
/* What the record of an epoch says of its round. */
void wf_growth_replay_epoch(wf_job *j, const Weft__EpochRecord *r);

#endif
