/* SPDX-License-Identifier: Apache-2.0 */
/* worker/fellows.c - links to the other workers, where they exchange gradients among themselves: a
 * worker dials those with smaller numbers, and is dialled by the others. */
#include "worker/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 65536 };

static wf_status make_room(wf_worker *w, uint32_t index, wf_err *err)
{
    wf_fellow *list;

    if (index < w->n_fellows)
        return WF_OK;
    if (index >= MOST)
        return wf_fail(err, WF_PROTO, NULL, "worker %u cannot be", index);
    list = realloc(w->fellows, (index + 1) * sizeof *list);
    if (!list)
        return wf_fail_nomem(err, (index + 1) * sizeof *list);
    w->fellows = list;
    for (; w->n_fellows <= index; w->n_fellows++)
        w->fellows[w->n_fellows] = (wf_fellow){0};
    return WF_OK;
}

static wf_status dial(wf_worker *w, const Weft__Member *m, wf_err *err)
{
    wf_fellow *f = &w->fellows[m->index];
    wf_task task = {WF_ROLE_WORKER, m->index};
    wf_transport *t = NULL;

    if (f->peer && strcmp(f->address, m->address) == 0)
        return WF_OK;
    wf_net_hang_up(w->net, &f->peer);
    WF_TRY(w->conf.ops.dial(w->conf.ops.arg, task, m->address, &t, err));
    WF_TRY(wf_net_dial(w->net, task, m->address, &t, &f->peer, err));
    snprintf(f->address, sizeof f->address, "%s", m->address);
    return WF_OK;
}

wf_status wf_fellows_dial(wf_worker *w, const Weft__View *view, wf_err *err)
{
    for (size_t i = 0; i < view->n_members; i++) {
        const Weft__Member *m = view->members[i];

        if (m->role != WF_ROLE_WORKER || m->index >= w->conf.index)
            continue;
        WF_TRY(make_room(w, m->index, err));
        WF_TRY(dial(w, m, err));
    }
    return WF_OK;
}

static bool is_accepted(const wf_worker *w, const wf_peer *peer)
{
    return peer->task.role == WF_ROLE_WORKER && peer->task.index > w->conf.index;
}

wf_status wf_fellows_on_up(wf_worker *w, wf_peer *peer, wf_err *err)
{
    wf_fellow *f;

    if (!is_accepted(w, peer))
        return WF_OK;
    WF_TRY(make_room(w, peer->task.index, err));
    f = &w->fellows[peer->task.index];
    if (f->peer && f->peer != peer) { /* an earlier incarnation */
        if (w->exchange)
            wf_exchange_on_down(w->exchange, f->peer);
        wf_net_drop(w->net, &f->peer);
    }
    peer->keep = true; /* it may compute for long; it leaves with another incarnation */
    f->peer = peer;
    return WF_OK;
}

void wf_fellows_on_down(wf_worker *w, const wf_peer *peer)
{
    if (is_accepted(w, peer) && peer->task.index < w->n_fellows &&
        w->fellows[peer->task.index].peer == peer)
        w->fellows[peer->task.index].peer = NULL;
}

wf_status wf_fellows_tell(wf_worker *w, wf_err *err)
{
    for (uint32_t i = 0; i < w->n_fellows; i++)
        if (w->fellows[i].peer && w->fellows[i].peer->up)
            WF_TRY(wf_exchange_on_up(w->exchange, w->fellows[i].peer, err));
    return WF_OK;
}
