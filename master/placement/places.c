/* SPDX-License-Identifier: Apache-2.0 */
/* master/placement/places.c - what is known of the places of slices, and the life cycle of moves.
 * When a slice moves is decided in placement.c; what the ps say is in told.c. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "master/placement/state.h"

#include <stdlib.h>

/* Between two moves, so that workers spend little of their time asking anew. */
static const int64_t REST_NS = 250 * WF_NS_PER_MS;
/* After refusals: the first one, and twice as long after each further one in a row. */
static const int64_t REFUSED_NS = 5 * WF_NS_PER_S, REFUSED_MOST_NS = 300 * WF_NS_PER_S;
static const int64_t BARRED_NS = 60 * WF_NS_PER_S;

/* ---- the life cycle ---- */

static const char *const states[] = {"idle", "level", "tilted", "moving", "resting"};
static const char *const events[] = {"begun", "tilted",  "levelled", "ordered",
                                     "moved", "refused", "rested",   "ended"};

enum {
    AT_REST =
        WF_STATE(WF_BALANCE_LEVEL) | WF_STATE(WF_BALANCE_TILTED) | WF_STATE(WF_BALANCE_RESTING)
};

static const wf_edge edges[] = {
    {WF_STATE(WF_BALANCE_IDLE), WF_BALANCE_BEGUN, WF_BALANCE_LEVEL},
    {WF_STATE(WF_BALANCE_LEVEL), WF_BALANCE_TILTS, WF_BALANCE_TILTED},
    {WF_STATE(WF_BALANCE_TILTED), WF_BALANCE_LEVELLED, WF_BALANCE_LEVEL},
    {AT_REST, WF_BALANCE_ORDERED, WF_BALANCE_MOVING},
    {WF_STATE(WF_BALANCE_MOVING), WF_BALANCE_MOVED, WF_BALANCE_RESTING},
    {WF_STATE(WF_BALANCE_MOVING), WF_BALANCE_REFUSED, WF_BALANCE_RESTING},
    {WF_STATE(WF_BALANCE_RESTING), WF_BALANCE_RESTED, WF_BALANCE_LEVEL},
    {AT_REST | WF_STATE(WF_BALANCE_MOVING), WF_BALANCE_ENDED, WF_BALANCE_IDLE},
};

const wf_states wf_balance_states = WF_STATES("balances", states, events, edges);

void wf_placement_enter(wf_placement *p, wf_balance_event event)
{
    p->state = (wf_balance_state)wf_states_take(&wf_balance_states, p->state, event, "");
}

/* ---- it begins and ends ---- */

wf_status wf_placement_new(uint32_t n_ps, wf_placement **out, wf_err *err)
{
    wf_placement *p = calloc(1, sizeof *p);

    *out = p;
    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    p->n_ps = n_ps;
    p->ps = calloc((size_t)n_ps + 1, sizeof *p->ps);
    p->view = calloc((size_t)n_ps + 1, sizeof *p->view);
    if (p->ps && p->view)
        return WF_OK;
    wf_placement_free(out);
    return wf_fail_nomem(err, n_ps * sizeof *p->ps);
}

void wf_placement_free(wf_placement **p)
{
    wf_placement *it = *p;

    *p = NULL;
    if (!it)
        return;
    free(it->slices);
    free(it->told);
    free(it->view);
    free(it->ps);
    free(it);
}

void wf_placement_end(wf_master *m)
{
    wf_placement *p = m->placement;

    if (p->state != WF_BALANCE_IDLE)
        wf_placement_enter(p, WF_BALANCE_ENDED);
    p->number = 0;
}

bool wf_placement_is_moving(const wf_master *m)
{
    return m->placement->state == WF_BALANCE_MOVING;
}

bool wf_placement_is_of(const wf_placement *p, const wf_job *j)
{
    return p->number && p->number == j->number && p->generation == j->generation;
}

/* ---- where slices are ---- */

/* A ps's word; of a slice the newest counts. */
void wf_placement_take(wf_placement *p, uint32_t slice, uint32_t ps, uint32_t version)
{
    if (slice >= p->n_slices || ps >= p->n_ps || version <= p->slices[slice].version)
        return;
    p->slices[slice] = (wf_placement_slice){ps, version};
    p->version = WF_MAX(p->version, version);
}

void wf_placement_take_told(wf_placement *p)
{
    if (p->told_number == p->number && p->told_generation == p->generation) {
        for (uint32_t i = 0; i < p->n_told; i++)
            wf_placement_take(p, p->told[i].slice, p->told[i].ps, p->told[i].version);
        p->version = WF_MAX(p->version, p->told_version);
    }
    free(p->told);
    p->told = NULL;
    p->n_told = p->told_version = p->told_number = 0;
}

void wf_placement_fill_load(const wf_placement *p, wf_balance_move *move)
{
    const wf_placement_ps *ps = &p->ps[move->from];

    for (uint32_t i = 0; i < ps->n; i++)
        if (ps->busiest[i].slice == move->slice.slice)
            move->slice = ps->busiest[i];
}

/* ---- a move ---- */

wf_member *wf_placement_find_ps(const wf_master *m, uint32_t index)
{
    return wf_member_of(m, (wf_task){WF_ROLE_PS, index});
}

wf_status wf_placement_send(wf_master *m, const wf_member *giver, wf_err *err)
{
    const wf_placement *p = m->placement;
    const wf_member *taker = wf_placement_find_ps(m, p->move.to);
    Weft__Move body = WEFT__MOVE__INIT;
    Weft__Member to = WEFT__MEMBER__INIT;

    to.role = WF_ROLE_PS;
    to.index = p->move.to;
    to.incarnation = taker->incarnation;
    to.address = (char *)taker->address;
    body.slice = p->move.slice;
    body.version = p->move.version;
    body.to = &to;
    return wf_member_send(m, giver, WF_MOVE, &body.base, err);
}

void wf_placement_rest(wf_master *m, wf_balance_event how)
{
    wf_placement *p = m->placement;
    int64_t for_ns = REST_NS;

    wf_placement_enter(p, how);
    if (how == WF_BALANCE_MOVED) {
        p->refusals = 0;
    } else {
        for_ns = WF_MIN(REFUSED_NS << WF_MIN(p->refusals, 16u), REFUSED_MOST_NS);
        p->refusals++;
        p->barred[p->n_barred++ % WF_PLACEMENT_BARRED].slice = p->move.slice;
        p->barred[(p->n_barred - 1) % WF_PLACEMENT_BARRED].until_ns = m->now_ns + BARRED_NS;
    }
    p->rest_ns = m->now_ns + for_ns;
}
