/* SPDX-License-Identifier: Apache-2.0 */
/* master/placement/told.c - what the ps tell of slices: which have moved, what they cost, and what
 * came of an order. */
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/placement/state.h"

#include <stdlib.h>
#include <string.h>

/* Kept until the job is compiled, as after a new start of the master. */
static wf_status keep(wf_placement *p, const wf_job *j, uint32_t index, const Weft__Register *r,
                      wf_err *err)
{
    wf_placement_change *rows;
    uint32_t kept = 0;

    if (p->told_number != j->number || p->told_generation != j->generation)
        p->n_told = p->told_version = 0;
    for (uint32_t i = 0; i < p->n_told; i++)
        if (p->told[i].ps != index) /* what it has told before is over */
            p->told[kept++] = p->told[i];
    p->n_told = kept;
    rows = realloc(p->told, (p->n_told + r->n_moved + 1) * sizeof *rows);
    if (!rows)
        return wf_fail_nomem(err, r->n_moved * sizeof *rows);
    p->told = rows;
    for (size_t i = 0; i < r->n_moved; i++)
        rows[p->n_told++] = (wf_placement_change){r->moved[i]->slice, index, r->moved[i]->version};
    p->told_version = WF_MAX(p->told_version, r->map);
    p->told_number = j->number;
    p->told_generation = j->generation;
    return WF_OK;
}

/* The order, or its answer, may have been lost with the link. */
wf_status wf_placement_on_register(wf_master *m, const wf_job *j, const wf_member *who,
                                   const Weft__Register *r, wf_err *err)
{
    wf_placement *p = m->placement;

    if (!wf_placement_is_of(p, j))
        return keep(p, j, who->task.index, r, err);
    for (size_t i = 0; i < r->n_moved; i++)
        wf_placement_take(p, r->moved[i]->slice, who->task.index, r->moved[i]->version);
    p->version = WF_MAX(p->version, r->map);
    if (p->state == WF_BALANCE_MOVING && p->move.from == who->task.index &&
        p->move.giver == who->incarnation)
        return wf_placement_send(m, who, err);
    return WF_OK;
}

/* ---- what slices cost ---- */

static double per_second(uint64_t n, uint64_t ns)
{
    return (double)n * 1e9 / (double)ns;
}

static void take_load(const wf_master *m, wf_placement *p, uint32_t index, const Weft__Load *l)
{
    wf_placement_ps *ps = &p->ps[index];

    *ps = (wf_placement_ps){.told_ns = m->now_ns,
                            .slices = l->slices,
                            .held_bytes = WF_MIN(l->held_bytes, (uint64_t)INT64_MAX),
                            .pulled = per_second(l->pulled_bytes, l->time_ns),
                            .pushed = per_second(l->pushed_bytes, l->time_ns),
                            .parts = per_second(l->parts, l->time_ns),
                            .applying = (double)l->apply_ns / (double)l->time_ns};
    for (size_t i = 0; i < l->n_most && ps->n < WF_PLACEMENT_BUSIEST; i++) {
        const Weft__SliceLoad *s = l->most[i];

        if (s->slice >= p->n_slices || p->slices[s->slice].ps != index)
            continue;
        ps->busiest[ps->n++] =
            (wf_balance_slice){.slice = s->slice,
                               .held_bytes = WF_MIN(s->held_bytes, (uint64_t)INT64_MAX),
                               .load = per_second(s->pulled_bytes, l->time_ns) +
                                       per_second(s->pushed_bytes, l->time_ns)};
    }
}

wf_status wf_placement_on_load(wf_master *m, const wf_member *who, const wf_msg *msg, wf_err *err)
{
    wf_placement *p = m->placement;
    Weft__Load *body = NULL;

    if (!m->job || !wf_placement_is_of(p, m->job) || who->task.role != WF_ROLE_PS ||
        who->task.index >= p->n_ps)
        return WF_OK;
    WF_TRY(wf_control_get(msg, &weft__load__descriptor, &body, err));
    if (body->time_ns)
        take_load(m, p, who->task.index, body);
    wf_control_free(&body);
    return WF_OK;
}

/* ---- what came of an order ---- */

/* The loads as they are to be now, until the two tell again. Pulls and pushes are not known apart:
 * the sum is. */
static void shift(wf_placement_ps *from, wf_placement_ps *to, const wf_placement *p)
{
    const wf_balance_slice s = {
        .slice = p->move.slice, .held_bytes = p->move.held_bytes, .load = p->move.load};
    double share = from->pulled + from->pushed;

    share = share > 0 ? WF_MIN(s.load / share, 1.0) : 0;
    to->pulled += share * from->pulled;
    to->pushed += share * from->pushed;
    from->pulled -= share * from->pulled;
    from->pushed -= share * from->pushed;
    from->held_bytes -= WF_MIN(from->held_bytes, s.held_bytes);
    to->held_bytes += s.held_bytes;
    from->slices -= from->slices > 0;
    to->slices++;
    from->moves++;
    to->moves++;
    for (uint32_t i = 0; i < from->n; i++)
        if (from->busiest[i].slice == s.slice) {
            memmove(&from->busiest[i], &from->busiest[i + 1],
                    (from->n - i - 1) * sizeof from->busiest[0]);
            from->n--;
            break;
        }
    if (to->n < WF_PLACEMENT_BUSIEST)
        to->busiest[to->n++] = s;
}

static const char *name_of(const wf_job *j, uint32_t slice, uint32_t *at)
{
    const Weft__Setup *s = &j->prepared->setup;
    uint32_t first = slice;

    while (first > 0 && s->slices[first - 1]->variable == s->slices[slice]->variable)
        first--;
    *at = slice - first;
    return s->variables[s->slices[slice]->variable]->name;
}

/* Moves of a series are told of when it begins and ends. */
static void note_moved(wf_master *m, wf_job *j, const Weft__Moved *body)
{
    const wf_placement *p = m->placement;
    uint32_t at;
    const char *name = name_of(j, p->move.slice, &at);

    WF_LOG_INFO("slice.moved", "slice=%u from=%u to=%u version=%u bytes=%lu frozen_ms=%.1f",
                p->move.slice, p->move.from, p->move.to, p->move.version,
                (unsigned long)body->bytes, (double)body->frozen_ns / 1e6);
    if (p->move.asked)
        wf_job_note(m, j, "slice.moved", "\"%.200s\"[%u] is on ps/%u now, and was on ps/%u", name,
                    at, p->move.to, p->move.from);
}

static void note_refused(wf_master *m, wf_job *j, const Weft__Moved *body)
{
    const wf_placement *p = m->placement;
    uint32_t at;
    const char *name = name_of(j, p->move.slice, &at);

    wf_job_note(m, j, "slice.stays", "\"%.200s\"[%u] stays on ps/%u, and does not go to ps/%u: %s",
                name, at, p->move.from, p->move.to, body->what);
}

static void take_moved(wf_master *m, wf_job *j, const wf_member *who, const Weft__Moved *body)
{
    wf_placement *p = m->placement;
    bool is_ours = p->state == WF_BALANCE_MOVING && body->slice == p->move.slice &&
                   body->version == p->move.version && who->task.index == p->move.from;

    if (!is_ours) { /* of an order that the master before gave, or an answer that comes twice */
        if (body->status == WF_OK)
            wf_placement_take(p, body->slice, body->ps, body->version);
        return;
    }
    if (body->status != WF_OK) {
        p->n_refused++;
        note_refused(m, j, body);
        wf_placement_rest(m, WF_BALANCE_REFUSED);
        return;
    }
    wf_placement_take(p, p->move.slice, p->move.to, p->move.version);
    shift(&p->ps[p->move.from], &p->ps[p->move.to], p);
    p->n_moved++;
    p->frozen_most_ns = WF_MAX(p->frozen_most_ns, body->frozen_ns);
    p->moved_bytes += WF_MIN(body->bytes, UINT64_C(1) << 40);
    note_moved(m, j, body);
    wf_placement_rest(m, WF_BALANCE_MOVED);
}

wf_status wf_placement_on_moved(wf_master *m, wf_job *j, const wf_member *who, const wf_msg *msg,
                                wf_err *err)
{
    Weft__Moved *body = NULL;

    if (!wf_placement_is_of(m->placement, j))
        return WF_OK;
    WF_TRY(wf_control_get(msg, &weft__moved__descriptor, &body, err));
    take_moved(m, j, who, body);
    wf_control_free(&body);
    return WF_OK;
}
