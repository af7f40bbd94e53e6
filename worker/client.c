/* SPDX-License-Identifier: Apache-2.0 */
/* worker/client.c - weights come: lists, pulls, and what is sent again over a fresh link. What is
 * pushed is in pushes.c. */
#include "worker/client.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "worker/client_state.h"

#include <stdlib.h>
#include <string.h>

/* Of slices that are pulled for each step, and of frozen ones that have not come yet. */
enum { LIST = 0, FROZEN_LIST = 1 };

static bool is_frozen(const wf_client *c, const wf_client_slice *s)
{
    return !c->variables[s->variable].trainable;
}

static wf_status alloc_set(const wf_client *c, weight_set *s, bool frozen, wf_err *err)
{
    s->have = calloc(c->n_slices + 1, 1);
    s->values = calloc(c->n_variables + 1, sizeof(*s->values));
    if (!s->have || !s->values)
        return wf_fail_nomem(err, c->n_slices);
    for (uint32_t v = 0; v < c->n_variables; v++) {
        if (c->variables[v].trainable == frozen)
            continue;
        s->values[v] = wf_buf_new(c->variables[v].count * sizeof(float));
        if (!s->values[v])
            return wf_fail_nomem(err, c->variables[v].count * sizeof(float));
    }
    return WF_OK;
}

static void free_set(const wf_client *c, weight_set *s)
{
    for (uint32_t v = 0; s->values && v < c->n_variables; v++)
        wf_buf_unref(&s->values[v]);
    free(s->values);
    free(s->have);
}

static wf_status alloc_sets(wf_client *c, wf_err *err)
{
    for (uint32_t i = 0; i < c->n_slices; i++)
        c->n_moving += !is_frozen(c, &c->slices[i]);
    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        WF_TRY(alloc_set(c, &c->sets[k], false, err));
    c->frozen.left = c->n_slices - c->n_moving;
    c->frozen.pull = ++c->next_pull;
    return alloc_set(c, &c->frozen, true, err);
}

static int by_place(const void *a, const void *b)
{
    const wf_client_slice *x = a, *y = b;

    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static wf_status check_slices(wf_client *c, wf_err *err)
{
    uint32_t v = 0;

    for (uint32_t i = 0; i < c->n_slices; i++) {
        const wf_client_slice *s = &c->slices[i];

        if (s->ps >= c->n_ps || !c->ps[s->ps])
            return wf_fail(err, WF_PROTO, NULL, "slice %u is on ps %u, which is not in the view", i,
                           s->ps);
        if (s->variable >= c->n_variables || s->offset > c->variables[s->variable].count ||
            s->count > c->variables[s->variable].count - s->offset)
            return wf_fail(err, WF_PROTO, NULL, "slice %u lies outside its variable", i);
        if (i > 0 && by_place(&c->slices[i - 1], s) >= 0)
            return wf_fail(err, WF_PROTO, NULL, "slice %u is out of order", i);
        for (; v <= s->variable; v++)
            c->first_slice[v] = i;
    }
    for (; v <= c->n_variables; v++)
        c->first_slice[v] = c->n_slices;
    return WF_OK;
}

static void *copy_of(const void *from, size_t n, size_t size)
{
    void *to = calloc(n + 1, size);

    if (to && n)
        memcpy(to, from, n * size);
    return to;
}

wf_status wf_client_new(const wf_client_conf *conf, wf_net *net, wf_client **out, wf_err *err)
{
    wf_client *c = calloc(1, sizeof *c);
    wf_status rc = WF_OK;

    if (!c)
        return wf_fail_nomem(err, sizeof *c);
    c->net = net;
    c->variables = copy_of(conf->variables, conf->n_variables, sizeof *conf->variables);
    c->n_variables = conf->n_variables;
    c->slices = copy_of(conf->slices, conf->n_slices, sizeof *conf->slices);
    c->n_slices = conf->n_slices;
    c->ps = copy_of(conf->ps, conf->n_ps, sizeof(*conf->ps));
    c->n_ps = conf->n_ps;
    c->ps_incarnation = copy_of(conf->ps_incarnations, conf->n_ps, sizeof *c->ps_incarnation);
    c->first_slice = calloc(conf->n_variables + 2, sizeof *c->first_slice);
    c->doors = calloc(conf->n_ps + 1, sizeof *c->doors);
    c->job = conf->job;
    c->generation = conf->generation;
    c->map = conf->map;
    c->view = conf->view;
    c->pipeline = conf->pipeline;
    c->checksums = conf->checksums;
    if (!c->variables || !c->slices || !c->ps || !c->ps_incarnation || !c->first_slice || !c->doors)
        rc = wf_fail_nomem(err, conf->n_slices * sizeof *conf->slices);
    for (uint32_t i = 0; rc == WF_OK && i < c->n_ps; i++)
        c->doors[i].retry_ns = INT64_MAX;
    if (rc == WF_OK)
        rc = check_slices(c, err);
    if (rc == WF_OK)
        rc = alloc_sets(c, err);
    if (rc == WF_OK)
        rc = wf_pushes_init(c, err);
    if (rc != WF_OK)
        wf_client_free(&c);
    *out = c;
    return rc;
}

void wf_client_free(wf_client **c)
{
    wf_client *it = *c;

    *c = NULL;
    if (!it)
        return;
    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        free_set(it, &it->sets[k]);
    free_set(it, &it->frozen);
    wf_pushes_close(it);
    free(it->doors);
    free(it->first_slice);
    free(it->ps_incarnation);
    free(it->ps);
    free(it->slices);
    free(it->variables);
    free(it);
}

wf_status wf_client_send(wf_client *c, uint32_t ps, wf_lane lane, uint64_t key, wf_msg **m,
                         wf_err *err)
{
    bool open = c->doors[ps].open || (*m)->head.kind == WF_LIST;
    wf_status rc;

    if (!c->ps[ps] || !c->ps[ps]->up || !open) {
        wf_net_free_msg(c->net, m);
        return WF_OK;
    }
    (*m)->head.job = c->job;
    (*m)->head.generation = c->generation;
    (*m)->head.map = c->map;
    (*m)->head.view = c->view;
    rc = wf_net_send(c->net, c->ps[ps], lane, key, m, err);
    return rc == WF_NOTFOUND ? WF_OK : rc;
}

static uint32_t place_of(const wf_client *c, const wf_peer *peer)
{
    uint32_t i = peer->task.index;

    return i < c->n_ps && c->ps[i] == peer ? i : UINT32_MAX;
}

/* Whether slice i belongs to the list of a ps. */
static bool is_listed(const wf_client *c, uint32_t list, uint32_t ps, uint32_t i)
{
    const wf_client_slice *s = &c->slices[i];

    if (s->ps != ps)
        return false;
    return list == FROZEN_LIST ? is_frozen(c, s) && !c->frozen.have[i] : !is_frozen(c, s);
}

static bool lacks_frozen(const wf_client *c, uint32_t ps)
{
    for (uint32_t i = 0; c->frozen.left && i < c->n_slices; i++)
        if (is_listed(c, FROZEN_LIST, ps, i))
            return true;
    return false;
}

static wf_status send_list(wf_client *c, uint32_t ps, uint32_t list, wf_err *err)
{
    Weft__List body = WEFT__LIST__INIT;
    uint32_t *ids = calloc(c->n_slices + 1, sizeof *ids);
    wf_msg *m = NULL;
    wf_status rc;

    if (!ids)
        return wf_fail_nomem(err, c->n_slices * sizeof *ids);
    body.slices = ids;
    for (uint32_t i = 0; i < c->n_slices; i++)
        if (is_listed(c, list, ps, i))
            ids[body.n_slices++] = i;
    rc = wf_net_msg(c->net, WF_LIST, &m, err);
    if (rc == WF_OK)
        rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK) {
        m->head.request = list;
        rc = wf_client_send(c, ps, WF_LANE_CONTROL, 0, &m, err);
    }
    wf_net_free_msg(c->net, &m);
    free(ids);
    return rc;
}

/* Pulls go just before the first push that they must not hold; see K1. */
static uint64_t pull_key(const wf_client *c, uint32_t step)
{
    return 4 * (uint64_t)(step - WF_MIN(c->pipeline, step));
}

static uint32_t own_steps_of(const wf_client *c, uint32_t step)
{
    uint32_t upto = step > 1 + c->pipeline ? step - 1 - c->pipeline : 0;

    return WF_MAX(upto, c->base);
}

/* Frozen weights count on no push, and go before all others. */
static wf_status send_pull(wf_client *c, uint32_t ps, const weight_set *s, wf_err *err)
{
    bool frozen = s == &c->frozen;
    wf_pull_body body = {frozen ? FROZEN_LIST : LIST, frozen ? 0 : own_steps_of(c, s->step)};
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(wf_net_msg(c->net, WF_PULL, &m, err));
    rc = wf_pull_put(m, body, err);
    if (rc == WF_OK) {
        m->head.request = s->pull;
        m->head.step = s->step;
        rc = wf_client_send(c, ps, WF_LANE_DATA, pull_key(c, s->step), &m, err);
    }
    wf_net_free_msg(c->net, &m);
    return rc;
}

wf_status wf_client_pull(wf_client *c, int set, uint32_t step, wf_err *err)
{
    weight_set *s = &c->sets[set];

    s->step = step;
    s->pull = ++c->next_pull;
    s->left = c->n_moving;
    memset(s->have, 0, c->n_slices);
    for (uint32_t i = 0; i < c->n_ps; i++)
        WF_TRY(send_pull(c, i, s, err));
    return WF_OK;
}

void wf_client_drop(wf_client *c, int set)
{
    c->sets[set].step = 0;
    c->sets[set].pull = 0;
}

uint32_t wf_client_set_step(const wf_client *c, int set)
{
    return c->sets[set].step;
}

bool wf_client_set_ready(const wf_client *c, int set)
{
    return c->sets[set].step && c->sets[set].left == 0 && c->frozen.left == 0; /* K4 */
}

uint32_t wf_client_frozen_left(const wf_client *c)
{
    return c->frozen.left;
}

const float *wf_client_weights(const wf_client *c, int set, uint32_t variable)
{
    const weight_set *s = c->variables[variable].trainable ? &c->sets[set] : &c->frozen;

    return s->values[variable]->data;
}

/* The set that an answer is for; NULL: its pull was dropped. */
static weight_set *set_of(wf_client *c, uint32_t pull)
{
    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        if (c->sets[k].step && c->sets[k].pull == pull)
            return &c->sets[k];
    return c->frozen.pull == pull ? &c->frozen : NULL;
}

/* Whether the frozen weights have all come with this message. */
static void note_frozen(wf_client *c, const weight_set *s, uint32_t left, const wf_msg *m)
{
    if (s != &c->frozen)
        return;
    c->frozen_bytes += m->payload_bytes;
    if (left > 0 && s->left == 0)
        WF_LOG_INFO("worker.frozen_in", "slices=%u bytes=%lu", c->n_slices - c->n_moving,
                    (unsigned long)c->frozen_bytes);
}

static wf_status on_weights(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err)
{
    weight_set *s = set_of(c, m->head.request);
    uint32_t n, left;

    if (!s)
        return WF_OK;
    left = s->left;
    WF_TRY(wf_parts_get(m, c->parts, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        const wf_part *p = &c->parts[i];
        const wf_client_slice *slice = p->slice < c->n_slices ? &c->slices[p->slice] : NULL;

        /* A part without a codec lies in no frame. */
        if (!slice || slice->ps != ps || p->codec != WF_CODEC_F32 ||
            p->bytes != slice->count * sizeof(float) || is_frozen(c, slice) != (s == &c->frozen))
            return wf_fail(err, WF_PROTO, NULL, "ps %u: weights of slice %u, %lu bytes", ps,
                           p->slice, (unsigned long)p->bytes);
        memcpy((float *)s->values[slice->variable]->data + slice->offset, wf_part_data(m, p),
               p->bytes);
        s->left -= s->have[p->slice] ? 0 : 1;
        s->have[p->slice] = 1;
    }
    note_frozen(c, s, left, m);
    return WF_OK;
}

/* Whether this very process holds the slices: another incarnation has not, and the master begins a
 * new generation. */
static bool holds_slices(const wf_client *c, uint32_t ps)
{
    return c->ps[ps] && c->ps[ps]->up && c->ps[ps]->incarnation == c->ps_incarnation[ps];
}

/* Knocks: all that follows an answer is sent again then (K3). */
static wf_status ask_in(wf_client *c, uint32_t ps, wf_err *err)
{
    c->doors[ps].open = false;
    c->doors[ps].retry_ns = INT64_MAX;
    if (lacks_frozen(c, ps))
        WF_TRY(send_list(c, ps, FROZEN_LIST, err));
    return send_list(c, ps, LIST, err);
}

/* All that a ps may have missed, in the order in which it was sent first. */
static wf_status on_list_ok(wf_client *c, uint32_t ps, wf_err *err)
{
    struct ps_door *d = &c->doors[ps];

    if (d->open)
        return WF_OK;
    *d = (struct ps_door){.open = true, .retry_ns = INT64_MAX};
    if (lacks_frozen(c, ps))
        WF_TRY(send_pull(c, ps, &c->frozen, err));
    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        if (c->sets[k].step && c->sets[k].left > 0)
            WF_TRY(send_pull(c, ps, &c->sets[k], err));
    return wf_pushes_again(c, ps, err);
}

/* Each message that was under way is denied; the first of these closes the door. */
static void on_denied(wf_client *c, uint32_t ps, int64_t now_ns)
{
    struct ps_door *d = &c->doors[ps];

    if (d->retry_ns != INT64_MAX)
        return;
    d->open = false;
    d->wait_ns = d->wait_ns ? WF_MIN(2 * d->wait_ns, WF_CLIENT_RETRY_MOST_MS * WF_NS_PER_MS)
                            : WF_CLIENT_RETRY_MS * WF_NS_PER_MS;
    d->retry_ns = now_ns + d->wait_ns;
}

wf_status wf_client_on_message(wf_client *c, const wf_peer *from, const wf_msg *m, int64_t now_ns,
                               wf_err *err)
{
    uint32_t ps = place_of(c, from);

    if (ps == UINT32_MAX || m->head.generation != c->generation)
        return WF_OK;
    if (m->head.kind == WF_WEIGHTS)
        return on_weights(c, ps, m, err);
    if (m->head.kind == WF_PUSH_OK)
        return wf_pushes_on_ok(c, ps, m, err);
    if (m->head.kind == WF_LIST_OK) /* of the list that is sent last: both are registered then */
        return m->head.request == LIST ? on_list_ok(c, ps, err) : WF_OK;
    if (m->head.kind == WF_DENIED && m->head.request == c->generation)
        on_denied(c, ps, now_ns);
    return WF_OK;
}

wf_status wf_client_on_up(wf_client *c, const wf_peer *peer, wf_err *err)
{
    uint32_t ps = place_of(c, peer);

    return ps != UINT32_MAX && holds_slices(c, ps) ? ask_in(c, ps, err) : WF_OK;
}

wf_status wf_client_retry(wf_client *c, int64_t now_ns, wf_err *err)
{
    for (uint32_t i = 0; i < c->n_ps; i++)
        if (now_ns >= c->doors[i].retry_ns && holds_slices(c, i))
            WF_TRY(ask_in(c, i, err));
    return WF_OK;
}

static uint32_t late_ps(const wf_client *c, const weight_set *s)
{
    for (uint32_t i = 0; i < c->n_slices; i++)
        if (!s->have[i] && is_frozen(c, &c->slices[i]) == (s == &c->frozen))
            return c->slices[i].ps;
    return c->n_ps;
}

uint32_t wf_client_late_weights(const wf_client *c, int set)
{
    return late_ps(c, &c->sets[set]);
}

uint32_t wf_client_late_frozen(const wf_client *c)
{
    return late_ps(c, &c->frozen);
}

uint32_t wf_client_late_acks(const wf_client *c, uint32_t step)
{
    const step_push *s = &c->steps[step % WF_CLIENT_STEPS];

    for (uint32_t i = 0; s->step == step && i < c->n_ps; i++)
        if (s->left[i] > 0)
            return i;
    return c->n_ps;
}

bool wf_client_let_in(const wf_client *c, uint32_t ps)
{
    return ps < c->n_ps && c->doors[ps].open;
}

uint32_t wf_client_acked(const wf_client *c)
{
    return c->acked;
}

uint32_t wf_client_in_flight(const wf_client *c)
{
    return c->begun - c->acked;
}

void wf_client_set_base(wf_client *c, uint32_t step)
{
    c->base = step;
}

uint32_t wf_client_base(const wf_client *c)
{
    return c->base;
}
