/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_saves.c - the files of a checkpoint. All members have the same variables, so
 * each writes a share of them: at a cut nobody trains, and all have applied the same steps. The
 * member that writes the checkpoint has the first share, and asks the others for theirs.
 *
 * Where each has the slots of a share (ring_owners.c) it is the file of that share that it writes.
 *
 * What another was to write when a round ended is written by this member too, under another name:
 * the other may still have its file open.
 */
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "common/wire/control.h"
#include "worker/exchange/ring_state.h"

#include <stdio.h>
#include <string.h>

uint32_t wf_ring_count_files(const wf_exchange *x)
{
    const wf_ring *r = (const wf_ring *)x;
    uint64_t bytes = 0, least = r->local.conf.file_bytes;

    if (r->is_divided)
        return WF_MAX(r->n_members, 1u);
    if (r->local.conf.is_part) /* the few of another part's files are counted before */
        return r->local.shard + 1;
    for (uint32_t i = 0; i < r->local.n_variables; i++) {
        const wf_local_variable *v = &r->local.variables[i];

        if (!wf_local_is_frozen(v))
            bytes += v->count * sizeof(float) * (1 + wf_local_n_slots(&r->local, v));
    }
    bytes /= least ? least : WF_FILE_BYTES;
    return (uint32_t)WF_MAX(WF_MIN(bytes, (uint64_t)r->n_members), (uint64_t)1);
}

/* ---- who writes the checkpoint ---- */

static wf_status write_own(wf_ring *r, uint32_t share, bool again, wf_err *err)
{
    wf_exchange_save *s = &r->local.base.saving;
    struct wf_exchange_shard *shard = &s->shards[r->local.shard + share];
    wf_cut_id cut = {r->local.conf.generation, s->cut, r->local.conf.incarnation};
    char name[64], file[80];

    wf_ckpt_shard_name(r->local.shard + share, s->n, name, sizeof name);
    snprintf(file, sizeof file, "%s%s", again ? "again-" : "", name);
    shard->writer = (wf_task){WF_ROLE_WORKER, r->members[r->me].index};
    WF_TRY(wf_local_write_share(&r->local, cut, s->folder, file, share, &shard->result, err));
    shard->copied = true;
    return WF_OK;
}

/* One without a link is not waited for. */
static wf_status ask(wf_ring *r, uint32_t share, uint32_t shares, wf_err *err)
{
    wf_exchange_save *s = &r->local.base.saving;
    uint32_t to = r->is_divided ? share : (r->me + share) % r->n_members;
    Weft__Save body = WEFT__SAVE__INIT;
    char file[64];

    if (to == r->me || (!r->members[to].peer && !r->is_divided))
        return write_own(r, share, false, err);
    s->shards[r->local.shard + share].writer = (wf_task){WF_ROLE_WORKER, r->members[to].index};
    body.folder = s->folder;
    body.file = (char *)wf_ckpt_shard_name(r->local.shard + share, s->n, file, sizeof file);
    body.share = share;
    body.shares = shares;
    return wf_ring_send(r, to, WF_CUT_SAVE, s->cut, &body.base, err);
}

static wf_status begin_files(wf_ring *r, wf_err *err)
{
    uint32_t shares = r->local.base.saving.n - r->local.shard;

    WF_TRY(wf_local_share(&r->local, shares, err));
    for (uint32_t k = shares; k > 0; k--) /* the others write while this worker does */
        WF_TRY(ask(r, k - 1, shares, err));
    return WF_OK;
}

static wf_status end_files(wf_ring *r, wf_err *err)
{
    const wf_exchange_save *s = &r->local.base.saving;

    for (uint32_t i = r->local.shard; i < s->n; i++)
        if (!s->shards[i].result)
            WF_TRY(write_own(r, i - r->local.shard, true, err));
    return WF_OK;
}

wf_status wf_ring_save_when_due(wf_ring *r, wf_err *err)
{
    bool begins, ends;

    if (!wf_ring_is_current(r))
        return WF_OK;
    begins = r->cut_due && r->cut_due == r->local.base.saving.cut;
    ends = r->files_left && r->files_left == r->local.base.saving.cut;
    r->cut_due = r->files_left = 0;
    if (begins)
        return begin_files(r, err);
    return ends ? end_files(r, err) : WF_OK;
}

wf_status wf_ring_save(wf_exchange *x, wf_err *err)
{
    wf_ring *r = (wf_ring *)x;

    r->cut_due = x->saving.cut;
    return wf_ring_save_when_due(r, err);
}

void wf_ring_forget_files(wf_ring *r)
{
    const wf_exchange_save *s = &r->local.base.saving;

    for (uint32_t i = r->local.shard; !r->cut_due && i < s->n; i++)
        if (!s->shards[i].result)
            r->files_left = s->cut;
}

wf_status wf_ring_on_saved(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    wf_exchange_save *s = &r->local.base.saving;
    uint32_t share = r->is_divided ? from : (from + r->n_members - r->me) % r->n_members;
    uint32_t at = r->local.shard + share;
    Weft__Saved *body = NULL;

    if (r->cut_due || m->head.cut != s->cut || at >= s->n || s->shards[at].result)
        return WF_OK;
    WF_TRY(wf_control_get(m, &weft__saved__descriptor, &body, err));
    if (!body->file[0]) { /* it cannot */
        wf_control_free(&body);
        return write_own(r, share, true, err);
    }
    s->shards[at].result = body;
    s->shards[at].copied = true;
    return WF_OK;
}

/* ---- who is asked ---- */

static bool is_name(const char *file)
{
    return file[0] && !strchr(file, '/');
}

/* A member that does not have the variables as they are at the cut, because it has just joined,
 * names no file. */
wf_status wf_ring_on_save(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    wf_cut_id cut = {r->local.conf.generation, m->head.cut, r->members[from].incarnation};
    bool can = r->has_values && m->head.step == r->clock;
    Weft__Saved none = WEFT__SAVED__INIT, *result = NULL;
    Weft__Save *body = NULL;
    wf_status rc = WF_OK;

    WF_TRY(wf_control_get(m, &weft__save__descriptor, &body, err));
    if (!is_name(body->file) || body->shares > r->n_members || body->share >= body->shares)
        rc = wf_fail(err, WF_PROTO, NULL, "worker %u: a file of share %u, of %u",
                     r->members[from].index, body->share, body->shares);
    if (rc == WF_OK && can)
        rc = wf_local_share(&r->local, body->shares, err);
    if (rc == WF_OK && can)
        rc = wf_local_write_share(&r->local, cut, body->folder, body->file, body->share, &result,
                                  err);
    if (rc == WF_OK)
        rc = wf_ring_send(r, from, WF_CUT_SAVED, m->head.cut, result ? &result->base : &none.base,
                          err);
    wf_control_free(&result);
    wf_control_free(&body);
    return rc;
}
