/* SPDX-License-Identifier: Apache-2.0 */
/* worker/chief.c */
#include "worker/chief.h"
#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void move(wf_chief *c, wf_chief_event event)
{
    c->state = (wf_chief_state)wf_states_take(&wf_chief_states, c->state, event, "");
}

void wf_chief_abort(wf_worker *w)
{
    wf_chief *c = &w->chief;
    wf_err err;

    if (w->exchange)
        wf_exchange_save_end(w->exchange);
    if (c->folder && wf_ckpt_abandon(w->conf.disk, c->folder, &err) != WF_OK)
        WF_LOG_WARN("ckpt.left_over", "folder=%s why=\"%s\"", c->folder, err.what);
    for (size_t i = 0; c->reports && i < c->cut->n_workers; i++)
        wf_control_free(&c->reports[i]);
    free(c->reports);
    free(c->folder);
    wf_control_free(&c->cut);
    move(c, WF_CHIEF_ABORTED);
    *c = (wf_chief){.state = c->state};
}

/* The cut came to nothing: the master hears why, training has gone on or will. */
static wf_status give_up(wf_worker *w, const wf_err *why, wf_err *err)
{
    Weft__CutDone body = WEFT__CUT_DONE__INIT;

    WF_LOG_WARN("ckpt.failed", "cut=%u why=\"%s\"", w->chief.cut_number, why->what);
    body.what = (char *)why->what;
    body.hint = (char *)why->hint;
    body.again = why->status == WF_AGAIN;
    wf_chief_abort(w);
    return wf_session_send(&w->session, WF_CUT_DONE, &body.base, err);
}

wf_status wf_chief_begin(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    wf_chief *c = &w->chief;
    Weft__Cut *body = NULL;

    WF_TRY(wf_control_get(m, &weft__cut__descriptor, &body, err));
    if (body->chief != w->conf.incarnation) {
        wf_control_free(&body);
        return WF_OK;
    }
    c->reports = calloc(body->n_workers + 1, sizeof(*c->reports));
    if (!c->reports) {
        wf_control_free(&body);
        return wf_fail_nomem(err, sizeof(*c->reports));
    }
    c->cut = body;
    c->cut_number = m->head.cut;
    c->began_ns = now_ns;
    move(c, WF_CHIEF_OPENED);
    return WF_OK;
}

static wf_status begin_saving(wf_worker *w, int64_t now_ns, wf_err *err)
{
    wf_cut_id id = {w->generation, w->chief.cut_number, w->conf.incarnation};
    char folder[WF_CKPT_PATH];
    wf_err why;
    wf_status rc;

    rc = wf_ckpt_begin(w->conf.disk, w->start->checkpoint_dir, w->start->job, id, folder, &why);
    if (rc == WF_OK) {
        w->chief.folder = strdup(folder);
        move(&w->chief, WF_CHIEF_REPORTS_IN);
        if (!w->chief.folder)
            rc = wf_fail_nomem(&why, strlen(folder));
    }
    if (rc == WF_OK)
        rc = wf_exchange_save_begin(w->exchange, w->chief.cut_number, folder, &why);
    return rc == WF_OK ? wf_chief_advance(w, now_ns, err) : give_up(w, &why, err);
}

wf_status wf_chief_on_report(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    wf_chief *c = &w->chief;
    Weft__CutReport *body = NULL;
    bool all = true;

    if (c->state != WF_CHIEF_GATHERING || m->head.cut != c->cut_number)
        return WF_OK;
    WF_TRY(wf_control_get(m, &weft__cut_report__descriptor, &body, err));
    if (!body->ledger) {
        wf_control_free(&body);
        return wf_fail(err, WF_PROTO, NULL, "a report without the master's ledger");
    }
    for (size_t i = 0; i < c->cut->n_workers; i++) {
        if (body && c->cut->workers[i]->incarnation == body->incarnation && !c->reports[i]) {
            c->reports[i] = body;
            c->last = i;
            body = NULL;
        }
        all &= c->reports[i] != NULL;
    }
    wf_control_free(&body);
    return all ? begin_saving(w, now_ns, err) : WF_OK;
}

/* The first file that could not be written; NULL: none so far. */
static const struct wf_exchange_shard *failed_file(const wf_exchange_save *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->shards[i].result && s->shards[i].result->what[0])
            return &s->shards[i];
    return NULL;
}

wf_status wf_chief_advance(wf_worker *w, int64_t now_ns, wf_err *err)
{
    wf_chief *c = &w->chief;
    const struct wf_exchange_shard *failed;
    char writer[32];
    wf_err why;

    if (c->state != WF_CHIEF_SAVING)
        return WF_OK;
    failed = failed_file(&w->exchange->saving);
    if (failed) {
        wf_fail(&why, WF_IO, failed->result->hint, "%s: %s",
                wf_task_str(failed->writer, writer, sizeof writer), failed->result->what);
        return give_up(w, &why, err);
    }
    if (!c->copied_ns && wf_exchange_copied(w->exchange)) {
        c->copied_ns = now_ns;
        WF_TRY(wf_session_send(&w->session, WF_CUT_FORKED, NULL, err));
    }
    if (!c->copied_ns || !wf_exchange_saved(w->exchange))
        return WF_OK;
    move(c, WF_CHIEF_FILES_IN);
    return wf_session_send(&w->session, WF_CUT_COMMIT, NULL, err);
}

/* ---- the manifest ---- */

/* The shard that a slice is in. One that was on its way is in two: the one with more updates is of
 * the ps that has it, and was not older at the cut. */
static const Weft__SliceSaved *find_saved(const wf_exchange_save *s, uint32_t slice,
                                          uint32_t *shard)
{
    const Weft__SliceSaved *found = NULL;

    for (uint32_t i = 0; i < s->n; i++) {
        const Weft__Saved *saved = s->shards[i].result;

        for (size_t k = 0; k < saved->n_slices; k++) {
            const Weft__SliceSaved *row = saved->slices[k];

            if (row->slice != slice || (found && found->updates >= row->updates))
                continue;
            found = row;
            *shard = i;
        }
    }
    return found;
}

/* Frozen variables are in no checkpoint (ps/load.c). */
static bool is_saved(const Weft__Variable *v)
{
    return v->kind == WF_KIND_TRAINABLE || v->kind == WF_KIND_STATISTIC;
}

static wf_status fill_variable(const Weft__Start *s, const Weft__Variable *from, wf_arena *a,
                               wf_ckpt_variable *v, wf_err *err)
{
    v->name = from->name;
    v->dtype = (wf_dtype)from->dtype;
    v->unbounded = from->unbounded;
    v->rank = (uint32_t)from->n_dims;
    for (size_t k = 0; k < from->n_dims && k < WF_MAX_RANK; k++)
        v->dims[k] = from->dims[k];
    v->kind = from->kind == WF_KIND_TRAINABLE ? "trainable" : "statistic";
    for (size_t k = 0; from->kind == WF_KIND_TRAINABLE && k < s->n_slots && k < WF_CKPT_MAX_SLOTS;
         k++)
        v->slots[v->n_slots++] = s->slots[k];
    v->slices = wf_arena_array(a, s->n_slices, sizeof *v->slices);
    return v->slices ? WF_OK : wf_fail_nomem(err, s->n_slices * sizeof *v->slices);
}

static wf_status fill_variables(const wf_worker *w, wf_arena *a, wf_manifest *m, wf_err *err)
{
    const Weft__Start *s = w->start;
    wf_ckpt_variable **rows = wf_arena_array(a, s->n_variables, sizeof(*rows)); /* NULL: frozen */

    m->variables = wf_arena_array(a, s->n_variables, sizeof *m->variables);
    if (!m->variables || !rows)
        return wf_fail_nomem(err, s->n_variables * sizeof *m->variables);
    for (size_t i = 0; i < s->n_variables; i++) {
        if (!is_saved(s->variables[i]))
            continue;
        rows[i] = &m->variables[m->n_variables++];
        WF_TRY(fill_variable(s, s->variables[i], a, rows[i], err));
    }
    for (uint32_t i = 0; i < s->n_slices; i++) { /* in order of variable and offset */
        const Weft__Slice *from = s->slices[i];
        wf_ckpt_variable *v = rows[from->variable];
        const Weft__SliceSaved *saved;
        uint32_t ps;

        if (!v)
            continue;
        saved = find_saved(&w->exchange->saving, i, &ps);
        if (!saved)
            return wf_fail(err, WF_AGAIN, "the next checkpoint has it",
                           "slice %u is in no shard: it moved while the copies were taken", i);
        v->slices[v->n_slices++] = (wf_ckpt_slice){from->offset, from->count, ps, saved->updates};
    }
    return WF_OK;
}

static wf_status fill_files(const wf_exchange_save *s, wf_arena *a, wf_manifest *m, wf_err *err)
{
    m->n_files = s->n;
    m->files = wf_arena_array(a, s->n, sizeof *m->files);
    if (!m->files)
        return wf_fail_nomem(err, s->n * sizeof *m->files);
    for (uint32_t i = 0; i < s->n; i++) {
        const Weft__Saved *saved = s->shards[i].result;

        m->files[i].name = saved->file;
        m->files[i].bytes = saved->bytes;
        snprintf(m->files[i].sum, sizeof m->files[i].sum, "%s", saved->xxh3);
    }
    return WF_OK;
}

static int by_begin(const void *a, const void *b)
{
    const wf_ckpt_range *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Ranges in order, those that touch made one. */
static size_t merge(wf_ckpt_range r[], size_t n)
{
    size_t kept = 0;

    qsort(r, n, sizeof *r, by_begin);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && r[i].begin <= r[kept - 1].end) {
            if (r[i].end > r[kept - 1].end)
                r[kept - 1].end = r[i].end;
        } else {
            r[kept++] = r[i];
        }
    }
    return kept;
}

static wf_status copy_numbers(Weft__Option *const from[], size_t n, wf_arena *a,
                              wf_ckpt_number **to, size_t *n_to, wf_err *err)
{
    *to = wf_arena_array(a, n + 1, sizeof **to);
    if (!*to)
        return wf_fail_nomem(err, n * sizeof **to);
    for (size_t i = 0; i < n; i++)
        (*to)[(*n_to)++] = (wf_ckpt_number){from[i]->name, from[i]->value};
    return WF_OK;
}

static wf_status fill_rounds(const Weft__Ledger *base, wf_arena *a, wf_ckpt_ledger *l, wf_err *err)
{
    wf_ckpt_rounds *r;

    if (base->n_files + base->n_earlier == 0)
        return WF_OK;
    r = wf_arena_alloc(a, sizeof *r);
    if (!r)
        return wf_fail_nomem(err, sizeof *r);
    *r = (wf_ckpt_rounds){.earlier = base->earlier,
                          .n_earlier = base->n_earlier,
                          .steps_before = base->steps_before,
                          .records_before = base->records_before,
                          .digest = base->train_digest};
    r->files = wf_arena_array(a, base->n_files + 1, sizeof *r->files);
    if (!r->files)
        return wf_fail_nomem(err, base->n_files * sizeof *r->files);
    for (; r->n_files < base->n_files; r->n_files++) {
        r->files[r->n_files].path = base->files[r->n_files]->path;
        r->files[r->n_files].bytes = base->files[r->n_files]->bytes;
    }
    l->rounds = r;
    return WF_OK;
}

/* What is trained, from the master's list of what was finished before the cut and from the workers'
 * reports at it; nothing else counts. */
static wf_status fill_ledger(const wf_chief *c, const Weft__Ledger *base, wf_arena *a,
                             wf_manifest *m, wf_err *err)
{
    wf_ckpt_ledger *l = &m->ledger;
    size_t most = base->n_finished, n_open = 0;

    for (size_t i = 0; i < c->cut->n_workers; i++) {
        most += c->reports[i]->n_finished;
        n_open += c->reports[i]->n_open;
    }
    l->epoch = base->epoch;
    l->records = base->records;
    l->split_records = base->split_records;
    l->evaluated = base->evaluated;
    l->next_cut = base->next_cut;
    l->file_ends = base->file_ends;
    l->n_file_ends = base->n_file_ends;
    WF_TRY(fill_rounds(base, a, l, err));
    WF_TRY(
        copy_numbers(base->callbacks, base->n_callbacks, a, &l->callbacks, &l->n_callbacks, err));
    WF_TRY(copy_numbers(base->metrics, base->n_metrics, a, &m->metrics, &m->n_metrics, err));
    l->finished = wf_arena_array(a, most + 1, sizeof *l->finished);
    l->open = wf_arena_array(a, n_open + 1, sizeof *l->open);
    if (!l->finished || !l->open)
        return wf_fail_nomem(err, most * sizeof *l->finished);
    for (size_t i = 0; i < base->n_finished; i++)
        l->finished[l->n_finished++] =
            (wf_ckpt_range){base->finished[i]->begin, base->finished[i]->end};
    for (size_t i = 0; i < c->cut->n_workers; i++) {
        const Weft__CutReport *r = c->reports[i];

        for (size_t k = 0; k < r->n_finished; k++)
            if (r->finished[k]->epoch == base->epoch)
                l->finished[l->n_finished++] =
                    (wf_ckpt_range){r->finished[k]->begin, r->finished[k]->end};
        for (size_t k = 0; k < r->n_open; k++)
            if (r->open[k]->epoch == base->epoch)
                l->open[l->n_open++] = (wf_ckpt_split){r->open[k]->id, r->open[k]->begin,
                                                       r->open[k]->next, r->open[k]->end};
    }
    l->n_finished = merge(l->finished, l->n_finished);
    return WF_OK;
}

static wf_status fill_clocks(const wf_chief *c, wf_arena *a, wf_manifest *m, wf_err *err)
{
    m->clocks = wf_arena_array(a, c->cut->n_workers, sizeof *m->clocks);
    if (!m->clocks)
        return wf_fail_nomem(err, c->cut->n_workers * sizeof *m->clocks);
    m->global_step = c->cut->global_step;
    for (size_t i = 0; i < c->cut->n_workers; i++) {
        const Weft__CutReport *r = c->reports[i];

        m->global_step += r->steps;
        m->clocks[m->n_clocks++] = (wf_ckpt_clock){r->index, r->incarnation, r->steps};
    }
    return WF_OK;
}

/* What is trained with now: a callback may have changed the rate that the job began with. */
static wf_status fill_options(const Weft__Start *s, wf_arena *a, wf_manifest *m, wf_err *err)
{
    double rate = wf_manifest_callback(m, "learning_rate", 0);

    m->rule = s->rule;
    m->n_options = s->n_options;
    m->options = wf_arena_array(a, s->n_options, sizeof *m->options);
    if (!m->options)
        return wf_fail_nomem(err, s->n_options * sizeof *m->options);
    for (size_t i = 0; i < s->n_options; i++)
        m->options[i] = (wf_ckpt_number){s->options[i]->name, s->options[i]->value};
    for (size_t i = 0; i < m->n_options && rate > 0; i++)
        if (strcmp(m->options[i].name, "learning_rate") == 0)
            m->options[i].value = rate;
    return WF_OK;
}

static wf_status fill_manifest(const wf_worker *w, const Weft__Ledger *ledger, wf_arena *a,
                               wf_manifest *m, wf_err *err)
{
    const wf_chief *c = &w->chief;

    m->job = w->start->job;
    snprintf(m->digest, sizeof m->digest, "%s", w->start->digest);
    m->cut = (wf_cut_id){w->generation, c->cut_number, w->conf.incarnation};
    m->pause_ms = (uint64_t)((c->copied_ns - c->began_ns) / WF_NS_PER_MS);
    m->created_ms = w->conf.wall_ms ? w->conf.wall_ms(w->conf.ops.arg) : 0;
    m->seed = w->start->seed;
    m->weft = WEFT_VERSION;
    m->learnt = (wf_learnt *)w->job.learnt; /* which is only read */
    m->n_learnt = w->job.n_learnt;
    WF_TRY(fill_variables(w, a, m, err));
    WF_TRY(fill_files(&w->exchange->saving, a, m, err));
    WF_TRY(fill_ledger(c, ledger, a, m, err));
    WF_TRY(fill_options(w->start, a, m, err)); /* of what the ledger says */
    return fill_clocks(c, a, m, err);
}

static wf_status commit(wf_worker *w, uint64_t *step, wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    wf_manifest m = {0};
    wf_status rc;

    if (!a)
        return wf_fail_nomem(err, 4096);
    rc = fill_manifest(w, w->chief.reports[w->chief.last]->ledger, a, &m, err);
    if (rc == WF_OK)
        rc = wf_ckpt_commit(w->conf.disk, w->start->checkpoint_dir, w->chief.folder, &m, err);
    *step = m.global_step;
    wf_arena_free(&a);
    return rc;
}

wf_status wf_chief_on_commit(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    Weft__CutDone body = WEFT__CUT_DONE__INIT;
    wf_chief *c = &w->chief;
    wf_err why;
    wf_status rc;

    if (c->state != WF_CHIEF_ASKING || m->head.cut != c->cut_number)
        return WF_OK;
    rc = commit(w, &body.step, &why);
    if (rc != WF_OK)
        return give_up(w, &why, err);
    body.folder = c->folder;
    body.pause_ns = (uint64_t)(c->copied_ns - c->began_ns);
    body.took_ns = (uint64_t)(now_ns - c->began_ns);
    for (uint32_t i = 0; i < w->exchange->saving.n; i++)
        body.bytes += w->exchange->saving.shards[i].result->bytes;
    WF_LOG_INFO("ckpt.saved", "step=%lu bytes=%lu pause_ms=%ld took_ms=%ld",
                (unsigned long)body.step, (unsigned long)body.bytes,
                (long)(body.pause_ns / 1000000), (long)(body.took_ns / 1000000));
    rc = wf_session_send(&w->session, WF_CUT_DONE, &body.base, err);
    if (rc == WF_OK && wf_ckpt_gc(w->conf.disk, w->start->checkpoint_dir, w->start->job,
                                  c->cut->keep, body.step, &why) != WF_OK)
        WF_LOG_WARN("ckpt.not_deleted", "why=\"%s\"", why.what);
    free(c->folder);
    c->folder = NULL; /* it has its final name: nothing to abandon */
    move(c, WF_CHIEF_ALLOWED);
    wf_chief_abort(w);
    return rc;
}
