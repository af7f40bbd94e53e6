/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/ask.c */
#include "cmd/cli/ask.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/net.h"
#include "common/wire/wait.h"
#include "common/wire/wires.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct wf_ask {
    wf_wires *wires; /* NULL: another way */
    wf_ask_way way;
    wf_net *net;
    wf_peer *master;
    uint32_t request;
    char address[WF_ADDRESSES_MAX];
    bool (*enough)(void);
};

static wf_status dial_wires(void *ask, wf_transport **out, wf_err *err)
{
    wf_ask *a = ask;

    WF_TRY(wf_wires_new(2, &a->wires, err));
    return wf_wires_dial(a->wires, a->address, out, err);
}

static wf_status wait_wires(void *ask, wf_net *net, int64_t ms, wf_err *err)
{
    size_t n;

    (void)ask, (void)err;
    wf_wait(wf_net_transports(net, &n), 1, -1, ms, NULL);
    return WF_OK;
}

static wf_status dial(wf_ask *a, const wf_cluster_conf *conf, wf_err *err)
{
    wf_net_conf net = wf_net_defaults();
    wf_transport *t = NULL;

    net.self = (wf_task){WF_ROLE_CLIENT, (uint32_t)getpid()};
    net.incarnation = wf_random_id();
    net.pid = (uint64_t)getpid();
    net.cluster = conf->name;
    net.hello_ns = 20 * WF_NS_PER_MS;
    WF_TRY(wf_net_new(&net, &a->net, err));
    WF_TRY(a->way.dial(a->way.arg, &t, err));
    return wf_net_dial(a->net, (wf_task){WF_ROLE_MASTER, 0}, conf->master.address, &t, &a->master,
                       err);
}

wf_status wf_ask_open_by(const wf_cluster_conf *conf, const wf_ask_way *way, wf_ask **out,
                         wf_err *err)
{
    wf_ask *a = calloc(1, sizeof *a);
    wf_status rc;

    if (!a)
        return wf_fail_nomem(err, sizeof *a);
    a->way = way ? *way : (wf_ask_way){a, dial_wires, wait_wires};
    snprintf(a->address, sizeof a->address, "%s", conf->master.address);
    rc = dial(a, conf, err);
    if (rc != WF_OK)
        wf_ask_close(&a);
    *out = a;
    return rc;
}

wf_status wf_ask_open(const wf_cluster_conf *conf, wf_ask **out, wf_err *err)
{
    return wf_ask_open_by(conf, NULL, out, err);
}

void wf_ask_close(wf_ask **a)
{
    if (!*a)
        return;
    wf_net_free(&(*a)->net, 100);
    wf_wires_free(&(*a)->wires);
    free(*a);
    *a = NULL;
}

wf_net *wf_ask_net(wf_ask *a, wf_peer **master)
{
    *master = a->master;
    return a->net;
}

void wf_ask_until(wf_ask *a, bool (*enough)(void))
{
    a->enough = enough;
}

static wf_status send(wf_ask *a, uint16_t kind, const ProtobufCMessage *body, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(wf_net_msg(a->net, kind, &m, err));
    m->head.request = a->request;
    rc = wf_control_put(m, body, err);
    if (rc == WF_OK)
        rc = wf_net_send(a->net, a->master, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(a->net, &m);
    return rc;
}

static wf_status read_answer(const wf_msg *m, json_t **answer, wf_err *err)
{
    Weft__Answer *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(m, &weft__answer__descriptor, &body, err));
    rc = (wf_status)body->status;
    if (rc != WF_OK)
        wf_fail(err, rc, body->hint, "%s", body->what);
    if (answer) {
        *answer = json_loads(body->json, 0, NULL);
        if (!*answer && rc == WF_OK)
            rc = wf_fail(err, WF_PROTO, NULL, "the master's answer cannot be read");
    }
    wf_control_free(&body);
    return rc;
}

/* Takes events until the answer is among them; *done is set then. */
static wf_status look(wf_ask *a, json_t **answer, bool *done, bool *lost, wf_err *err)
{
    int64_t now_ns = wf_now_ns();
    wf_status rc = WF_OK;
    wf_event ev;

    wf_net_poll(a->net, now_ns);
    while (!*done && wf_net_event(a->net, now_ns, &ev)) {
        if (ev.kind == WF_EV_REFUSED) {
            *err = ev.err;
            return ev.err.status;
        }
        *lost |= ev.kind == WF_EV_DOWN;
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        if (ev.msg->head.kind == WF_ANSWER && ev.msg->head.request == a->request) {
            *done = true;
            rc = read_answer(ev.msg, answer, err);
        }
        wf_net_free_msg(a->net, &ev.msg);
    }
    return rc;
}

/* What is so whether it is said once or twice; the answer may have gone with the link. */
static bool may_repeat(const Weft__Ask *ask)
{
    return strcmp(ask->command, "status") == 0 || strcmp(ask->command, "placement") == 0 ||
           strcmp(ask->command, "stop") == 0;
}

wf_status wf_ask_send(wf_ask *a, const Weft__Ask *ask, int64_t timeout_ms, json_t **answer,
                      wf_err *err)
{
    int64_t end_ns = wf_now_ns() + timeout_ms * WF_NS_PER_MS;
    bool done = false, lost = false;

    if (answer)
        *answer = NULL;
    a->request++;
    WF_TRY(send(a, WF_ASK, &ask->base, err));
    for (;;) {
        int64_t now_ns = wf_now_ns(), wait_ns;

        WF_TRY(look(a, answer, &done, &lost, err));
        if (done)
            return WF_OK;
        if (a->enough && a->enough())
            return wf_fail(err, WF_STOPPED, "see it with: weft status",
                           "no answer from the master at %s was waited for", a->address);
        if (lost && may_repeat(ask)) {
            lost = false;
            WF_TRY(send(a, WF_ASK, &ask->base, err));
        }
        if (now_ns >= end_ns && !a->way.here)
            return wf_fail(err, WF_TIMEOUT, "is it up? start it with: weft up",
                           "no answer from the master at %s in %ld ms", a->address,
                           (long)timeout_ms);
        wait_ns = WF_MIN(wf_net_deadline(a->net, now_ns), end_ns) - now_ns;
        WF_TRY(a->way.wait(a->way.arg, a->net, WF_MAX(wait_ns / WF_NS_PER_MS, (int64_t)1), err));
    }
}

/* Moves what is due without waiting; nothing that comes is of interest. */
static void move(wf_ask *a)
{
    int64_t now_ns = wf_now_ns();
    wf_event ev;

    wf_net_poll(a->net, now_ns);
    while (wf_net_event(a->net, now_ns, &ev))
        if (ev.kind == WF_EV_MESSAGE)
            wf_net_free_msg(a->net, &ev.msg);
}

wf_status wf_ask_pass(wf_ask *a, int64_t ms, wf_err *err)
{
    int64_t end_ns = wf_now_ns() + ms * WF_NS_PER_MS, left_ns;

    while ((left_ns = end_ns - wf_now_ns()) > 0 && !(a->enough && a->enough())) {
        move(a);
        WF_TRY(a->way.wait(a->way.arg, a->net, (left_ns + WF_NS_PER_MS - 1) / WF_NS_PER_MS, err));
    }
    return WF_OK;
}

static const char *word_of(const json_t *job, const char *key)
{
    const char *s = json_string_value(json_object_get(job, key));

    return s ? s : "";
}

json_t *wf_ask_job(json_t *picture, const char *name)
{
    json_t *job, *newest = NULL;
    size_t i;

    json_array_foreach(json_object_get(picture, "jobs"), i, job)
    {
        json_t *run = json_object_get(job, "run");

        if (strcmp(word_of(job, "name"), name) == 0 && json_integer_value(run))
            return job;
        if (strcmp(word_of(job, "job"), name) == 0 &&
            (!newest ||
             json_integer_value(run) > json_integer_value(json_object_get(newest, "run"))))
            newest = job;
    }
    return newest;
}

bool wf_ask_is_over(const json_t *job)
{
    static const char *const ends[] = {"done", "failed", "stopped", "interrupted"};

    for (size_t i = 0; i < WF_COUNT(ends); i++)
        if (strcmp(word_of(job, "state"), ends[i]) == 0)
            return true;
    return false;
}
