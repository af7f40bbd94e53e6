/* SPDX-License-Identifier: Apache-2.0 */
/* lib/client.c */
#include "lib/client.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/requests.h"
#include "common/wire/wait.h"
#include "common/wire/wires.h"
#include "common/wire/zeromq.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECTIONS = 2049 }; /* a cluster has up to 1024 ps and as many workers */

struct wf_client {
    wf_wires *wires;
    wf_net *net;
    wf_requests requests;
    Weft__Tasks *tasks; /* of the cluster; NULL: not told yet */
    wf_peer *entry;
    wf_peer **ps, **workers; /* by their numbers; NULL: not dialled */
    int64_t timeout_ms;
    uint32_t connections; /* that the process's limit on open files has room for */
};

static wf_status dial(wf_client *c, wf_task task, const char *address, wf_peer **out, wf_err *err)
{
    wf_transport *t = NULL;

    WF_TRY(wf_wires_dial(c->wires, address, &t, err));
    return wf_net_dial(c->net, task, address, &t, out, err);
}

/* Whether the number of a port ends it. */
static bool has_port(const char *address)
{
    const char *colon = strrchr(address, ':');
    char *end = NULL;
    unsigned long port =
        colon && isdigit((unsigned char)colon[1]) ? strtoul(colon + 1, &end, 10) : 0;

    return port >= 1 && port <= 65535 && !*end;
}

/* Of a task with several addresses, "tcp://...|ipc://...", each. */
static bool have_ports(const char *addresses)
{
    char one[WF_ADDRESSES_MAX];

    for (const char *at = addresses; *at; at += strspn(at, "|")) {
        size_t n = strcspn(at, "|");

        snprintf(one, sizeof one, "%.*s", (int)n, at);
        if (strncmp(one, "tcp://", 6) == 0 && !has_port(one + 6))
            return false;
        at += n;
    }
    return true;
}

/* The address as the wire has it. */
static wf_status complete(const char *address, char out[WF_ADDRESSES_MAX], wf_err *err)
{
    int n =
        snprintf(out, WF_ADDRESSES_MAX, "%s%s", strstr(address, "://") ? "" : "tcp://", address);

    if (!address[0] || n < 0 || n >= WF_ADDRESSES_MAX || !have_ports(out))
        return wf_fail(err, WF_INVALID, "give HOST:PORT of a master, ps or worker",
                       "\"%.80s\" is no address", address);
    return WF_OK;
}

static wf_status begin(wf_client *c, const char *address, wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();
    char full[WF_ADDRESSES_MAX];

    WF_TRY(complete(address, full, err));
    conf.self = (wf_task){WF_ROLE_CLIENT, (uint32_t)getpid()};
    conf.incarnation = wf_random_id();
    conf.pid = (uint64_t)getpid();
    conf.cluster = ""; /* whichever it is */
    conf.hello_ns = 20 * WF_NS_PER_MS;
    WF_TRY(wf_net_new(&conf, &c->net, err));
    c->requests.net = c->net;
    c->connections = wf_zmq_most(CONNECTIONS);
    WF_TRY(wf_wires_new(c->connections, &c->wires, err));
    wf_wires_stream(c->wires, false); /* connections that ps and workers have among each other */
    return dial(c, (wf_task){WF_ROLE_NONE, 0}, full, &c->entry, err);
}

/* ---- calls ---- */

typedef struct call {
    wf_peer *to;
    uint32_t number;
    wf_msg *answer;
    bool refused;
} call;

static wf_status on_event(wf_client *c, wf_event *ev, call *k, wf_err *err)
{
    void *user;

    if (ev->kind == WF_EV_UP)
        return wf_requests_on_up(&c->requests, ev->peer, err);
    if (ev->kind == WF_EV_REFUSED && ev->peer == k->to) {
        k->refused = true;
        *err = ev->err;
        return ev->err.status;
    }
    if (ev->kind != WF_EV_MESSAGE)
        return WF_OK;
    if (!k->answer && ev->msg->head.request == k->number &&
        wf_requests_answered(&c->requests, ev->peer, k->number, &user)) {
        k->answer = ev->msg;
        ev->msg = NULL;
    }
    wf_net_free_msg(c->net, &ev->msg);
    return WF_OK;
}

static wf_status is_late(const wf_client *c, const wf_peer *p, wf_err *err)
{
    char who[32];

    if (p->task.role == WF_ROLE_NONE)
        snprintf(who, sizeof who, "any task");
    else
        wf_task_str(p->task, who, sizeof who);
    if (p->delay[0])
        return wf_fail(err, WF_AGAIN, "try again later", "%s at %s lets nobody in: %s", who,
                       p->address, p->delay);
    return wf_fail(err, WF_TIMEOUT,
                   p->up ? "it may still be carried out; see what is up with: weft status"
                         : "is it up? see it with: weft status",
                   "no answer from %s at %s in %lld ms", who, p->address, (long long)c->timeout_ms);
}

static wf_status wait_for(wf_client *c, call *k, wf_err *err)
{
    int64_t end_ns = wf_now_ns() + c->timeout_ms * WF_NS_PER_MS;

    for (;;) {
        int64_t now_ns = wf_now_ns(), wait_ns;
        wf_transport *const *transports;
        wf_event ev;
        size_t n;

        wf_net_poll(c->net, now_ns);
        while (wf_net_event(c->net, now_ns, &ev))
            WF_TRY(on_event(c, &ev, k, err));
        wf_net_flush(c->net, now_ns);
        if (k->answer)
            return WF_OK;
        if (now_ns >= end_ns)
            return is_late(c, k->to, err);
        wait_ns = WF_MIN(wf_net_deadline(c->net, now_ns), end_ns) - now_ns;
        transports = wf_net_transports(c->net, &n);
        wf_wait(transports, n, -1, wf_ceil_div(WF_MAX(wait_ns, (int64_t)1), WF_NS_PER_MS), NULL);
    }
}

/* A peer that has refused is not dialled again by the net: it is forgotten, unless it is the entry.
 */
static wf_status call_peer(wf_client *c, wf_peer **to, wf_msg **m, wf_msg **answer, wf_err *err)
{
    call k = {.to = *to};
    wf_status rc = wf_requests_send(&c->requests, *to, m, &k, &k.number, err);

    if (rc == WF_OK)
        rc = wait_for(c, &k, err);
    wf_requests_drop(&c->requests, k.number);
    if (rc != WF_OK)
        wf_net_free_msg(c->net, &k.answer);
    if (k.refused && *to != c->entry)
        wf_net_hang_up(c->net, to);
    *answer = k.answer;
    return rc;
}

static wf_status find_peer(wf_client *c, wf_task to, wf_peer ***out, wf_err *err)
{
    bool is_ps = to.role == WF_ROLE_PS;
    wf_peer **at = is_ps ? &c->ps[to.index] : &c->workers[to.index];

    wf_assert(to.index < wf_client_count(c, to.role));
    *out = at;
    if (*at)
        return WF_OK;
    if (wf_task_same(c->entry->task, to)) {
        *at = c->entry;
        return WF_OK;
    }
    return dial(c, to, is_ps ? c->tasks->ps[to.index] : c->tasks->workers[to.index], at, err);
}

wf_status wf_client_call(wf_client *c, wf_task to, wf_msg **m, wf_msg **answer, wf_err *err)
{
    wf_peer **peer = NULL;
    wf_status rc;

    *answer = NULL;
    rc = find_peer(c, to, &peer, err);
    if (rc == WF_OK)
        rc = call_peer(c, peer, m, answer, err);
    wf_net_free_msg(c->net, m);
    return rc;
}

/* ---- beginning and end ---- */

static wf_status take_tasks(wf_client *c, const wf_msg *m, wf_err *err)
{
    if (m->head.kind != WF_TASKS)
        return wf_fail(err, WF_PROTO, "upgrade it", "%s at %s answers a session with %s",
                       wf_role_name(c->entry->task.role), c->entry->address,
                       wf_kind_name(m->head.kind));
    WF_TRY(wf_control_get(m, &weft__tasks__descriptor, &c->tasks, err));
    if (c->tasks->n_ps + c->tasks->n_workers >= c->connections)
        return wf_fail(err, WF_FULL, "raise it: ulimit -n 65536",
                       "the cluster has %zu ps and %zu workers, and the limit on open files has "
                       "room for %u connections",
                       c->tasks->n_ps, c->tasks->n_workers, c->connections);
    c->ps = calloc(c->tasks->n_ps + 1, sizeof *c->ps);
    c->workers = calloc(c->tasks->n_workers + 1, sizeof *c->workers);
    return c->ps && c->workers ? WF_OK : wf_fail_nomem(err, c->tasks->n_ps * sizeof *c->ps);
}

static wf_status ask_tasks(wf_client *c, wf_err *err)
{
    wf_msg *m = NULL, *answer = NULL;
    wf_status rc;

    WF_TRY(wf_net_msg(c->net, WF_TASKS_ASK, &m, err));
    rc = call_peer(c, &c->entry, &m, &answer, err);
    if (rc == WF_OK)
        rc = take_tasks(c, answer, err);
    wf_net_free_msg(c->net, &answer);
    return rc;
}

wf_status wf_client_open(const char *address, int64_t timeout_ms, wf_client **out, wf_err *err)
{
    wf_client *c = calloc(1, sizeof *c);
    wf_status rc;

    *out = NULL;
    if (!c)
        return wf_fail_nomem(err, sizeof *c);
    c->timeout_ms = timeout_ms;
    rc = begin(c, address, err);
    if (rc == WF_OK)
        rc = ask_tasks(c, err);
    if (rc != WF_OK)
        wf_client_close(&c);
    *out = c;
    return rc;
}

void wf_client_close(wf_client **c)
{
    enum { LINGER_MS = 100 };

    if (!*c)
        return;
    if ((*c)->net)
        wf_requests_close(&(*c)->requests);
    wf_net_free(&(*c)->net, LINGER_MS);
    wf_wires_free(&(*c)->wires);
    wf_control_free(&(*c)->tasks);
    free((*c)->ps);
    free((*c)->workers);
    free(*c);
    *c = NULL;
}

wf_task wf_client_entry(const wf_client *c)
{
    return c->entry->task;
}

uint32_t wf_client_count(const wf_client *c, wf_role role)
{
    return (uint32_t)(role == WF_ROLE_PS ? c->tasks->n_ps : c->tasks->n_workers);
}

const char *wf_client_name(const wf_client *c, wf_task task, char *text, size_t size)
{
    const char *address = c->entry->address;

    if (task.role == WF_ROLE_PS)
        address = c->tasks->ps[task.index];
    if (task.role == WF_ROLE_WORKER)
        address = c->tasks->workers[task.index];
    snprintf(text, size, "%s", wf_role_name(task.role));
    if (task.role != WF_ROLE_MASTER)
        snprintf(text + strlen(text), size - strlen(text), " %u", task.index);
    snprintf(text + strlen(text), size - strlen(text), " at %s", address);
    return text;
}

wf_status wf_client_msg(wf_client *c, uint16_t kind, wf_msg **out, wf_err *err)
{
    return wf_net_msg(c->net, kind, out, err);
}

void wf_client_free_msg(wf_client *c, wf_msg **m)
{
    wf_net_free_msg(c->net, m);
}
