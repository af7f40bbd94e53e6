/* SPDX-License-Identifier: Apache-2.0 */
/* master/top.h - what the files beside it share. They see all rooms of the master, and lead from
 * one to the other; no room includes this. */
#ifndef WF_MASTER_TOP_H
#define WF_MASTER_TOP_H

#include "master/cut/cut.h"
#include "master/epoch/epoch.h"
#include "master/epoch/growth.h"
#include "master/epoch/left_out.h"
#include "master/epoch/metrics.h"
#include "master/epoch/returned.h"
#include "master/epoch/splits.h"
#include "master/generation/generation.h"
#include "master/generation/restore.h"
#include "master/job/job.h"
#include "master/member/beat.h"
#include "master/member/facts.h"
#include "master/member/member.h"
#include "master/member/view.h"
#include "master/placement/placement.h"

/* replay.c: a record of the journal, for wf_journal_open; and what follows once all are replayed:
 * what was under way goes on, unless another supervisor says that all processes had ended. */
wf_status wf_master_replay(void *master, const Weft__Record *r, wf_err *err);
WF_MUST_USE wf_status wf_master_take_up(wf_master *m, wf_err *err);

/* asks.c: a job that has failed has the text again that it had before wf_master_change, if nothing
 * was compiled since. */
WF_MUST_USE wf_status wf_master_take_text_back(wf_master *m, wf_job *j, wf_err *err);

/* jobs.c: a new job on the list, and the last one off it again: its record could not be written. */
WF_MUST_USE wf_status wf_master_add_job(wf_master *m, const char *name, const char *text,
                                        const char *path, wf_job **out, wf_err *err);
void wf_master_remove_last_job(wf_master *m);
void wf_master_free_jobs(wf_master *m);

/* snapshot.c: the whole state as records, for the next batch; a log without one goes on. */
void wf_master_snapshot(wf_master *m);

/* saving.c: checkpoints. Opens a cut if one is due. */
WF_MUST_USE wf_status wf_saving_advance(wf_master *m, wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_saving_on_message(wf_master *m, wf_job *j, wf_member *who,
                                           const wf_msg *msg, wf_err *err);
/* The open cut has failed: it costs this checkpoint, and never training. `told`: the chief knows.
 */
WF_MUST_USE wf_status wf_saving_fail(wf_master *m, wf_job *j, bool told, const char *what,
                                     const char *hint, wf_err *err);
/* A worker is gone, for which the open cut may wait: its report comes from the ledger. */
WF_MUST_USE wf_status wf_saving_on_lost(wf_master *m, wf_job *j, wf_member *who, wf_err *err);

/* losses.c: what follows for the job in hand when a member is lost. */
/* An incarnation is over for good (M2). `ended`: its process is known to have ended; a silent one
 * may only be cut off. */
WF_MUST_USE wf_status wf_master_lose(wf_master *m, wf_member *who, bool ended, const char *reason,
                                     wf_err *err);
/* Ends an incarnation that does not do its part; its process is told, and starts anew. */
WF_MUST_USE wf_status wf_master_give_up(wf_master *m, wf_member *who, const char *reason,
                                        wf_err *err);
/* What a member held of the job goes back. `death`: how its process ended, if it is known to. */
WF_MUST_USE wf_status wf_master_take_back(wf_master *m, wf_member *who, const char *death,
                                          wf_err *err);
/* The job ends with this fault, or goes back; all tasks let go of it. */
WF_MUST_USE wf_status wf_master_fail_job(wf_master *m, wf_job *j, const wf_err *why, wf_err *err);
WF_MUST_USE wf_status wf_master_roll_back(wf_master *m, wf_job *j, wf_err *err);
/* The job in hand is over: all tasks let go of it, and it is in hand no longer. */
WF_MUST_USE wf_status wf_master_put_down(wf_master *m, wf_err *err);

/* faults.c: what tasks cannot do. A worker's start or step that fails costs the job that worker, or
 * the job fails. */
/* The answer to a set-up or a start. */
WF_MUST_USE wf_status wf_faults_on_ready(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                                         wf_err *err);
/* A worker has the files of a round open. */
WF_MUST_USE wf_status wf_faults_on_round(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                                         wf_err *err);
WF_MUST_USE wf_status wf_faults_on_fault(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                                         wf_err *err);
/* What a worker's data holds. */
typedef struct wf_found {
    uint64_t train_records, train_digest, eval_records;
    uint32_t round; /* of data that grows: whose records they are; 0: none is open */
} wf_found;
/* All workers find the same, or the job fails. */
WF_MUST_USE wf_status wf_faults_take_found(wf_master *m, wf_job *j, const wf_member *who,
                                           wf_found found, wf_err *err);
/* Workers whose time has come are started again. */
void wf_faults_advance(wf_master *m, wf_job *j);
/* Whether a worker has failed in this generation and does not train. */
bool wf_faults_is_unfit(const wf_member *who, const wf_job *j);

/* arrivals.c: hellos, registers, and the word of supervisors. */
WF_MUST_USE wf_status wf_arrivals_on_up(wf_master *m, wf_peer *peer, wf_err *err);
WF_MUST_USE wf_status wf_arrivals_on_register(wf_master *m, wf_member *who, const wf_msg *msg,
                                              wf_err *err);
/* `from` is who reports it. A report without the session of the task's supervisor changes nothing,
 * and is counted. */
WF_MUST_USE wf_status wf_arrivals_on_died(wf_master *m, const wf_peer *from, const wf_msg *msg,
                                          wf_err *err);

/* Whether that is the session of the supervisor that started this very task, or of the master's
 * own: nobody else knows them. */
bool wf_master_is_supervisor(const wf_master *m, const wf_member *who, const char *session);

/* hung.c: a supervisor's list of processes that run; those that were given up long ago are to be
 * killed. Errors: WF_PROTO, WF_NOMEM. */
WF_MUST_USE wf_status wf_hung_on_processes(wf_master *m, wf_peer *from, const wf_msg *msg,
                                           wf_err *err);

/* watch.c: gives up members that were silent, or made no progress, for too long. */
void wf_watch_begin(wf_watch *w, int64_t now_ns);
WF_MUST_USE wf_status wf_watch_advance(wf_master *m, wf_err *err);

/* asks.c: what the command line asks. */
WF_MUST_USE wf_status wf_asks_on_message(wf_master *m, wf_peer *from, const wf_msg *msg,
                                         wf_err *err);
/* A client of a session asks for the tasks of the cluster. */
WF_MUST_USE wf_status wf_asks_on_tasks(wf_master *m, wf_peer *from, const wf_msg *msg, wf_err *err);

#endif
