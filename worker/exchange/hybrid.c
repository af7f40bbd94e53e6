/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/hybrid.c - tables live on parameter servers, and each worker holds all other
 * variables: two exchanges, each of its own variables, that make every step together.
 *
 * A set of weights is ready, and a step is acknowledged, when both say so. What the worker reads
 * and writes in the head of an exchange is carried over before and after each call.
 *
 * A checkpoint has the files of the ps, and behind them one of this worker.
 */
#include "common/base/size.h"
#include "worker/exchange/local_state.h"

#include <stdlib.h>
#include <string.h>

enum { TABLES = 0, OTHERS, PARTS };

typedef struct hybrid {
    wf_exchange base; /* first */
    wf_exchange *parts[PARTS];
    const Weft__Start *start;
    uint32_t n_ps;
} hybrid;

static wf_exchange *part_of(const wf_exchange *x, uint32_t variable)
{
    const hybrid *h = (const hybrid *)x;

    return h->parts[h->start->variables[variable]->on_workers ? OTHERS : TABLES];
}

/* ---- heads ---- */

/* What the worker has set. */
static void lead(hybrid *h)
{
    for (int i = 0; i < PARTS; i++) {
        h->parts[i]->base = h->base.base;
        memcpy(h->parts[i]->set_step, h->base.set_step, sizeof h->base.set_step);
        if (!h->base.saving.cut)
            wf_exchange_save_end(h->parts[i]);
    }
}

static void take_counts(wf_exchange *x, wf_exchange *from)
{
    x->rows_named += from->rows_named;
    x->rows_cached += from->rows_cached;
    x->pushed_bytes += from->pushed_bytes;
    x->plain_bytes += from->plain_bytes;
    from->rows_named = from->rows_cached = from->pushed_bytes = from->plain_bytes = 0;
}

/* Files that a part has written; the other has none of the same number. */
static void take_files(wf_exchange *x, wf_exchange *from)
{
    for (uint32_t i = 0; x->saving.cut == from->saving.cut && i < from->saving.n; i++) {
        struct wf_exchange_shard *to = &x->saving.shards[i], *s = &from->saving.shards[i];

        if (to->result || (!s->copied && !s->result && !s->writer.role))
            continue;
        to->writer = s->writer;
        to->copied = s->copied;
        to->result = s->result;
        s->result = NULL;
    }
}

/* What the parts have come to. */
static void follow(hybrid *h)
{
    wf_exchange *x = &h->base;
    const wf_exchange *tables = h->parts[TABLES], *others = h->parts[OTHERS];

    x->acked = WF_MIN(tables->acked, others->acked);
    x->begun = WF_MAX(tables->begun, others->begun);
    x->late = WF_MAX(tables->late, others->late);
    x->is_in = tables->is_in;
    x->shift = tables->shift;
    for (int set = 0; set < WF_WEIGHT_SETS; set++)
        if (!tables->set_step[set] || !others->set_step[set])
            x->set_step[set] = 0;
    for (int i = 0; i < PARTS; i++) {
        take_counts(x, h->parts[i]);
        take_files(x, h->parts[i]);
    }
}

/* Of what both did, in this order. */
static wf_status done(hybrid *h, wf_status rc)
{
    follow(h);
    return rc;
}

/* ---- messages and links ---- */

static wf_status on_view(wf_exchange *x, const Weft__View *view, uint32_t number, wf_err *err)
{
    hybrid *h = (hybrid *)x;

    lead(h);
    return done(h, wf_exchange_on_view(h->parts[OTHERS], view, number, err));
}

static wf_status on_up(wf_exchange *x, const wf_peer *peer, wf_err *err)
{
    hybrid *h = (hybrid *)x;

    lead(h);
    return done(h, wf_exchange_on_up(h->parts[peer->task.role != WF_ROLE_PS], peer, err));
}

static void on_down(wf_exchange *x, const wf_peer *peer)
{
    for (int i = 0; i < PARTS; i++)
        wf_exchange_on_down(((hybrid *)x)->parts[i], peer);
}

static wf_status on_message(wf_exchange *x, const wf_peer *from, const wf_msg *m, int64_t now_ns,
                            wf_err *err)
{
    hybrid *h = (hybrid *)x;
    wf_exchange *to = h->parts[from->task.role != WF_ROLE_PS];

    lead(h);
    return done(h, wf_exchange_on_message(to, from, m, now_ns, err));
}

static wf_status retry(wf_exchange *x, int64_t now_ns, wf_err *err)
{
    hybrid *h = (hybrid *)x;

    lead(h);
    for (int i = 0; i < PARTS; i++)
        WF_TRY(wf_exchange_retry(h->parts[i], now_ns, err));
    return done(h, WF_OK);
}

/* ---- steps ---- */

static wf_status name_rows(wf_exchange *x, int set, uint32_t variable, const uint64_t ids[],
                           uint64_t n, wf_err *err)
{
    hybrid *h = (hybrid *)x;

    lead(h);
    return done(h, wf_exchange_name_rows(part_of(x, variable), set, variable, ids, n, err));
}

static wf_status want(wf_exchange *x, int set, uint32_t step, wf_err *err)
{
    hybrid *h = (hybrid *)x;

    lead(h);
    for (int i = 0; i < PARTS; i++)
        WF_TRY(wf_exchange_want(h->parts[i], set, step, err));
    return done(h, WF_OK);
}

static bool ready(const wf_exchange *x, int set)
{
    const hybrid *h = (const hybrid *)x;

    return wf_exchange_ready(h->parts[TABLES], set) && wf_exchange_ready(h->parts[OTHERS], set);
}

static const float *weights(const wf_exchange *x, int set, uint32_t variable)
{
    return wf_exchange_weights(part_of(x, variable), set, variable);
}

static void begin_step(wf_exchange *x, uint32_t step, uint32_t records)
{
    hybrid *h = (hybrid *)x;

    lead(h);
    for (int i = 0; i < PARTS; i++)
        wf_exchange_begin_step(h->parts[i], step, records);
    follow(h);
}

static float *gradient(wf_exchange *x, uint32_t step, uint32_t variable)
{
    hybrid *h = (hybrid *)x;
    float *at;

    lead(h);
    at = wf_exchange_gradient(part_of(x, variable), step, variable);
    follow(h);
    return at;
}

static wf_status push(wf_exchange *x, uint32_t step, uint32_t variable, wf_err *err)
{
    hybrid *h = (hybrid *)x;

    lead(h);
    return done(h, wf_exchange_push(part_of(x, variable), step, variable, err));
}

static wf_status drop_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    hybrid *h = (hybrid *)x;

    lead(h);
    for (int i = 0; i < PARTS; i++)
        WF_TRY(wf_exchange_drop_step(h->parts[i], step, err));
    return done(h, WF_OK);
}

static wf_status end_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    hybrid *h = (hybrid *)x;

    lead(h);
    for (int i = 0; i < PARTS; i++)
        WF_TRY(wf_exchange_end_step(h->parts[i], step, err));
    return done(h, WF_OK);
}

static wf_status leave(wf_exchange *x, wf_err *err)
{
    hybrid *h = (hybrid *)x;

    lead(h);
    for (int i = 0; i < PARTS; i++)
        WF_TRY(wf_exchange_leave(h->parts[i], err));
    return done(h, WF_OK);
}

/* The master tells the ps. */
static wf_status tune(wf_exchange *x, double learning_rate, wf_err *err)
{
    return wf_exchange_tune(((hybrid *)x)->parts[OTHERS], learning_rate, err);
}

/* ---- checkpoints ---- */

static uint32_t count_shards(const wf_exchange *x)
{
    return ((const hybrid *)x)->n_ps + 1;
}

static wf_status save(wf_exchange *x, wf_err *err)
{
    hybrid *h = (hybrid *)x;

    for (int i = 0; i < PARTS; i++)
        WF_TRY(wf_exchange_save_begin(h->parts[i], x->saving.cut, x->saving.folder, err));
    return done(h, WF_OK);
}

/* ---- who is late ---- */

static wf_exchange *late_part(const hybrid *h, wf_exchange_wait wait, uint32_t of)
{
    const wf_exchange *tables = h->parts[TABLES];
    bool there = wait == WF_EXCHANGE_ACKS      ? tables->acked >= of
                 : wait == WF_EXCHANGE_WEIGHTS ? wf_exchange_ready(tables, (int)of)
                                               : wf_exchange_frozen_left(tables) == 0;

    return h->parts[there ? OTHERS : TABLES];
}

static uint32_t frozen_left(const wf_exchange *x)
{
    return wf_exchange_frozen_left(((const hybrid *)x)->parts[TABLES]);
}

static void name_late(const wf_exchange *x, wf_exchange_wait wait, uint32_t of, wf_waiting *out)
{
    wf_exchange_name_late(late_part((const hybrid *)x, wait, of), wait, of, out);
}

/* ---- beginning and end ---- */

static void hybrid_free(wf_exchange *x)
{
    for (int i = 0; i < PARTS; i++)
        wf_exchange_free(&((hybrid *)x)->parts[i]);
    free(x);
}

static const wf_exchange_ops ops = {
    .free = hybrid_free,
    .on_view = on_view,
    .on_up = on_up,
    .on_down = on_down,
    .on_message = on_message,
    .retry = retry,
    .name_rows = name_rows,
    .want = want,
    .ready = ready,
    .weights = weights,
    .begin_step = begin_step,
    .gradient = gradient,
    .push = push,
    .drop_step = drop_step,
    .end_step = end_step,
    .leave = leave,
    .tune = tune,
    .count_shards = count_shards,
    .save = save,
    .frozen_left = frozen_left,
    .name_late = name_late,
};

static wf_status hybrid_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err)
{
    hybrid *h = calloc(1, sizeof *h);
    wf_exchange_conf part = *conf;
    wf_status rc;

    if (!h)
        return wf_fail_nomem(err, sizeof *h);
    h->base.ops = &ops;
    h->start = conf->start;
    h->n_ps = conf->n_ps;
    part.is_part = true;
    *out = &h->base;
    rc = wf_exchange_ps.open(&part, &h->parts[TABLES], err);
    if (rc == WF_OK)
        rc = wf_exchange_ring.open(&part, &h->parts[OTHERS], err);
    if (rc != WF_OK) {
        wf_exchange_free(out);
        return rc;
    }
    h->base.written = h->parts[OTHERS]->written;
    follow(h);
    return WF_OK;
}

static const wf_device *hybrid_home(const Weft__Start *start, const wf_device *device,
                                    uint32_t variable)
{
    return start->variables[variable]->on_workers ? wf_local_home(start, device, variable)
                                                  : &wf_cpu;
}

const wf_exchange_kind wf_exchange_hybrid = {
    .name = "hybrid",
    .sends = true,
    .open = hybrid_open,
    .home = hybrid_home,
    .device_bytes = wf_local_device_bytes,
};
