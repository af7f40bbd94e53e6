/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/moves.c - slices move between ps while all else goes on. In some histories the master
 * decides on it, by what the ps tell of their slices. In others anything may move at any time, also
 * while a checkpoint is taken: the order goes over the master's own link to the ps that has the
 * slice, as if the master had given it. */
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "tests/sim/world.h"

static wf_peer *link_to(const process *master, uint64_t life)
{
    const wf_peer *p;

    for (size_t i = 0; (p = wf_net_peer_at(master->net, i)); i++)
        if (p->up && p->incarnation == life)
            return (wf_peer *)p;
    return NULL;
}

/* A slice that its ps may give away, at random; NULL when that is none. */
static const wf_slice *any_slice(wf_sim *s, const process *giver)
{
    const wf_slice *slice;
    uint32_t n = 0;

    while (wf_ps_slice_at(giver->ps, n))
        n++;
    slice = n ? wf_ps_slice_at(giver->ps, (uint32_t)wf_sim_below(s, n)) : NULL;
    return slice;
}

static void order(wf_sim *s, process *master, process *giver, const process *taker,
                  const wf_slice *slice)
{
    Weft__Move body = WEFT__MOVE__INIT;
    Weft__Member to = WEFT__MEMBER__INIT;
    wf_peer *peer = link_to(master, giver->life);
    wf_msg *m = NULL;
    wf_err err;

    if (!peer)
        return;
    s->last_map =
        2 + (s->last_map > wf_ps_generation(giver->ps) ? s->last_map : wf_ps_generation(giver->ps));
    to.role = WF_ROLE_PS;
    to.index = taker->task.index;
    to.incarnation = taker->life;
    to.address = (char *)taker->address;
    body.slice = slice->id;
    body.to = &to;
    body.version = s->last_map;
    wf_assert(wf_net_msg(master->net, WF_MOVE, &m, &err) == WF_OK);
    wf_assert(wf_control_put(m, &body.base, &err) == WF_OK);
    m->head.job = wf_ps_job_number(giver->ps);
    m->head.generation = wf_ps_generation(giver->ps);
    wf_assert(wf_net_send(master->net, peer, WF_LANE_CONTROL, 0, &m, &err) == WF_OK);
    wf_sim_run_process(master);
}

void wf_sim_move(wf_sim *s)
{
    process *master = &s->procs[0], *giver = &s->procs[1 + wf_sim_below(s, s->spec.ps)],
            *taker = &s->procs[1 + wf_sim_below(s, s->spec.ps)];
    const wf_slice *slice;

    if (!master->alive || !giver->alive || !taker->alive || giver == taker ||
        !wf_ps_generation(giver->ps))
        return;
    slice = any_slice(s, giver);
    if (slice)
        order(s, master, giver, taker, slice);
}

void wf_sim_cut_opens(wf_sim *s)
{
    if (s->spec.moves && s->now_ns < s->spec.faults_end_ms * MS)
        wf_sim_plan(s, wf_sim_between(s, 0, 20) * MS, (wf_happening){.kind = MOVE});
}

void wf_sim_move_begins(wf_sim *s)
{
    if (s->spec.balances && s->spec.kills && s->now_ns < s->spec.faults_end_ms * MS &&
        wf_sim_below(s, 3) == 0)
        wf_sim_plan(s, wf_sim_between(s, 0, 10) * MS, (wf_happening){.kind = KILL});
}
