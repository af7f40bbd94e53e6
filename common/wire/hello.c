/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/hello.c - hello, welcome, refuse, reset: how links come to be and are given up.
 *
 * A dialler draws its sequence start anew whenever the other side's incarnation turns out to be
 * another than before, so that messages still on their way to the old one cannot pass as messages
 * of the new link. Hellos are counted (in the header's `request`), for one that comes late must not
 * replace the link that a newer one has made. Whoever is sent what cannot be of its link says
 * reset: two sides that hold different links would else wait for each other for ever.
 */
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/net_state.h"

#include <stdio.h>
#include <string.h>

wf_link_conf wf_hello_link_conf(const wf_net *n, const peer *p)
{
    return (wf_link_conf){
        .incarnation = n->conf.incarnation,
        .first = p->first,
        .peer_first = p->peer_first,
        .credit_bytes = n->conf.credit_bytes,
        .probe_ns = n->conf.probe_ns,
        .ack_delay_ns = n->conf.ack_delay_ns,
    };
}

uint64_t wf_hello_first(const wf_net *n)
{
    return (n->conf.random_id(n->conf.random_arg) >> 2) + 1;
}

/* Kind, sequence, request and ack are those of `head`. */
static void send_body(wf_net *n, wf_transport *t, const wf_route *to, const wf_header *head,
                      const ProtobufCMessage *body)
{
    wf_msg *m = NULL;

    if (wf_msg_new(&n->pool, head->kind, &m, NULL) != WF_OK)
        return;
    m->head.sequence = head->sequence;
    m->head.request = head->request;
    m->head.ack = head->ack;
    if (body && wf_control_put(m, body, NULL) != WF_OK) {
        wf_msg_free(&n->pool, &m);
        return;
    }
    wf_net_send_loose(n, t, to, m);
}

void wf_hello_say(wf_net *n, peer *p, int64_t now_ns)
{
    Weft__Hello body = WEFT__HELLO__INIT;

    body.version_least = body.version_most = WF_WIRE_VERSION;
    body.cluster = n->cluster;
    body.role = n->conf.self.role;
    body.index = n->conf.self.index;
    body.pid = n->conf.pid;
    body.peer_role = p->pub.task.role;
    body.peer_index = p->pub.task.index;
    body.release = (char *)WEFT_VERSION;
    send_body(n, p->transport, &p->route,
              &(wf_header){.kind = WF_HELLO,
                           .sequence = p->first,
                           .request = p->attempt,
                           .ack = p->link ? p->peer_first : 0},
              &body.base);
    p->last_sent_ns = now_ns;
    p->hello_at_ns = now_ns + p->hello_wait_ns;
    if (p->link) /* the longer it is silent, the more seldom it is asked */
        p->hello_at_ns += (now_ns - p->pub.last_heard_ns) / WF_NET_SILENCE_PART;
    p->hello_wait_ns = WF_MIN(2 * p->hello_wait_ns, 10 * n->conf.hello_ns);
}

static void say_welcome(wf_net *n, peer *p, int64_t now_ns)
{
    Weft__Welcome body = WEFT__WELCOME__INIT;

    body.version = WF_WIRE_VERSION;
    body.echo = p->peer_first;
    body.release = (char *)WEFT_VERSION;
    if (p->asks_name) {
        body.role = n->conf.self.role;
        body.index = n->conf.self.index;
    }
    send_body(n, p->transport, &p->route, &(wf_header){.kind = WF_WELCOME, .sequence = p->first},
              &body.base);
    p->last_sent_ns = now_ns;
}

static void refuse(wf_net *n, wf_transport *t, const wf_route *to, uint64_t echo, const wf_err *why)
{
    Weft__Refuse body = WEFT__REFUSE__INIT;

    body.echo = echo;
    body.status = why->status;
    body.what = (char *)why->what;
    body.hint = (char *)why->hint;
    send_body(n, t, to, &(wf_header){.kind = WF_REFUSE}, &body.base);
}

/* Opens the link of a peer whose both sequence starts are known. Messages that waited go first. */
static void open_link(wf_net *n, peer *p, int64_t now_ns)
{
    wf_link_conf conf = wf_hello_link_conf(n, p);

    wf_link_free(&p->link);
    if (p->waiting) {
        p->link = p->waiting;
        p->waiting = NULL;
        wf_link_begin(p->link, &conf);
    } else if (wf_link_new(&conf, &n->pool, &p->link, NULL) != WF_OK) {
        return; /* no memory: the hello comes again */
    }
    p->pub.up = true;
    p->up_owed = true;
    p->delay[0] = 0;
    p->pub.last_heard_ns = now_ns;
    wf_net_activate(n, p);
    wf_net_will_send(n, p);
}

void wf_hello_lose(wf_net *n, peer *p)
{
    bool told = p->pub.up && !p->up_owed; /* the role has heard of the link */

    p->resent = wf_net_resent_bytes(&p->pub);
    wf_link_free(&p->link);
    wf_link_free(&p->waiting);
    p->up_owed = false;
    p->pub.up = false;
    p->down_owed = p->down_owed || told;
    if (p->dialled) {
        p->first = wf_hello_first(n);
        p->attempt = n->attempts++;
        p->hello_at_ns = 0;
        p->hello_wait_ns = n->conf.hello_ns;
        wf_net_wake_at(n, 0);
    } else {
        p->gone = true;
        wf_net_unname_accepted(n, p);
    }
    wf_net_activate(n, p);
}

/* A client may have an address and nothing else: the welcome says whose it is. Of the cluster's
 * other tasks it knows what they are, and not the cluster's name. */
static bool asks_name(const Weft__Hello *body)
{
    return body->role == WF_ROLE_CLIENT && body->peer_role == WF_ROLE_NONE;
}

static wf_status check_hello(const wf_net *n, const Weft__Hello *body, wf_err *err)
{
    char me[32], them[32], hint[48];

    wf_task_str(n->conf.self, me, sizeof me);
    wf_task_str((wf_task){body->role, body->index}, them, sizeof them);
    snprintf(hint, sizeof hint, "upgrade %s",
             body->version_least > WF_WIRE_VERSION
                 ? (n->conf.self.role == WF_ROLE_MASTER ? "the master" : me)
             : body->role == WF_ROLE_CLIENT ? "the command weft"
                                            : them);
    if (body->version_least > WF_WIRE_VERSION || body->version_most < WF_WIRE_VERSION)
        return wf_fail(err, WF_MISMATCH, hint,
                       "%s (weft %s) speaks protocol %u to %u, %s (weft %s) speaks %d", them,
                       body->release, body->version_least, body->version_most, me, WEFT_VERSION,
                       WF_WIRE_VERSION);
    if (asks_name(body))
        return WF_OK;
    if (strcmp(body->cluster, n->cluster) != 0 &&
        (body->role != WF_ROLE_CLIENT || body->cluster[0] != 0))
        return wf_fail(err, WF_MISMATCH, "check the addresses in cluster.yaml",
                       "%s belongs to cluster \"%s\", %s here to cluster \"%s\"", them,
                       body->cluster, me, n->cluster);
    if (body->peer_role != (uint32_t)n->conf.self.role || body->peer_index != n->conf.self.index)
        return wf_fail(err, WF_MISMATCH, "check the addresses in cluster.yaml",
                       "%s dialled %s %u and reached %s", them,
                       wf_role_name((wf_role)body->peer_role), body->peer_index, me);
    if (body->role >= WF_N_ROLES || !(wf_kind_find(WF_HELLO)->from & 1u << body->role))
        return wf_fail(err, WF_PROTO, NULL, "a hello from role number %u", body->role);
    return WF_OK;
}

void wf_hello_reset(wf_net *n, wf_transport *t, const wf_route *to, uint64_t sequence)
{
    wf_msg *reset = NULL;

    if (wf_msg_new(&n->pool, WF_RESET, &reset, NULL) != WF_OK)
        return;
    reset->head.ack = sequence;
    wf_net_send_loose(n, t, to, reset);
}

/* A new link for a task that is let in. */
static wf_status take_in(wf_net *n, wf_transport *t, const wf_route *from, const wf_msg *m,
                         const wf_hello *hello, bool asks, int64_t now_ns, wf_err *err)
{
    peer *p = NULL;
    wf_status rc;

    WF_TRY(wf_net_add_peer(n, false, hello->task, &p, err));
    p->pub.incarnation = hello->incarnation;
    p->pub.pid = hello->pid;
    p->transport = t;
    p->route = *from;
    p->first = wf_hello_first(n);
    p->peer_first = m->head.sequence;
    p->attempt = m->head.request;
    p->asks_name = asks;
    rc = wf_net_name_accepted(n, p, err);
    if (rc != WF_OK) {
        wf_net_remove_peer(n, p);
        return rc;
    }
    open_link(n, p, now_ns);
    say_welcome(n, p, now_ns);
    return WF_OK;
}

/* A hello over a link that is known: our welcome was lost, or it asks, perhaps by a new connection.
 * The ping finds what was lost with the old one. */
static void greet_again(wf_net *n, peer *p, wf_transport *t, const wf_route *from, int64_t now_ns)
{
    p->transport = t;
    p->route = *from;
    p->pub.last_heard_ns = now_ns;
    say_welcome(n, p, now_ns);
    wf_net_ping(n, p, now_ns);
}

static void accept_hello(wf_net *n, wf_transport *t, const wf_route *from, const wf_msg *m,
                         const Weft__Hello *body, int64_t now_ns)
{
    wf_hello hello = {
        {(wf_role)body->role, body->index}, m->head.incarnation, body->pid, body->release, now_ns};
    peer *p = wf_net_accepted(n, m->head.incarnation);
    char text[32];
    wf_err err;
    wf_status rc;

    if (p && p->link && p->peer_first == m->head.sequence &&
        (!m->head.ack || m->head.ack == p->first)) {
        greet_again(n, p, t, from, now_ns);
        return;
    }
    if (m->head.ack) {
        /* It speaks of a link that is forgotten here. A new one must begin at a new start: the
         * messages of the old one that are under way would be taken for its own. */
        wf_hello_reset(n, t, from, m->head.sequence);
        return;
    }
    if (p && p->link && m->head.request <= p->attempt)
        return; /* it was on its way for so long that a newer one is known */
    rc = check_hello(n, body, &err);
    if (rc == WF_OK && n->conf.admit)
        rc = n->conf.admit(n->conf.admit_arg, &hello, &err);
    if (rc == WF_OK && p)
        wf_hello_lose(n, p);
    if (rc == WF_OK)
        rc = take_in(n, t, from, m, &hello, asks_name(body), now_ns, &err);
    if (rc == WF_OK)
        return;
    if (rc == WF_NOMEM)
        rc = err.status = WF_AGAIN; /* there may be memory at its next hello */
    wf_net_count_bad(n, rc == WF_AGAIN ? WF_BAD_CROWD : WF_BAD_HELLO,
                     wf_task_str(hello.task, text, sizeof text), err.what, now_ns);
    if (rc != WF_AGAIN && n->conf.on_refused)
        n->conf.on_refused(n->conf.admit_arg, &hello, &err);
    refuse(n, t, from, m->head.sequence, &err);
}

void wf_hello_on_hello(wf_net *n, wf_transport *t, const wf_route *from, const wf_msg *m,
                       int64_t now_ns)
{
    Weft__Hello *body = NULL;
    wf_err err = {0};

    if (m->head.incarnation == 0 || m->head.sequence == 0 ||
        wf_control_get(m, &weft__hello__descriptor, &body, &err) != WF_OK) {
        wf_net_count_bad(n, WF_BAD_BODY, "a hello", err.what, now_ns);
        return;
    }
    accept_hello(n, t, from, m, body, now_ns);
    wf_control_free(&body);
}

static void be_refused(wf_net *n, peer *p, wf_status status, const char *what, const char *hint)
{
    p->refused = true;
    wf_fail(&p->refusal, status == WF_OK ? WF_PROTO : status, hint, "%s", what);
    wf_net_activate(n, p);
}

/* Who answered a dialler that did not know it. */
static bool take_name(wf_net *n, peer *p, const Weft__Welcome *body)
{
    if (p->pub.task.role != WF_ROLE_NONE)
        return true;
    if (body->role != WF_ROLE_MASTER && body->role != WF_ROLE_PS && body->role != WF_ROLE_WORKER) {
        be_refused(n, p, WF_MISMATCH, "the task that was dialled does not say what it is",
                   "upgrade it");
        return false;
    }
    p->pub.task = (wf_task){(wf_role)body->role, body->index};
    return true;
}

void wf_hello_on_welcome(wf_net *n, peer *p, const wf_msg *m, int64_t now_ns)
{
    Weft__Welcome *body = NULL;
    bool known = p->link != NULL, named;
    wf_err err = {0};

    if (wf_control_get(m, &weft__welcome__descriptor, &body, &err) != WF_OK) {
        wf_net_count_bad(n, WF_BAD_BODY, p->address, err.what, now_ns);
        return;
    }
    if (body->echo != p->first) {
        wf_control_free(&body); /* the answer to an older hello */
        return;
    }
    named = take_name(n, p, body);
    wf_control_free(&body);
    if (!named)
        return;
    if (known && p->pub.incarnation == m->head.incarnation && p->peer_first == m->head.sequence) {
        p->pub.last_heard_ns = now_ns;
        return;
    }
    if (known) { /* another life, or it forgot us: what is on its way must not count here */
        wf_hello_lose(n, p);
        return;
    }
    p->pub.incarnation = m->head.incarnation;
    p->peer_first = m->head.sequence;
    open_link(n, p, now_ns);
}

/* A place that is not free yet is asked for again; any other refusal is final. */
void wf_hello_on_refuse(wf_net *n, peer *p, const wf_msg *m, int64_t now_ns)
{
    Weft__Refuse *body = NULL;
    wf_err err = {0};

    if (wf_control_get(m, &weft__refuse__descriptor, &body, &err) != WF_OK) {
        wf_net_count_bad(n, WF_BAD_BODY, p->address, err.what, now_ns);
        return;
    }
    if (body->echo == p->first && !p->refused && body->status == WF_AGAIN) {
        snprintf(p->delay, sizeof p->delay, "%.*s", (int)sizeof p->delay - 1, body->what);
    } else if (body->echo == p->first && !p->refused) {
        be_refused(n, p, (wf_status)body->status, body->what, body->hint);
    }
    wf_control_free(&body);
}

void wf_hello_on_reset(wf_net *n, peer *p, const wf_msg *m)
{
    /* Only if it speaks of this very link, by its start or by a message: an old one may still be
     * about. */
    if (p->link && (m->head.ack == p->first || wf_link_in_flight(p->link, m->head.ack)))
        wf_hello_lose(n, p);
}
