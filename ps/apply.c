/* SPDX-License-Identifier: Apache-2.0 */
/* ps/apply.c - the parts of a push, by all threads.
 *
 * The thread that owns the sockets decides what is applied, and marks it; then all threads update
 * chunks of the slices, so that one large slice keeps all of them busy; then it goes on. So a
 * message is applied as a whole before the next is looked at, and nothing is locked. Rules update
 * each element by itself: what a chunk covers does not change a bit. A rule that is `whole` has one
 * chunk.
 */
#include "common/base/size.h"
#include "ps/state.h"

enum {
    CHUNK = 32 << 10 /* elements: half of a second-level cache with one slot and its gradient */
};

typedef struct turn {
    wf_ps *ps;
    const wf_msg *msg;
    uint32_t n; /* of ps->updates */
} turn;

static uint64_t chunks_of(const wf_ps *ps, const wf_slice *s)
{
    bool one = ps->opt.rule->whole || wf_pool_threads(ps->pool) == 1;

    return one || s->count == 0 ? 1 : (s->count + CHUNK - 1) / CHUNK;
}

static void update_chunk(const turn *t, const wf_ps_update *u, uint64_t chunk)
{
    const wf_slice *s = u->update.slice;
    bool one = chunks_of(t->ps, s) == 1;
    uint64_t begin = one ? 0 : chunk * CHUNK,
             end = one ? s->count : WF_MIN(begin + CHUNK, s->count);

    wf_slice_update_range(&u->update, &t->ps->opt, u->part_data, begin, end);
}

static void update_chunks(void *arg, int64_t begin, int64_t end)
{
    const turn *t = arg;
    uint32_t i = 0;

    for (int64_t k = begin; k < end; k++) {
        while (i + 1 < t->n && (uint64_t)k >= t->ps->updates[i + 1].first_chunk)
            i++;
        update_chunk(t, &t->ps->updates[i], (uint64_t)k - t->ps->updates[i].first_chunk);
    }
}

/* Marks a part as seen and begins its update, unless it was applied before (P2). */
static wf_status begin_part(turn *t, uint64_t incarnation, const wf_part *p, uint64_t *chunks,
                            wf_err *err)
{
    wf_slice *s = wf_ps_slice(t->ps, p->slice);
    wf_ps_update *u = &t->ps->updates[t->n];

    if (wf_seen_before(&s->seen, incarnation, t->msg->head.step))
        return WF_OK;
    WF_TRY(wf_seen_mark(&s->seen, incarnation, t->msg->head.step, err));
    if (p->codec == WF_CODEC_NONE) /* dropped whole by its worker: seen, and not an update (V1) */
        return WF_OK;
    WF_TRY(wf_slice_update_begin(s, &u->update, err));
    u->part_data = wf_part_data(t->msg, p);
    u->first_chunk = *chunks;
    *chunks += chunks_of(t->ps, s);
    t->n++;
    return WF_OK;
}

wf_status wf_ps_apply(wf_ps *ps, uint64_t incarnation, const wf_msg *m, uint32_t n, wf_err *err)
{
    turn t = {.ps = ps, .msg = m};
    wf_status rc = WF_OK;
    uint64_t chunks = 0;

    for (uint32_t i = 0; rc == WF_OK && i < n; i++)
        rc = begin_part(&t, incarnation, &ps->parts[i], &chunks, err);
    if (t.n > 0)
        wf_pool_for(ps->pool, (int64_t)chunks, 1, update_chunks, &t);
    for (uint32_t i = 0; i < t.n; i++)
        wf_slice_update_end(&ps->updates[i].update);
    return rc;
}
