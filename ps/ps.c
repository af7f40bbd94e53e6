/* SPDX-License-Identifier: Apache-2.0 */
/* ps/ps.c - who may say what when; the handlers are one file each. */
#include "ps/ps.h"
#include "common/base/machine.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "ps/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stamp(const void *role, wf_header *head)
{
    const wf_ps *ps = role;

    head->view = ps->view;
    head->job = ps->job_number;
    head->generation = ps->generation;
    head->map = ps->map.version;
}

wf_status wf_ps_new(const wf_ps_conf *conf, wf_net *net, wf_peer *master, wf_ps **out, wf_err *err)
{
    wf_ps *ps = calloc(1, sizeof *ps);
    wf_status rc;

    if (!ps)
        return wf_fail_nomem(err, sizeof *ps);
    ps->conf = *conf;
    ps->net = net;
    ps->session = (wf_session){.net = net,
                               .peer = master,
                               .self = {WF_ROLE_PS, conf->index},
                               .supervisor = conf->session,
                               .stamp = stamp,
                               .role = ps};
    rc = wf_containers_new(conf->variables_bytes ? conf->variables_bytes : wf_machine_memory() / 4,
                           &ps->containers, err);
    if (rc == WF_OK && conf->threads > 1)
        rc = wf_pool_new(conf->threads, &ps->pool, err);
    if (rc != WF_OK)
        wf_ps_free(&ps);
    *out = ps;
    return rc;
}

static void free_worker(wf_ps *ps, wf_ps_worker *w)
{
    wf_ps_close_pulls(ps, w);
    wf_acks_forget(ps, w);
    ps->workers[w->at] = ps->workers[--ps->n_workers];
    ps->workers[w->at]->at = w->at;
    free(w);
}

void wf_ps_free(wf_ps **ps)
{
    wf_ps *it = *ps;

    *ps = NULL;
    if (!it)
        return;
    wf_ps_clear_job(it);
    wf_bytes_close(&it->saving.said);
    wf_acks_close(&it->acks);
    while (it->n_workers > 0)
        free_worker(it, it->workers[0]);
    free(it->workers);
    free(it->members);
    wf_index_close(&it->in_view);
    wf_pool_free(&it->pool);
    wf_containers_free(&it->containers);
    free(it);
}

wf_slice *wf_ps_slice(const wf_ps *ps, uint32_t id)
{
    return id < ps->map.n && ps->place[id] != UINT32_MAX ? ps->slices[ps->place[id]] : NULL;
}

const wf_slice *wf_ps_slice_at(const wf_ps *ps, uint32_t i)
{
    return i < ps->n_slices ? ps->slices[i] : NULL;
}

uint16_t wf_ps_job_number(const wf_ps *ps)
{
    return ps->job_number;
}

uint16_t wf_ps_generation(const wf_ps *ps)
{
    return wf_ps_serves(ps) ? ps->generation : 0;
}

uint32_t wf_ps_view(const wf_ps *ps)
{
    return ps->view;
}

bool wf_ps_is_away(const wf_ps *ps, uint32_t id)
{
    const wf_slice *s = wf_ps_slice(ps, id);

    return s ? s->leaving : wf_map_has_moved(&ps->map, id);
}

bool wf_ps_serves(const wf_ps *ps)
{
    return ps->state == WF_PS_SERVING;
}

void wf_ps_change(wf_ps *ps, wf_ps_event event)
{
    char whose[32];

    wf_task_str((wf_task){WF_ROLE_PS, ps->conf.index}, whose, sizeof whose);
    ps->state = (wf_ps_state)wf_states_take(&wf_ps_states, ps->state, event, whose);
}

void wf_ps_add_slice(wf_ps *ps, wf_slice *s)
{
    wf_assert(ps->place[s->id] == UINT32_MAX && ps->n_slices < ps->map.n);
    wf_assert(ps->map.slices[s->id].primary == ps->conf.index); /* M2 */
    ps->place[s->id] = ps->n_slices;
    ps->slices[ps->n_slices++] = s;
}

void wf_ps_remove_slice(wf_ps *ps, uint32_t id)
{
    uint32_t at = ps->place[id];

    wf_slice_free(&ps->slices[at]);
    ps->slices[at] = ps->slices[--ps->n_slices];
    if (at < ps->n_slices)
        ps->place[ps->slices[at]->id] = at;
    ps->place[id] = UINT32_MAX;
}

bool wf_ps_in_view(const wf_ps *ps, uint64_t incarnation)
{
    return wf_index_get(&ps->in_view, incarnation) != NULL;
}

wf_status wf_ps_send(wf_ps *ps, wf_peer *to, wf_lane lane, uint64_t key, wf_msg **m, wf_err *err)
{
    wf_status rc;

    stamp(ps, &(*m)->head);
    rc = wf_net_send(ps->net, to, lane, key, m, err);
    return rc == WF_NOTFOUND ? WF_OK : rc; /* the peer is gone, its EV_DOWN is on the way */
}

/* Programs with a session, and the workers' servers of sessions. */
enum { MOST_CLIENTS = 1024 };

static wf_status admit_client(const wf_ps *ps, wf_err *err)
{
    if (wf_net_accepted_of(ps->net, WF_ROLE_CLIENT) < MOST_CLIENTS)
        return WF_OK;
    return wf_fail(err, WF_AGAIN, NULL, "%d clients are connected to ps %u", MOST_CLIENTS,
                   ps->conf.index);
}

/* P4: whoever the newest view does not hold has no place, and asks again later: the view that holds
 * it may be on its way. */
wf_status wf_ps_admit(void *arg, const wf_hello *hello, wf_err *err)
{
    const wf_ps *ps = arg;
    char text[32];

    if (hello->task.role == WF_ROLE_CLIENT)
        return admit_client(ps, err);
    if (hello->task.role != WF_ROLE_WORKER && hello->task.role != WF_ROLE_PS)
        return wf_fail(err, WF_MISMATCH, "ask the master",
                       "a ps answers workers, ps and clients, not %s",
                       wf_task_str(hello->task, text, sizeof text));
    if (wf_ps_in_view(ps, hello->incarnation))
        return WF_OK;
    return wf_fail(err, WF_AGAIN, NULL, "%s, process %lu, is not in view %u of ps %u",
                   wf_task_str(hello->task, text, sizeof text), (unsigned long)hello->pid, ps->view,
                   ps->conf.index);
}

static wf_status add_worker(wf_ps *ps, wf_peer *peer, wf_err *err)
{
    wf_ps_worker **list, *w;

    if (!wf_ps_in_view(ps, peer->incarnation)) { /* a view has removed it since its hello */
        wf_net_drop(ps->net, &peer);
        return WF_OK;
    }
    list = realloc(ps->workers, (ps->n_workers + 1) * sizeof(*list));
    if (!list)
        return wf_fail_nomem(err, (ps->n_workers + 1) * sizeof(*list));
    ps->workers = list;
    w = calloc(1, sizeof *w);
    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->peer = peer;
    w->in_view = true;
    peer->user = w;
    peer->keep = true; /* it may compute for long; it leaves with a view */
    w->at = ps->n_workers;
    list[ps->n_workers++] = w;
    wf_ps_share_room(ps);
    return WF_OK;
}

static void remove_worker(wf_ps *ps, const wf_peer *peer)
{
    if (peer->user)
        free_worker(ps, peer->user);
    wf_ps_share_room(ps);
}

void wf_ps_check_workers(wf_ps *ps)
{
    for (uint32_t i = ps->n_workers; i > 0; i--) {
        wf_ps_worker *w = ps->workers[i - 1];
        wf_peer *peer = w->peer;

        w->in_view = wf_ps_in_view(ps, peer->incarnation);
        if (w->in_view)
            continue;
        free_worker(ps, w);
        wf_net_drop(ps->net, &peer);
    }
    wf_ps_share_room(ps);
}

/* The slices that have come here by a move: a master that has started again finds them so. */
static wf_status list_taken(const wf_ps *ps, Weft__Register *body, Weft__MapChange **rows,
                            wf_err *err)
{
    *rows = calloc((size_t)ps->n_slices + 1, sizeof(**rows));
    body->moved = calloc((size_t)ps->n_slices + 1, sizeof(*body->moved));
    if (!*rows || !body->moved)
        return wf_fail_nomem(err, ps->n_slices * sizeof(**rows));
    for (uint32_t i = 0; i < ps->n_slices; i++) {
        const wf_map_slice *place = &ps->map.slices[ps->slices[i]->id];
        Weft__MapChange *row = &(*rows)[body->n_moved];

        if (!wf_map_has_moved(&ps->map, ps->slices[i]->id))
            continue;
        weft__map_change__init(row);
        row->slice = ps->slices[i]->id;
        row->ps = place->primary;
        row->version = place->version;
        body->moved[body->n_moved++] = row;
    }
    return WF_OK;
}

/* Tells the master what is held here, after each fresh link to it. */
static wf_status enrol(wf_ps *ps, wf_err *err)
{
    Weft__Register body = WEFT__REGISTER__INIT;
    Weft__MapChange *rows = NULL;
    wf_status rc = list_taken(ps, &body, &rows, err);

    body.job = wf_ps_serves(ps) ? (char *)ps->job : "";
    body.job_id = ps->job_id;
    body.generation = ps->generation;
    body.ready = wf_ps_serves(ps);
    body.view = ps->view;
    body.map = ps->map.version;
    if (ps->move.state != WF_MOVE_NONE)
        body.map = WF_MAX(body.map, ps->move.version + 1);
    if (rc == WF_OK)
        rc = wf_session_register(&ps->session, &body, err);
    free(body.moved);
    free(rows);
    return rc;
}

static wf_status on_master(wf_ps *ps, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    switch (m->head.kind) {
    case WF_VIEW:
        return wf_ps_on_view(ps, m, err);
    case WF_SETUP:
        return wf_ps_on_setup(ps, m, err);
    case WF_TUNE:
        return wf_ps_on_tune(ps, m, err);
    case WF_MOVE:
        return wf_ps_on_move(ps, m, now_ns, err);
    case WF_HALT:
        wf_ps_clear_job(ps); /* the link is in order: it is not of an older time */
        return WF_OK;
    case WF_DISMISS:
        return wf_session_on_dismiss(&ps->session, m, err);
    default:
        return WF_OK;
    }
}

/* Errors: WF_AGAIN when a slice is named that has moved, or is on its way. */
static wf_status on_training(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    wf_assert(w->in_view && m->head.generation == ps->generation); /* P4 */
    switch (m->head.kind) {
    case WF_LIST:
        return wf_ps_on_list(ps, w, m, err);
    case WF_PULL:
        return wf_ps_on_pull(ps, w, m, err);
    case WF_PUSH:
        return wf_ps_on_push(ps, w, m, err);
    case WF_CLOCK:
        return wf_ps_on_clock(ps, w, m, err);
    case WF_DECIDED:
        return wf_ps_on_decided(ps, m, err);
    default:
        return WF_OK;
    }
}

static wf_status on_worker(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    wf_status rc;

    if (!wf_ps_serves(ps) || m->head.job != ps->job_number ||
        m->head.generation != ps->generation || m->head.view > ps->view || !w->in_view) /* P4 */
        return wf_ps_deny(ps, w, m, err);
    if (m->head.kind == WF_CUT_SAVE) /* the chief asks each ps for what it has, by whatever map */
        return wf_ps_on_save(ps, w, m, err);
    if (m->head.map < ps->map.version)
        return wf_ps_deny(ps, w, m, err);
    if (w->denied && m->head.kind == WF_PUSH)
        return wf_ps_deny(ps, w, m, err);
    rc = on_training(ps, w, m, err);
    w->denied |= rc == WF_AGAIN && m->head.kind == WF_PUSH;
    return rc == WF_AGAIN ? wf_ps_deny(ps, w, m, err) : rc;
}

/* P4 holds for another ps as well. */
static wf_status on_ps(wf_ps *ps, wf_peer *from, const wf_msg *m, wf_err *err)
{
    if (from == ps->move.peer)
        return m->head.kind == WF_STATE_OK ? wf_ps_on_state_ok(ps, m, err) : WF_OK;
    if (!wf_ps_in_view(ps, from->incarnation))
        return WF_OK;
    return m->head.kind == WF_STATE ? wf_ps_on_state(ps, from, m, err) : WF_OK;
}

/* What a worker sends and is not right is that worker's fault, not this process's end. */
static wf_status on_message(wf_ps *ps, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc;

    if (ev->peer == ps->session.peer) {
        rc = on_master(ps, ev->msg, now_ns, err);
        if (rc != WF_PROTO)
            return rc;
        WF_LOG_WARN("ps.bad_message", "master kind=%s why=\"%s\"", wf_kind_name(ev->msg->head.kind),
                    err->what);
        return WF_OK;
    }
    if (ev->peer->task.role == WF_ROLE_CLIENT)
        rc = wf_ps_on_client(ps, ev->peer, ev->msg, err);
    else if (ev->peer->task.role == WF_ROLE_PS)
        rc = on_ps(ps, ev->peer, ev->msg, err);
    else
        rc = ev->peer->user ? on_worker(ps, ev->peer->user, ev->msg, err) : WF_OK;
    if (rc == WF_PROTO || rc == WF_SHAPE || rc == WF_FULL) {
        WF_LOG_WARN("ps.bad_message", "%s=%u kind=%s why=\"%s\"", wf_role_name(ev->peer->task.role),
                    ev->peer->task.index, wf_kind_name(ev->msg->head.kind), err->what);
        rc = WF_OK;
    }
    return rc;
}

static void name_late(wf_waiting *w, wf_task late, int64_t since_ns, uint32_t step, wf_task waits,
                      const char *why)
{
    char name[32];

    w->whom = late;
    w->since_ns = since_ns;
    snprintf(w->what, sizeof w->what, "its step %u, which %s waits for (%s)", step,
             wf_task_str(waits, name, sizeof name), why);
}

/* A worker waits here for a slower one. */
static void tell_held(const wf_ps *ps, wf_waiting *w)
{
    const wf_clock *row = NULL;
    const wf_held_part *part = wf_together_find_held(ps, &row);
    const wf_ps_member *who = part ? wf_index_get(&ps->in_view, row->incarnation) : NULL;
    wf_task waits = {0}, late = {0};
    const wf_ps_pull *pull;
    uint32_t step = 0;
    char why[32];

    if (who) {
        name_late(w, (wf_task){(wf_role)who->role, who->index}, part->since_ns,
                  wf_clock_step(row, part->clock), (wf_task){WF_ROLE_WORKER, part->worker}, "bsp");
        return;
    }
    pull = wf_ps_find_held(ps, &waits, &late, &step);
    snprintf(why, sizeof why, ps->together.on ? "bsp" : "staleness %u", ps->clocks.staleness);
    if (pull)
        name_late(w, late, pull->since_ns, step, waits, why);
}

/* A ps answers; it waits for its master's link, and for a ps that takes a slice; an idle one for
 * nobody. */
void wf_ps_vitals(const wf_ps *ps, wf_vitals *out)
{
    wf_waiting *w = &out->waits;

    wf_session_waiting(&ps->session, w);
    if (ps->session.peer->up && ps->move.state != WF_MOVE_NONE) {
        w->since_ns = ps->move.since_ns;
        w->whom = (wf_task){WF_ROLE_PS, ps->move.to};
        snprintf(w->what, sizeof w->what, "its word that it has slice %u", ps->move.slice);
    }
    if (w->whom.role == WF_ROLE_NONE)
        tell_held(ps, w);
    out->updates = ps->updates_done;
    out->job = ps->job_number;
    out->staleness = ps->staleness;
    out->left_out = ps->left_out;
    out->contained = wf_containers_count(ps->containers);
    out->contained_bytes = wf_containers_bytes(ps->containers);
    out->held_bytes = out->disk_bytes = 0;
    for (uint32_t i = 0; i < ps->n_slices; i++) {
        out->held_bytes += wf_slice_held(ps->slices[i]);
        out->disk_bytes += wf_slice_on_disk(ps->slices[i]);
    }
}

wf_status wf_ps_advance(wf_ps *ps, int64_t now_ns, wf_err *err)
{
    wf_session_advance(&ps->session);
    WF_TRY(wf_acks_advance(ps, err));
    WF_TRY(wf_ps_move_advance(ps, now_ns, err));
    WF_TRY(wf_ps_tell_load(ps, now_ns, err));
    return ps->behind ? wf_ps_answer_behind(ps, err) : WF_OK;
}

static wf_status on_up(wf_ps *ps, wf_peer *peer, wf_err *err)
{
    if (peer == ps->session.peer)
        return enrol(ps, err);
    if (peer == ps->move.peer)
        return wf_ps_move_on_up(ps, err);
    return peer->task.role == WF_ROLE_WORKER ? add_worker(ps, peer, err) : WF_OK;
}

wf_status wf_ps_on_event(wf_ps *ps, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc = WF_OK;

    ps->now_ns = now_ns;
    switch (ev->kind) {
    case WF_EV_UP:
        rc = on_up(ps, ev->peer, err);
        break;
    case WF_EV_DOWN:
        if (ev->peer == ps->session.peer)
            wf_session_lost(&ps->session, now_ns);
        else
            remove_worker(ps, ev->peer);
        break;
    case WF_EV_REFUSED:
        if (ev->peer == ps->move.peer)
            return wf_ps_move_refused(ps, &ev->err, err);
        *err = ev->err;
        rc = ev->err.status;
        break;
    case WF_EV_MESSAGE:
        rc = on_message(ps, ev, now_ns, err);
        wf_net_free_msg(ps->net, &ev->msg);
        break;
    case WF_EV_BEAT: /* for the master */
        wf_net_free_msg(ps->net, &ev->msg);
        break;
    }
    return rc;
}
