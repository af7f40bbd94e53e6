/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/far.c - Send and Recv: what fragments of this worker send lies in its rendezvous,
 * and what they receive comes from there, or from another worker's by a `take`. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/tensors.h"
#include "worker/sessions/state.h"

#include <string.h>

enum { OWED_MOST = 2 * WF_TENSORS_BYTES };

static wf_rendezvous_id id_of(const wf_session_run *r, uint32_t number)
{
    const Weft__RunAsk *ask = r->ask;

    return (wf_rendezvous_id){
        .client = ask->client ? ask->client : ask->session, .run = ask->run, .number = number};
}

/* ---- Sends ---- */

wf_status wf_far_send(wf_sessions *s, const wf_session_run *r, const wf_session_fragment *f,
                      wf_err *err)
{
    for (size_t i = 0; i < f->body->n_sends; i++) {
        const Weft__SessionSend *it = f->body->sends[i];
        wf_rendezvous_name name = {r->plan->body->container, it->key, it->to};
        wf_rendezvous_id id = id_of(r, it->number);

        WF_TRY(wf_err_wrap(
            err,
            wf_rendezvous_put(s->rendezvous, &name, &id, r->values[f->sends[i]], s->now_ns, err),
            "Send of key \"%.200s\"", it->key));
    }
    return WF_OK;
}

/* ---- Recvs ---- */

static wf_status take_here(wf_sessions *s, wf_session_run *r, const Weft__SessionReceive *it,
                           wf_tensor **out, wf_err *err)
{
    wf_rendezvous_want want = {.name = {r->plan->body->container, it->key, s->conf.index},
                               .id = id_of(r, it->number),
                               .dtype = (wf_dtype)it->head->dtype,
                               .rank = (uint32_t)it->head->n_dims,
                               .dims = it->head->dims,
                               .user = r,
                               .until_ns = r->end_ns};

    return wf_err_wrap(err, wf_rendezvous_take(s->rendezvous, &want, out, err), "worker %u",
                       s->conf.index);
}

static wf_status ask_other(wf_sessions *s, wf_session_run *r, const Weft__SessionReceive *it,
                           uint32_t value, wf_err *err)
{
    Weft__Take body = WEFT__TAKE__INIT;
    wf_rendezvous_id id = id_of(r, it->number);
    wf_peer *peer = NULL;
    wf_msg *m = NULL;
    wf_status rc;

    body.container = r->plan->body->container;
    body.key = it->key;
    body.to = s->conf.index;
    body.head = it->head;
    body.client = id.client;
    body.run = id.run;
    body.number = id.number;
    body.timeout_ms = (uint32_t)(WF_MAX(r->end_ns - s->now_ns, 0) / WF_NS_PER_MS);
    WF_TRY(wf_sessions_peer(s, (wf_task){WF_ROLE_WORKER, it->from}, &peer, err));
    r->asked_of[value] = peer->up ? peer->incarnation : 0;
    WF_TRY(wf_net_msg(s->conf.to_ps, WF_TAKE, &m, err));
    rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK)
        rc = wf_requests_send(&s->requests, peer, &m, r, &r->asked[value], err);
    wf_net_free_msg(s->conf.to_ps, &m);
    return rc;
}

wf_status wf_far_receive(wf_sessions *s, wf_session_run *r, const wf_session_fragment *f,
                         wf_err *err)
{
    for (size_t i = 0; i < f->body->n_receives; i++) {
        const Weft__SessionReceive *it = f->body->receives[i];
        uint32_t value = f->receives[i];

        wf_tensor_free(&r->values[value]);
        if (it->from == s->conf.index)
            WF_TRY(take_here(s, r, it, &r->values[value], err));
        else
            WF_TRY(ask_other(s, r, it, value, err));
    }
    wf_net_flush(s->conf.to_ps, s->now_ns);
    return WF_OK;
}

/* One whose link is lost forgets the run's waits by itself. */
static void tell_given_up(wf_sessions *s, const wf_session_run *r, const Weft__SessionReceive *it)
{
    Weft__Take body = WEFT__TAKE__INIT;
    wf_rendezvous_id id = id_of(r, it->number);
    wf_peer *peer = s->workers[it->from];
    wf_msg *m = NULL;

    if (!peer || !peer->up || wf_net_msg(s->conf.to_ps, WF_TAKE, &m, NULL) != WF_OK)
        return;
    body.client = id.client;
    body.run = id.run;
    body.number = id.number;
    body.given_up = true;
    if (wf_control_put(m, &body.base, NULL) == WF_OK &&
        wf_net_send(s->conf.to_ps, peer, WF_LANE_CONTROL, 0, &m, NULL) == WF_OK)
        wf_net_flush(s->conf.to_ps, s->now_ns);
    wf_net_free_msg(s->conf.to_ps, &m);
}

/* Whether anybody has seen something of the run. */
static bool has_effect(const wf_session_run *r)
{
    bool sent = false;

    for (size_t i = 0; i < r->plan->body->n_fragments; i++)
        sent |= r->states[i] == WF_FRAGMENT_DONE && r->plan->fragments[i].body->n_sends > 0;
    return sent || r->n_written > 0;
}

static void give_up_value(wf_sessions *s, const wf_session_run *r, const wf_session_fragment *f,
                          size_t k)
{
    const Weft__SessionReceive *it = f->body->receives[k];
    wf_rendezvous_id id = id_of(r, it->number);

    if (it->from == s->conf.index)
        wf_rendezvous_give_up(s->rendezvous, &id);
    else if (r->asked[f->receives[k]] || r->values[f->receives[k]])
        tell_given_up(s, r, it);
}

void wf_far_give_up(wf_sessions *s, const wf_session_run *r, bool failed)
{
    bool all = r->states && failed && !has_effect(r);

    for (size_t i = 0; r->states && i < r->plan->body->n_fragments; i++) {
        const wf_session_fragment *f = &r->plan->fragments[i];
        bool receives = r->states[i] == WF_FRAGMENT_RECEIVES;

        for (size_t k = 0; k < f->body->n_receives; k++)
            if ((receives && (failed || !r->values[f->receives[k]])) ||
                (all && r->states[i] == WF_FRAGMENT_DONE))
                give_up_value(s, r, f, k);
    }
}

bool wf_far_has_all(const wf_session_run *r, const wf_session_fragment *f)
{
    for (size_t i = 0; i < f->body->n_receives; i++)
        if (!r->values[f->receives[i]])
            return false;
    return true;
}

wf_status wf_far_on_taken(wf_session_run *r, uint32_t value, const wf_msg *m, wf_err *err)
{
    Weft__Taken *body = NULL;
    wf_status rc = wf_tensors_body(m, &weft__taken__descriptor, &body, err);

    r->asked[value] = 0;
    if (rc == WF_OK && body->status != WF_OK)
        rc = wf_fail(err, (wf_status)body->status, body->hint, "%s", body->what);
    else if (rc == WF_OK && !body->tensor)
        rc = wf_fail(err, WF_PROTO, "upgrade it", "a worker gives nothing for a Recv");
    if (rc == WF_OK)
        rc = wf_tensors_take(m, 0, body->tensor, &r->values[value], err);
    wf_control_free(&body);
    return rc;
}

/* The first Recv of the run that waits; *value is its place among the values. */
static const Weft__SessionReceive *find_waiting(const wf_session_run *r, uint32_t *value)
{
    for (size_t i = 0; i < r->plan->body->n_fragments; i++) {
        const wf_session_fragment *f = &r->plan->fragments[i];

        for (size_t k = 0; r->states[i] == WF_FRAGMENT_RECEIVES && k < f->body->n_receives; k++)
            if (!r->values[f->receives[k]]) {
                *value = f->receives[k];
                return f->body->receives[k];
            }
    }
    return NULL;
}

bool wf_far_is_late(const wf_sessions *s, const wf_session_run *r, wf_err *why)
{
    uint32_t value = 0;
    const Weft__SessionReceive *it = find_waiting(r, &value);
    long long ms = (r->end_ns - r->begun_ns) / WF_NS_PER_MS;
    const wf_peer *p;

    if (!it)
        return false;
    p = it->from == s->conf.index ? NULL : s->workers[it->from];
    if (p && !p->up)
        wf_fail(why, WF_TIMEOUT, "is it up? see it with: weft status",
                "worker %u: no answer from worker/%u at %s about key \"%.200s\" in %lld ms",
                s->conf.index, it->from, p->address, it->key, ms);
    else
        wf_fail(why, WF_TIMEOUT, "a value is received once; is it sent there, and to this worker?",
                "worker %u: nothing came from worker %u under key \"%.200s\" in %lld ms",
                s->conf.index, it->from, it->key, ms);
    return true;
}

/* ---- a worker that has started again ---- */

/* Whether the run waits for what an earlier process of that worker may have held. */
static const char *is_lost(const wf_session_run *r, const wf_peer *peer)
{
    for (size_t i = 0; i < r->plan->body->n_fragments; i++) {
        const wf_session_fragment *f = &r->plan->fragments[i];

        for (size_t k = 0; r->states[i] == WF_FRAGMENT_RECEIVES && k < f->body->n_receives; k++) {
            uint32_t value = f->receives[k];

            if (f->body->receives[k]->from != peer->task.index || !r->asked[value])
                continue;
            if (r->asked_of[value] && r->asked_of[value] != peer->incarnation)
                return f->body->receives[k]->key;
            r->asked_of[value] = peer->incarnation;
        }
    }
    return NULL;
}

wf_status wf_far_on_up(wf_sessions *s, const wf_peer *peer, wf_err *err)
{
    if (peer->task.role != WF_ROLE_WORKER)
        return WF_OK;
    for (wf_session_run *r = s->runs, *next; r; r = next) {
        const char *key = is_lost(r, peer);
        wf_err why = {0};

        next = r->next;
        if (!key)
            continue;
        wf_fail(&why, WF_NOTFOUND, "send it again",
                "worker %u: worker %u has started again while key \"%.200s\" was awaited from it: "
                "what it held is lost",
                s->conf.index, peer->task.index, key);
        WF_TRY(wf_run_fail(s, r, &why, err));
    }
    return WF_OK;
}

/* ---- what others ask ---- */

static wf_status answer(wf_sessions *s, wf_peer *to, uint32_t request, const wf_tensor *value,
                        const wf_err *why, wf_err *err)
{
    Weft__Taken body = WEFT__TAKEN__INIT;
    Weft__TensorHead head;
    int64_t dims[WF_MAX_RANK];
    wf_msg *m = NULL;
    wf_status rc;

    if (value) {
        wf_tensor_head(value, &head, dims);
        body.tensor = &head;
    } else {
        body.status = why->status;
        body.what = (char *)why->what;
        body.hint = (char *)why->hint;
    }
    WF_TRY(wf_net_msg(s->conf.net, WF_TAKE_OK, &m, err));
    rc = wf_tensors_put(m, &body.base, value ? 1 : 0, &value, s->conf.checksums, err);
    m->head.request = request;
    if (rc == WF_OK) {
        rc = wf_net_send(s->conf.net, to, WF_LANE_CONTROL, 0, &m, err);
        rc = rc == WF_NOTFOUND ? WF_OK : rc; /* one that is gone asks again */
    }
    wf_net_free_msg(s->conf.net, &m);
    return rc;
}

/* Errors are the asking worker's. */
static wf_status take(wf_sessions *s, wf_peer *from, const wf_msg *m, wf_tensor **out, wf_err *err)
{
    enum { LONGEST_MS = 60 * 60 * 1000 };
    Weft__Take *body = NULL;
    size_t bytes;
    wf_status rc = wf_control_get(m, &weft__take__descriptor, &body, err);

    if (rc == WF_OK && body->given_up) {
        wf_rendezvous_id id = {body->client, body->run, body->number};

        wf_rendezvous_give_up(s->rendezvous, &id);
        wf_control_free(&body);
        return WF_OK;
    }
    if (rc == WF_OK && wf_net_owed_bytes(from) > OWED_MOST)
        rc = wf_fail(err, WF_AGAIN, "take the answers first",
                     "%zu MiB of answers wait for this worker", wf_net_owed_bytes(from) >> 20);
    if (rc == WF_OK && !body->head)
        rc = wf_fail(err, WF_PROTO, NULL, "a take without what is wanted");
    if (rc == WF_OK)
        rc = wf_tensor_head_check(body->head, &bytes, err);
    if (rc == WF_OK) {
        uint32_t ms = WF_MIN(body->timeout_ms, (uint32_t)LONGEST_MS);
        wf_rendezvous_want want = {.name = {body->container, body->key, body->to},
                                   .id = {body->client, body->run, body->number},
                                   .dtype = (wf_dtype)body->head->dtype,
                                   .rank = (uint32_t)body->head->n_dims,
                                   .dims = body->head->dims,
                                   .user = from,
                                   .request = m->head.request,
                                   .until_ns = s->now_ns + ms * WF_NS_PER_MS};

        rc = wf_rendezvous_take(s->rendezvous, &want, out, err);
    }
    wf_control_free(&body);
    return wf_err_wrap(err, rc, "worker %u", s->conf.index);
}

wf_status wf_far_on_take(wf_sessions *s, wf_peer *from, const wf_msg *m, wf_err *err)
{
    wf_tensor *value = NULL;
    wf_err why = {0};
    wf_status rc = take(s, from, m, &value, &why);

    if (rc == WF_OK && !value)
        return WF_OK; /* it waits, or has given up */
    rc = answer(s, from, m->head.request, value, &why, err);
    wf_tensor_free(&value);
    return rc;
}

/* The value of a run's Recv with that number; NULL when it has none. */
static wf_tensor **place_of(wf_session_run *r, uint32_t number)
{
    for (size_t i = 0; i < r->plan->body->n_fragments; i++) {
        const wf_session_fragment *f = &r->plan->fragments[i];

        for (size_t k = 0; r->states[i] == WF_FRAGMENT_RECEIVES && k < f->body->n_receives; k++)
            if (f->body->receives[k]->number == number)
                return &r->values[f->receives[k]];
    }
    return NULL;
}

static wf_status give_to_run(wf_sessions *s, wf_session_run *r, wf_rendezvous_end *end, wf_err *err)
{
    wf_tensor **at = place_of(r, end->id.number);

    if (!end->value) {
        wf_err_wrap(&end->why, end->why.status, "worker %u: worker %u", s->conf.index,
                    s->conf.index);
        return wf_run_fail(s, r, &end->why, err);
    }
    if (!at)
        return WF_OK;
    wf_tensor_free(at);
    *at = end->value;
    end->value = NULL;
    return wf_run_go_on(s, r, err);
}

wf_status wf_far_deliver(wf_sessions *s, wf_err *err)
{
    wf_rendezvous_end end;
    wf_status rc = WF_OK;

    while (rc == WF_OK && wf_rendezvous_next(s->rendezvous, &end)) {
        if (!end.value && end.request)
            wf_err_wrap(&end.why, end.why.status, "worker %u", s->conf.index);
        rc = end.request ? answer(s, end.user, end.request, end.value, &end.why, err)
                         : give_to_run(s, end.user, &end, err);
        wf_tensor_free(&end.value);
    }
    return rc;
}
