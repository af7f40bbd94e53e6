/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/local.c - the variables live in the worker itself, and so does their optimizer:
 * nothing is sent. A step's gradients are applied when it ends, since its kernels read the weights
 * until then; so every set of weights is the one that there is, and holds all pushes.
 *
 * Each update has the bits that a parameter server would make: the rules of common/optim work
 * element by element, and what a chunk covers changes none. On a device lamb alone has not
 * (common/kernels/update.h).
 *
 * Nothing trains while a checkpoint is written.
 */
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/optim/statistic.h"
#include "common/session/rule.h"
#include "common/tensor/tensor.h"
#include "worker/exchange/local_state.h"

#include <stdlib.h>

enum {
    CHUNK = 1 << 10 /* elements: so few that threads get shares of one size */
};

/* ---- weights ---- */

static wf_status want(wf_exchange *x, int set, uint32_t step, wf_err *err)
{
    (void)x, (void)set, (void)step, (void)err;
    return WF_OK;
}

static bool ready(const wf_exchange *x, int set)
{
    (void)x, (void)set;
    return true;
}

static const float *weights(const wf_exchange *x, int set, uint32_t number)
{
    (void)set;
    return ((const wf_local *)x)->variables[number].weights->data;
}

/* ---- gradients ---- */

static float *gradient(wf_exchange *x, uint32_t step, uint32_t number)
{
    wf_local_variable *v = &((wf_local *)x)->variables[number];

    x->begun = step;
    if (!v->gradient)
        v->gradient = wf_buf_new(v->count * sizeof(float));
    return v->gradient ? v->gradient->data : NULL;
}

static wf_status push(wf_exchange *x, uint32_t step, uint32_t number, wf_err *err)
{
    wf_local_variable *v = &((wf_local *)x)->variables[number];

    (void)err;
    wf_assert(step == x->acked + 1 && !v->pushed);
    v->pushed = true;
    return WF_OK;
}

static wf_status drop_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    const wf_local *l = (const wf_local *)x;

    (void)step, (void)err;
    for (uint32_t i = 0; i < l->n_variables; i++)
        wf_assert(!l->variables[i].pushed);
    return WF_OK;
}

static wf_status squares(wf_exchange *x, const bool of[], double out[], wf_err *err)
{
    return wf_local_device_squares((wf_local *)x, of, out, err);
}

static void clip_by(wf_exchange *x, double norm)
{
    ((wf_local *)x)->on.norm = norm;
}

static uint64_t count_chunks(const wf_local *l, const wf_local_variable *v)
{
    bool one = l->opt.rule->whole || wf_pool_threads(l->conf.pool) == 1;

    return one || v->count == 0 ? 1 : (v->count + CHUNK - 1) / CHUNK;
}

/* Elements [at, at + n), whose gradient is g [n]. */
static void update_piece(const wf_local *l, const wf_local_variable *v, uint64_t at, uint64_t n,
                         const float g[])
{
    float *w = (float *)v->weights->data + at, *slots[WF_MAX_SLOTS] = {0};

    if (!wf_local_is_trainable(v)) {
        wf_statistic_apply(v->row->momentum, n, w, g);
        return;
    }
    for (uint32_t i = 0; i < wf_local_n_slots(l, v); i++)
        slots[i] = (float *)v->slots[i]->data + at;
    wf_opt_apply(&l->opt, v->updates, n, w, g, slots);
}

static void update_range(const wf_local *l, const wf_local_variable *v, uint64_t begin,
                         uint64_t end)
{
    float piece[WF_LOCAL_PIECE] WF_ALIGNED(64);

    if (!l->make_gradient) {
        update_piece(l, v, begin, end - begin, (const float *)v->gradient->data + begin);
        return;
    }
    for (uint64_t at = begin, n; at < end; at += n) {
        n = WF_MIN(end - at, (uint64_t)WF_LOCAL_PIECE);
        l->make_gradient(l, v, at, n, piece);
        update_piece(l, v, at, n, piece);
    }
}

static void update_chunks(void *arg, int64_t begin, int64_t end)
{
    const wf_local *l = arg;
    uint32_t i = 0;

    for (int64_t k = begin, next; k < end; k = next) {
        const wf_local_variable *v;
        uint64_t chunks, first;

        while (i + 1 < l->n_updated && (uint64_t)k >= l->updated[i + 1]->first_chunk)
            i++;
        v = l->updated[i];
        chunks = count_chunks(l, v);
        first = (uint64_t)k - v->first_chunk;
        next = WF_MIN(end, (int64_t)(v->first_chunk + chunks));
        update_range(l, v, first * CHUNK,
                     chunks == 1 ? v->count
                                 : WF_MIN(((uint64_t)next - v->first_chunk) * CHUNK, v->count));
    }
}

wf_status wf_local_update(wf_local *l, wf_err *err)
{
    uint64_t chunks = 0;

    l->n_updated = 0;
    for (uint32_t i = 0; i < l->n_variables; i++) {
        wf_local_variable *v = &l->variables[i];

        if (!v->pushed)
            continue;
        v->updates++;
        if (!v->device->is_host)
            continue;
        v->first_chunk = chunks;
        chunks += count_chunks(l, v);
        l->updated[l->n_updated++] = v;
    }
    WF_TRY(wf_local_device_update(l, err)); /* works beside the host */
    if (chunks)
        wf_pool_for(l->conf.pool, (int64_t)chunks, 1, update_chunks, l);
    for (uint32_t i = 0; i < l->n_variables; i++)
        l->variables[i].pushed = false;
    return WF_OK;
}

static wf_status end_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    wf_assert(step == x->acked + 1);
    WF_TRY(wf_local_update((wf_local *)x, err));
    x->begun = x->acked = step;
    return WF_OK;
}

static wf_status tune(wf_exchange *x, double learning_rate, wf_err *err)
{
    return wf_opt_set_rate(&((wf_local *)x)->opt, learning_rate, err);
}

/* ---- beginning and end ---- */

static uint32_t count_shards(const wf_exchange *x)
{
    return ((const wf_local *)x)->shard + 1;
}

static wf_status make_slots(const wf_local *l, wf_local_variable *v, wf_err *err)
{
    for (uint32_t i = 0; i < wf_local_n_slots(l, v); i++)
        WF_TRY(wf_local_array(v, wf_opt_slot_name(&l->opt, i), v->count * sizeof(float),
                              &v->slots[i], err));
    return WF_OK;
}

static wf_status init_variable(const wf_local *l, uint32_t number, wf_local_variable *v,
                               wf_err *err)
{
    const Weft__Variable *row = l->conf.start->variables[number];
    int64_t n;
    size_t bytes;

    v->row = row;
    v->elsewhere = (l->conf.is_part && !row->on_workers) || row->stage != l->conf.start->stage;
    v->device = wf_exchange_home(l->conf.start, l->conf.place.device, number);
    if (v->elsewhere)
        return WF_OK;
    if (row->n_dims > WF_MAX_RANK || !wf_dims_elems((uint32_t)row->n_dims, row->dims, &n) ||
        !wf_mul_size((size_t)n, sizeof(float), &bytes))
        return wf_fail(err, WF_PROTO, NULL, "variable \"%.200s\" has no size that fits", row->name);
    v->count = (uint64_t)n;
    v->has_slots = !l->conf.start->shard_optimizer;
    WF_TRY(wf_local_array(v, "weights", bytes, &v->weights, err));
    WF_TRY(make_slots(l, v, err));
    if (v->device->is_host || wf_local_is_frozen(v) || wf_exchange_sends(l->conf.start))
        return WF_OK;
    return wf_local_array(v, "gradient", bytes, &v->gradient, err);
}

wf_status wf_local_own(wf_local *l, uint32_t share, wf_err *err)
{
    for (uint32_t i = 0; i < l->n_variables; i++) {
        wf_local_variable *v = &l->variables[i];

        for (int k = 0; k < WF_MAX_SLOTS; k++)
            wf_buf_unref(&v->slots[k]);
        v->has_slots = wf_local_is_trainable(v) && v->share == share;
        WF_TRY(make_slots(l, v, err));
    }
    return wf_local_load_slots(l, err);
}

static wf_status choose_rule(wf_local *l, wf_err *err)
{
    const Weft__Start *s = l->conf.start;

    WF_TRY(wf_rule_get(s->rule, s->options, s->n_options, &l->opt, err));
    return s->learning_rate > 0 ? wf_opt_set_rate(&l->opt, s->learning_rate, err) : WF_OK;
}

/* Checkpoints name slices: each variable that is here is one. */
static wf_status check_slices(const wf_local *l, wf_err *err)
{
    const Weft__Start *s = l->conf.start;

    for (size_t i = 0; i < s->n_slices; i++)
        if (s->slices[i]->variable >= l->n_variables ||
            (!l->variables[s->slices[i]->variable].elsewhere && s->slices[i]->ps != l->shard))
            return wf_fail(err, WF_PROTO, NULL, "slice %zu is of variable %u, on ps %u", i,
                           s->slices[i]->variable, s->slices[i]->ps);
    return WF_OK;
}

wf_status wf_local_init(wf_local *l, const wf_exchange_ops *ops, const wf_exchange_conf *conf,
                        wf_err *err)
{
    const Weft__Start *s = conf->start;

    l->base.ops = ops;
    l->conf = *conf;
    l->shard = conf->is_part ? conf->n_ps : 0; /* behind those of the ps */
    WF_TRY(choose_rule(l, err));
    l->variables = calloc(s->n_variables + 1, sizeof *l->variables);
    l->updated = calloc(s->n_variables + 1, sizeof(*l->updated));
    if (!l->variables || !l->updated)
        return wf_fail_nomem(err, s->n_variables * sizeof *l->variables);
    for (; l->n_variables < s->n_variables; l->n_variables++)
        WF_TRY(init_variable(l, l->n_variables, &l->variables[l->n_variables], err));
    WF_TRY(check_slices(l, err));
    WF_TRY(wf_local_device_open(l, err));
    return wf_local_load(l, err);
}

void wf_local_close(wf_local *l)
{
    wf_local_device_close(l);
    for (size_t i = 0; l->variables && i < l->conf.start->n_variables; i++) {
        wf_buf_unref(&l->variables[i].weights);
        wf_buf_unref(&l->variables[i].gradient);
        for (int k = 0; k < WF_MAX_SLOTS; k++)
            wf_buf_unref(&l->variables[i].slots[k]);
    }
    free(l->variables);
    free(l->updated);
}

static void local_free(wf_exchange *x)
{
    wf_local_close((wf_local *)x);
    free(x);
}

const wf_exchange_ops wf_local_ops = {
    .free = local_free,
    .want = want,
    .ready = ready,
    .weights = weights,
    .gradient = gradient,
    .push = push,
    .squares = squares,
    .clip_by = clip_by,
    .drop_step = drop_step,
    .end_step = end_step,
    .tune = tune,
    .count_shards = count_shards,
    .save = wf_local_save,
};

wf_status wf_local_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err)
{
    wf_local *l = calloc(1, sizeof *l);
    wf_status rc;

    if (!l)
        return wf_fail_nomem(err, sizeof *l);
    *out = &l->base;
    rc = wf_local_init(l, &wf_local_ops, conf, err);
    if (rc != WF_OK)
        wf_exchange_free(out);
    return rc;
}

const wf_exchange_kind wf_exchange_local = {
    .name = "local",
    .open = wf_local_open,
    .home = wf_local_home,
    .device_bytes = wf_local_device_bytes,
};
