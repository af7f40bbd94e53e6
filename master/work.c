/* SPDX-License-Identifier: Apache-2.0 */
/* master/work.c */
#include "master/work.h"
#include "master/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wf_work_free(wf_work **w)
{
    wf_work *it = *w;

    *w = NULL;
    if (!it)
        return;
    wf_journal_batch_free(&it->batch);
    wf_prepared_free(&it->prepared);
    wf_restored_free(&it->restored);
    wf_arena_free(&it->arena);
    free(it->name);
    free(it->text);
    free(it->path);
    free(it->checkpoint_dir);
    free(it);
}

bool wf_work_is_sync(const wf_work *w)
{
    return w->kind == WF_WORK_SYNC;
}

void wf_work_run(wf_work *w)
{
    if (w->kind == WF_WORK_SYNC)
        wf_journal_write(w->batch);
    else if (w->kind == WF_WORK_PREPARE)
        w->rc = w->ops.prepare(w->ops.arg, w->name, w->text, w->path, &w->prepared, &w->err);
    else if (w->kind == WF_WORK_LIST)
        w->rc = w->ops.list(w->ops.arg, w->prepared->patterns, w->prepared->n_patterns, w->arena,
                            &w->list, &w->n_list, &w->err);
    else
        w->rc = wf_master_restore(&w->from, w->prepared, &w->restored, &w->err);
}

static void begin(wf_master *m, wf_work *w)
{
    wf_assert(w->kind == WF_WORK_SYNC || !m->busy);
    m->busy |= w->kind != WF_WORK_SYNC;
    if (m->conf.ops.begin) {
        m->conf.ops.begin(m->conf.ops.arg, w);
        return;
    }
    wf_work_run(w);
    w->next = m->finished;
    m->finished = w;
}

static wf_status new_work(const wf_job *j, wf_work_kind kind, wf_work **out, wf_err *err)
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

    WF_TRY(new_work(j, WF_WORK_PREPARE, &w, err));
    w->ops = m->conf.ops;
    w->name = strdup(j->name);
    w->text = strdup(j->text);
    w->path = strdup(j->path);
    if (!w->name || !w->text || !w->path) {
        wf_work_free(&w);
        return wf_fail_nomem(err, strlen(j->text));
    }
    begin(m, w);
    return WF_OK;
}

wf_status wf_work_restore(wf_master *m, const wf_job *j, int64_t from_step, wf_err *err)
{
    wf_work *w;

    WF_TRY(new_work(j, WF_WORK_RESTORE, &w, err));
    w->checkpoint_dir = strdup(m->checkpoint_dir);
    if (!w->checkpoint_dir) {
        wf_work_free(&w);
        return wf_fail_nomem(err, strlen(m->checkpoint_dir));
    }
    w->from = (wf_restore_from){
        .disk = m->conf.disk, .checkpoint_dir = w->checkpoint_dir, .step = from_step};
    wf_assert(j->prepared && j == m->job);
    w->prepared = j->prepared;
    w->prepared->shares++;
    begin(m, w);
    return WF_OK;
}

wf_status wf_work_list(wf_master *m, const wf_job *j, wf_err *err)
{
    wf_work *w;

    WF_TRY(new_work(j, WF_WORK_LIST, &w, err));
    w->ops = m->conf.ops;
    w->arena = wf_arena_new(0);
    if (!w->arena) {
        wf_work_free(&w);
        return wf_fail_nomem(err, sizeof *w);
    }
    w->prepared = j->prepared;
    w->prepared->shares++;
    begin(m, w);
    return WF_OK;
}

wf_status wf_work_sync(wf_master *m, wf_err *err)
{
    wf_journal_batch *batch = NULL;
    wf_work *w = NULL;
    wf_status rc;

    if (wf_journal_wants_snapshot(m->journal))
        wf_master_snapshot(m);
    WF_TRY(wf_journal_take(m->journal, &batch, err));
    if (!batch)
        return WF_OK;
    rc = new_work(NULL, WF_WORK_SYNC, &w, err);
    if (rc != WF_OK) {
        wf_journal_batch_free(&batch);
        return rc;
    }
    w->batch = batch;
    begin(m, w);
    return WF_OK;
}
