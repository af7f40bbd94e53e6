/* SPDX-License-Identifier: Apache-2.0 */
/* master/work.c - what takes long: it is begun here, done on any thread, and its result goes to
 * where it was asked for. Work owns all that it reads, so that it may outlive the master. */
#include "master/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum work_kind { SYNC = 1, PREPARE, RESTORE } work_kind;

struct wf_work {
    work_kind kind;
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
    wf_status rc;
    wf_err err;
};

void wf_work_free(wf_work **w)
{
    wf_work *it = *w;

    *w = NULL;
    if (!it)
        return;
    wf_journal_batch_free(&it->batch);
    wf_prepared_free(&it->prepared);
    wf_restored_free(&it->restored);
    free(it->name);
    free(it->text);
    free(it->path);
    free(it->checkpoint_dir);
    free(it);
}

bool wf_work_is_sync(const wf_work *w)
{
    return w->kind == SYNC;
}

void wf_work_run(wf_work *w)
{
    if (w->kind == SYNC)
        wf_journal_write(w->batch);
    else if (w->kind == PREPARE)
        w->rc = w->ops.prepare(w->ops.arg, w->name, w->text, w->path, &w->prepared, &w->err);
    else
        w->rc = wf_master_restore(&w->from, w->prepared, &w->restored, &w->err);
}

static wf_status begin(wf_master *m, wf_work *w, wf_err *err)
{
    if (w->kind == SYNC)
        m->syncing = true;
    else
        m->busy = true;
    if (m->conf.ops.begin) {
        m->conf.ops.begin(m->conf.ops.arg, w);
        return WF_OK;
    }
    wf_work_run(w);
    return wf_master_on_work(m, &w, m->now_ns, err);
}

static wf_status new_work(const wf_job *j, work_kind kind, wf_work **out, wf_err *err)
{
    wf_work *w = calloc(1, sizeof *w);

    *out = w;
    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->kind = kind;
    w->job = j ? j->number : 0;
    w->texts = j ? j->texts : 0;
    w->entries = j ? j->entries : 0;
    return WF_OK;
}

wf_status wf_work_prepare(wf_master *m, const wf_job *j, wf_err *err)
{
    wf_work *w;

    WF_TRY(new_work(j, PREPARE, &w, err));
    w->ops = m->conf.ops;
    w->name = strdup(j->name);
    w->text = strdup(j->text);
    w->path = strdup(j->path);
    if (w->name && w->text && w->path)
        return begin(m, w, err);
    wf_work_free(&w);
    return wf_fail_nomem(err, strlen(j->text));
}

wf_status wf_work_restore(wf_master *m, const wf_job *j, int64_t from_step, wf_err *err)
{
    wf_work *w;

    WF_TRY(new_work(j, RESTORE, &w, err));
    w->checkpoint_dir = strdup(m->checkpoint_dir);
    if (!w->checkpoint_dir) {
        wf_work_free(&w);
        return wf_fail_nomem(err, strlen(m->checkpoint_dir));
    }
    w->from = (wf_restore_from){
        .disk = m->conf.disk, .checkpoint_dir = w->checkpoint_dir, .step = from_step};
    w->prepared = j->prepared;
    w->prepared->shares++;
    return begin(m, w, err);
}

wf_status wf_work_sync(wf_master *m, wf_err *err)
{
    wf_journal_batch *batch = NULL;
    wf_work *w = NULL;
    wf_status rc;

    if (m->syncing)
        return WF_OK;
    if (wf_journal_wants_snapshot(m->journal))
        wf_master_snapshot(m);
    WF_TRY(wf_journal_take(m->journal, &batch, err));
    if (!batch)
        return WF_OK;
    rc = new_work(NULL, SYNC, &w, err);
    if (rc != WF_OK) {
        wf_journal_batch_free(&batch);
        return rc;
    }
    w->batch = batch;
    return begin(m, w, err);
}

static wf_status synced(wf_master *m, wf_work *w, wf_err *err)
{
    m->syncing = false;
    WF_TRY(wf_journal_settle(m->journal, &w->batch, err));
    return wf_master_release(m, err);
}

static wf_status done(wf_master *m, wf_work *w, wf_err *err)
{
    wf_job *j = w->job && w->job <= m->n_jobs ? m->jobs[w->job - 1] : NULL;

    if (w->kind == SYNC)
        return synced(m, w, err);
    m->busy = false;
    if (!j)
        return WF_OK;
    if (w->kind == PREPARE)
        return wf_job_on_prepared(m, j, w->texts, &w->prepared, w->rc, &w->err, err);
    return wf_job_on_restored(m, j, w->entries, &w->restored, w->rc, &w->err, err);
}

wf_status wf_master_on_work(wf_master *m, wf_work **w, int64_t now_ns, wf_err *err)
{
    wf_status rc;

    m->now_ns = now_ns;
    rc = done(m, *w, err);
    wf_work_free(w);
    return rc;
}
