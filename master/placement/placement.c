/* SPDX-License-Identifier: Apache-2.0 */
/* master/placement/placement.c - the places of slices, and when one moves. What the ps say of it is
 * in told.c. */
#include "master/placement/placement.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/log/log.h"
#include "master/member/facts.h"
#include "master/placement/state.h"

#include <stdlib.h>
#include <string.h>

/* A look at the loads costs a pass over the busiest slices of each ps. */
static const int64_t LOOK_NS = 50 * WF_NS_PER_MS;
/* What was told longer ago says nothing of now. */
static const int64_t OF_LATE_NS = 5 * WF_NS_PER_S;
/* A series ends when this share of what began it is left: else it would begin and end in turn. */
static const double LEVEL = 0.5;
/* Moves from or to a ps before it has to tell again what its slices cost. */
enum { MOST_UNTOLD = 8 };

/* The places of the set-up, and what registers have told since. */
static wf_status begin(wf_master *m, const wf_job *j, wf_err *err)
{
    wf_placement *p = m->placement;
    const Weft__Setup *s = &j->prepared->setup;
    wf_placement_slice *slices = calloc(s->n_slices + 1, sizeof *slices);

    if (!slices)
        return wf_fail_nomem(err, s->n_slices * sizeof *slices);
    wf_placement_end(m);
    free(p->slices);
    p->slices = slices;
    p->n_slices = (uint32_t)s->n_slices;
    p->version = j->generation;
    for (uint32_t i = 0; i < p->n_slices; i++)
        slices[i] = (wf_placement_slice){s->slices[i]->ps, p->version};
    memset(p->ps, 0, p->n_ps * sizeof *p->ps);
    p->levelling = false;
    p->refusals = p->n_barred = p->n_moved = p->n_refused = 0;
    p->frozen_most_ns = p->moved_bytes = 0;
    p->number = j->number;
    p->generation = j->generation;
    wf_placement_take_told(p);
    wf_placement_enter(p, WF_BALANCE_BEGUN);
    return WF_OK;
}

/* ---- an order ---- */

static wf_status order(wf_master *m, const wf_balance_move *move, bool asked, wf_err *err)
{
    wf_placement *p = m->placement;
    const wf_member *giver = wf_placement_find_ps(m, move->from);

    p->move.slice = move->slice.slice;
    p->move.from = move->from;
    p->move.to = move->to;
    p->move.version = p->version + 1; /* L2: and one more is the giver's (ps/move.c) */
    p->version += 2;
    p->move.giver = giver->incarnation;
    p->move.since_ns = m->now_ns;
    p->move.load = move->slice.load;
    p->move.held_bytes = move->slice.held_bytes;
    p->move.asked = asked;
    wf_placement_enter(p, WF_BALANCE_ORDERED);
    WF_LOG_INFO("slice.moves", "slice=%u from=%u to=%u version=%u", p->move.slice, move->from,
                move->to, p->move.version);
    return wf_placement_send(m, giver, err);
}

/* ---- what may move ---- */

/* Where backup workers are, the first slice that is trained decides for all (ps/together.h). */
static bool decides(const Weft__Setup *s, uint32_t slice)
{
    uint32_t i = 0;

    while (s->backups && i < slice &&
           (s->variables[s->slices[i]->variable]->kind != WF_VAR_TRAINABLE ||
            s->variables[s->slices[i]->variable]->on_workers))
        i++;
    return s->backups && i == slice;
}

static bool is_barred(const wf_placement *p, uint32_t slice, int64_t now_ns)
{
    for (uint32_t i = 0; i < WF_MIN(p->n_barred, (uint32_t)WF_PLACEMENT_BARRED); i++)
        if (p->barred[i].slice == slice && now_ns < p->barred[i].until_ns)
            return true;
    return false;
}

/* What there is to choose from, in p->view. */
static void look(wf_master *m, const wf_job *j)
{
    const Weft__Setup *s = &j->prepared->setup;
    wf_placement *p = m->placement;

    for (uint32_t i = 0; i < p->n_ps; i++) {
        wf_placement_ps *ps = &p->ps[i];

        for (uint32_t k = 0; k < ps->n; k++) {
            wf_balance_slice *b = &ps->busiest[k];

            b->stays = s->slices[b->slice]->pinned /* L4 */ || decides(s, b->slice) ||
                       b->held_bytes > WF_MOVE_BYTES || is_barred(p, b->slice, m->now_ns);
        }
        p->view[i] = (wf_balance_ps){.known = ps->told_ns && ps->moves < MOST_UNTOLD &&
                                              m->now_ns - ps->told_ns < OF_LATE_NS,
                                     .load = ps->pulled + ps->pushed,
                                     .held_bytes = ps->held_bytes,
                                     .slices = ps->busiest,
                                     .n = ps->n};
    }
}

/* ---- what is due ---- */

static void begin_series(wf_master *m, wf_job *j, double tilt, uint32_t hottest)
{
    wf_placement *p = m->placement;

    p->levelling = true;
    p->series = 0;
    wf_job_note(m, j, "placement.tilted",
                "ps/%u has %.2f times the traffic of the mean ps; slices move from it", hottest,
                tilt);
}

static void end_series(wf_master *m, wf_job *j, double tilt)
{
    wf_placement *p = m->placement;

    if (p->levelling && p->series)
        wf_job_note(m, j, "placement.levelled",
                    "%u slice%s moved; the busiest ps has %.2f times the traffic of the mean",
                    p->series, p->series == 1 ? " has" : "s have", tilt);
    p->levelling = false;
}

/* Whether a load is too much: more than the job says for a series to begin, or some of it for one
 * to go on. */
static bool is_tilted(const wf_placement *p, const wf_job *j, double tilt)
{
    double over = j->prepared->balance_over - 1;

    return tilt > 1 + (p->levelling ? LEVEL * over : over);
}

static wf_status level(wf_master *m, wf_job *j, bool quiet, wf_err *err)
{
    wf_placement *p = m->placement;
    wf_balance_move move;
    uint32_t hottest;
    double tilt;

    look(m, j);
    tilt = wf_balance_tilt(p->view, p->n_ps, &hottest);
    if (tilt == 0) { /* not all have told, or nothing is pulled: whether it lasts is not known */
        if (p->state == WF_BALANCE_TILTED && !p->levelling)
            wf_placement_enter(p, WF_BALANCE_LEVELLED);
        return WF_OK;
    }
    if (!is_tilted(p, j, tilt)) {
        end_series(m, j, tilt);
        if (p->state == WF_BALANCE_TILTED)
            wf_placement_enter(p, WF_BALANCE_LEVELLED);
        return WF_OK;
    }
    if (p->state == WF_BALANCE_LEVEL) {
        wf_placement_enter(p, WF_BALANCE_TILTS);
        p->tilted_ns = m->now_ns;
    }
    if (!quiet || (!p->levelling && m->now_ns - p->tilted_ns < j->prepared->balance_after_ns) ||
        !wf_balance_choose(p->view, p->n_ps, &move))
        return WF_OK;
    if (!p->levelling)
        begin_series(m, j, tilt, hottest);
    p->series++;
    return order(m, &move, false, err);
}

/* L3. A ps that has not the newest view may not know the other. */
static bool may_order(wf_master *m, const wf_job *j, bool quiet)
{
    return quiet && j->state == WF_JOB_RUNNING && !m->view_stale &&
           wf_master_facts(m)->variables_ready && wf_master_facts(m)->ps_have_view &&
           m->placement->version < UINT32_MAX - 2;
}

wf_status wf_placement_advance(wf_master *m, wf_job *j, bool quiet, wf_err *err)
{
    wf_placement *p = m->placement;

    if (p->n_ps == 0)
        return WF_OK;
    if (!wf_placement_is_of(p, j))
        WF_TRY(begin(m, j, err));
    if (p->state == WF_BALANCE_RESTING && m->now_ns >= p->rest_ns)
        wf_placement_enter(p, WF_BALANCE_RESTED);
    if (!j->prepared->balances || p->n_ps < 2 || m->now_ns - p->looked_ns < LOOK_NS ||
        (p->state != WF_BALANCE_LEVEL && p->state != WF_BALANCE_TILTED))
        return WF_OK;
    p->looked_ns = m->now_ns;
    return level(m, j, may_order(m, j, quiet), err);
}

/* ---- a person asks ---- */

/* The slice of that number of a variable. */
static wf_status find_slice(const wf_placement *p, const wf_job *j, const char *variable,
                            uint32_t at, uint32_t *slice, wf_err *err)
{
    const Weft__Setup *s = &j->prepared->setup;
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_slices; i++) {
        if (strcmp(s->variables[s->slices[i]->variable]->name, variable) != 0)
            continue;
        if (n++ == at) {
            *slice = i;
            return WF_OK;
        }
    }
    if (n == 0)
        return wf_fail(err, WF_NOTFOUND, "see them with: weft status --placement",
                       "no ps of job %s holds a variable \"%.200s\"", j->name, variable);
    return wf_fail(err, WF_NOTFOUND, NULL, "\"%.200s\" has %u slice%s, from [0] to [%u]", variable,
                   n, n == 1 ? "" : "s", n - 1);
}

static wf_status check_ask(wf_master *m, const wf_job *j, uint32_t slice, uint32_t to, bool quiet,
                           wf_err *err)
{
    const wf_placement *p = m->placement;
    const Weft__Setup *s = &j->prepared->setup;

    if (to >= p->n_ps)
        return wf_fail(err, WF_USAGE, NULL, "there is no ps/%u; the cluster has %u ps", to,
                       p->n_ps);
    if (p->slices[slice].ps >= p->n_ps)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "each worker of job %s holds that variable, and no ps", j->name);
    if (p->slices[slice].ps == to)
        return wf_fail(err, WF_INVALID, NULL, "that slice is on ps/%u already", to);
    if (s->slices[slice]->pinned) /* L4 */
        return wf_fail(err, WF_INVALID, "change placement.pin, and submit the job anew",
                       "the job pins that variable to ps/%u", p->slices[slice].ps);
    if (decides(s, slice))
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "that slice stays: its ps decides which workers are waited for");
    if (p->state == WF_BALANCE_MOVING) /* L1 */
        return wf_fail(err, WF_AGAIN, "ask again when it is there",
                       "slice %u is on its way from ps/%u to ps/%u", p->move.slice, p->move.from,
                       p->move.to);
    if (!may_order(m, j, quiet))
        return wf_fail(err, WF_AGAIN, "ask again in a moment",
                       "slices do not move while a checkpoint is made or tasks are missing");
    return WF_OK;
}

wf_status wf_placement_ask(wf_master *m, wf_job *j, const char *variable, uint32_t at, uint32_t to,
                           bool quiet, wf_err *err)
{
    wf_placement *p = m->placement;
    wf_balance_move move = {.to = to};
    uint32_t slice = 0;

    if (m->job != j || j->state != WF_JOB_RUNNING || !wf_placement_is_of(p, j))
        return wf_fail(err, WF_INVALID, NULL, "job %s is %s; slices of running jobs move", j->name,
                       wf_job_state_name(j->state));
    WF_TRY(find_slice(p, j, variable, at, &slice, err));
    WF_TRY(check_ask(m, j, slice, to, quiet, err));
    move.from = p->slices[slice].ps;
    move.slice.slice = slice;
    wf_placement_fill_load(p, &move);
    return order(m, &move, true, err);
}
