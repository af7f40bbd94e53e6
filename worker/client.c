/* SPDX-License-Identifier: Apache-2.0 */
/* worker/client.c - weights come: lists, pulls, and what is said again over a fresh link. What is
 * pushed is in pushes.c. */
#include "worker/client.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "worker/client_state.h"

#include <stdlib.h>
#include <string.h>

enum { LIST = 0 };

static wf_status alloc_sets(wf_client *c, wf_err *err)
{
    for (int k = 0; k < WF_WEIGHT_SETS; k++) {
        weight_set *s = &c->sets[k];

        s->have = calloc(c->n_slices + 1, 1);
        s->values = calloc(c->n_variables + 1, sizeof(*s->values));
        if (!s->have || !s->values)
            return wf_fail_nomem(err, c->n_slices);
        for (uint32_t v = 0; v < c->n_variables; v++) {
            s->values[v] = wf_buf_new(c->variables[v].count * sizeof(float));
            if (!s->values[v])
                return wf_fail_nomem(err, c->variables[v].count * sizeof(float));
        }
    }
    return WF_OK;
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
    c->retry_ns = calloc(conf->n_ps + 1, sizeof *c->retry_ns);
    c->job = conf->job;
    c->generation = conf->generation;
    c->view = conf->view;
    c->pipeline = conf->pipeline;
    c->checksums = conf->checksums;
    if (!c->variables || !c->slices || !c->ps || !c->ps_incarnation || !c->first_slice ||
        !c->retry_ns)
        rc = wf_fail_nomem(err, conf->n_slices * sizeof *conf->slices);
    for (uint32_t i = 0; rc == WF_OK && i < c->n_ps; i++)
        c->retry_ns[i] = INT64_MAX;
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
    for (int k = 0; k < WF_WEIGHT_SETS; k++) {
        for (uint32_t v = 0; it->sets[k].values && v < it->n_variables; v++)
            wf_buf_unref(&it->sets[k].values[v]);
        free(it->sets[k].values);
        free(it->sets[k].have);
    }
    wf_pushes_close(it);
    free(it->retry_ns);
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
    wf_status rc;

    if (!c->ps[ps] || !c->ps[ps]->up) { /* all is said again when it is (wf_client_on_up) */
        wf_net_free_msg(c->net, m);
        return WF_OK;
    }
    (*m)->head.job = c->job;
    (*m)->head.generation = c->generation;
    (*m)->head.view = c->view;
    rc = wf_net_send(c->net, c->ps[ps], lane, key, m, err);
    return rc == WF_NOTFOUND ? WF_OK : rc;
}

static uint32_t place_of(const wf_client *c, const wf_peer *peer)
{
    for (uint32_t i = 0; i < c->n_ps; i++)
        if (c->ps[i] == peer)
            return i;
    return UINT32_MAX;
}

static wf_status send_list(wf_client *c, uint32_t ps, wf_err *err)
{
    Weft__List body = WEFT__LIST__INIT;
    uint32_t *ids = calloc(c->n_slices + 1, sizeof *ids);
    wf_msg *m = NULL;
    wf_status rc;

    if (!ids)
        return wf_fail_nomem(err, c->n_slices * sizeof *ids);
    body.slices = ids;
    for (uint32_t i = 0; i < c->n_slices; i++)
        if (c->slices[i].ps == ps)
            ids[body.n_slices++] = i;
    rc = wf_net_msg(c->net, WF_LIST, &m, err);
    if (rc == WF_OK)
        rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK) {
        m->head.request = LIST;
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

static wf_status send_pull(wf_client *c, uint32_t ps, const weight_set *s, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(wf_net_msg(c->net, WF_PULL, &m, err));
    rc = wf_pull_put(m, (wf_pull_body){LIST, own_steps_of(c, s->step)}, err);
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
    s->left = c->n_slices;
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
    return c->sets[set].step && c->sets[set].left == 0;
}

const float *wf_client_weights(const wf_client *c, int set, uint32_t variable)
{
    return c->sets[set].values[variable]->data;
}

static wf_status on_weights(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err)
{
    weight_set *s = NULL;
    uint32_t n;

    for (int k = 0; k < WF_WEIGHT_SETS && !s; k++)
        if (c->sets[k].step && c->sets[k].pull == m->head.request)
            s = &c->sets[k];
    if (!s)
        return WF_OK; /* the answer of a pull that was dropped */
    WF_TRY(wf_parts_get(m, c->parts, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        const wf_part *p = &c->parts[i];
        const wf_client_slice *slice = p->slice < c->n_slices ? &c->slices[p->slice] : NULL;

        if (!slice || slice->ps != ps || p->bytes != slice->count * sizeof(float))
            return wf_fail(err, WF_PROTO, NULL, "ps %u: weights of slice %u, %lu bytes", ps,
                           p->slice, (unsigned long)p->bytes);
        memcpy((float *)s->values[slice->variable]->data + slice->offset, wf_part_data(m, p),
               p->bytes);
        s->left -= s->have[p->slice] ? 0 : 1;
        s->have[p->slice] = 1;
    }
    return WF_OK;
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
    if (m->head.kind == WF_DENIED && m->head.request == c->generation &&
        c->retry_ns[ps] == INT64_MAX)
        c->retry_ns[ps] = now_ns + WF_CLIENT_RETRY_MS * WF_NS_PER_MS;
    return WF_OK;
}

/* All that a ps may have missed, in the order in which it was said. */
static wf_status say_again(wf_client *c, uint32_t ps, wf_err *err)
{
    c->retry_ns[ps] = INT64_MAX;
    WF_TRY(send_list(c, ps, err));
    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        if (c->sets[k].step && c->sets[k].left > 0)
            WF_TRY(send_pull(c, ps, &c->sets[k], err));
    return wf_pushes_again(c, ps, err);
}

wf_status wf_client_on_up(wf_client *c, const wf_peer *peer, wf_err *err)
{
    uint32_t ps = place_of(c, peer);

    if (ps == UINT32_MAX || c->ps_incarnation[ps] != peer->incarnation)
        return WF_OK; /* another life has not the slices: the master begins a new generation */
    return say_again(c, ps, err);
}

wf_status wf_client_retry(wf_client *c, int64_t now_ns, wf_err *err)
{
    for (uint32_t i = 0; i < c->n_ps; i++)
        if (now_ns >= c->retry_ns[i])
            WF_TRY(say_again(c, i, err));
    return WF_OK;
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
