/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ps.c - the client of the parameter servers: it is opened, is let in by each ps,
 * and sends again what a link has lost. Pulls, pushes and the files of checkpoints are in files of
 * their own (ps_pulls.c, ps_pushes.c, ps_codings.c, ps_saves.c).
 *
 * Invariants, beside those of worker/exchange.h
 *   K2  what is pushed of a gradient, coded or as it is, is kept until it is acknowledged, and sent
 *       again over a new link to the same ps incarnation
 *   K3  over a fresh link, and after a denial, a ps is sent its list alone; pulls and pushes follow
 *       when it has registered it. So a ps that does not admit this worker yet costs a small
 *       message now and then, and not all gradients
 *   K4  a set is ready only when all frozen weights are in; a fresh link asks for those alone that
 *       have not come yet
 *   K5  a slice that has moved is asked of the ps that has it now, and what its old ps has not
 *       acknowledged is pushed there; an acknowledgement of the old one counts for nothing
 *   K6  of a slice the first answer to a pull counts, from whichever ps: it left before what the
 *       pull must not hold was pushed. A pull that is asked again may be answered with more
 */
#include "common/base/clock.h"
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/exchange/ps_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_place(const void *a, const void *b)
{
    const wf_client_slice *x = a, *y = b;

    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static bool is_elsewhere(const wf_client *c, const wf_client_slice *s)
{
    return s->variable < c->n_variables && c->variables[s->variable].elsewhere;
}

static wf_status check_slices(wf_client *c, wf_err *err)
{
    uint32_t v = 0;

    for (uint32_t i = 0; i < c->n_slices; i++) {
        const wf_client_slice *s = &c->slices[i];

        if (!is_elsewhere(c, s) && (s->ps >= c->n_ps || !c->ps[s->ps]))
            return wf_fail(err, WF_PROTO, NULL, "slice %u is on ps %u, which is not in the view", i,
                           s->ps);
        if (s->variable >= c->n_variables ||
            (!is_elsewhere(c, s) && (s->offset > c->variables[s->variable].count ||
                                     s->count > c->variables[s->variable].count - s->offset)))
            return wf_fail(err, WF_PROTO, NULL, "slice %u lies outside its variable", i);
        if (wf_rows_has(c, i) &&
            (s->offset % c->variables[s->variable].row || s->count % c->variables[s->variable].row))
            return wf_fail(err, WF_PROTO, NULL, "slice %u of a table is not made of rows", i);
        if (i > 0 && by_place(&c->slices[i - 1], s) >= 0)
            return wf_fail(err, WF_PROTO, NULL, "slice %u is out of order", i);
        for (; v <= s->variable; v++)
            c->first_slice[v] = i;
    }
    for (; v <= c->n_variables; v++)
        c->first_slice[v] = c->n_slices;
    return WF_OK;
}

/* Elements of a variable, whose bytes are a number too. */
static wf_status count_elements(const Weft__Variable *v, uint64_t *out, wf_err *err)
{
    int64_t n = 1;

    for (size_t i = 0; i < v->n_dims; i++)
        if (v->dims[i] < 0 || __builtin_mul_overflow(n, v->dims[i], &n))
            n = INT64_MAX;
    if (n > (int64_t)(SIZE_MAX / 2 / sizeof(float)))
        return wf_fail(err, WF_PROTO, NULL, "variable \"%.200s\" has no size that fits", v->name);
    *out = (uint64_t)n;
    return WF_OK;
}

/* Of a table: how long a row is, and how many of them a step names at most. */
static wf_status take_table(const Weft__Variable *from, wf_client_variable *v, wf_err *err)
{
    uint64_t rows = from->n_dims ? (uint64_t)from->dims[0] : 0;

    if (from->rows_most == 0)
        return WF_OK;
    v->row = rows ? v->count / rows : 0;
    v->rows_most = from->rows_most;
    v->unbounded = from->unbounded;
    if (v->row == 0 || !v->trainable || (v->unbounded && rows != WF_ROW_BUCKETS) ||
        from->rows_most > SIZE_MAX / 2 / sizeof(float) / v->row)
        return wf_fail(err, WF_PROTO, NULL, "variable \"%.200s\" cannot be a table", from->name);
    if (from->cache_rows == 0)
        return WF_OK;
    return wf_err_wrap(
        err, wf_row_cache_new(from->cache_rows, v->row, from->cache_staleness, &v->cache, err),
        "table \"%.200s\"", from->name);
}

static wf_status alloc_lists(wf_client *c, const wf_exchange_conf *conf, wf_err *err)
{
    const Weft__Start *s = conf->start;

    c->n_variables = (uint32_t)s->n_variables;
    c->n_slices = (uint32_t)s->n_slices;
    c->n_ps = conf->n_ps;
    c->variables = calloc(s->n_variables + 1, sizeof *c->variables);
    c->slices = calloc(s->n_slices + 1, sizeof *c->slices);
    c->first_slice = calloc(s->n_variables + 2, sizeof *c->first_slice);
    c->ps = calloc(conf->n_ps + 1, sizeof(*c->ps));
    c->ps_incarnation = calloc(conf->n_ps + 1, sizeof *c->ps_incarnation);
    c->doors = calloc(conf->n_ps + 1, sizeof *c->doors);
    if (!c->variables || !c->slices || !c->first_slice || !c->ps || !c->ps_incarnation || !c->doors)
        return wf_fail_nomem(err, s->n_slices * sizeof *c->slices);
    return WF_OK;
}

/* What a start says of variables, of slices, and of who holds them. */
static wf_status take_start(wf_client *c, const wf_exchange_conf *conf, wf_err *err)
{
    const Weft__Start *s = conf->start;

    for (uint32_t i = 0; i < c->n_variables; i++) {
        c->variables[i].elsewhere = c->is_part && s->variables[i]->on_workers;
        if (c->variables[i].elsewhere)
            continue;
        c->variables[i].trainable = s->variables[i]->kind == WF_KIND_TRAINABLE ||
                                    s->variables[i]->kind == WF_KIND_STATISTIC;
        WF_TRY(count_elements(s->variables[i], &c->variables[i].count, err));
        WF_TRY(take_table(s->variables[i], &c->variables[i], err));
        WF_TRY(wf_codings_take(s->variables[i], &c->variables[i], err));
    }
    for (uint32_t i = 0; i < c->n_slices; i++)
        c->slices[i] = (wf_client_slice){.variable = s->slices[i]->variable,
                                         .ps = s->slices[i]->ps,
                                         .offset = s->slices[i]->offset,
                                         .count = s->slices[i]->count};
    for (uint32_t i = 0; i < c->n_ps; i++) {
        c->ps[i] = conf->ps[i];
        c->doors[i].retry_ns = INT64_MAX;
    }
    for (size_t i = 0; s->view && i < s->view->n_members; i++)
        if (s->view->members[i]->role == WF_ROLE_PS && s->view->members[i]->index < c->n_ps)
            c->ps_incarnation[s->view->members[i]->index] = s->view->members[i]->incarnation;
    return WF_OK;
}

static void client_free(wf_exchange *x)
{
    wf_client *it = (wf_client *)x;

    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        wf_pulls_free_set(it, &it->sets[k]);
    wf_pulls_free_set(it, &it->frozen);
    for (uint32_t v = 0; it->variables && v < it->n_variables; v++)
        wf_row_cache_free(&it->variables[v].cache);
    wf_pushes_close(it);
    wf_codings_close(it);
    wf_decisions_close(&it->clock.decided);
    free(it->doors);
    free(it->first_slice);
    free(it->ps_incarnation);
    free(it->ps);
    free(it->slices);
    free(it->variables);
    free(it);
}

void wf_client_set_head(const wf_client *c, wf_msg *m)
{
    m->head.job = c->job;
    m->head.generation = c->generation;
    m->head.map = c->map;
    m->head.view = c->view;
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
    wf_client_set_head(c, *m);
    rc = wf_net_send(c->net, c->ps[ps], lane, key, m, err);
    return rc == WF_NOTFOUND ? WF_OK : rc;
}

static uint32_t place_of(const wf_client *c, const wf_peer *peer)
{
    uint32_t i = peer->task.index;

    return i < c->n_ps && c->ps[i] == peer ? i : UINT32_MAX;
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
    c->doors[ps].open = c->doors[ps].is_strange = false;
    c->doors[ps].retry_ns = INT64_MAX;
    if (wf_pulls_lack_frozen(c, ps))
        WF_TRY(wf_pulls_send_list(c, ps, WF_CLIENT_FROZEN_LIST, err));
    return wf_pulls_send_list(c, ps, WF_CLIENT_LIST, err);
}

/* All that a ps may have missed, in the order in which it was sent first. */
static wf_status on_list_ok(wf_client *c, uint32_t ps, wf_err *err)
{
    struct ps_door *d = &c->doors[ps];

    if (d->open || d->is_strange) /* it may have this list alone, and is asked again */
        return WF_OK;
    *d = (struct ps_door){.open = true, .retry_ns = INT64_MAX, .joined = d->joined};
    WF_TRY(wf_decided_again(c, ps, err));
    if (wf_pulls_lack_frozen(c, ps))
        WF_TRY(wf_pulls_send(c, ps, &c->frozen, err));
    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        if (c->base.set_step[k] && c->sets[k].left > 0)
            WF_TRY(wf_pulls_send(c, ps, &c->sets[k], err));
    WF_TRY(wf_pushes_again(c, ps, err));
    return wf_clock_again(c, ps, err); /* a leave behind all pushes */
}

/* K5. Takes in what a ps knows of moved slices. Those ps whose slices have changed have ended this
 * worker's lists: they are sent new ones, and what follows these. Errors: WF_PROTO, WF_NOMEM. */
static wf_status learn_moves(wf_client *c, const Weft__Denied *body, bool *changed, wf_err *err)
{
    for (size_t i = 0; i < body->n_moved; i++) { /* all, before one of them counts */
        const Weft__MapChange *to = body->moved[i];

        if (to->slice >= c->n_slices || to->ps >= c->n_ps || !c->ps[to->ps])
            return wf_fail(err, WF_PROTO, NULL, "slice %u has moved to ps %u, which is not known",
                           to->slice, to->ps);
    }
    for (size_t i = 0; i < body->n_moved; i++) {
        const Weft__MapChange *to = body->moved[i];
        wf_client_slice *s = &c->slices[to->slice];

        if (to->version <= s->map)
            continue;
        WF_LOG_INFO("worker.slice_moved", "slice=%u from=%u to=%u version=%u", to->slice, s->ps,
                    to->ps, to->version);
        changed[s->ps] = changed[to->ps] = true;
        wf_pushes_moved(c, to->slice, s->ps, to->ps);
        s->ps = to->ps;
        s->map = to->version;
    }
    return WF_OK;
}

static wf_status ask_in_anew(wf_client *c, const bool *changed, wf_err *err)
{
    for (uint32_t i = 0; i < c->n_ps; i++) {
        if (!changed[i])
            continue;
        wf_pushes_drop_draft(c, i);
        c->doors[i].open = false;
        if (holds_slices(c, i))
            WF_TRY(ask_in(c, i, err));
    }
    return WF_OK;
}

/* Each message that was under way is denied; the first of these closes the door. */
static void close_door(wf_client *c, uint32_t ps, int64_t now_ns)
{
    struct ps_door *d = &c->doors[ps];

    if (d->retry_ns != INT64_MAX)
        return;
    d->open = false;
    d->wait_ns = d->wait_ns ? WF_MIN(2 * d->wait_ns, WF_CLIENT_RETRY_MOST_MS * WF_NS_PER_MS)
                            : WF_CLIENT_RETRY_MS * WF_NS_PER_MS;
    d->retry_ns = now_ns + d->wait_ns;
}

static bool awaits_weights(const wf_client *c)
{
    for (int k = 0; k < WF_WEIGHT_SETS; k++)
        if (c->base.set_step[k] && c->sets[k].left > 0)
            return true;
    return false;
}

/* A denial with a newer map, or with moves that are news here, is answered at once, and so is the
 * word that lists have ended: slices of that ps have come, gone, or stayed after all. One of a
 * message that was sent by an older map than this client has now is no news: all of it has been
 * sent again, or will be when the new list is registered. */
static wf_status on_denied(wf_client *c, uint32_t ps, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    bool *changed = calloc((size_t)c->n_ps + 1, sizeof *changed), newer = m->head.map > c->map;
    Weft__Denied *body = NULL;
    wf_status rc = changed ? wf_control_get(m, &weft__denied__descriptor, &body, err)
                           : wf_fail_nomem(err, c->n_ps);

    if (rc == WF_OK)
        rc = learn_moves(c, body, changed, err);
    if (rc == WF_OK) {
        c->doors[ps].is_strange |= m->head.map == 0;
        changed[ps] |= newer || body->map == 0;
        c->map = WF_MAX(c->map, m->head.map);
        if (!c->moved_ns && body->n_moved && awaits_weights(c))
            c->moved_ns = now_ns;
        rc = ask_in_anew(c, changed, err);
        if (!changed[ps] && (body->map >= m->head.map || !c->doors[ps].open))
            close_door(c, ps, now_ns);
    }
    wf_control_free(&body);
    free(changed);
    return rc;
}

/* How long this worker has waited for weights because slices have moved. */
static void note_wait(wf_client *c, int64_t now_ns)
{
    if (!c->moved_ns || awaits_weights(c))
        return;
    WF_LOG_INFO("worker.weights_after_move", "map=%u ms=%.1f", c->map,
                (double)(now_ns - c->moved_ns) / 1e6);
    c->moved_ns = 0;
}

/* ---- messages and links ---- */

static wf_status on_message(wf_exchange *x, const wf_peer *from, const wf_msg *m, int64_t now_ns,
                            wf_err *err)
{
    wf_client *c = (wf_client *)x;
    uint32_t ps = place_of(c, from);

    if (ps == UINT32_MAX || m->head.generation != c->generation)
        return WF_OK;
    switch (m->head.kind) {
    case WF_WEIGHTS:
        WF_TRY(wf_pulls_on_weights(c, ps, m, err));
        note_wait(c, now_ns);
        return WF_OK;
    case WF_PUSH_OK:
        return wf_pushes_on_ok(c, ps, m, err);
    case WF_CLOCK_OK:
        return wf_clock_on_ok(c, ps, m, err);
    case WF_DECIDED:
        return wf_decided_on(c, ps, m, err);
    case WF_LIST_OK: /* of the list that is sent last: both are registered then */
        return m->head.request == WF_CLIENT_LIST ? on_list_ok(c, ps, err) : WF_OK;
    case WF_CUT_FORKED:
    case WF_CUT_SAVED:
        return wf_saves_on_message(c, ps, m, err);
    case WF_DENIED:
        return m->head.request == c->generation ? on_denied(c, ps, m, now_ns, err) : WF_OK;
    default:
        return WF_OK;
    }
}

static wf_status on_up(wf_exchange *x, const wf_peer *peer, wf_err *err)
{
    wf_client *c = (wf_client *)x;
    uint32_t ps = place_of(c, peer);

    if (ps == UINT32_MAX)
        return WF_OK;
    if (holds_slices(c, ps))
        WF_TRY(ask_in(c, ps, err));
    return ps < x->saving.n && !x->saving.shards[ps].result ? wf_saves_ask(c, ps, err) : WF_OK;
}

static wf_status retry(wf_exchange *x, int64_t now_ns, wf_err *err)
{
    wf_client *c = (wf_client *)x;

    for (uint32_t i = 0; i < c->n_ps; i++)
        if (now_ns >= c->doors[i].retry_ns && holds_slices(c, i))
            WF_TRY(ask_in(c, i, err));
    return WF_OK;
}

/* ---- who is late ---- */

static uint32_t late_ps(const wf_client *c, wf_exchange_wait wait, uint32_t of)
{
    if (wait == WF_EXCHANGE_ACKS)
        return wf_pushes_late(c, of);
    return wf_pulls_late(c, wait == WF_EXCHANGE_FROZEN ? &c->frozen : &c->sets[of]);
}

static void name_late(const wf_exchange *x, wf_exchange_wait wait, uint32_t of, wf_waiting *out)
{
    const wf_client *c = (const wf_client *)x;
    uint32_t ps = late_ps(c, wait, of);
    const wf_peer *peer = ps < c->n_ps ? c->ps[ps] : NULL;
    size_t n = strlen(out->what), room = sizeof out->what - n;
    char *rest = out->what + n;

    out->whom = (wf_task){WF_ROLE_PS, ps < c->n_ps ? ps : 0};
    if (peer && !peer->up)
        snprintf(rest, room, " (no link to %.60s%s%.80s)", peer->address,
                 peer->delay[0] ? ": " : "", peer->delay);
    else if (peer && !c->doors[ps].open)
        snprintf(rest, room, " (it does not let this worker in)");
}

static const wf_exchange_ops client_ops = {
    .free = client_free,
    .on_up = on_up,
    .on_message = on_message,
    .retry = retry,
    .name_rows = wf_rows_name,
    .want = wf_pulls_want,
    .ready = wf_pulls_ready,
    .weights = wf_pulls_weights,
    .begin_step = wf_pushes_begin,
    .gradient = wf_pushes_gradient,
    .push = wf_pushes_push,
    .drop_step = wf_pushes_drop_step,
    .end_step = wf_pushes_end_step,
    .leave = wf_clock_leave,
    .count_shards = wf_saves_count,
    .save = wf_saves_begin,
    .frozen_left = wf_pulls_frozen_left,
    .name_late = name_late,
};

static wf_status client_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err)
{
    wf_client *c = calloc(1, sizeof *c);
    wf_status rc;

    if (!c)
        return wf_fail_nomem(err, sizeof *c);
    c->base.ops = &client_ops;
    c->net = conf->net;
    c->job = conf->job;
    c->generation = conf->generation;
    c->map = conf->map;
    c->view = conf->view;
    c->pipeline = conf->pipeline;
    c->checksums = conf->checksums;
    c->pool = conf->pool;
    c->bounded = conf->start->bounded > 0;
    c->together = conf->start->together;
    c->is_part = conf->is_part;
    *out = &c->base;
    rc = alloc_lists(c, conf, err);
    if (rc == WF_OK)
        rc = take_start(c, conf, err);
    if (rc == WF_OK)
        rc = check_slices(c, err);
    c->shards_at_start = rc == WF_OK ? wf_saves_count(&c->base) : 0;
    if (rc == WF_OK)
        rc = wf_pulls_init(c, err);
    if (rc == WF_OK)
        rc = wf_pushes_init(c, err);
    if (rc == WF_OK)
        rc = wf_codings_init(c, err);
    if (rc != WF_OK)
        wf_exchange_free(out);
    return rc;
}

const wf_exchange_kind wf_exchange_ps = {
    .name = "parameter_server", .ahead = true, .sends = true, .open = client_open};
