/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/peers.c - a net's peers: all of them, those by incarnation, those with something to
 * take, those with something to send. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/net_state.h"

#include <stdio.h>
#include <stdlib.h>

/* The list of transports, made anew when a dialled peer comes or goes. */
static void list_transports(wf_net *n)
{
    n->n_transports = n->n_dialled = 0;
    for (; n->n_transports < n->n_listeners; n->n_transports++)
        n->transports[n->n_transports] = n->listeners[n->n_transports];
    for (size_t i = 0; i < n->n_peers; i++) {
        if (!n->peers[i]->dialled)
            continue;
        n->dialled[n->n_dialled++] = n->peers[i];
        n->transports[n->n_transports++] = n->peers[i]->transport;
    }
}

wf_status wf_net_make_room(wf_net *n, wf_err *err)
{
    size_t room = n->peers_room ? 2 * n->peers_room : 8;
    wf_transport **transports;
    peer **peers, **dialled;

    if (n->n_peers < n->peers_room)
        return WF_OK;
    peers = realloc(n->peers, room * sizeof(*peers));
    if (!peers)
        return wf_fail_nomem(err, room * sizeof(*peers));
    n->peers = peers;
    dialled = realloc(n->dialled, room * sizeof(*dialled));
    if (!dialled)
        return wf_fail_nomem(err, room * sizeof(*dialled));
    n->dialled = dialled;
    transports = realloc(n->transports, (room + WF_NET_LISTENERS) * sizeof(*transports));
    if (!transports)
        return wf_fail_nomem(err, room * sizeof(*transports));
    n->transports = transports;
    n->peers_room = room;
    return WF_OK;
}

wf_status wf_net_add_peer(wf_net *n, bool dialled, wf_task task, peer **out, wf_err *err)
{
    if (!dialled && n->n_accepted >= n->conf.accepted_most)
        return wf_fail(err, WF_AGAIN, NULL, "this task has %u peers, and takes no more",
                       n->n_accepted);
    WF_TRY(wf_net_make_room(n, err));
    *out = calloc(1, sizeof **out);
    if (!*out)
        return wf_fail_nomem(err, sizeof **out);
    (*out)->dialled = dialled;
    (*out)->at = n->n_peers;
    (*out)->pub.address = (*out)->address;
    (*out)->pub.delay = (*out)->delay;
    n->peers[n->n_peers++] = *out;
    (*out)->pub.task = task;
    if (!dialled) {
        n->n_accepted++;
        n->n_accepted_of[task.role]++;
    }
    return WF_OK;
}

static void unlist(wf_net *n, const peer *p)
{
    peer **at;

    for (at = &n->active; p->is_active && *at != p; at = &(*at)->next_active)
        continue;
    if (p->is_active) {
        *at = p->next_active;
        if (!*at)
            n->active_end = at;
    }
    for (at = &n->sending; p->is_sending && *at != p; at = &(*at)->next_sending)
        continue;
    if (p->is_sending)
        *at = p->next_sending;
}

void wf_net_remove_peer(wf_net *n, peer *p)
{
    bool dialled = p->dialled;

    unlist(n, p);
    n->peers[p->at] = n->peers[--n->n_peers];
    n->peers[p->at]->at = p->at;
    if (!dialled) {
        n->n_accepted--;
        n->n_accepted_of[p->pub.task.role]--;
    }
    wf_link_free(&p->link);
    wf_link_free(&p->waiting);
    wf_msg_free(&n->pool, &p->beat);
    if (dialled && p->transport)
        p->transport->ops->close(p->transport, 0);
    free(p);
    if (dialled)
        list_transports(n);
}

void wf_net_listen(wf_net *n, wf_transport **t)
{
    wf_assert(n->n_listeners < WF_NET_LISTENERS);
    n->listeners[n->n_listeners++] = *t;
    *t = NULL;
    list_transports(n);
}

wf_status wf_net_dial(wf_net *n, wf_task task, const char *address, wf_transport **t, wf_peer **out,
                      wf_err *err)
{
    peer *p = NULL;
    wf_status rc = wf_net_add_peer(n, true, task, &p, err);

    if (rc != WF_OK) {
        (*t)->ops->close(*t, 0);
        *t = NULL;
        return rc;
    }
    snprintf(p->address, sizeof p->address, "%s", address);
    p->transport = *t;
    p->first = wf_hello_first(n);
    p->attempt = n->attempts++;
    p->hello_wait_ns = n->conf.hello_ns;
    p->pub.last_heard_ns = INT64_MIN;
    *t = NULL;
    list_transports(n);
    n->soonest_ns = 0;
    *out = &p->pub;
    return WF_OK;
}

void wf_net_hang_up(wf_net *n, wf_peer **pub)
{
    if (*pub)
        wf_net_remove_peer(n, (peer *)*pub);
    *pub = NULL;
}

void wf_net_drop(wf_net *n, wf_peer **pub)
{
    peer *p = (peer *)*pub;

    *pub = NULL;
    wf_net_unname_accepted(n, p);
    wf_net_remove_peer(n, p);
}

peer *wf_net_accepted(const wf_net *n, uint64_t incarnation)
{
    return wf_index_get(&n->accepted, incarnation);
}

wf_status wf_net_name_accepted(wf_net *n, peer *p, wf_err *err)
{
    return wf_index_put(&n->accepted, p->pub.incarnation, p, err);
}

void wf_net_unname_accepted(wf_net *n, const peer *p)
{
    if (wf_net_accepted(n, p->pub.incarnation) == p)
        wf_index_remove(&n->accepted, p->pub.incarnation);
}

void wf_net_activate(wf_net *n, peer *p)
{
    if (p->is_active)
        return;
    p->is_active = true;
    p->next_active = NULL;
    *n->active_end = p;
    n->active_end = &p->next_active;
}

void wf_net_will_send(wf_net *n, peer *p)
{
    if (p->is_sending)
        return;
    p->is_sending = true;
    p->next_sending = n->sending;
    n->sending = p;
}

void wf_net_wake_at(wf_net *n, int64_t at_ns)
{
    n->soonest_ns = WF_MIN(n->soonest_ns, at_ns);
}

uint32_t wf_net_accepted_of(const wf_net *n, wf_role role)
{
    return n->n_accepted_of[role];
}

const wf_peer *wf_net_peer_at(const wf_net *n, size_t i)
{
    return i < n->n_peers ? &n->peers[i]->pub : NULL;
}

size_t wf_net_queued_bytes(const wf_peer *pub)
{
    const peer *p = (const peer *)pub;

    return p->link ? wf_link_queued_bytes(p->link) : 0;
}

size_t wf_net_owed_bytes(const wf_peer *pub)
{
    const peer *p = (const peer *)pub;

    return p->link ? wf_link_queued_bytes(p->link) + wf_link_flight_bytes(p->link) : 0;
}

uint64_t wf_net_resent_bytes(const wf_peer *pub)
{
    const peer *p = (const peer *)pub;

    return p->resent + (p->link ? wf_link_resent_bytes(p->link) : 0);
}

/* ---- what is dropped ---- */

const char *wf_bad_name(wf_bad reason)
{
    static const char *const names[WF_N_BAD] = {"frame",   "kind",  "body",
                                                "payload", "hello", "crowd"};

    return (unsigned)reason < WF_N_BAD ? names[reason] : "?";
}

void wf_net_count_bad(wf_net *n, wf_bad reason, const char *from, const char *why, int64_t now_ns)
{
    n->bad[reason]++;
    if (now_ns - n->logged_ns < WF_NS_PER_S && n->logged_ns)
        return;
    n->logged_ns = now_ns;
    WF_LOG_WARN("net.dropped", "reason=%s from=%s why=\"%s\"", wf_bad_name(reason), from, why);
}

uint64_t wf_net_bad(const wf_net *n, wf_bad reason)
{
    uint64_t count = n->bad[reason];

    for (size_t i = 0; reason == WF_BAD_FRAME && i < n->n_transports; i++)
        count += n->transports[i]->bad_messages;
    return count;
}

uint64_t wf_net_pid(const wf_net *n)
{
    return n->conf.pid;
}

uint64_t wf_net_bad_messages(const wf_net *n)
{
    uint64_t sum = 0;

    for (wf_bad r = 0; r < WF_BAD_HELLO; r++)
        sum += wf_net_bad(n, r);
    return sum;
}
