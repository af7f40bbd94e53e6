/* SPDX-License-Identifier: Apache-2.0 */
/* ps/apply.c - the parts of a push, by all threads.
 *
 * The thread that owns the sockets decides what is applied, and marks it; then all threads update
 * chunks of the slices; then it goes on. So a message is applied as a whole before the next is
 * looked at, and nothing is locked. One large slice keeps all threads busy, and what a chunk's
 * update copies first is still in the cache when it is updated. A chunk is as large as the kind of
 * the slice says: its bits do not depend on it.
 */
#include "common/base/size.h"
#include "ps/state.h"

typedef struct turn {
    wf_ps *ps;
    uint32_t n; /* of ps->updates */
} turn;

static uint64_t chunks_of(const wf_slice_update *u)
{
    return u->units / u->grain + (u->units % u->grain > 0);
}

static void update_chunk(const turn *t, const wf_slice_update *u, uint64_t chunk)
{
    uint64_t begin = chunk * u->grain;

    u->slice->ops->apply_range(u, &t->ps->opt, begin, WF_MIN(begin + u->grain, u->units));
}

static void update_chunks(void *arg, int64_t begin, int64_t end)
{
    const turn *t = arg;
    uint32_t i = 0;

    for (int64_t k = begin; k < end; k++) {
        while (i + 1 < t->n && (uint64_t)k >= t->ps->updates[i + 1].first_chunk)
            i++;
        update_chunk(t, &t->ps->updates[i].update, (uint64_t)k - t->ps->updates[i].first_chunk);
    }
}

/* Marks a part as seen and begins its update, unless it was applied before (P2). */
static wf_status begin_part(turn *t, const wf_part *p, const wf_slice_part *part, uint64_t *chunks,
                            wf_err *err)
{
    wf_slice *s = wf_ps_slice(t->ps, p->slice);
    wf_ps_update *u = &t->ps->updates[t->n];

    wf_assert(s && !s->leaving && !wf_slice_is_frozen(s)); /* P1, P7: on_push has checked */
    if (wf_seen_before(&s->seen, part->incarnation, part->step))
        return WF_OK;
    WF_TRY(wf_seen_mark(&s->seen, part->incarnation, part->step, err));
    if (p->codec == WF_CODEC_NONE) /* dropped whole by its worker: seen, and not an update (V1) */
        return WF_OK;
    wf_histogram_add(&t->ps->staleness, s->updates - part->version);
    WF_TRY(wf_slice_apply_begin(s, part, &u->update, err));
    u->first_chunk = *chunks;
    *chunks += chunks_of(&u->update);
    t->n++;
    return WF_OK;
}

wf_status wf_ps_apply(wf_ps *ps, uint64_t incarnation, const wf_msg *m, uint32_t n, wf_err *err)
{
    turn t = {.ps = ps};
    wf_status rc = WF_OK;
    uint64_t chunks = 0;

    for (uint32_t i = 0; rc == WF_OK && i < n; i++) {
        wf_slice_part part = wf_ps_part(m, incarnation, &ps->parts[i]);

        rc = begin_part(&t, &ps->parts[i], &part, &chunks, err);
    }
    if (t.n > 0)
        wf_pool_for(ps->pool, (int64_t)chunks, 1, update_chunks, &t);
    for (uint32_t i = 0; i < t.n; i++)
        ps->updates[i].update.slice->ops->apply_end(&ps->updates[i].update);
    ps->updates_done += t.n;
    return rc;
}
