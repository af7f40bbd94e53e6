/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/links.c */
#include "worker/stages/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 65536 };

void wf_stage_links_close(wf_stage_links *l)
{
    free(l->rows);
    l->rows = NULL;
    l->n = 0;
}

wf_status wf_stage_links_send(wf_stage_links *l, wf_net *net, uint32_t worker, wf_msg **m,
                              wf_err *err)
{
    wf_peer *peer = wf_stage_link_to(l, worker);
    wf_status rc = WF_OK;

    if (worker == l->self) {
        l->net = net;
        (*m)->next = NULL;
        if (l->last)
            l->last->next = *m;
        else
            l->first = *m;
        l->last = *m;
        *m = NULL;
        return WF_OK;
    }
    if (peer)
        rc = wf_net_send(net, peer, WF_LANE_CONTROL, 0, m, err);
    wf_net_free_msg(net, m);
    return rc == WF_NOTFOUND ? WF_OK : rc;
}

wf_msg *wf_stage_links_next(wf_stage_links *l)
{
    wf_msg *m = l->first;

    if (!m)
        return NULL;
    l->first = m->next;
    if (!l->first)
        l->last = NULL;
    m->next = NULL;
    return m;
}

void wf_stage_links_forget(wf_stage_links *l)
{
    for (wf_msg *m = wf_stage_links_next(l); m; m = wf_stage_links_next(l))
        wf_net_free_msg(l->net, &m);
}

wf_peer *wf_stage_link_to(const wf_stage_links *l, uint32_t worker)
{
    return worker < l->n ? l->rows[worker].peer : NULL;
}

static wf_status make_room(wf_stage_links *l, uint32_t worker, wf_err *err)
{
    wf_stage_link *rows;

    if (worker < l->n)
        return WF_OK;
    if (worker >= MOST)
        return wf_fail(err, WF_PROTO, NULL, "worker %u cannot be", worker);
    rows = realloc(l->rows, (worker + (size_t)1) * sizeof *rows);
    if (!rows)
        return wf_fail_nomem(err, (worker + (size_t)1) * sizeof *rows);
    memset(rows + l->n, 0, (worker + (size_t)1 - l->n) * sizeof *rows);
    l->rows = rows;
    l->n = worker + 1;
    return WF_OK;
}

wf_status wf_stage_links_dial(wf_stage_links *l, wf_net *net, uint32_t worker, const char *address,
                              uint64_t incarnation, wf_err *err)
{
    wf_task task = {WF_ROLE_WORKER, worker};
    wf_transport *t = NULL;
    wf_stage_link *row;

    if (worker <= l->self)
        return wf_fail(err, WF_PROTO, NULL, "worker %u is to dial worker %u", l->self, worker);
    WF_TRY(make_room(l, worker, err));
    row = &l->rows[worker];
    /* A link to an incarnation that is over may be lost later, and with it what was meant for the
     * next one. */
    if (row->peer && strcmp(row->address, address) == 0 &&
        (row->peer->incarnation == incarnation || row->peer->incarnation == 0))
        return WF_OK;
    wf_net_hang_up(net, &row->peer);
    WF_TRY(l->dial(l->dial_arg, task, address, &t, err));
    WF_TRY(wf_net_dial(net, task, address, &t, &row->peer, err));
    snprintf(row->address, sizeof row->address, "%s", address);
    return WF_OK;
}

wf_status wf_stage_links_on_up(wf_stage_links *l, wf_peer *peer, wf_err *err)
{
    if (peer->task.role != WF_ROLE_WORKER || peer->task.index >= l->self)
        return WF_OK;
    WF_TRY(make_room(l, peer->task.index, err));
    peer->keep = true; /* it may compute for long */
    l->rows[peer->task.index].peer = peer;
    return WF_OK;
}

void wf_stage_links_on_down(wf_stage_links *l, const wf_peer *peer)
{
    uint32_t worker = peer->task.index;

    if (peer->task.role == WF_ROLE_WORKER && worker < l->self && worker < l->n &&
        l->rows[worker].peer == peer)
        l->rows[worker].peer = NULL;
}
