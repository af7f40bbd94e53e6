/* SPDX-License-Identifier: Apache-2.0 */
/* ps/apply.c - the parts of a push, by all threads.
 *
 * The thread that owns the sockets decides what is applied, and marks it; then all threads update
 * chunks of the slices; then it goes on. So a message is applied as a whole before the next is
 * looked at, and nothing is locked. One large slice keeps all threads busy, and what a chunk's
 * update copies first is still in the cache when it is updated. A chunk is as large as the kind of
 * the slice says: its bits do not depend on it.
 *
 * A job may ask that the learning rate of a gradient be divided by its staleness (Zhang, Gupta,
 * Lian and Liu, "Staleness-aware Async-SGD for Distributed Deep Learning", IJCAI 2016, section
 * 3.1); one that is 0 or 1 update old has all of it.
 *
 * What slices are sent and the time that updates take are counted here (loads.c).
 */
#include "common/base/size.h"
#include "ps/mean.h"
#include "ps/state.h"

#include <stdlib.h>

typedef struct turn {
    wf_ps *ps;
    uint32_t n; /* of ps->updates */
} turn;

static uint64_t chunks_of(const wf_slice_update *u)
{
    return u->units / u->grain + (u->units % u->grain > 0);
}

/* The mean of a group is made chunk by chunk as well, so that it is in the cache when it is used.
 */
static void update_chunk(const turn *t, const wf_ps_update *up, uint64_t chunk)
{
    const wf_slice_update *u = &up->update;
    uint64_t begin = chunk * u->grain, end = WF_MIN(begin + u->grain, u->units);

    if (up->mean)
        wf_mean_range(t->ps->together.taken.rows + up->group.first, up->group.n, up->records, begin,
                      end, up->mean);
    if (t->ps->staleness_aware && up->staleness > 1) {
        wf_opt slower = t->ps->opt;

        slower.divisor = (double)up->staleness;
        u->slice->ops->apply_range(u, &slower, begin, end);
    } else {
        u->slice->ops->apply_range(u, &t->ps->opt, begin, end);
    }
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

/* Begins an update of a slice by a part: of a push, or what a group comes to. */
static wf_status begin_update(turn *t, wf_slice *s, const wf_slice_part *part, uint64_t *chunks,
                              wf_err *err)
{
    wf_ps_update *u = &t->ps->updates[t->n];

    WF_TRY(wf_slice_apply_begin(s, part, &u->update, err));
    u->first_chunk = *chunks;
    *chunks += chunks_of(&u->update);
    t->n++;
    return WF_OK;
}

/* Marks a part as seen and begins its update, unless it was applied before (P2). */
static wf_status begin_part(turn *t, const wf_part *p, const wf_slice_part *part, uint64_t *chunks,
                            wf_err *err)
{
    wf_slice *s = wf_ps_slice(t->ps, p->slice);

    wf_assert(s && !s->leaving && !wf_slice_is_frozen(s)); /* P1, P7: on_push has checked */
    wf_ps_count_part(s, part);
    if (wf_seen_before(&s->seen, part->incarnation, part->step))
        return WF_OK;
    WF_TRY(wf_seen_mark(&s->seen, part->incarnation, part->step, err));
    if (p->codec == WF_CODEC_NONE) /* dropped whole by its worker: seen, and not an update (V1) */
        return WF_OK;
    wf_histogram_add(&t->ps->staleness, s->updates - part->version);
    t->ps->updates[t->n].mean = NULL;
    t->ps->updates[t->n].rows = (wf_slice_part){0};
    t->ps->updates[t->n].staleness = s->updates - part->version;
    return begin_update(t, s, part, chunks, err);
}

static void run(turn *t, uint64_t chunks)
{
    wf_ps *ps = t->ps;
    int64_t began_ns = ps->conf.ops.now ? ps->conf.ops.now() : 0;

    if (t->n > 0)
        wf_pool_for(ps->pool, (int64_t)chunks, 1, update_chunks, t);
    if (t->n > 0 && ps->conf.ops.now)
        wf_ps_count_time(ps, t->n, (uint64_t)(ps->conf.ops.now() - began_ns));
    for (uint32_t i = 0; i < t->n; i++) {
        ps->updates[i].update.slice->ops->apply_end(&ps->updates[i].update);
        wf_mean_rows_free(&ps->updates[i].rows);
    }
    ps->updates_done += t->n;
}

/* A disk without room for rows ends the job, as a table that is full does (on_push.c), and not the
 * process. */
static wf_status end_if_full(wf_ps *ps, wf_status rc, const wf_err *why)
{
    if (rc == WF_FULL)
        wf_session_fault(&ps->session, why, NULL);
    return rc;
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
    run(&t, chunks);
    return end_if_full(ps, rc, err);
}

/* ---- groups ---- */

static const wf_held_part *parts_of(const wf_ps *ps, const wf_ps_group *g)
{
    return ps->together.taken.rows + g->first;
}

static bool counts(const wf_held_part *p)
{
    return wf_slice_part_has_values(&p->part) && p->records > 0;
}

static wf_status reserve_means(wf_ps *ps, const wf_ps_group groups[], uint32_t n, wf_err *err)
{
    wf_together *t = &ps->together;
    size_t room = 0;

    for (uint32_t i = 0; i < n; i++)
        room += groups[i].n > 1 && groups[i].slice->ops->answer ? groups[i].slice->count : 0;
    if (room <= t->mean_room)
        return WF_OK;
    free(t->mean);
    t->mean = malloc(room * sizeof *t->mean);
    t->mean_room = t->mean ? room : 0;
    return t->mean ? WF_OK : wf_fail_nomem(err, room * sizeof *t->mean);
}

/* Marks all parts of a group as seen. How many have values, and the records of all. */
static wf_status see_group(wf_ps *ps, const wf_ps_group *g, const wf_held_part **any,
                           uint32_t *n_valued, uint64_t *records, wf_err *err)
{
    const wf_held_part *parts = parts_of(ps, g);
    wf_slice *s = g->slice;

    *n_valued = 0;
    *records = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        WF_TRY(wf_seen_mark(&s->seen, parts[i].part.incarnation, parts[i].part.step, err));
        *records += parts[i].records;
        wf_ps_count_part(s, &parts[i].part);
        if (!counts(&parts[i]))
            continue;
        wf_histogram_add(&ps->staleness, s->updates - parts[i].part.version);
        *any = &parts[i];
        ++*n_valued;
    }
    return WF_OK;
}

static wf_status begin_group(turn *t, const wf_ps_group *g, size_t *used, uint64_t *chunks,
                             wf_err *err)
{
    wf_ps *ps = t->ps;
    wf_ps_update *u = &ps->updates[t->n];
    const wf_held_part *any = NULL;
    wf_slice_part part;
    uint64_t records;
    uint32_t n;
    wf_status rc;

    WF_TRY(see_group(ps, g, &any, &n, &records, err));
    if (n == 0) /* all were dropped, or name no rows here */
        return WF_OK;
    u->mean = NULL;
    u->rows = (wf_slice_part){0};
    u->group = *g;
    u->staleness = 0;
    u->records = ps->conf.adds ? 0 : records;
    part = any->part;
    if (any->records < records && part.rows.n > 0) {
        WF_TRY(wf_mean_rows(parts_of(ps, g), g->n, u->records, g->slice->row, &u->rows, err));
        part.values = u->rows.values;
        part.coded = (wf_coded){0};
        part.n = u->rows.n;
        part.rows = u->rows.rows;
    } else if (any->records < records) {
        wf_assert(g->slice->count <= ps->together.mean_room - *used);
        u->mean = ps->together.mean + *used;
        *used += g->slice->count;
        part.values = u->mean;
        part.coded = (wf_coded){0};
    }
    rc = begin_update(t, g->slice, &part, chunks, err);
    if (rc != WF_OK)
        wf_mean_rows_free(&u->rows);
    return rc;
}

wf_status wf_ps_apply_together(wf_ps *ps, const wf_ps_group groups[], uint32_t n, wf_err *err)
{
    turn t = {.ps = ps};
    uint64_t chunks = 0;
    size_t used = 0;
    wf_status rc = reserve_means(ps, groups, n, err);

    for (uint32_t i = 0; rc == WF_OK && i < n; i++)
        rc = begin_group(&t, &groups[i], &used, &chunks, err);
    run(&t, chunks);
    return end_if_full(ps, rc, err);
}
