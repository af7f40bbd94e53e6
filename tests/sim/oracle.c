/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/oracle.c - what must hold after every event, from what the processes hear and from what
 * the ps hold. It knows nothing of how the roles come to it.
 *
 *   O1  a slice holds one for each update, and between the parts that were acknowledged to
 *       workers and the parts that they pushed, counted from where its generation began: so each
 *       acknowledged part is in the history that survives, and each is applied once
 *   O2  only members of a ps's view are among those whose parts it has applied
 *   O3  views only grow; who has left a view is never in a newer one
 *   O4  a cut's number is used once, and has one chief, whose commit alone is granted
 *   O5  with one worker, the weights of step t hold its own parts up to
 *       max(base, t - 1 - pipeline)
 *   O6  a checkpoint fails by the disk alone, or because a slice moved meanwhile; unless its chief
 *       or its generation was given up
 *   O7  a job that is to go on from a step goes on from there, in every generation until a
 *       checkpoint of what follows is committed
 *   O8  a process that hangs is given up before its own watchdog ends it
 *   O9  without a fault that would be a reason nobody is given up, and over connections that do not
 *       break nothing is sent twice
 *   O10 the log of a slice has a line for each update, no part of an incarnation twice, those of
 *       one incarnation in order, and each part that was acknowledged; a slice that is restored
 *       brings its log
 *   O11 where staleness is bounded by s, no worker begins a step whose clock is more than s + 1
 *       ahead of another's, who may have joined since the weights came
 */
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/parts.h"
#include "tests/sim/world.h"

#include <string.h>

void wf_oracle_dies(const process *p)
{
    p->sim->oracle.worker_deaths += p->task.role == WF_ROLE_WORKER;
}

void wf_oracle_reborn(process *p)
{
    p->view = p->cut = p->links = p->links_at_first = p->master_links = p->cut_links = 0;
    p->era = 0;
    p->is_member = false;
    memset(p->acked, 0, sizeof p->acked);
    memset(p->known, 0, sizeof p->known);
    p->log_era = 0;
    p->acked_era = 0;
    memset(p->gave, 0, sizeof p->gave);
}

/* The claims of older generations went with them. */
static void begin_era(oracle *o, uint32_t era)
{
    if (era <= o->era)
        return;
    o->era = era;
    memset(o->slices, 0, sizeof o->slices);
}

static uint32_t era_of(const process *worker)
{
    return wf_era(wf_worker_job_number(worker->worker), wf_worker_generation(worker->worker));
}

static uint32_t era_said(const wf_msg *m)
{
    return wf_era(m->head.job, m->head.generation);
}

static void begin_worker_era(process *p, uint32_t era)
{
    begin_era(&p->sim->oracle, era);
    if (p->era == era)
        return;
    p->era = era;
    p->cut = 0;
    memset(p->acked, 0, sizeof p->acked);
}

/* ---- what is heard ---- */

/* The ps that has a slice in this era; NULL while none has. */
static const wf_slice *owned_slice(const wf_sim *s, uint32_t id, uint32_t era)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const process *p = &s->procs[i];
        const wf_slice *slice;

        if (!p->ps || !wf_ps_generation(p->ps) ||
            wf_era(wf_ps_job_number(p->ps), wf_ps_generation(p->ps)) != era)
            continue;
        for (uint32_t k = 0; (slice = wf_ps_slice_at(p->ps, k)); k++)
            if (slice->id == id && !slice->leaving)
                return slice;
    }
    return NULL;
}

/* O10, when an acknowledgement arrives. The ps may have died meanwhile, and its part of the history
 * with it. */
static void check_logged(wf_sim *s, uint64_t incarnation, const wf_msg *ok, uint32_t id)
{
    const wf_slice *slice = owned_slice(s, id, era_said(ok));
    const wf_logged_line *lines;
    uint64_t n;

    lines = slice && !s->spec.together ? wf_logged_lines(slice, &n) : NULL;
    if (!lines)
        return;
    while (n > 0 &&
           !(lines[n - 1].incarnation == incarnation &&
             lines[n - 1].generation == ok->head.generation && lines[n - 1].step == ok->head.step))
        n--;
    if (n == 0)
        wf_sim_broken(s, "what is acknowledged is in the log of its slice", id, ok->head.step);
}

/* A ps applies a worker's parts of one slice in order, so what is acknowledged includes all before.
 */
static void hear_push_ok(process *p, const wf_msg *m)
{
    oracle *o = &p->sim->oracle;
    uint32_t ids[WF_MAX_PARTS], n = 0;
    wf_err err;

    if (era_said(m) != era_of(p) || era_said(m) != o->era)
        return;
    begin_worker_era(p, era_said(m));
    wf_assert(wf_slices_get(m, ids, &n, &err) == WF_OK);
    for (uint32_t i = 0; i < n; i++) {
        wf_assert(ids[i] < MOST_SLICES);
        check_logged(p->sim, p->life, m, ids[i]);
        if (m->head.step <= p->acked[ids[i]])
            continue;
        o->slices[ids[i]].acked += m->head.step - p->acked[ids[i]];
        p->acked[ids[i]] = m->head.step;
    }
}

static bool holds(const uint64_t list[], uint32_t n, uint64_t incarnation)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == incarnation)
            return true;
    return false;
}

static void hear_view(process *p, const wf_msg *m)
{
    oracle *o = &p->sim->oracle;
    uint64_t members[2 * MOST_PROCESSES];
    Weft__View *view = NULL;
    uint32_t n = 0;
    wf_err err;

    wf_assert(wf_control_get(m, &weft__view__descriptor, &view, &err) == WF_OK);
    for (uint32_t i = 0; view->since && i < o->n_members; i++)
        if (!holds(view->left, (uint32_t)view->n_left, o->members[i]))
            members[n++] = o->members[i];
    for (size_t i = 0; i < view->n_members; i++)
        members[n++] = view->members[i]->incarnation;
    if (m->head.view > o->view && view->since && view->since != o->view)
        wf_sim_broken(p->sim, "a difference is told to who has the view before", view->since,
                      o->view);
    wf_control_free(&view);
    if (m->head.view <= o->view)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (holds(o->gone, o->n_gone, members[i]))
            wf_sim_broken(p->sim, "who has left is no member again", m->head.view, members[i]);
    for (uint32_t i = 0; i < o->n_members && o->n_gone < MOST_GONE; i++)
        if (!holds(members, n, o->members[i]))
            o->gone[o->n_gone++] = o->members[i];
    wf_assert(n <= MOST_PROCESSES);
    memcpy(o->members, members, n * sizeof *members);
    o->n_members = n;
    o->view = m->head.view;
}

static void hear_cut(process *p, const wf_msg *m)
{
    oracle *o = &p->sim->oracle;
    Weft__Cut *cut = NULL;
    wf_err err;

    if (era_said(m) != era_of(p))
        return;
    begin_worker_era(p, era_said(m));
    wf_assert(wf_control_get(m, &weft__cut__descriptor, &cut, &err) == WF_OK);
    /* Over a fresh link the master may open the same cut again. */
    if (m->head.cut < p->cut || (m->head.cut == p->cut && p->cut_links == p->master_links))
        wf_sim_broken(p->sim, "the number of a cut is used once", m->head.cut, p->cut);
    p->cut = m->head.cut;
    p->cut_links = p->master_links;
    if (o->cut_era == era_said(m) && o->cut == m->head.cut && o->cut_chief != cut->chief)
        wf_sim_broken(p->sim, "a cut has one chief", m->head.cut, cut->chief);
    if (o->cut_era < era_said(m) || (o->cut_era == era_said(m) && o->cut < m->head.cut)) {
        o->cut_era = era_said(m);
        o->cut = m->head.cut;
        o->cut_chief = cut->chief;
    }
    wf_control_free(&cut);
}

static void hear_setup(process *p, const wf_msg *m)
{
    const oracle *o = &p->sim->oracle;
    Weft__Setup *setup = NULL;
    wf_err err;

    wf_assert(wf_control_get(m, &weft__setup__descriptor, &setup, &err) == WF_OK);
    if (o->from_step >= 0 && era_said(m) > o->from_era && !p->sim->spec.restores_best &&
        (setup->initial || setup->restore_step != (uint64_t)o->from_step))
        wf_sim_broken(p->sim, "a job goes on from the step that was named", setup->restore_step,
                      (uint64_t)o->from_step);
    wf_control_free(&setup);
}

/* An older cut's word may come late to a chief that is a member no more: its checkpoint then is an
 * older one of the same history, and does no harm. */
static void hear_commit(process *p, const wf_msg *m)
{
    oracle *o = &p->sim->oracle;

    o->look_at_disk = true;
    if (o->cut_era == era_said(m) && o->cut == m->head.cut && o->cut_chief != p->life)
        wf_sim_broken(p->sim, "only the chief may commit", m->head.cut, p->life);
}

/* Whether the job goes on as it is, and the cut is its newest: when a generation or a cut's chief
 * is given up, the folder of the cut is swept, perhaps before its chief learns of that. */
static bool goes_on(const process *master, const wf_msg *done)
{
    const char *state = wf_master_job_state(master->master, master->sim->job);
    const oracle *o = &master->sim->oracle;

    return era_said(done) == o->era && era_said(done) == o->cut_era && done->head.cut == o->cut &&
           (strcmp(state, "running") == 0 || strcmp(state, "stopping") == 0);
}

static void hear_done(process *p, const wf_msg *m)
{
    oracle *o = &p->sim->oracle;
    Weft__CutDone *done = NULL;
    wf_err err;

    if (o->era >> 16 != m->head.job)
        return;
    wf_assert(wf_control_get(m, &weft__cut_done__descriptor, &done, &err) == WF_OK);
    if (done->what[0] && goes_on(p, m) && !p->sim->spec.disk_errors &&
        !p->sim->spec.stuck_per_mille && !strstr(done->what, "it moved while"))
        wf_sim_broken(p->sim, "a checkpoint fails by the disk alone", m->head.job, m->head.cut);
    if (!done->what[0] &&
        (m->head.generation > o->committed_generation ||
         (m->head.generation == o->committed_generation && done->step > o->committed_step))) {
        o->committed_generation = m->head.generation;
        o->committed_step = done->step;
        o->n_committed++;
    }
    if (!done->what[0] && era_said(m) > o->from_era)
        o->from_step = -1;
    o->look_at_disk = true;
    wf_control_free(&done);
}

void wf_oracle_hear(process *p, const wf_event *ev)
{
    if (p->worker && ev->kind == WF_EV_UP && ev->peer->task.role == WF_ROLE_PS)
        p->links++;
    if (p->worker && ev->kind == WF_EV_UP && ev->peer->task.role == WF_ROLE_MASTER)
        p->master_links++;
    if (ev->kind != WF_EV_MESSAGE)
        return;
    switch (ev->msg->head.kind) {
    case WF_PUSH_OK:
        hear_push_ok(p, ev->msg);
        break;
    case WF_DENIED: /* what was asked for is asked for again, as over a fresh link (K1) */
        p->links++;
        break;
    case WF_MOVE:
        wf_sim_move_begins(p->sim);
        break;
    case WF_STATE_OK:
        p->sim->result.moves++;
        break;
    case WF_VIEW:
        if (p->ps)
            hear_view(p, ev->msg);
        break;
    case WF_EVAL:
        p->eval_epoch = ev->msg->head.step;
        break;
    case WF_SETUP:
        hear_setup(p, ev->msg);
        break;
    case WF_CUT_OPEN:
        hear_cut(p, ev->msg);
        wf_sim_cut_opens(p->sim);
        break;
    case WF_CUT_COMMIT:
        if (p->worker)
            hear_commit(p, ev->msg);
        break;
    case WF_CUT_DONE:
        hear_done(p, ev->msg);
        break;
    default:
        break;
    }
}

/* ---- what workers do ---- */

/* Whether all ps that live count on a worker. */
static bool is_counted(const process *p)
{
    for (uint32_t i = 0; i < p->sim->n; i++) {
        const process *ps = &p->sim->procs[i];

        if (ps->alive && ps->ps && !wf_ps_in_view(ps->ps, p->life))
            return false;
    }
    return true;
}

static void check_clocks(const process *p)
{
    uint32_t clock = wf_worker_clock(p->worker), bounded = p->sim->spec.bounded;

    if (p->sim->spec.together) /* their pulls do not count on more than their pushes do */
        bounded += p->sim->spec.pipeline;
    if (p->sim->spec.backups)
        return;

    for (uint32_t i = 0; bounded && i < p->sim->n; i++) {
        const process *other = &p->sim->procs[i];
        uint32_t at = other->alive && other->worker ? wf_worker_clock(other->worker) : 0;

        if (other != p && at && clock > at + bounded && era_of(other) == era_of(p) &&
            is_counted(other) && is_counted(p))
            wf_sim_broken(p->sim, "clocks are apart by no more than the staleness", clock, at);
    }
}

void wf_oracle_computes(process *p, uint32_t step, const float *steps)
{
    uint32_t n = WF_MODEL_STEP_SLICES * wf_model_shards(p->sim->spec.ps);
    /* A worker that holds the variables has applied all before. */
    uint32_t pipeline = p->sim->spec.ps ? p->sim->spec.pipeline : 0;
    uint32_t base = wf_worker_base(p->worker),
             ahead = step > 1 + pipeline ? step - 1 - pipeline : 0;
    uint32_t least = base > ahead ? base : ahead;

    begin_worker_era(p, era_of(p));
    if (step == 1) {
        memcpy(p->first, steps, n * sizeof *steps);
        p->links_at_first = p->links;
    }
    check_clocks(p);
    for (uint32_t i = 0; p->sim->spec.workers == 1 && i < n; i++) {
        uint32_t own = (uint32_t)(steps[i] - p->first[i]);

        /* What is asked for anew may hold more (K1): after a lost link, or after a leave. */
        if (own < least || own >= step ||
            (own > least && p->links == p->links_at_first && !p->sim->spec.bounded))
            wf_sim_broken(p->sim, "weights hold own parts up to where they should", own, least);
    }
}

void wf_oracle_pushes(process *p)
{
    oracle *o = &p->sim->oracle;

    begin_worker_era(p, era_of(p));
    if (p->era == o->era)
        for (uint32_t i = 0; i < MOST_SLICES; i++)
            o->slices[i].pushed++;
}

/* ---- what the ps hold ---- */

/* Steps that a slice knows to be applied. */
static uint64_t marks(const wf_seen *seen)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < seen->n; i++)
        n += seen->rows[i].low + (uint64_t)__builtin_popcountll(seen->rows[i].window);
    return n;
}

/* Whether a slice knows one less of those that it knew; others may have come meanwhile. */
static bool has_forgotten(const slice_claim *c, const wf_seen *seen)
{
    for (uint32_t i = 0; i < c->rows; i++) {
        bool found = i < seen->n && seen->rows[i].incarnation == c->who[i];

        for (uint32_t k = 0; !found && k < seen->n; k++)
            found = seen->rows[k].incarnation == c->who[i];
        if (!found)
            return true;
    }
    return false;
}

/* The parts that a slice has applied. Those of steps that workers make together are added up, as
 * the gradients of a simulated worker are told apart by that alone. */
static uint64_t parts_of(const wf_sim *s, const wf_slice *slice)
{
    return s->spec.together ? (uint64_t)wf_slice_values(slice)[0] : slice->updates;
}

static void check_claim(wf_sim *s, const wf_slice *slice, bool new_view)
{
    slice_claim *c = &s->oracle.slices[slice->id];
    uint64_t applied, marked;

    /* Records cannot tell how many parts they were in; and a part may count as nothing where there
     * are backups. */
    if (s->spec.backups || (s->spec.together && slice->variable != WF_MODEL_STEPS))
        return;
    if (!c->known) { /* nothing is pushed before the ps have all been set up */
        c->known = true;
        c->start = parts_of(s, slice);
    }
    applied = parts_of(s, slice) - c->start;
    if (applied < c->acked && s->oracle.failing_era != s->oracle.era)
        wf_sim_broken(s, "what is acknowledged is applied", applied, c->acked);
    if (applied > c->pushed)
        wf_sim_broken(s, "a part that was pushed once is applied once", applied, c->pushed);
    marked = marks(&slice->seen);
    /* A view has removed somebody, who may have come, pushed and left since the last look. */
    if (new_view || has_forgotten(c, &slice->seen))
        c->forgotten = applied - marked;
    if (applied != c->forgotten + marked)
        wf_sim_broken(s, "an update is one step of one worker", applied, c->forgotten + marked);
    c->rows = slice->seen.n;
    wf_assert(c->rows <= MOST_PROCESSES);
    for (uint32_t i = 0; i < c->rows; i++)
        c->who[i] = slice->seen.rows[i].incarnation;
}

/* O10, for the lines that are new. A part that was refused for NaN may come again, by way of a ps
 * that has less of the push, behind those that were applied meanwhile. */
static void check_log(process *p, const wf_slice *slice)
{
    bool fails =
        p->sim->oracle.failing_era == wf_era(wf_ps_job_number(p->ps), wf_ps_generation(p->ps));
    uint64_t n, *looked = &p->lines[slice->id];
    const wf_logged_line *lines = wf_logged_lines(slice, &n);

    if (slice->ops == &wf_slice_logged && n != slice->updates)
        wf_sim_broken(p->sim, "the log has a line for each update", n, slice->updates);
    for (; *looked < n; ++*looked) {
        const wf_logged_line *line = &lines[*looked];
        uint64_t k = *looked; /* 1 + the place of the same worker's part before it */

        while (k > 0 && !(lines[k - 1].incarnation == line->incarnation &&
                          lines[k - 1].generation == line->generation))
            k--;
        if (k > 0 && (fails ? lines[k - 1].step == line->step : lines[k - 1].step >= line->step))
            wf_sim_broken(p->sim, "each part is in the log once, in order", slice->id, line->step);
    }
}

static void check_slice(process *p, const wf_slice *slice, bool new_view)
{
    wf_sim *s = p->sim;
    bool looked = !new_view && p->known[slice->id] == slice->seen.n;

    p->known[slice->id] = slice->seen.n;
    for (uint32_t i = 0; !looked && i < slice->seen.n; i++)
        if (!wf_ps_in_view(p->ps, slice->seen.rows[i].incarnation))
            wf_sim_broken(s, "only members' parts are applied", slice->id,
                          slice->seen.rows[i].incarnation);
    if (wf_era(wf_ps_job_number(p->ps), wf_ps_generation(p->ps)) == s->oracle.era)
        check_claim(s, slice, new_view);
    check_log(p, slice);
    if (slice->variable != WF_MODEL_STEPS)
        return;
    for (uint64_t e = 0; e < slice->count; e++)
        if ((uint64_t)wf_slice_values(slice)[e] != parts_of(s, slice))
            wf_sim_broken(s, "a slice holds one for each update",
                          (uint64_t)wf_slice_values(slice)[e], parts_of(s, slice));
    if (slice->updates > parts_of(s, slice))
        wf_sim_broken(s, "an update is made of parts", slice->updates, parts_of(s, slice));
}

static void begin_ps_era(process *p, uint32_t era)
{
    begin_era(&p->sim->oracle, era);
    if (p->log_era != era)
        memset(p->lines, 0, sizeof p->lines);
    p->log_era = era;
}

/* What a worker that is given up had trained may be trained again. */
static void look_at_members(wf_sim *s, const wf_master *m)
{
    if (wf_master_view(m) == s->oracle.master_view)
        return;
    s->oracle.master_view = wf_master_view(m);
    for (uint32_t i = 1; i < s->n; i++) {
        process *p = &s->procs[i];
        bool was_member = p->is_member;

        p->is_member = wf_master_has(m, p->life);
        s->oracle.worker_deaths += p->worker && was_member && !p->is_member;
    }
}

void wf_oracle_check(process *ran)
{
    wf_sim *s = ran->sim;
    const wf_slice *slice;
    bool new_view;

    if (ran->master && wf_master_view(ran->master) < s->oracle.view)
        wf_sim_broken(s, "the master's view only grows", wf_master_view(ran->master),
                      s->oracle.view);
    if (ran->master)
        look_at_members(s, ran->master);
    if (!ran->ps)
        return;
    if (wf_ps_view(ran->ps) < ran->view)
        wf_sim_broken(s, "a ps's view only grows", wf_ps_view(ran->ps), ran->view);
    new_view = wf_ps_view(ran->ps) != ran->view;
    ran->view = wf_ps_view(ran->ps);
    if (wf_ps_generation(ran->ps))
        begin_ps_era(ran, wf_era(wf_ps_job_number(ran->ps), wf_ps_generation(ran->ps)));
    for (uint32_t k = 0; (slice = wf_ps_slice_at(ran->ps, k)); k++)
        if (!slice->leaving) /* or its new ps may be ahead of it */
            check_slice(ran, slice, new_view);
}

void wf_oracle_ends_stuck(const process *p)
{
    wf_sim *s = p->sim;
    const process *master = &s->procs[0];

    if (!master->alive || wf_sim_stands_still(master) || s->quiet_ns > p->changed_ns)
        return;
    if (wf_master_has(master->master, p->life))
        wf_sim_broken(s, "a process that hangs is given up", p->number, p->life);
}

static uint64_t resent_bytes(const process *p)
{
    const wf_peer *peer;
    uint64_t n = 0;

    for (size_t i = 0; p->alive && (peer = wf_net_peer_at(p->net, i)); i++)
        n += wf_net_resent_bytes(peer);
    return n;
}

void wf_oracle_end(wf_sim *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        s->result.resent += resent_bytes(&s->procs[i]);
    if (!s->spec.is_calm)
        return;
    if (s->result.restarts - s->master_boots != s->n - 1)
        wf_sim_broken(s, "nobody is given up without a reason", s->result.restarts, s->n);
    if (s->result.resent && !s->spec.packets && !s->spec.flip_per_mille && !s->spec.kills)
        wf_sim_broken(s, "nothing is sent twice over a connection that holds", s->result.resent, 0);
}
