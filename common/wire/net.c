/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/net.c - peers, what they are sent and what is heard of them; hello.c makes their
 * links. */
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/net_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PEERS = 4096, MAX_EVENTS_A_POLL = 256 };

static uint64_t system_random(void *arg)
{
    (void)arg;
    return wf_random_id();
}

wf_net_conf wf_net_defaults(void)
{
    return (wf_net_conf){
        .cluster = "",
        .credit_bytes = (size_t)64 << 20,
        .hello_ns = 50 * WF_NS_PER_MS,
        .ping_ns = 500 * WF_NS_PER_MS,
        .silent_ns = 5 * WF_NS_PER_S,
        .gone_ns = 30 * WF_NS_PER_S,
        .resend_ns = WF_NS_PER_S,
        .ack_delay_ns = 20 * WF_NS_PER_MS,
        .random_id = system_random,
    };
}

wf_status wf_net_new(const wf_net_conf *conf, wf_net **out, wf_err *err)
{
    wf_net *n = calloc(1, sizeof *n);

    if (!n)
        return wf_fail_nomem(err, sizeof *n);
    n->conf = *conf;
    snprintf(n->cluster, sizeof n->cluster, "%s", conf->cluster);
    n->conf.cluster = n->cluster;
    *out = n;
    return WF_OK;
}

static void free_peer(wf_net *n, peer *p, int linger_ms)
{
    wf_link_free(&p->link);
    wf_link_free(&p->waiting);
    if (p->dialled && p->transport)
        p->transport->ops->close(p->transport, linger_ms);
    (void)n;
    free(p);
}

void wf_net_free(wf_net **n, int linger_ms)
{
    wf_net *it = *n;

    *n = NULL;
    if (!it)
        return;
    for (size_t i = 0; i < it->n_peers; i++)
        free_peer(it, it->peers[i], linger_ms);
    if (it->listener)
        it->listener->ops->close(it->listener, linger_ms);
    wf_msg_pool_close(&it->pool);
    free(it->peers);
    free(it->transports);
    free(it);
}

/* The list of transports, made anew when one comes or goes. */
static void list_transports(wf_net *n)
{
    n->n_transports = 0;
    if (n->listener)
        n->transports[n->n_transports++] = n->listener;
    for (size_t i = 0; i < n->n_peers; i++)
        if (n->peers[i]->dialled)
            n->transports[n->n_transports++] = n->peers[i]->transport;
}

wf_status wf_net_add_peer(wf_net *n, peer **out, wf_err *err)
{
    if (n->n_peers >= MAX_PEERS)
        return wf_fail(err, WF_FULL, NULL, "this task has %d peers, and takes no more", MAX_PEERS);
    if (n->n_peers == n->peers_room || !n->transports) {
        size_t room = n->peers_room ? 2 * n->peers_room : 8;
        peer **peers = realloc(n->peers, room * sizeof(*peers));
        wf_transport **transports;

        if (!peers)
            return wf_fail_nomem(err, room * sizeof(*peers));
        n->peers = peers;
        transports = realloc(n->transports, (room + 1) * sizeof(*transports));
        if (!transports)
            return wf_fail_nomem(err, room * sizeof(*transports));
        n->transports = transports;
        n->peers_room = room;
    }
    *out = calloc(1, sizeof **out);
    if (!*out)
        return wf_fail_nomem(err, sizeof **out);
    n->peers[n->n_peers++] = *out;
    return WF_OK;
}

void wf_net_listen(wf_net *n, wf_transport **t)
{
    wf_assert(!n->listener);
    n->listener = *t;
    *t = NULL;
    if (!n->transports) {
        n->peers_room = 8;
        n->peers = calloc(n->peers_room, sizeof(*n->peers));
        n->transports = calloc(n->peers_room + 1, sizeof(*n->transports));
        wf_assert(n->peers && n->transports);
    }
    list_transports(n);
}

wf_status wf_net_dial(wf_net *n, wf_task task, const char *address, wf_transport **t, wf_peer **out,
                      wf_err *err)
{
    peer *p = NULL;

    WF_TRY(wf_net_add_peer(n, &p, err));
    p->pub.task = task;
    snprintf(p->address, sizeof p->address, "%s", address);
    p->pub.address = p->address;
    p->dialled = true;
    p->transport = *t;
    p->first = wf_hello_first(n);
    p->hello_wait_ns = n->conf.hello_ns;
    p->pub.last_heard_ns = INT64_MIN;
    *t = NULL;
    list_transports(n);
    *out = &p->pub;
    return WF_OK;
}

static void drop_peer_at(wf_net *n, size_t at)
{
    peer *p = n->peers[at];

    n->peers[at] = n->peers[--n->n_peers];
    free_peer(n, p, 0);
    list_transports(n);
}

void wf_net_hang_up(wf_net *n, wf_peer **p)
{
    for (size_t i = 0; i < n->n_peers; i++)
        if (&n->peers[i]->pub == *p) {
            drop_peer_at(n, i);
            break;
        }
    *p = NULL;
}

wf_status wf_net_msg(wf_net *n, uint16_t kind, wf_msg **out, wf_err *err)
{
    return wf_msg_new(&n->pool, kind, out, err);
}

void wf_net_free_msg(wf_net *n, wf_msg **m)
{
    wf_msg_free(&n->pool, m);
}

wf_status wf_net_send(wf_net *n, wf_peer *pub, wf_lane lane, uint64_t key, wf_msg **m, wf_err *err)
{
    peer *p = (peer *)pub;
    wf_link *to = p->link;
    wf_status rc = WF_OK;

    if (!to && p->dialled && !p->refused) {
        if (!p->waiting) {
            wf_link_conf conf = wf_hello_link_conf(n, p);

            rc = wf_link_new(&conf, &n->pool, &p->waiting, err);
        }
        to = p->waiting;
    }
    if (!to && rc == WF_OK)
        rc = wf_fail(err, WF_NOTFOUND, NULL, "the peer is gone");
    if (rc == WF_OK)
        rc = wf_link_send(to, lane, key, m, err);
    wf_msg_free(&n->pool, m);
    return rc;
}

void wf_net_send_loose(wf_net *n, wf_transport *t, const wf_route *to, wf_msg *m)
{
    m->head.incarnation = n->conf.incarnation;
    (void)!t->ops->send(t, to, m, NULL);
    wf_msg_free(&n->pool, &m);
}

/* An acknowledgement-only message, or a message in sequence. Takes *m. */
static void on_linked(wf_net *n, peer *p, wf_msg **m, int64_t now_ns)
{
    const wf_kind_row *row = wf_kind_find((*m)->head.kind);

    if (!row || !(row->from & 1u << p->pub.task.role) || !(row->to & 1u << n->conf.self.role)) {
        WF_LOG_DEBUG("net.not_allowed", "kind=%u from=%s", (*m)->head.kind,
                     wf_role_name(p->pub.task.role));
        n->bad_messages++;
        return;
    }
    p->pub.last_heard_ns = now_ns;
    p->silent_told = false;
    if (!wf_link_may_hold(p->link, (*m)->head.sequence)) {
        wf_hello_reset(n, p->transport, &p->route, (*m)->head.sequence);
        return;
    }
    wf_link_on_message(p->link, now_ns, m);
}

static void on_dialled(wf_net *n, peer *p, wf_msg **m, int64_t now_ns)
{
    switch ((*m)->head.kind) {
    case WF_WELCOME:
        wf_hello_on_welcome(n, p, *m, now_ns);
        break;
    case WF_REFUSE:
        wf_hello_on_refuse(n, p, *m);
        break;
    case WF_RESET:
        wf_hello_on_reset(n, p, *m);
        break;
    default:
        if (p->link && (*m)->head.incarnation == p->pub.incarnation)
            on_linked(n, p, m, now_ns);
        else if (p->link && now_ns >= p->hello_at_ns)
            wf_hello_say(n, p, now_ns); /* a new life speaks: find out */
    }
    wf_msg_free(&n->pool, m);
}

static void on_accepted(wf_net *n, const wf_route *from, wf_msg **m, int64_t now_ns)
{
    peer *p;

    if ((*m)->head.kind == WF_HELLO) {
        wf_hello_on_hello(n, from, *m, now_ns);
        wf_msg_free(&n->pool, m);
        return;
    }
    p = wf_hello_accepted(n, (*m)->head.incarnation);
    if (p && (*m)->head.kind == WF_BEAT) {
        p->pub.last_heard_ns = now_ns;
        p->silent_told = false;
    } else if (p && p->link && (*m)->head.kind == WF_RESET) {
        wf_hello_on_reset(n, p, *m);
    } else if (p && p->link) {
        p->route = *from; /* it may have come back by another connection */
        on_linked(n, p, m, now_ns);
    } else if ((*m)->head.kind != WF_BEAT && (*m)->head.kind != WF_RESET) {
        wf_hello_reset(n, n->listener, from, (*m)->head.sequence);
    }
    wf_msg_free(&n->pool, m);
}

static void receive_all(wf_net *n, int64_t now_ns)
{
    wf_route from;
    wf_msg *m;

    for (int i = 0; n->listener && i < MAX_EVENTS_A_POLL; i++) {
        m = n->listener->ops->receive(n->listener, &n->pool, &from);
        if (!m)
            break;
        on_accepted(n, &from, &m, now_ns);
    }
    for (size_t i = 0; i < n->n_peers; i++) {
        peer *p = n->peers[i];

        for (int k = 0; p->dialled && k < MAX_EVENTS_A_POLL; k++) {
            m = p->transport->ops->receive(p->transport, &n->pool, &from);
            if (!m)
                break;
            on_dialled(n, p, &m, now_ns);
        }
    }
}

static void flush_peer(wf_net *n, peer *p, int64_t now_ns)
{
    const wf_msg *m;

    while ((m = wf_link_next(p->link, now_ns))) {
        p->last_sent_ns = now_ns;
        if (p->transport->ops->send(p->transport, &p->route, m, NULL) != WF_OK)
            break; /* it counts as lost and is sent again */
    }
    if (wf_link_ack_due(p->link, now_ns) || now_ns - p->last_sent_ns >= n->conf.ping_ns) {
        wf_msg *ping = NULL;

        if (wf_msg_new(&n->pool, WF_PING, &ping, NULL) != WF_OK)
            return;
        ping->head.ack = wf_link_ack(p->link);
        wf_net_send_loose(n, p->transport, &p->route, ping);
        p->last_sent_ns = now_ns;
    }
}

void wf_net_flush(wf_net *n, int64_t now_ns)
{
    for (size_t i = 0; i < n->n_peers; i++)
        if (n->peers[i]->link)
            flush_peer(n, n->peers[i], now_ns);
}

static void keep_alive(wf_net *n, peer *p, int64_t now_ns)
{
    if (p->dialled && !p->refused && now_ns >= p->hello_at_ns) {
        bool quiet = p->link && now_ns - p->pub.last_heard_ns >= 2 * n->conf.ping_ns;

        if (!p->link || quiet)
            wf_hello_say(n, p, now_ns);
    }
    if (!p->dialled && p->link && now_ns - p->pub.last_heard_ns >= n->conf.gone_ns)
        wf_hello_lose(n, p);
}

void wf_net_poll(wf_net *n, int64_t now_ns)
{
    receive_all(n, now_ns);
    for (size_t i = 0; i < n->n_peers; i++)
        keep_alive(n, n->peers[i], now_ns);
    wf_net_flush(n, now_ns);
}

static bool peer_event(wf_net *n, peer *p, int64_t now_ns, wf_event *ev)
{
    ev->peer = &p->pub;
    if (p->down_owed) {
        ev->kind = WF_EV_DOWN;
        p->down_owed = false;
        return true;
    }
    if (p->refused && p->refusal.status != WF_OK) {
        ev->kind = WF_EV_REFUSED;
        ev->err = p->refusal;
        p->refusal.status = WF_OK; /* told once */
        return true;
    }
    if (p->up_owed) {
        ev->kind = WF_EV_UP;
        p->up_owed = false;
        return true;
    }
    if (p->link && (ev->msg = wf_link_take(p->link, now_ns))) {
        ev->kind = WF_EV_MESSAGE;
        return true;
    }
    if (p->link && !p->silent_told && now_ns - p->pub.last_heard_ns >= n->conf.silent_ns) {
        ev->kind = WF_EV_SILENT;
        p->silent_told = true;
        return true;
    }
    return false;
}

bool wf_net_event(wf_net *n, int64_t now_ns, wf_event *ev)
{
    for (size_t i = 0; i < n->n_peers;) {
        if (n->peers[i]->gone && !n->peers[i]->down_owed)
            drop_peer_at(n, i);
        else
            i++;
    }
    *ev = (wf_event){0};
    for (size_t k = 0; k < n->n_peers; k++) {
        size_t at = (n->next_event + k) % n->n_peers;

        if (peer_event(n, n->peers[at], now_ns, ev)) {
            n->next_event = at;
            if (ev->kind == WF_EV_MESSAGE)
                n->next_event = at + 1;
            return true;
        }
    }
    return false;
}

int64_t wf_net_deadline(const wf_net *n, int64_t now_ns)
{
    int64_t least = now_ns + n->conf.ping_ns;

    for (size_t i = 0; i < n->n_peers; i++) {
        const peer *p = n->peers[i];

        if (p->link)
            least = WF_MIN(least, wf_link_deadline(p->link));
        else if (p->dialled && !p->refused)
            least = WF_MIN(least, p->hello_at_ns);
    }
    return WF_MAX(least, now_ns);
}

wf_transport *const *wf_net_transports(const wf_net *n, size_t *count)
{
    *count = n->n_transports;
    return n->transports;
}

uint64_t wf_net_bad_messages(const wf_net *n)
{
    uint64_t bad = n->bad_messages;

    for (size_t i = 0; i < n->n_transports; i++)
        bad += n->transports[i]->bad_messages;
    return bad;
}
