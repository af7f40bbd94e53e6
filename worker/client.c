/* SPDX-License-Identifier: Apache-2.0 */
/* worker/client.c */
#include "worker/client.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PUSH_BYTES = 1 << 20,        /* a push leaves when so much has gathered */
    STEPS = WF_MAX_PIPELINE + 3, /* gradients in flight, and the one being made */
    LIST = 0
};

typedef struct weight_set {
    uint32_t step;   /* 0: none */
    uint32_t pull;   /* the pull's name; answers of another are dropped */
    uint32_t left;   /* slices to come */
    uint8_t *have;   /* [n_slices] */
    wf_buf **values; /* [n_variables] */
} weight_set;

typedef struct step_push {
    uint32_t step;  /* 0: free */
    uint8_t *acked; /* [n_slices]: a part may be sent twice, and counts once */
    uint32_t *left; /* [n_ps]: parts not acknowledged */
    uint32_t parts_left;
    bool *pushed;        /* [n_variables] */
    bool ended, nothing; /* nothing: its parts are empty */
    wf_buf **grads;      /* [n_variables] */
} step_push;

/* A push message being filled, for one ps. */
typedef struct draft {
    wf_msg *msg;
    wf_part parts[WF_MAX_PARTS];
    uint32_t n;
    size_t bytes;
} draft;

struct wf_client {
    wf_net *net;
    wf_client_variable *variables;
    uint32_t n_variables;
    wf_client_slice *slices; /* in the order of the variables, then of offsets */
    uint32_t n_slices;
    uint32_t *first_slice; /* [n_variables + 1] */
    wf_peer **ps;
    uint64_t *ps_incarnation; /* those of the view: another has not the slices */
    uint32_t n_ps;
    int64_t *retry_ns; /* [n_ps]: when to ask again after a denial; INT64_MAX: not */
    uint16_t job, generation;
    uint32_t view, pipeline, base, acked, begun, next_pull;
    bool checksums;
    weight_set sets[WF_WEIGHT_SETS];
    step_push steps[STEPS];
    draft *drafts; /* [n_ps] */
    wf_part parts[WF_MAX_PARTS];
};

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
    for (int k = 0; k < STEPS; k++) {
        c->steps[k].acked = calloc(c->n_slices + 1, 1);
        c->steps[k].left = calloc(c->n_ps + 1, sizeof(*c->steps[k].left));
        c->steps[k].pushed = calloc(c->n_variables + 1, sizeof(*c->steps[k].pushed));
        c->steps[k].grads = calloc(c->n_variables + 1, sizeof(*c->steps[k].grads));
        if (!c->steps[k].acked || !c->steps[k].left || !c->steps[k].pushed || !c->steps[k].grads)
            return wf_fail_nomem(err, c->n_variables);
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

        if (s->variable >= c->n_variables || s->ps >= c->n_ps ||
            s->offset > c->variables[s->variable].count ||
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
    c->drafts = calloc(conf->n_ps + 1, sizeof *c->drafts);
    c->retry_ns = calloc(conf->n_ps + 1, sizeof *c->retry_ns);
    c->job = conf->job;
    c->generation = conf->generation;
    c->view = conf->view;
    c->pipeline = conf->pipeline;
    c->checksums = conf->checksums;
    if (!c->variables || !c->slices || !c->ps || !c->ps_incarnation || !c->first_slice ||
        !c->drafts || !c->retry_ns)
        rc = wf_fail_nomem(err, conf->n_slices * sizeof *conf->slices);
    for (uint32_t i = 0; rc == WF_OK && i < c->n_ps; i++)
        c->retry_ns[i] = INT64_MAX;
    if (rc == WF_OK)
        rc = check_slices(c, err);
    if (rc == WF_OK)
        rc = alloc_sets(c, err);
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
    for (int k = 0; k < STEPS; k++) {
        for (uint32_t v = 0; it->steps[k].grads && v < it->n_variables; v++)
            wf_buf_unref(&it->steps[k].grads[v]);
        free(it->steps[k].grads);
        free(it->steps[k].pushed);
        free(it->steps[k].left);
        free(it->steps[k].acked);
    }
    for (uint32_t i = 0; it->drafts && i < it->n_ps; i++)
        wf_net_free_msg(it->net, &it->drafts[i].msg);
    free(it->drafts);
    free(it->retry_ns);
    free(it->first_slice);
    free(it->ps_incarnation);
    free(it->ps);
    free(it->slices);
    free(it->variables);
    free(it);
}

static wf_status send_to_ps(wf_client *c, uint32_t ps, wf_lane lane, uint64_t key, wf_msg **m,
                            wf_err *err)
{
    wf_status rc;

    if (!c->ps[ps]->up) { /* all is said again when it is (wf_client_on_up) */
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
        rc = send_to_ps(c, ps, WF_LANE_CONTROL, 0, &m, err);
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

static uint64_t push_key(uint32_t step)
{
    return 4 * (uint64_t)step + 1;
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
        rc = send_to_ps(c, ps, WF_LANE_DATA, pull_key(c, s->step), &m, err);
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

static step_push *find_step(wf_client *c, uint32_t step)
{
    step_push *s = &c->steps[step % STEPS];

    return s->step == step ? s : NULL;
}

/* Steps leave in order: acked only moves over steps whose parts are all in. */
static void move_acked(wf_client *c)
{
    for (;;) {
        step_push *s = find_step(c, c->acked + 1);

        if (!s || !s->ended || s->parts_left > 0)
            return;
        s->step = 0;
        c->acked++;
    }
}

static wf_status on_push_ok(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err)
{
    step_push *s = find_step(c, m->head.step);
    uint32_t n = 0, ids[WF_MAX_PARTS];

    WF_TRY(wf_slices_get(m, ids, &n, err));
    for (uint32_t i = 0; s && i < n; i++) {
        const wf_client_slice *slice = ids[i] < c->n_slices ? &c->slices[ids[i]] : NULL;

        if (!slice || slice->ps != ps || !s->pushed[slice->variable])
            return wf_fail(err, WF_PROTO, NULL, "ps %u: slice %u, which was not pushed", ps,
                           ids[i]);
        if (s->acked[ids[i]])
            continue;
        s->acked[ids[i]] = 1;
        s->left[ps]--;
        s->parts_left--;
    }
    move_acked(c);
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
        return on_push_ok(c, ps, m, err);
    if (m->head.kind == WF_DENIED && m->head.request == c->generation &&
        c->retry_ns[ps] == INT64_MAX)
        c->retry_ns[ps] = now_ns + WF_CLIENT_RETRY_MS * WF_NS_PER_MS;
    return WF_OK;
}

static step_push *begin_step(wf_client *c, uint32_t step)
{
    step_push *s = &c->steps[step % STEPS];

    if (s->step == step)
        return s;
    wf_assert(s->step == 0 && step == c->begun + 1);
    c->begun = step;
    s->step = step;
    s->parts_left = 0;
    s->ended = s->nothing = false;
    memset(s->acked, 0, c->n_slices);
    memset(s->left, 0, c->n_ps * sizeof(*s->left));
    memset(s->pushed, 0, c->n_variables * sizeof(*s->pushed));
    return s;
}

float *wf_client_gradient(wf_client *c, uint32_t step, uint32_t variable)
{
    step_push *s = begin_step(c, step);
    wf_buf **b = &s->grads[variable];

    if (*b && wf_buf_refs(*b) > 1) /* the transport has not let go of the last use */
        wf_buf_unref(b);
    if (!*b)
        *b = wf_buf_new(c->variables[variable].count * sizeof(float));
    return *b ? (*b)->data : NULL;
}

static wf_status flush_draft(wf_client *c, uint32_t ps, uint32_t step, wf_err *err)
{
    draft *d = &c->drafts[ps];
    wf_status rc;

    if (!d->msg)
        return WF_OK;
    d->msg->head.step = step;
    rc = wf_parts_put(d->msg, d->parts, d->n, err);
    if (rc == WF_OK)
        rc = send_to_ps(c, ps, WF_LANE_DATA, push_key(step), &d->msg, err);
    wf_net_free_msg(c->net, &d->msg);
    d->n = 0;
    d->bytes = 0;
    return rc;
}

/* Slices that lie one behind the other go in one frame. */
static bool extend_frame(draft *d, wf_buf *grad, const uint8_t *data, size_t bytes)
{
    wf_frame *last;

    if (!d->msg || d->msg->n_frames == 0)
        return false;
    last = &d->msg->frames[d->msg->n_frames - 1];
    if (last->buf != grad || last->data + last->bytes != data)
        return false;
    last->bytes += bytes;
    d->msg->payload_bytes += bytes;
    return true;
}

/* The message that a part of this ps goes into, with room for one more. */
static wf_status open_draft(wf_client *c, const step_push *s, uint32_t ps, wf_err *err)
{
    draft *d = &c->drafts[ps];

    if (d->msg &&
        (d->n == WF_MAX_PARTS || d->msg->n_frames == WF_MAX_FRAMES || d->bytes >= PUSH_BYTES))
        WF_TRY(flush_draft(c, ps, s->step, err));
    return d->msg ? WF_OK : wf_net_msg(c->net, WF_PUSH, &d->msg, err);
}

static wf_status add_part(wf_client *c, const step_push *s, uint32_t id, wf_err *err)
{
    const wf_client_slice *slice = &c->slices[id];
    wf_buf *grad = s->grads[slice->variable];
    draft *d = &c->drafts[slice->ps];
    const wf_frame *last;
    const uint8_t *data;
    size_t bytes = slice->count * sizeof(float);

    WF_TRY(open_draft(c, s, slice->ps, err));
    if (s->nothing) {
        d->parts[d->n++] = (wf_part){.slice = id, .codec = WF_CODEC_NONE};
        return WF_OK;
    }
    data = (const uint8_t *)grad->data + slice->offset * sizeof(float);
    if (!extend_frame(d, grad, data, bytes))
        WF_TRY(wf_msg_add_frame(d->msg, grad, data, bytes, err));
    last = &d->msg->frames[d->msg->n_frames - 1];
    d->parts[d->n++] = (wf_part){
        .slice = id,
        .codec = WF_CODEC_F32,
        .frame = (uint8_t)(d->msg->n_frames - 1),
        .offset = (uint64_t)(data - last->data),
        .bytes = bytes,
        .checksum = c->checksums ? wf_part_checksum(data, bytes) : 0,
    };
    d->bytes += bytes;
    return WF_OK;
}

wf_status wf_client_push(wf_client *c, uint32_t step, uint32_t variable, wf_err *err)
{
    step_push *s = find_step(c, step);

    wf_assert(s && !s->pushed[variable]);
    s->pushed[variable] = true;
    for (uint32_t i = c->first_slice[variable]; i < c->first_slice[variable + 1]; i++) {
        s->left[c->slices[i].ps]++;
        s->parts_left++;
        WF_TRY(add_part(c, s, i, err));
    }
    return WF_OK;
}

wf_status wf_client_push_nothing(wf_client *c, uint32_t step, wf_err *err)
{
    step_push *s = begin_step(c, step);

    s->nothing = true;
    for (uint32_t i = 0; i < c->n_variables; i++)
        if (c->variables[i].trainable)
            WF_TRY(wf_client_push(c, step, i, err));
    return WF_OK;
}

wf_status wf_client_push_end(wf_client *c, uint32_t step, wf_err *err)
{
    step_push *s = begin_step(c, step);

    for (uint32_t i = 0; i < c->n_ps; i++)
        WF_TRY(flush_draft(c, i, step, err));
    s->ended = true;
    move_acked(c);
    return WF_OK;
}

/* K2: all parts of this ps that a step still waits for. */
static wf_status push_again(wf_client *c, uint32_t ps, const step_push *s, wf_err *err)
{
    /* A message in the making goes first: it may be of a later step. */
    WF_TRY(flush_draft(c, ps, c->begun, err));
    for (uint32_t i = 0; i < c->n_slices; i++)
        if (c->slices[i].ps == ps && s->pushed[c->slices[i].variable] && !s->acked[i])
            WF_TRY(add_part(c, s, i, err));
    return flush_draft(c, ps, s->step, err);
}

/* All that a ps may have missed, in the order in which it was said. */
static wf_status say_again(wf_client *c, uint32_t ps, wf_err *err)
{
    c->retry_ns[ps] = INT64_MAX;
    WF_TRY(send_list(c, ps, err));
    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        if (c->sets[k].step && c->sets[k].left > 0)
            WF_TRY(send_pull(c, ps, &c->sets[k], err));
    for (uint32_t step = c->acked + 1; step <= c->begun; step++) {
        step_push *s = find_step(c, step);

        if (s && s->left[ps] > 0)
            WF_TRY(push_again(c, ps, s, err));
    }
    return WF_OK;
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

const char *wf_client_awaited(const wf_client *c, char *text, size_t size)
{
    text[0] = 0;
    for (uint32_t i = 0; i < c->n_ps; i++) {
        bool awaited = false;
        size_t at = strlen(text);

        for (int k = 0; k < STEPS; k++)
            awaited |= c->steps[k].step && c->steps[k].left[i] > 0;
        for (int k = 0; k < WF_WEIGHT_SETS; k++)
            for (uint32_t s = 0; c->sets[k].step && s < c->n_slices; s++)
                awaited |= c->slices[s].ps == i && !c->sets[k].have[s];
        if (awaited)
            snprintf(text + at, size - at, "%sps/%u at %s", at ? ", " : "", i, c->ps[i]->address);
    }
    return text;
}
