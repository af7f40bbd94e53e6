/* SPDX-License-Identifier: Apache-2.0 */
/* ps/on_save.c - the chief asks for this ps's part of a checkpoint: value, slots and counters of
 * each slice are copied in one turn, then training may go on while the shell writes the copies.
 * Slices of frozen variables are left out: initial.safetensors holds them (load.c).
 *
 * A chief that has lost its link asks again. The copies of a cut are taken once, for training may
 * have gone on since; a repeated question is answered with what there is. */
#include "common/ckpt/ckpt.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "ps/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wf_ps_fork_free(wf_ps_fork **f)
{
    wf_ps_fork *it = *f;

    *f = NULL;
    if (!it)
        return;
    for (uint32_t i = 0; i < it->n_slices; i++)
        wf_slice_free(&it->slices[i]);
    wf_arena_free(&it->arena);
    free(it);
}

static wf_status fork_names(const wf_ps *ps, const Weft__Save *body, wf_ps_fork *f)
{
    f->job = wf_arena_strdup(f->arena, ps->job);
    f->folder = wf_arena_strdup(f->arena, body->folder);
    f->file = wf_arena_strdup(f->arena, body->file);
    f->variables = wf_arena_array(f->arena, ps->n_variables, sizeof *f->variables);
    f->slices = wf_arena_array(f->arena, ps->n_slices, sizeof(*f->slices));
    if (!f->job || !f->folder || !f->file || !f->variables || !f->slices)
        return WF_NOMEM;
    for (uint32_t i = 0; i < ps->n_variables; i++) {
        const wf_ps_variable *v = &ps->variables[i];

        f->variables[i] = *v;
        f->variables[i].name = wf_arena_strdup(f->arena, v->name);
        f->variables[i].dims = wf_arena_memdup(f->arena, v->dims, v->rank * sizeof *v->dims);
        if (!f->variables[i].name || !f->variables[i].dims)
            return WF_NOMEM;
    }
    f->n_variables = ps->n_variables;
    return WF_OK;
}

static wf_status make_fork(const wf_ps *ps, const wf_msg *m, const Weft__Save *body,
                           wf_ps_fork **out, wf_err *err)
{
    wf_ps_fork *f = calloc(1, sizeof *f);
    wf_status rc;

    if (!f)
        return wf_fail_nomem(err, sizeof *f);
    *out = f;
    f->arena = wf_arena_new(0);
    if (!f->arena || fork_names(ps, body, f) != WF_OK)
        return wf_fail_nomem(err, 4096);
    f->cut = m->head.cut;
    f->generation = m->head.generation;
    f->chief = m->head.incarnation;
    for (uint32_t i = 0; i < ps->n_slices; i++) {
        if (wf_slice_is_frozen(ps->slices[i]))
            continue;
        rc = wf_slice_fork(ps->slices[i], &f->slices[f->n_slices], err);
        if (rc != WF_OK)
            return rc;
        f->n_slices++;
    }
    return WF_OK;
}

static wf_status say(wf_ps *ps, wf_peer *chief, uint16_t kind, uint32_t cut, const wf_bytes *body,
                     wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(wf_net_msg(ps->net, kind, &m, err));
    m->head.cut = cut;
    rc = WF_OK;
    if (body) {
        uint8_t *to = wf_msg_control(m, body->size);

        if (!to && body->size)
            rc = wf_fail_nomem(err, body->size);
        else if (to)
            memcpy(to, body->data, body->size);
    }
    if (rc == WF_OK)
        rc = wf_ps_send(ps, chief, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(ps->net, &m);
    return rc;
}

static bool is_known(const wf_ps *ps, const wf_msg *m)
{
    return ps->saving.chief == m->head.incarnation && ps->saving.cut == m->head.cut &&
           ps->saving.generation == m->head.generation;
}

static wf_peer *find_peer(const wf_ps *ps, uint64_t incarnation)
{
    for (uint32_t i = 0; i < ps->n_workers; i++)
        if (ps->workers[i]->peer->incarnation == incarnation)
            return ps->workers[i]->peer;
    return NULL;
}

static wf_status pack(const Weft__Saved *body, wf_bytes *out, wf_err *err)
{
    size_t n = weft__saved__get_packed_size(body);
    uint8_t *to;

    wf_bytes_clear(out);
    to = wf_bytes_extend(out, n);
    if (!to)
        return wf_fail_nomem(err, n);
    weft__saved__pack(body, to);
    return WF_OK;
}

/* Keeps what became of the cut's copies, and says it to the chief, if its link is up. */
static wf_status note(wf_ps *ps, const Weft__Saved *body, wf_err *err)
{
    wf_peer *chief = find_peer(ps, ps->saving.chief);

    WF_TRY(pack(body, &ps->saving.said, err));
    return chief ? say(ps, chief, WF_CUT_SAVED, ps->saving.cut, &ps->saving.said, err) : WF_OK;
}

static wf_status note_failed(wf_ps *ps, const wf_err *why, wf_err *err)
{
    Weft__Saved body = WEFT__SAVED__INIT;

    body.what = (char *)why->what;
    body.hint = (char *)why->hint;
    return note(ps, &body, err);
}

static wf_status note_written(wf_ps *ps, const wf_ps_fork *f, const wf_ps_saved *saved, wf_err *err)
{
    Weft__Saved body = WEFT__SAVED__INIT;
    Weft__SliceSaved *rows = calloc(f->n_slices + 1, sizeof *rows);
    Weft__SliceSaved **list = calloc(f->n_slices + 1, sizeof(*list));
    wf_status rc = rows && list ? WF_OK : wf_fail_nomem(err, f->n_slices * sizeof *rows);

    for (uint32_t i = 0; rc == WF_OK && i < f->n_slices; i++) {
        weft__slice_saved__init(&rows[i]);
        rows[i].slice = f->slices[i]->id;
        rows[i].updates = f->slices[i]->updates;
        list[i] = &rows[i];
    }
    body.file = f->file;
    body.folder = f->folder;
    body.slices = list;
    body.n_slices = f->n_slices;
    body.bytes = saved->bytes;
    body.xxh3 = (char *)saved->xxh3;
    if (rc == WF_OK)
        rc = note(ps, &body, err);
    free(rows);
    free(list);
    return rc;
}

/* What comes from a peer and becomes a path: the folder of this very cut, and a plain name in it.
 */
static wf_status check_place(const wf_ps *ps, const wf_msg *m, const Weft__Save *body, wf_err *err)
{
    wf_cut_id cut = {m->head.generation, m->head.cut, m->head.incarnation};
    char text[WF_CUT_TEXT], wanted[WF_CKPT_PATH];
    wf_shard_meta meta[WF_CKPT_N_META];

    wf_ckpt_meta(ps->job, cut, text, meta);
    snprintf(wanted, sizeof wanted, "%s/%s/.tmp-%s", ps->checkpoint_dir, ps->job, text);
    if (strcmp(body->folder, wanted) == 0 && strncmp(body->file, "shard-", 6) == 0 &&
        !strchr(body->file, '/'))
        return WF_OK;
    return wf_fail(err, WF_PROTO, "check that all tasks have the same checkpoint_dir",
                   "a shard of cut %s is not written to %.200s/%.80s", text, body->folder,
                   body->file);
}

wf_status wf_ps_on_save(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    wf_ps_saving *s = &ps->saving;
    Weft__Save *body = NULL;
    wf_ps_fork *f = NULL;
    wf_err why = {0};
    wf_status rc;

    if (is_known(ps, m)) {
        WF_TRY(say(ps, w->peer, WF_CUT_FORKED, s->cut, NULL, err));
        return s->said.size ? say(ps, w->peer, WF_CUT_SAVED, s->cut, &s->said, err) : WF_OK;
    }
    WF_TRY(wf_control_get(m, &weft__save__descriptor, &body, err));
    if (wf_ps_is_full(ps)) { /* half a push may be applied */
        why = ps->session.fault;
        rc = why.status;
    } else {
        rc = check_place(ps, m, body, &why);
    }
    if (rc == WF_OK)
        rc = make_fork(ps, m, body, &f, &why);
    wf_control_free(&body);
    wf_bytes_clear(&s->said);
    s->chief = m->head.incarnation;
    s->cut = m->head.cut;
    s->generation = m->head.generation;
    if (rc == WF_OK)
        rc = ps->conf.ops.save(ps->conf.ops.arg, &f, &why);
    wf_ps_fork_free(&f);
    if (rc != WF_OK)
        return note_failed(ps, &why, err);
    return say(ps, w->peer, WF_CUT_FORKED, s->cut, NULL, err);
}

void wf_ps_on_saved(wf_ps *ps, wf_ps_fork **f, wf_status rc, const wf_ps_saved *saved,
                    const wf_err *why)
{
    bool wanted = wf_ps_serves(ps) && (*f)->generation == ps->generation &&
                  (*f)->chief == ps->saving.chief && (*f)->cut == ps->saving.cut;
    wf_err err;

    if (wanted) {
        rc = rc == WF_OK ? note_written(ps, *f, saved, &err) : note_failed(ps, why, &err);
        if (rc != WF_OK)
            WF_LOG_ERROR("ps.saved_unsaid", "cut=%u why=\"%s\"", (*f)->cut, err.what);
    }
    wf_ps_fork_free(f);
}
