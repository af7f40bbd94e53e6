/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/net.c - what peers are sent and what arrives from them; hello.c makes their links. */
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/net_state.h"
#include "common/wire/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MESSAGES_A_POLL = 256, MOST_PEERS = 4096 };

static const int64_t TEND_NS = 50 * WF_NS_PER_MS;  /* between two looks at a connection */
static const int64_t SCAN_NS = WF_NS_PER_MS;       /* between two looks at all peers */
static const int64_t RETRY_NS = 10 * WF_NS_PER_MS; /* after the transport refused a message */

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
        .accepted_most = MOST_PEERS,
        .hello_ns = 50 * WF_NS_PER_MS,
        .ping_ns = 500 * WF_NS_PER_MS,
        .gone_ns = 30 * WF_NS_PER_S,
        .probe_ns = 200 * WF_NS_PER_MS,
        .ack_delay_ns = 20 * WF_NS_PER_MS,
        .random_id = system_random,
    };
}

wf_status wf_net_new(const wf_net_conf *conf, wf_net **out, wf_err *err)
{
    wf_net *n = calloc(1, sizeof *n);
    wf_status rc;

    if (!n)
        return wf_fail_nomem(err, sizeof *n);
    rc = wf_net_make_room(n, err);
    if (rc != WF_OK) {
        wf_net_free(&n, 0);
        return rc;
    }
    n->conf = *conf;
    snprintf(n->cluster, sizeof n->cluster, "%s", conf->cluster);
    n->conf.cluster = n->cluster;
    n->active_end = &n->active;
    *out = n;
    return WF_OK;
}

static void say_bye(wf_net *n, peer *p)
{
    wf_msg *bye = NULL;

    if (wf_msg_new(&n->pool, WF_BYE, &bye, NULL) == WF_OK)
        wf_net_send_loose(n, p->transport, &p->route, bye);
}

void wf_net_free(wf_net **n, int linger_ms)
{
    wf_net *it = *n;

    *n = NULL;
    if (!it)
        return;
    for (size_t i = 0; i < it->n_peers; i++) {
        peer *p = it->peers[i];

        if (p->dialled && p->link && linger_ms > 0)
            say_bye(it, p);
        wf_link_free(&p->link);
        wf_link_free(&p->waiting);
        wf_msg_free(&it->pool, &p->beat);
        if (p->dialled && p->transport)
            p->transport->ops->close(p->transport, linger_ms);
        free(p);
    }
    for (size_t i = 0; i < it->n_listeners; i++)
        it->listeners[i]->ops->close(it->listeners[i], linger_ms);
    wf_index_close(&it->accepted);
    wf_msg_pool_close(&it->pool);
    free(it->peers);
    free(it->dialled);
    free(it->transports);
    free(it);
}

static wf_buf *buf_for(const wf_peer *pub, size_t bytes, bool several)
{
    const peer *p = (const peer *)pub;
    wf_transport *t = p ? p->transport : NULL;

    return t && t->ops->buf ? t->ops->buf(t, &p->route, bytes, several) : wf_buf_new(bytes);
}

wf_buf *wf_net_buf(const wf_peer *p, size_t bytes)
{
    return buf_for(p, bytes, false);
}

wf_buf *wf_net_buf_for_several(const wf_peer *one, size_t bytes)
{
    return buf_for(one, bytes, true);
}

bool wf_net_lends(const wf_peer *pub, size_t bytes)
{
    const peer *p = (const peer *)pub;
    wf_transport *t = p->transport;

    return t && t->ops->lends && t->ops->lends(t, &p->route, bytes);
}

wf_status wf_net_msg(wf_net *n, uint16_t kind, wf_msg **out, wf_err *err)
{
    return wf_msg_new(&n->pool, kind, out, err);
}

void wf_net_free_msg(wf_net *n, wf_msg **m)
{
    wf_msg_free(&n->pool, m);
}

wf_status wf_net_copy_msg(wf_net *n, const wf_msg *m, wf_msg **out, wf_err *err)
{
    return wf_msg_copy(&n->pool, m, out, err);
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
    if (rc == WF_OK)
        wf_net_will_send(n, p);
    wf_msg_free(&n->pool, m);
    return rc;
}

void wf_net_send_loose(wf_net *n, wf_transport *t, const wf_route *to, wf_msg *m)
{
    m->head.incarnation = n->conf.incarnation;
    (void)!t->ops->send(t, to, m, NULL);
    wf_msg_free(&n->pool, &m);
}

/* ---- what arrives ---- */

static const char *peer_name(const peer *p, char *text, size_t size)
{
    return wf_task_str(p->pub.task, text, size);
}

static void on_ping(wf_net *n, peer *p, const wf_msg *m, int64_t now_ns)
{
    wf_msg *resend = NULL;
    wf_header head;

    if (!wf_link_on_ping(p->link, now_ns, &m->head, &head) ||
        wf_msg_new(&n->pool, WF_RESEND, &resend, NULL) != WF_OK)
        return;
    resend->head.ack = head.ack;
    resend->head.step = head.step;
    wf_net_send_loose(n, p->transport, &p->route, resend);
}

/* Whether a message may go to its link: allowed here, and its payload whole (N3). */
static bool is_sound(wf_net *n, const peer *p, const wf_msg *m, int64_t now_ns)
{
    const wf_kind_row *row = wf_kind_find(m->head.kind);
    char text[32];
    wf_err err;

    if (m->head.version != WF_WIRE_VERSION || !row || !(row->from & 1u << p->pub.task.role) ||
        !(row->to & 1u << n->conf.self.role)) {
        wf_net_count_bad(n, WF_BAD_KIND, peer_name(p, text, sizeof text),
                         wf_kind_name(m->head.kind), now_ns);
        return false;
    }
    if (row->frames_limit > 0 && wf_parts_verify(m, &err) != WF_OK) {
        wf_net_count_bad(n, WF_BAD_PAYLOAD, peer_name(p, text, sizeof text), err.what, now_ns);
        return false;
    }
    return true;
}

/* A message of the link, in sequence or not. Takes *m. */
static void on_linked(wf_net *n, peer *p, wf_msg **m, int64_t now_ns)
{
    uint16_t kind = (*m)->head.kind;

    if (!is_sound(n, p, *m, now_ns))
        return;
    p->pub.last_heard_ns = now_ns;
    if (!wf_link_may_hold(p->link, (*m)->head.sequence)) {
        wf_hello_reset(n, p->transport, &p->route, (*m)->head.sequence);
        return;
    }
    wf_net_will_send(n, p);
    if (kind == WF_RESEND) {
        wf_link_on_resend(p->link, now_ns, &(*m)->head);
        return;
    }
    if (kind == WF_PING)
        on_ping(n, p, *m, now_ns);
    wf_link_on_message(p->link, now_ns, m);
    wf_net_activate(n, p);
}

static void on_dialled(wf_net *n, peer *p, wf_msg **m, int64_t now_ns)
{
    switch ((*m)->head.kind) {
    case WF_WELCOME:
        wf_hello_on_welcome(n, p, *m, now_ns);
        break;
    case WF_REFUSE:
        wf_hello_on_refuse(n, p, *m, now_ns);
        break;
    case WF_RESET:
        wf_hello_on_reset(n, p, *m);
        break;
    default:
        if (p->link && (*m)->head.incarnation == p->pub.incarnation)
            on_linked(n, p, m, now_ns);
        else if (p->link && now_ns >= p->hello_at_ns)
            wf_hello_say(n, p, now_ns); /* another incarnation speaks: find out */
    }
    wf_msg_free(&n->pool, m);
}

/* A beat comes by a connection of its own, so it brings no route. */
static void on_beat(wf_net *n, peer *p, wf_msg **m, int64_t now_ns)
{
    p->pub.last_heard_ns = now_ns;
    wf_msg_free(&n->pool, &p->beat);
    p->beat = *m;
    *m = NULL;
    wf_net_activate(n, p);
}

static void on_accepted(wf_net *n, wf_transport *t, const wf_route *from, wf_msg **m,
                        int64_t now_ns)
{
    uint16_t kind = (*m)->head.kind;
    peer *p;

    if (kind == WF_HELLO) {
        wf_hello_on_hello(n, t, from, *m, now_ns);
        wf_msg_free(&n->pool, m);
        return;
    }
    p = wf_net_accepted(n, (*m)->head.incarnation);
    if (p && kind == WF_BEAT) {
        on_beat(n, p, m, now_ns);
    } else if (p && kind == WF_BYE) {
        wf_hello_lose(n, p);
    } else if (p && p->link && kind == WF_RESET) {
        wf_hello_on_reset(n, p, *m);
    } else if (p && p->link) {
        p->transport = t; /* it may have come back by another connection */
        p->route = *from;
        on_linked(n, p, m, now_ns);
    } else if (kind == WF_BEAT && n->conf.on_stranger) {
        n->conf.on_stranger(n->conf.stranger_arg, *m, now_ns);
    } else if (kind != WF_BEAT && kind != WF_RESET && kind != WF_BYE) {
        wf_hello_reset(n, t, from, (*m)->head.sequence);
    }
    wf_msg_free(&n->pool, m);
}

static void receive_all(wf_net *n, int64_t now_ns)
{
    wf_route from;
    wf_msg *m;

    for (size_t i = 0; i < n->n_listeners; i++) {
        wf_transport *t = n->listeners[i];

        for (int k = 0; k < MOST_MESSAGES_A_POLL; k++) {
            m = t->ops->receive(t, &n->pool, &from);
            if (!m)
                break;
            on_accepted(n, t, &from, &m, now_ns);
        }
    }
    for (size_t i = 0; i < n->n_dialled; i++) {
        peer *p = n->dialled[i];

        for (int k = 0; k < MOST_MESSAGES_A_POLL; k++) {
            m = p->transport->ops->receive(p->transport, &n->pool, &from);
            if (!m)
                break;
            on_dialled(n, p, &m, now_ns);
        }
    }
}

/* ---- what leaves ---- */

void wf_net_ping(wf_net *n, peer *p, int64_t now_ns)
{
    wf_msg *ping = NULL;

    if (wf_msg_new(&n->pool, WF_PING, &ping, NULL) != WF_OK)
        return;
    wf_link_ping(p->link, now_ns, &ping->head);
    wf_net_send_loose(n, p->transport, &p->route, ping);
    p->last_sent_ns = now_ns;
}

/* A peer that does not answer is pinged less and less often: it may compute for an hour, and what
 * it is sent meanwhile waits in its queue. */
static int64_t ping_wait(const wf_net *n, const peer *p, int64_t now_ns)
{
    return WF_MAX(n->conf.ping_ns, (now_ns - p->pub.last_heard_ns) / WF_NET_SILENCE_PART);
}

static int64_t ping_at(const wf_net *n, const peer *p, int64_t now_ns)
{
    int64_t silent_ns = now_ns - p->pub.last_heard_ns;
    int64_t link_ns = wf_link_deadline(p->link),
            idle_ns = p->last_sent_ns + ping_wait(n, p, now_ns);

    /* Of a peer that is silent nothing is asked more often for having messages in flight. */
    return silent_ns > WF_NET_SILENCE_PART * n->conf.ping_ns ? idle_ns : WF_MIN(link_ns, idle_ns);
}

static void flush_peer(wf_net *n, peer *p, int64_t now_ns)
{
    const wf_msg *m;

    while ((m = wf_link_next(p->link, now_ns))) {
        if (p->transport->ops->send(p->transport, &p->route, m, NULL) != WF_OK) {
            wf_link_unsent(p->link);
            wf_net_will_send(n, p);
            wf_net_wake_at(n, now_ns + RETRY_NS);
            return;
        }
        p->last_sent_ns = now_ns;
    }
    if (now_ns >= ping_at(n, p, now_ns))
        wf_net_ping(n, p, now_ns);
    wf_net_wake_at(n, ping_at(n, p, now_ns));
}

void wf_net_flush(wf_net *n, int64_t now_ns)
{
    peer *list = n->sending;

    n->sending = NULL;
    while (list) {
        peer *p = list;

        list = p->next_sending;
        p->is_sending = false;
        if (p->link)
            flush_peer(n, p, now_ns);
    }
}

/* When to say hello to a dialled peer: to ask for a link, or whether it still knows the one that it
 * says nothing over. */
static int64_t hello_at(const wf_net *n, const peer *p)
{
    return p->link ? WF_MAX(p->hello_at_ns, p->pub.last_heard_ns + 2 * n->conf.ping_ns)
                   : p->hello_at_ns;
}

/* A dialled peer's connection, and what is asked of a peer that does not answer. */
static void tend(wf_net *n, peer *p, int64_t now_ns)
{
    bool fresh = false;

    if (now_ns >= p->tend_at_ns) {
        p->tend_at_ns = now_ns + TEND_NS;
        fresh = p->transport->ops->tend && p->transport->ops->tend(p->transport, now_ns);
    }
    if (fresh) {
        p->hello_wait_ns = n->conf.hello_ns;
        wf_hello_say(n, p, now_ns);
    }
    if (now_ns >= hello_at(n, p))
        wf_hello_say(n, p, now_ns);
    if (fresh && p->link)
        wf_net_ping(n, p, now_ns); /* what was lost with the old connection is found at once */
}

/* Does what is due for one peer, and says when it has to be looked at again. */
static int64_t look_at(wf_net *n, peer *p, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    if (p->dialled && !p->refused) {
        tend(n, p, now_ns);
        next_ns = WF_MIN(p->transport->ops->tend ? p->tend_at_ns : INT64_MAX, hello_at(n, p));
    }
    if (!p->dialled && p->link && !p->pub.keep && now_ns - p->pub.last_heard_ns >= n->conf.gone_ns)
        wf_hello_lose(n, p);
    if (!p->link)
        return next_ns;
    if (now_ns >= ping_at(n, p, now_ns))
        wf_net_ping(n, p, now_ns);
    return WF_MIN(next_ns, ping_at(n, p, now_ns));
}

static void look_at_all(wf_net *n, int64_t now_ns)
{
    bool at_once = n->soonest_ns == 0; /* a peer is to be dialled */

    if (!at_once && (now_ns < n->soonest_ns || now_ns < n->scanned_ns + SCAN_NS))
        return;
    n->scanned_ns = now_ns;
    n->soonest_ns = now_ns + n->conf.ping_ns;
    for (size_t i = 0; i < n->n_listeners; i++)
        if (n->listeners[i]->ops->tend)
            n->listeners[i]->ops->tend(n->listeners[i], now_ns);
    for (size_t i = 0; i < n->n_peers; i++)
        wf_net_wake_at(n, look_at(n, n->peers[i], now_ns));
}

void wf_net_poll(wf_net *n, int64_t now_ns)
{
    receive_all(n, now_ns);
    look_at_all(n, now_ns);
    wf_net_flush(n, now_ns);
}

/* ---- events ---- */

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
    if (p->beat) {
        ev->kind = WF_EV_BEAT;
        ev->msg = p->beat;
        p->beat = NULL;
        return true;
    }
    if (p->link && (ev->msg = wf_link_take(p->link, now_ns))) {
        ev->kind = WF_EV_MESSAGE;
        wf_net_wake_at(n, wf_link_deadline(p->link));
        if (wf_link_ping_due(p->link, now_ns))
            wf_net_will_send(n, p);
        return true;
    }
    return false;
}

bool wf_net_event(wf_net *n, int64_t now_ns, wf_event *ev)
{
    *ev = (wf_event){0};
    while (n->active) {
        peer *p = n->active;

        n->active = p->next_active;
        if (!n->active)
            n->active_end = &n->active;
        p->is_active = false;
        if (p->gone && !p->down_owed) {
            wf_net_remove_peer(n, p);
            continue;
        }
        if (peer_event(n, p, now_ns, ev)) {
            wf_net_activate(n, p); /* at the end: no peer starves another */
            return true;
        }
    }
    return false;
}

int64_t wf_net_deadline(const wf_net *n, int64_t now_ns)
{
    return n->soonest_ns == 0 ? now_ns
                              : WF_MAX(now_ns, WF_MAX(n->soonest_ns, n->scanned_ns + SCAN_NS));
}

wf_transport *const *wf_net_transports(const wf_net *n, size_t *count)
{
    *count = n->n_transports;
    return n->transports;
}
