/* SPDX-License-Identifier: Apache-2.0 */
/* ps/move.c - a slice goes from this ps to another, or comes from another, while workers train.
 *
 *   master     giver                          taker
 *   move  -->  dials, and serves the slice meanwhile
 *              freezes the slice
 *              state  ---------------------->  loads it, owns it from now on
 *              gives it up  <--------------  state_ok
 *        <--  moved
 *
 * From the freeze on the giver applies nothing to the slice and answers no pull of it; a push that
 * names it is denied, and so kept by its worker. So at each moment at most one ps changes the
 * slice, and what the giver has acknowledged is in the state that it sends. What the slice has seen
 * goes with it: a push that was applied and whose acknowledgement was lost is known to the taker.
 * The lists of workers end on either ps, when it has taken the slice and when it has given it up,
 * and what was sent before that must not count after it. So the giver's map has a version of its
 * own from then on, one more than the move's: a worker that has learnt of the move from the taker
 * is denied until it has heard the giver too. It may have a newer one still by a move of another
 * slice; so no push counts before a new list, or what follows one that was denied would be applied
 * before it. Workers wait for the state's way alone, since the freeze begins when the taker is
 * reached.
 *
 * A link that breaks costs nothing: the state is sent again over the fresh one, and a taker that
 * has the slice already says so again. A taker that is not reached for some seconds ends the move.
 * The giver never goes back by itself once the state has left, for the taker may have it;
 * then only the taker's word that it has refused the state does. If either process dies the master
 * begins a new generation, as with every death of a ps, and the map of its set-up holds. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "ps/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The giver has other slices to give. */
static const int64_t DIAL_NS = 5 * WF_NS_PER_S;

/* ---- the answer to the master ---- */

static wf_status say_moved(wf_ps *ps, Weft__Moved body, const wf_err *why, wf_err *err)
{
    if (why) {
        WF_LOG_WARN("ps.not_moved", "slice=%u to=%u version=%u why=\"%s\"", body.slice, body.ps,
                    body.version, why->what);
        body.status = why->status;
        body.what = (char *)why->what;
        body.hint = (char *)why->hint;
    }
    return wf_session_send(&ps->session, WF_MOVED, &body.base, err); /* it asks again if lost */
}

static Weft__Moved answer_to(const Weft__Move *order)
{
    Weft__Moved body = WEFT__MOVED__INIT;

    body.slice = order->slice;
    body.version = order->version;
    body.ps = order->to->index;
    return body;
}

static Weft__Moved answer_of(const wf_ps_move *m)
{
    Weft__Moved body = WEFT__MOVED__INIT;

    body.slice = m->slice;
    body.version = m->version;
    body.ps = m->to;
    return body;
}

/* ---- the giver ---- */

static void change(wf_ps *ps, wf_move_event event)
{
    char slice[32];

    snprintf(slice, sizeof slice, "slice %u", ps->move.slice);
    ps->move.state = (wf_move_state)wf_states_take(&wf_move_states, ps->move.state, event, slice);
}

/* Ends the move, by whatever way, and the link that was made for it. */
static void end_move(wf_ps *ps, wf_move_event how)
{
    change(ps, how);
    wf_net_hang_up(ps->net, &ps->move.peer);
}

static wf_status check_move(const wf_ps *ps, const Weft__Move *body, wf_err *err)
{
    const wf_slice *s = wf_ps_slice(ps, body->slice);

    if (!s)
        return wf_fail(err, WF_NOTFOUND, NULL, "slice %u is not on ps %u", body->slice,
                       ps->conf.index);
    if (ps->move.state != WF_MOVE_NONE)
        return wf_fail(err, WF_AGAIN, "move one slice of a ps after the other",
                       "ps %u still gives slice %u to ps %u", ps->conf.index, ps->move.slice,
                       ps->move.to);
    if (ps->together.backups > 0 && body->slice == ps->together.clock_slice)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "slice %u stays: the ps that has it decides which workers are waited for",
                       body->slice);
    if (body->version <= ps->map.version || body->version == UINT32_MAX)
        return wf_fail(err, WF_INVALID, NULL, "version %u of the slice map is not newer than %u",
                       body->version, ps->map.version);
    if (body->to->role != WF_ROLE_PS || body->to->index == ps->conf.index ||
        !wf_ps_in_view(ps, body->to->incarnation))
        return wf_fail(err, WF_INVALID, NULL, "slice %u cannot move to ps %u: not in view %u",
                       body->slice, body->to->index, ps->view);
    return WF_OK;
}

static wf_status begin_move(wf_ps *ps, const Weft__Move *body, int64_t now_ns, wf_err *err)
{
    wf_task to = {WF_ROLE_PS, body->to->index};
    wf_transport *t = NULL;

    WF_TRY(ps->conf.ops.dial(ps->conf.ops.dial_arg, to, body->to->address, &t, err));
    WF_TRY(wf_net_dial(ps->net, to, body->to->address, &t, &ps->move.peer, err));
    ps->move.slice = body->slice;
    change(ps, WF_MOVE_WAS_ORDERED);
    ps->move.version = body->version;
    ps->move.to = body->to->index;
    ps->move.incarnation = body->to->incarnation;
    ps->move.since_ns = now_ns;
    WF_LOG_INFO("ps.moving", "slice=%u to=%u version=%u", body->slice, body->to->index,
                body->version);
    return WF_OK;
}

static bool is_under_way(const wf_ps *ps, const Weft__Move *body)
{
    return ps->move.state != WF_MOVE_NONE && ps->move.slice == body->slice &&
           ps->move.version == body->version;
}

static bool is_done(const wf_ps *ps, const Weft__Move *body)
{
    return body->slice < ps->map.n && ps->map.slices[body->slice].version == body->version &&
           wf_map_has_moved(&ps->map, body->slice);
}

wf_status wf_ps_on_move(wf_ps *ps, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    Weft__Move *body = NULL;
    wf_status rc = WF_OK;
    wf_err why = {0};

    if (!wf_ps_serves(ps) || m->head.job != ps->job_number || m->head.generation != ps->generation)
        return WF_OK;
    WF_TRY(wf_control_get(m, &weft__move__descriptor, &body, err));
    if (!body->to) {
        rc = wf_fail(err, WF_PROTO, NULL, "a move of slice %u to nobody", body->slice);
    } else if (is_done(ps, body)) {
        rc = say_moved(ps, answer_to(body), NULL, err);
    } else if (!is_under_way(ps, body)) {
        if (check_move(ps, body, &why) != WF_OK || begin_move(ps, body, now_ns, &why) != WF_OK)
            rc = say_moved(ps, answer_to(body), &why, err);
    }
    wf_control_free(&body);
    return rc;
}

void wf_ps_drop_move(wf_ps *ps)
{
    if (ps->move.state != WF_MOVE_NONE)
        end_move(ps, WF_MOVE_WAS_DROPPED);
}

/* The slice stays: the taker has refused it, or was never sent it. */
static wf_status end_in_vain(wf_ps *ps, const wf_err *why, wf_err *err)
{
    Weft__Moved body = answer_of(&ps->move);
    bool frozen = wf_ps_slice(ps, body.slice)->leaving;

    wf_ps_slice(ps, body.slice)->leaving = false;
    end_move(ps, WF_MOVE_WAS_KEPT);
    if (frozen)
        WF_TRY(wf_ps_announce_kept(ps, body.slice, err));
    WF_TRY(wf_together_advance(ps, err));
    return say_moved(ps, body, why, err);
}

wf_status wf_ps_move_advance(wf_ps *ps, int64_t now_ns, wf_err *err)
{
    wf_err why;

    if (ps->move.state != WF_MOVE_DIALLING || now_ns - ps->move.since_ns < DIAL_NS)
        return WF_OK;
    wf_fail(&why, WF_TIMEOUT, "look at the network between the two",
            "ps %u cannot reach ps %u in %d s", ps->conf.index, ps->move.to,
            (int)(DIAL_NS / WF_NS_PER_S));
    return end_in_vain(ps, &why, err);
}

wf_status wf_ps_move_refused(wf_ps *ps, const wf_err *why, wf_err *err)
{
    return ps->move.state == WF_MOVE_SENT ? WF_OK : end_in_vain(ps, why, err);
}

/* Another incarnation has the place of the one that was named: the master has given that one up,
 * and begins a new generation. */
wf_status wf_ps_move_on_up(wf_ps *ps, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    if (ps->move.peer->incarnation != ps->move.incarnation)
        return WF_OK;
    if (ps->move.state == WF_MOVE_DIALLING) {
        WF_TRY(wf_acks_advance(ps, err)); /* they speak of a slice that is here */
        wf_assert(ps->acks.n == 0);
        wf_ps_slice(ps, ps->move.slice)->leaving = true;
        ps->move.frozen_ns = ps->now_ns;
    }
    change(ps, WF_MOVE_WAS_SENT);
    WF_TRY(wf_net_msg(ps->net, WF_STATE, &m, err));
    m->head.request = ps->move.version;
    rc = wf_state_put(wf_ps_slice(ps, ps->move.slice), &ps->clocks, ps->conf.checksums, m, err);
    if (rc == WF_OK)
        rc = wf_ps_send(ps, ps->move.peer, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(ps->net, &m);
    return rc;
}

wf_status wf_ps_on_state_ok(wf_ps *ps, const wf_msg *m, wf_err *err)
{
    Weft__Moved moved = answer_of(&ps->move);
    uint32_t slice = moved.slice;
    Weft__Outcome *body = NULL;
    wf_err why;
    wf_status rc;

    if (ps->move.state != WF_MOVE_SENT || m->head.request != moved.version)
        return WF_OK;
    WF_TRY(wf_control_get(m, &weft__outcome__descriptor, &body, err));
    rc = (wf_status)body->status;
    if (rc != WF_OK)
        wf_fail(&why, rc, body->hint, "ps %u: %s", moved.ps, body->what);
    wf_control_free(&body);
    if (rc != WF_OK)
        return end_in_vain(ps, &why, err);
    wf_assert(wf_ps_slice(ps, slice)->leaving); /* P7 */
    moved.bytes = wf_slice_held(wf_ps_slice(ps, slice));
    moved.frozen_ns = (uint64_t)WF_MAX(ps->now_ns - ps->move.frozen_ns, 0);
    end_move(ps, WF_MOVE_WAS_TAKEN);
    wf_ps_remove_slice(ps, slice);
    wf_map_move(&ps->map, slice, moved.ps, moved.version);
    ps->map.version = WF_MAX(ps->map.version, moved.version + 1);
    WF_LOG_INFO("ps.moved", "slice=%u to=%u version=%u bytes=%lu frozen_ms=%.1f", slice, moved.ps,
                moved.version, (unsigned long)moved.bytes, (double)moved.frozen_ns / 1e6);
    WF_TRY(wf_ps_announce_map(ps, err));
    return say_moved(ps, moved, NULL, err);
}

/* ---- the taker ---- */

/* Of workers that a view has removed here nothing is kept, whatever the giver's view is. */
static void forget_strangers(const wf_ps *ps, wf_slice *s)
{
    for (uint32_t i = s->seen.n; i > 0; i--)
        if (!wf_ps_in_view(ps, s->seen.rows[i - 1].incarnation))
            wf_seen_forget(&s->seen, s->seen.rows[i - 1].incarnation);
}

/* Whom the slice has waited for: this ps may have had no slice when one of them came in. */
static wf_status learn_clocks(wf_ps *ps, const Weft__SliceState *head, wf_err *err)
{
    for (size_t i = 0; i < head->n_clocks && ps->bounded; i++) {
        const Weft__ClockRow *row = head->clocks[i];

        if (wf_ps_in_view(ps, row->incarnation))
            WF_TRY(wf_clocks_learn(&ps->clocks,
                                   &(wf_clock){.incarnation = row->incarnation,
                                               .shift = row->shift,
                                               .at = row->at,
                                               .last = row->last,
                                               .number = row->number},
                                   err));
    }
    return WF_OK;
}

/* Whether a slice may be taken over: WF_EXISTS when it was, and the answer was lost with a link. */
static wf_status check_state(const wf_ps *ps, const wf_msg *m, uint32_t slice, wf_err *err)
{
    const wf_map_slice *place = slice < ps->map.n ? &ps->map.slices[slice] : NULL;
    uint32_t version = m->head.request;

    if (!place)
        return wf_fail(err, WF_PROTO, NULL, "slice %u of %u", slice, ps->map.n);
    if (place->primary == ps->conf.index && place->version == version)
        return WF_EXISTS;
    /* While its giver waits nobody else has it: it came here, and has gone on since. */
    if (wf_map_has_moved(&ps->map, slice) && version < place->version)
        return WF_EXISTS;
    if (place->primary == ps->conf.index || version <= place->version)
        return wf_fail(err, WF_INVALID, NULL, "slice %u is on ps %u since version %u of the map",
                       slice, place->primary, place->version);
    if (m->head.view > ps->view) /* it may have forgotten who is still served here */
        return wf_fail(err, WF_AGAIN, NULL, "view %u is not here yet", m->head.view);
    return WF_OK;
}

static wf_status take(wf_ps *ps, const wf_msg *m, const Weft__SliceState *head, wf_err *err)
{
    wf_slice *s = NULL;
    wf_status rc;

    WF_TRY(check_state(ps, m, head->slice, err));
    rc = wf_ps_make_slice(ps, head->slice, &s, err);
    if (rc == WF_OK)
        rc = wf_state_get(m, head, s, err);
    if (rc == WF_OK)
        rc = learn_clocks(ps, head, err);
    if (rc != WF_OK) {
        wf_slice_free(&s);
        return rc;
    }
    forget_strangers(ps, s);
    wf_map_move(&ps->map, s->id, ps->conf.index, m->head.request);
    wf_ps_add_slice(ps, s);
    ps->clocks.done = WF_MAX(ps->clocks.done, s->clock); /* nobody joins at what it has applied */
    WF_LOG_INFO("ps.taken", "slice=%u version=%u updates=%" PRIu64, s->id, m->head.request,
                s->updates);
    return WF_OK;
}

/* Errors: WF_NOMEM before it is known which slice it is: the word that it is not taken might be
 * untrue, and the giver would go on with an old copy. */
static wf_status read_and_take(wf_ps *ps, const wf_msg *m, wf_status *taken, wf_err *why,
                               wf_err *err)
{
    Weft__SliceState *head = NULL;

    if (!wf_ps_serves(ps) || m->head.job != ps->job_number ||
        m->head.generation != ps->generation) {
        *taken =
            wf_fail(why, WF_AGAIN, NULL, "generation %u is not served here", m->head.generation);
        return WF_OK;
    }
    *taken = wf_state_head(m, &head, why);
    if (*taken == WF_NOMEM) {
        if (err)
            *err = *why;
        return WF_NOMEM;
    }
    if (*taken == WF_OK)
        *taken = take(ps, m, head, why);
    wf_control_free(&head);
    return WF_OK;
}

wf_status wf_ps_on_state(wf_ps *ps, wf_peer *from, const wf_msg *m, wf_err *err)
{
    Weft__Outcome outcome = WEFT__OUTCOME__INIT;
    wf_msg *ok = NULL;
    wf_status rc, taken;
    wf_err why = {0};

    WF_TRY(read_and_take(ps, m, &taken, &why, err));
    if (taken != WF_OK && taken != WF_EXISTS) {
        outcome.status = taken;
        outcome.what = why.what;
        outcome.hint = why.hint;
    }
    WF_TRY(wf_net_msg(ps->net, WF_STATE_OK, &ok, err));
    ok->head.request = m->head.request;
    rc = wf_control_put(ok, &outcome.base, err);
    if (rc == WF_OK)
        rc = wf_ps_send(ps, from, WF_LANE_CONTROL, 0, &ok, err);
    wf_net_free_msg(ps->net, &ok);
    if (rc == WF_OK && taken == WF_OK)
        rc = wf_ps_announce_map(ps, err);
    return rc;
}
