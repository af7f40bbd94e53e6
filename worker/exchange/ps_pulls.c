/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ps_pulls.c - weights come from the parameter servers: lists of slices, pulls, and
 * the sets that answers fill. */
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/exchange/ps_state.h"

#include <stdlib.h>
#include <string.h>

/* Whether a slice is on ps, and frozen or not. */
static bool is_of(const wf_client *c, const wf_client_slice *s, bool frozen)
{
    const wf_client_variable *v = &c->variables[s->variable];

    return !v->elsewhere && v->trainable != frozen;
}

static wf_status alloc_set(const wf_client *c, weight_set *s, wf_err *err)
{
    s->have = calloc(c->n_slices + 1, 1);
    s->versions = calloc(c->n_slices + 1, sizeof *s->versions);
    if (!s->have || !s->versions)
        return wf_fail_nomem(err, c->n_slices);
    WF_TRY(wf_values_init(c, s, err));
    WF_TRY(wf_rows_init(c, &s->rows, err));
    return wf_missing_init(c, s, err);
}

void wf_pulls_free_set(wf_client *c, weight_set *s)
{
    wf_values_free(c, s);
    wf_rows_free(c, &s->rows);
    wf_missing_free(c, s);
    free(s->versions);
    free(s->have);
}

wf_status wf_pulls_init(wf_client *c, wf_err *err)
{
    for (uint32_t i = 0; i < c->n_slices; i++) {
        c->n_moving += is_of(c, &c->slices[i], false);
        c->frozen.left += is_of(c, &c->slices[i], true);
    }
    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        WF_TRY(alloc_set(c, &c->sets[k], err));
    c->frozen.pull = ++c->next_pull;
    return alloc_set(c, &c->frozen, err);
}

/* Whether slice i belongs to the list of a ps. */
static bool is_listed(const wf_client *c, uint32_t list, uint32_t ps, uint32_t i)
{
    const wf_client_slice *s = &c->slices[i];

    if (s->ps != ps)
        return false;
    return list == WF_CLIENT_FROZEN_LIST ? is_of(c, s, true) && !c->frozen.have[i]
                                         : is_of(c, s, false);
}

bool wf_pulls_lack_frozen(const wf_client *c, uint32_t ps)
{
    for (uint32_t i = 0; c->frozen.left && i < c->n_slices; i++)
        if (is_listed(c, WF_CLIENT_FROZEN_LIST, ps, i))
            return true;
    return false;
}

wf_status wf_pulls_send_list(wf_client *c, uint32_t ps, uint32_t list, wf_err *err)
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

    return WF_MAX(upto, c->base.base);
}

static bool trains_with(const wf_client *c, const weight_set *s)
{
    return s != &c->frozen && s != &c->sets[WF_EVAL_SET];
}

/* Frozen weights count on no push, and go before all others. */
wf_status wf_pulls_send(wf_client *c, uint32_t ps, weight_set *s, wf_err *err)
{
    bool frozen = s == &c->frozen, trains = trains_with(c, s);
    wf_pull_body body = {frozen ? WF_CLIENT_FROZEN_LIST : WF_CLIENT_LIST,
                         frozen ? 0 : own_steps_of(c, s->step), trains ? s->clock : 0};
    wf_msg *m = NULL;
    wf_status rc;
    uint32_t n;

    if (trains && !wf_clock_is_in(c)) /* wf_pulls_again follows */
        return WF_OK;
    if (trains && s->clock == 0)
        s->clock = body.clock = wf_clock_of(c, s->step);
    WF_TRY(wf_net_msg(c->net, WF_PULL, &m, err));
    rc = wf_rows_ask(c, ps, s, m, c->parts, &n, err);
    if (rc == WF_OK)
        rc = wf_pull_put(m, body, c->parts, n, err);
    if (rc == WF_OK) {
        m->head.request = s->pull;
        m->head.step = s->step;
        rc = wf_client_send(c, ps, WF_LANE_DATA, pull_key(c, s->step), &m, err);
    }
    wf_net_free_msg(c->net, &m);
    return rc;
}

/* A slice of a table of which no row is asked for has nothing to come. */
static void begin_set(const wf_client *c, weight_set *s)
{
    s->left = c->n_moving;
    memset(s->have, 0, c->n_slices);
    for (uint32_t i = 0; i < c->n_slices; i++)
        if (wf_rows_has(c, i) && wf_rows_asked(c, s, i) == 0) {
            s->have[i] = 1;
            s->left--;
        }
}

wf_status wf_pulls_want(wf_exchange *x, int set, uint32_t step, wf_err *err)
{
    wf_client *c = (wf_client *)x;
    weight_set *s = &c->sets[set];

    s->step = step;
    s->clock = 0;
    s->pull = ++c->next_pull;
    wf_values_begin(c, s);
    WF_TRY(wf_rows_look_up(c, s, err));
    begin_set(c, s);
    if (set != WF_EVAL_SET)
        WF_TRY(wf_clock_join(c, step, err));
    for (uint32_t i = 0; i < c->n_ps; i++)
        WF_TRY(wf_pulls_send(c, i, s, err));
    return WF_OK;
}

wf_status wf_pulls_again(wf_client *c, wf_err *err)
{
    for (int set = 0; set < WF_EVAL_SET; set++)
        for (uint32_t i = 0; c->base.set_step[set] && c->sets[set].left > 0 && i < c->n_ps; i++)
            WF_TRY(wf_pulls_send(c, i, &c->sets[set], err));
    return WF_OK;
}

bool wf_pulls_ready(const wf_exchange *x, int set)
{
    const wf_client *c = (const wf_client *)x;

    return c->sets[set].left == 0 && c->frozen.left == 0; /* K4 */
}

uint32_t wf_pulls_frozen_left(const wf_exchange *x)
{
    return ((const wf_client *)x)->frozen.left;
}

const float *wf_pulls_weights(const wf_exchange *x, int set, uint32_t variable)
{
    const wf_client *c = (const wf_client *)x;
    const weight_set *s = c->variables[variable].trainable ? &c->sets[set] : &c->frozen;

    static const WF_ALIGNED(WF_BUF_ALIGN) float none[WF_BUF_ALIGN / sizeof(float)]; /* of no rows */

    return s->values[variable].at ? s->values[variable].at : none;
}

/* The set that an answer is for; NULL: its pull was dropped. */
static weight_set *set_of(wf_client *c, uint32_t pull)
{
    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        if (c->base.set_step[k] && c->sets[k].pull == pull)
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
        WF_LOG_INFO("worker.frozen_in", "bytes=%lu", (unsigned long)c->frozen_bytes);
}

/* How many weights of a slice a set waits for. */
static uint64_t awaited(const wf_client *c, const weight_set *s, uint32_t id)
{
    const wf_client_slice *slice = &c->slices[id];

    return wf_rows_has(c, id) ? wf_rows_asked(c, s, id) * c->variables[slice->variable].row
                              : slice->count;
}

/* Weights come as float32 or as halves. */
static bool is_weights(const wf_msg *m, const wf_part *p, uint64_t n)
{
    return p->codec == WF_CODEC_F32 && p->coding <= WF_CODING_F16 && wf_part_coded(m, p).n == n;
}

wf_status wf_pulls_on_weights(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err)
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
        bool is_wanted = slice && is_of(c, slice, s == &c->frozen);
        wf_coded from;

        /* A part without a codec lies in no frame. */
        if (!is_wanted || (slice->ps != ps && !slice->map) ||
            !is_weights(m, p, awaited(c, s, p->slice)))
            return wf_fail(err, WF_PROTO, NULL, "ps %u: weights of slice %u, %lu bytes", ps,
                           p->slice, (unsigned long)p->bytes);
        if (s->have[p->slice]) /* K6 */
            continue;
        from = wf_part_coded(m, p);
        WF_TRY(wf_values_take(c, s, p->slice, &from, m->frames[p->frame].buf, err));
        s->left--;
        s->have[p->slice] = 1;
        s->versions[p->slice] = p->version;
    }
    note_frozen(c, s, left, m);
    return WF_OK;
}

/* The first ps that owes weights of a set, or frozen ones; n_ps if none does. */
uint32_t wf_pulls_late(const wf_client *c, const weight_set *s)
{
    for (uint32_t i = 0; i < c->n_slices; i++)
        if (!s->have[i] && is_of(c, &c->slices[i], s == &c->frozen))
            return c->slices[i].ps;
    return c->n_ps;
}
