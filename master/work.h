/* SPDX-License-Identifier: Apache-2.0 */
/* master/work.h - what takes long: compiling, verifying checkpoints, syncing the journal. It is
 * begun in work.c, done on any thread, and its result is taken in advance.c. Work owns all that it
 * reads, so that it may outlive the master. */
#ifndef WF_MASTER_WORK_H
#define WF_MASTER_WORK_H

#include "master/generation/restore.h"
#include "master/job/job.h"

typedef enum wf_work_kind {
    WF_WORK_SYNC = 1,
    WF_WORK_PREPARE,
    WF_WORK_RESTORE,
    WF_WORK_LIST
} wf_work_kind;

struct wf_work {
    wf_work_kind kind;
    wf_journal_batch *batch; /* of a sync */
    uint32_t job;            /* its number; and what it was when this began */
    uint32_t texts;
    uint64_t entries;
    wf_master_ops ops;
    char *name, *text, *path; /* to be compiled */
    wf_prepared *prepared;    /* what came of it; of a restore: a share of the job's */
    char *checkpoint_dir;
    wf_restore_from from;
    wf_restored restored;
    wf_arena *arena; /* of a listing: of its patterns, which the share of `prepared` keeps, and */
    wf_listed *list; /* [n_list] what it found */
    size_t n_list;
    wf_status rc;
    wf_err err;
    wf_work *next; /* of m->finished */
};

/* The first three only while m->busy is false. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_work_prepare(wf_master *m, const wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_work_restore(wf_master *m, const wf_job *j, int64_t from_step,
                                      wf_err *err);
/* The files that the patterns of data that grows name. */
WF_MUST_USE wf_status wf_work_list(wf_master *m, const wf_job *j, wf_err *err);
/* What was journaled since the last sync goes to disk, if none is out. */
WF_MUST_USE wf_status wf_work_sync(wf_master *m, wf_err *err);

#endif
