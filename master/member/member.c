/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/member.c - who has which place, and what is known of those that had it. */
#include "master/member/member.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"

#include <stdio.h>

/* ---- the life cycle ---- */

static const char *const states[] = {"absent",    "down", "joining",
                                     "unclaimed", "away", "registered"};
static const char *const events[] = {"hello", "register",   "link lost",
                                     "lost",  "taken down", "replayed"};

enum {
    ABSENT = WF_STATE(WF_MEMBER_ABSENT),
    JOINING = WF_STATE(WF_MEMBER_JOINING),
    UNCLAIMED = WF_STATE(WF_MEMBER_UNCLAIMED),
    AWAY = WF_STATE(WF_MEMBER_AWAY),
    REGISTERED = WF_STATE(WF_MEMBER_REGISTERED),
    HERE = JOINING | UNCLAIMED | AWAY | REGISTERED,
};

static const wf_edge edges[] = {
    {ABSENT | WF_STATE(WF_MEMBER_DOWN) | JOINING, WF_MEMBER_HELLO, WF_MEMBER_JOINING},
    {UNCLAIMED, WF_MEMBER_HELLO, WF_STATE_SAME},
    {REGISTERED | AWAY, WF_MEMBER_HELLO, WF_MEMBER_AWAY},
    {HERE, WF_MEMBER_REGISTER, WF_MEMBER_REGISTERED},
    {JOINING | UNCLAIMED | AWAY, WF_MEMBER_LINK_LOST, WF_STATE_SAME},
    {REGISTERED, WF_MEMBER_LINK_LOST, WF_MEMBER_AWAY},
    {HERE, WF_MEMBER_LOST, WF_MEMBER_ABSENT},
    {ABSENT, WF_MEMBER_TAKEN_DOWN, WF_MEMBER_DOWN},
    {ABSENT, WF_MEMBER_REPLAYED, WF_MEMBER_UNCLAIMED},
};

const wf_states wf_member_states = WF_STATES("members", states, events, edges);

static const char *const part_states[] = {"none", "asked", "ready"};
static const char *const part_events[] = {"asked", "done", "held", "let go"};

enum {
    ANY_PART = WF_STATE(WF_PART_NONE) | WF_STATE(WF_PART_ASKED) | WF_STATE(WF_PART_READY),
};

static const wf_edge part_edges[] = {
    {ANY_PART, WF_PART_WAS_ASKED, WF_PART_ASKED},
    {WF_STATE(WF_PART_ASKED) | WF_STATE(WF_PART_READY), WF_PART_WAS_DONE, WF_PART_READY},
    {ANY_PART, WF_PART_IS_HELD, WF_PART_READY},
    {ANY_PART, WF_PART_LET_GO, WF_PART_NONE},
};

const wf_states wf_part_states = WF_STATES("parts", part_states, part_events, part_edges);

void wf_member_move(wf_master *m, wf_member *who, wf_member_event event)
{
    char text[32];

    who->state = (wf_member_state)wf_states_take(&wf_member_states, who->state, event,
                                                 wf_task_str(who->task, text, sizeof text));
    wf_assert((who->incarnation != 0) == (who->state >= WF_MEMBER_JOINING));
    wf_assert(who->peer || !wf_member_is_registered(who));
    m->facts_known = false;
}

void wf_member_received(const wf_master *m, wf_member *who, int64_t at_ns)
{
    if (at_ns < who->last_heard_ns)
        return;
    who->last_heard_ns = at_ns;
    who->received_present_ns = m->watch.present_ns;
}

void wf_member_take_place(wf_master *m, wf_member *who, wf_peer *peer)
{
    wf_assert(!who->incarnation || who->incarnation == peer->incarnation);
    wf_assert(!wf_members_is_retired(m, peer->incarnation)); /* M2 */
    wf_assert(peer->incarnation && wf_member_of(m, peer->task) == who);
    who->peer = peer;
    who->incarnation = peer->incarnation;
    who->pid = peer->pid;
    /* Nothing is sent to it before it has said what it holds: a split that leaves before its
     * register comes in would count as not held, and be dealt twice. */
    wf_member_move(m, who, WF_MEMBER_HELLO);
    who->tune_sent = false;
    who->challenged_ns = 0;
    who->eval_failed = 0;
    who->refused = false;
    who->progress = (wf_progress){.changed_ns = m->now_ns};
    wf_member_received(m, who, m->now_ns);
}

void wf_members_on_down(wf_master *m, const wf_peer *peer)
{
    wf_member *who = wf_member_at(m, peer);

    wf_outbox_purge(&m->outbox, m->net, peer);
    if (!who)
        return;
    if (peer->last_heard_ns > who->last_heard_ns)
        wf_member_received(m, who, peer->last_heard_ns);
    wf_member_move(m, who, WF_MEMBER_LINK_LOST);
    who->peer = NULL;
}

void wf_member_keep_reason(const wf_master *m, wf_member *who, const char *reason)
{
    snprintf(who->reason, sizeof who->reason, "%s", reason);
    who->reason_ns = m->now_ns;
}

void wf_member_take_part(wf_master *m, wf_member *who, wf_part_event event, uint16_t generation)
{
    char text[32];

    who->part = (wf_part_state)wf_states_take(&wf_part_states, who->part, event,
                                              wf_task_str(who->task, text, sizeof text));
    who->generation = generation;
    wf_assert((who->part == WF_PART_NONE) == (generation == 0));
    m->facts_known = false;
}

void wf_member_leave_job(wf_master *m, wf_member *who)
{
    wf_member_take_part(m, who, WF_PART_LET_GO, 0);
    who->wants = false;
    who->steps = 0;
    who->samples_per_sec = 0;
}

void wf_member_end(wf_master *m, wf_member *who, const char *reason)
{
    wf_assert(wf_members_is_retired(m, who->incarnation)); /* M2 */
    m->view_stale |= wf_member_is_live(who);
    who->incarnation = 0;
    who->peer = NULL;
    wf_member_move(m, who, WF_MEMBER_LOST);
    wf_member_leave_job(m, who);
    wf_member_keep_reason(m, who, reason);
    who->reported = false;
    who->view_acked = 0;
    who->since_ns = m->now_ns;
}

/* ---- the table ---- */

/* Of a role and a number, which fit into one. */
static uint64_t key_of(wf_task task)
{
    return (uint64_t)task.role << 32 | task.index;
}

wf_status wf_members_index(wf_master *m, wf_err *err)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        WF_TRY(wf_index_put(&m->by_task, key_of(m->members[i].task), &m->members[i], err));
    return WF_OK;
}

wf_member *wf_member_of(const wf_master *m, wf_task task)
{
    return wf_index_get(&m->by_task, key_of(task));
}

wf_member *wf_member_at(const wf_master *m, const wf_peer *peer)
{
    wf_member *who = wf_member_of(m, peer->task);

    return who && who->peer == peer ? who : NULL;
}

wf_member *wf_member_find(const wf_master *m, uint64_t incarnation)
{
    for (uint32_t i = 0; incarnation && i < m->n_members; i++)
        if (m->members[i].incarnation == incarnation)
            return &m->members[i];
    return NULL;
}

bool wf_members_is_retired(const wf_master *m, uint64_t incarnation)
{
    for (uint32_t i = 0; i < WF_MIN(m->n_retired, (uint32_t)WF_MASTER_RETIRED); i++)
        if (m->retired[i] == incarnation)
            return true;
    return false;
}

void wf_members_retire(wf_master *m, uint64_t incarnation)
{
    if (incarnation && !wf_members_is_retired(m, incarnation))
        m->retired[m->n_retired++ % WF_MASTER_RETIRED] = incarnation;
}

const char *wf_members_missing(const wf_master *m, char *text, size_t size)
{
    size_t at = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < m->n_members && at < size; i++) {
        char name[32];

        if (wf_member_is_live(&m->members[i]))
            continue;
        at += (size_t)snprintf(text + at, size - at, "%s%s at %s", at ? ", " : "",
                               wf_task_str(m->members[i].task, name, sizeof name),
                               m->members[i].address);
    }
    return text;
}

/* ---- messages to it ---- */

wf_status wf_member_send_of(wf_master *m, const wf_member *to, uint16_t kind, uint32_t step,
                            uint32_t cut, const ProtobufCMessage *body, wf_err *err)
{
    wf_msg *msg = NULL;
    wf_status rc;

    if (!to->peer)
        return WF_OK;
    WF_TRY(wf_net_msg(m->net, kind, &msg, err));
    msg->head.step = step;
    msg->head.cut = cut;
    rc = body ? wf_control_put(msg, body, err) : WF_OK;
    if (rc == WF_OK)
        rc = wf_master_send(m, to->peer, &msg, err);
    wf_net_free_msg(m->net, &msg);
    return rc;
}

wf_status wf_member_send(wf_master *m, const wf_member *to, uint16_t kind,
                         const ProtobufCMessage *body, wf_err *err)
{
    return wf_member_send_of(m, to, kind, 0, 0, body, err);
}

wf_status wf_member_dismiss(wf_master *m, wf_peer *peer, uint32_t how, wf_err *err)
{
    wf_msg *msg = NULL;

    WF_TRY(wf_net_msg(m->net, WF_DISMISS, &msg, err));
    msg->head.request = how;
    return wf_master_send(m, peer, &msg, err);
}

/* ---- the journal ---- */

/* Notes in `viewed` who is in this view as in the one before. */
static void find_who_stays(wf_master *m, const Weft__View *view)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        m->members[i].viewed = 0;
    for (size_t i = 0; i < view->n_members; i++) {
        const Weft__Member *from = view->members[i];
        wf_member *who = wf_member_of(m, (wf_task){(wf_role)from->role, from->index});

        if (who && who->incarnation == from->incarnation)
            who->viewed = who->incarnation;
    }
}

/* M2: who was in the view before and is not in this one is never a member again. */
static void leave_view(wf_master *m, wf_member *who)
{
    if (wf_member_is_live(who) && !who->viewed)
        wf_members_retire(m, who->incarnation);
    who->incarnation = who->viewed = 0;
    if (wf_member_is_live(who))
        wf_member_move(m, who, WF_MEMBER_LOST);
    wf_member_leave_job(m, who);
}

void wf_members_replay(wf_master *m, const Weft__View *view, uint16_t generation)
{
    m->view = view->number;
    m->ps_left_out = 0;
    find_who_stays(m, view);
    for (uint32_t i = 0; i < m->n_members; i++)
        leave_view(m, &m->members[i]);
    for (size_t i = 0; i < view->n_members; i++) {
        const Weft__Member *from = view->members[i];
        wf_member *who = wf_member_of(m, (wf_task){(wf_role)from->role, from->index});

        if (!who && from->role == WF_ROLE_PS)
            m->ps_left_out = 1 + from->index;
        if (!who || !from->incarnation || who->incarnation)
            continue;
        who->incarnation = who->viewed = from->incarnation;
        wf_member_move(m, who, WF_MEMBER_REPLAYED);
        who->pid = from->pid;
        who->since_ns = m->now_ns;
        wf_member_received(m, who, m->now_ns);
        wf_members_replay_steps(m, from->incarnation, from->steps, generation);
    }
}

void wf_members_replay_steps(wf_master *m, uint64_t incarnation, uint64_t steps,
                             uint16_t generation)
{
    wf_member *who = wf_member_find(m, incarnation);

    if (!who || !steps || !generation || !wf_member_is_live(who))
        return;
    who->steps = WF_MAX(who->steps, steps);
    wf_member_take_part(m, who, WF_PART_WAS_ASKED, generation);
}
