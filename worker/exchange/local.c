/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/local.c - the variables live in the worker itself, and so does their optimizer:
 * nothing is sent. A step's gradients are applied when it ends, since its kernels read the weights
 * until then; so every set of weights is the one that there is, and holds all pushes.
 *
 * Each update has the bits that a parameter server would make: the rules of common/optim work
 * element by element, and what a chunk covers changes none.
 *
 * Nothing trains while a checkpoint is written.
 */
#include "common/base/clock.h"
#include "common/base/pages.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "common/ckpt/values.h"
#include "common/optim/statistic.h"
#include "common/session/rule.h"
#include "common/tensor/buf.h"
#include "common/wire/control.h"
#include "worker/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 32 << 10 /* elements: half of a second-level cache with one slot and its gradient */
};

typedef struct variable {
    const Weft__Variable *row;
    uint64_t count, updates;
    wf_buf *weights, *gradient; /* [count]; gradient NULL until it is asked for */
    float *slots[WF_MAX_SLOTS]; /* each [count] */
    bool pushed;                /* since the last step ended */
    uint64_t first_chunk;       /* of an update under way */
} variable;

typedef struct local {
    wf_exchange base; /* first */
    wf_exchange_conf conf;
    wf_opt opt;
    variable *variables; /* [n_variables] */
    uint32_t n_variables;
    variable **updated; /* [n_updated]: those of the step that ends */
    uint32_t n_updated;
} local;

static bool is_trainable(const variable *v)
{
    return v->row->kind == WF_KIND_TRAINABLE;
}

static bool is_frozen(const variable *v)
{
    return v->row->kind != WF_KIND_TRAINABLE && v->row->kind != WF_KIND_STATISTIC;
}

static uint32_t count_slots(const local *l, const variable *v)
{
    return is_trainable(v) ? wf_opt_n_slots(&l->opt) : 0;
}

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
    return ((const local *)x)->variables[number].weights->data;
}

/* ---- gradients ---- */

static float *gradient(wf_exchange *x, uint32_t step, uint32_t number)
{
    variable *v = &((local *)x)->variables[number];

    x->begun = step;
    if (!v->gradient)
        v->gradient = wf_buf_new(v->count * sizeof(float));
    return v->gradient ? v->gradient->data : NULL;
}

static wf_status push(wf_exchange *x, uint32_t step, uint32_t number, wf_err *err)
{
    variable *v = &((local *)x)->variables[number];

    (void)err;
    wf_assert(step == x->acked + 1 && !v->pushed);
    v->pushed = true;
    return WF_OK;
}

static wf_status drop_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    const local *l = (const local *)x;

    (void)step, (void)err;
    for (uint32_t i = 0; i < l->n_variables; i++)
        wf_assert(!l->variables[i].pushed);
    return WF_OK;
}

static uint64_t count_chunks(const local *l, const variable *v)
{
    bool one = l->opt.rule->whole || wf_pool_threads(l->conf.pool) == 1;

    return one || v->count == 0 ? 1 : (v->count + CHUNK - 1) / CHUNK;
}

static void update_range(const local *l, const variable *v, uint64_t begin, uint64_t end)
{
    const float *g = (const float *)v->gradient->data + begin;
    float *w = (float *)v->weights->data + begin, *slots[WF_MAX_SLOTS] = {0};

    if (!is_trainable(v)) {
        wf_statistic_apply(v->row->momentum, end - begin, w, g);
        return;
    }
    for (uint32_t i = 0; i < count_slots(l, v); i++)
        slots[i] = v->slots[i] + begin;
    wf_opt_apply(&l->opt, v->updates, end - begin, w, g, slots);
}

static void update_chunks(void *arg, int64_t begin, int64_t end)
{
    const local *l = arg;
    uint32_t i = 0;

    for (int64_t k = begin; k < end; k++) {
        const variable *v;
        uint64_t chunk;

        while (i + 1 < l->n_updated && (uint64_t)k >= l->updated[i + 1]->first_chunk)
            i++;
        v = l->updated[i];
        chunk = (uint64_t)k - v->first_chunk;
        if (count_chunks(l, v) == 1)
            update_range(l, v, 0, v->count);
        else
            update_range(l, v, chunk * CHUNK, WF_MIN((chunk + 1) * CHUNK, v->count));
    }
}

static wf_status end_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    local *l = (local *)x;
    uint64_t chunks = 0;

    (void)err;
    wf_assert(step == x->acked + 1);
    l->n_updated = 0;
    for (uint32_t i = 0; i < l->n_variables; i++) {
        variable *v = &l->variables[i];

        if (!v->pushed)
            continue;
        v->pushed = false;
        v->updates++;
        v->first_chunk = chunks;
        chunks += count_chunks(l, v);
        l->updated[l->n_updated++] = v;
    }
    if (chunks)
        wf_pool_for(l->conf.pool, (int64_t)chunks, 1, update_chunks, l);
    x->begun = x->acked = step;
    return WF_OK;
}

static wf_status tune(wf_exchange *x, double learning_rate, wf_err *err)
{
    return wf_opt_set_rate(&((local *)x)->opt, learning_rate, err);
}

/* ---- the file of a checkpoint: values, then slots, of each variable ---- */

static uint32_t count_shards(const wf_exchange *x)
{
    (void)x;
    return 1;
}

static wf_status declare(wf_arena *a, const variable *v, const char *slot, wf_shard_tensor *t,
                         wf_err *err)
{
    char name[WF_SHARD_MAX_NAME];

    t->dtype = WF_F32;
    t->rank = (uint32_t)v->row->n_dims;
    memcpy(t->dims, v->row->dims, v->row->n_dims * sizeof *v->row->dims);
    t->name =
        wf_arena_strdup(a, wf_ckpt_tensor_name(v->row->name, slot, 0, true, name, sizeof name));
    return t->name ? WF_OK : wf_fail_nomem(err, sizeof name);
}

static wf_status declare_all(const local *l, wf_arena *a, wf_shard_tensor **out, size_t *n,
                             wf_err *err)
{
    size_t most = (size_t)l->n_variables * (1 + WF_MAX_SLOTS);
    wf_shard_tensor *t = wf_arena_array(a, most, sizeof *t);

    if (!t)
        return wf_fail_nomem(err, most * sizeof *t);
    *out = t;
    *n = 0;
    for (uint32_t i = 0; i < l->n_variables; i++) {
        const variable *v = &l->variables[i];

        if (is_frozen(v))
            continue;
        WF_TRY(declare(a, v, NULL, &t[(*n)++], err));
        for (uint32_t k = 0; k < count_slots(l, v); k++)
            WF_TRY(declare(a, v, wf_opt_slot_name(&l->opt, k), &t[(*n)++], err));
    }
    return WF_OK;
}

static wf_status write_all(const local *l, wf_shard_writer *w, wf_err *err)
{
    for (uint32_t i = 0; i < l->n_variables; i++) {
        const variable *v = &l->variables[i];

        if (is_frozen(v))
            continue;
        WF_TRY(wf_shard_write(w, v->weights->data, v->weights->bytes, err));
        for (uint32_t k = 0; k < count_slots(l, v); k++)
            WF_TRY(wf_shard_write(w, v->slots[k], v->weights->bytes, err));
    }
    return WF_OK;
}

static wf_status write_file(const local *l, const char *path, uint64_t *bytes,
                            char sum[WF_SUM_TEXT], wf_err *err)
{
    wf_cut_id id = {l->conf.generation, l->base.saving.cut, l->conf.incarnation};
    wf_shard_meta meta[WF_CKPT_N_META + 1];
    wf_arena *a = wf_arena_new(0);
    wf_shard_tensor *tensors = NULL;
    wf_shard_writer *w = NULL;
    char cut[WF_CUT_TEXT];
    size_t n = 0;
    wf_status rc;

    if (!a)
        return wf_fail_nomem(err, 4096);
    wf_ckpt_meta(l->conf.start->job, id, cut, meta);
    meta[WF_CKPT_N_META] = (wf_shard_meta){"format", "weft"};
    rc = declare_all(l, a, &tensors, &n, err);
    if (rc == WF_OK)
        rc = wf_shard_create(l->conf.disk, path, tensors, n, meta, WF_COUNT(meta), &w, err);
    if (rc == WF_OK)
        rc = write_all(l, w, err);
    if (rc == WF_OK)
        rc = wf_shard_finish(&w, bytes, sum, err);
    if (rc != WF_OK)
        rc = wf_ckpt_say_free(l->conf.disk, l->base.saving.folder, rc, err);
    wf_shard_abort(&w);
    wf_arena_free(&a);
    return rc;
}

/* Lists what each slice has had of updates, in *body. */
static wf_status list_slices(const local *l, wf_arena *a, Weft__Saved *body, wf_err *err)
{
    const Weft__Start *s = l->conf.start;

    body->slices = wf_arena_array(a, s->n_slices, sizeof(*body->slices));
    if (!body->slices)
        return wf_fail_nomem(err, s->n_slices * sizeof(*body->slices));
    for (uint32_t i = 0; i < s->n_slices; i++) {
        Weft__SliceSaved *row = wf_arena_alloc(a, sizeof *row);

        if (!row)
            return wf_fail_nomem(err, sizeof *row);
        weft__slice_saved__init(row);
        row->slice = i;
        row->updates = l->variables[s->slices[i]->variable].updates;
        body->slices[body->n_slices++] = row;
    }
    return WF_OK;
}

/* A copy of *body that wf_control_free frees. */
static wf_status keep_result(const Weft__Saved *body, Weft__Saved **out, wf_err *err)
{
    size_t n = weft__saved__get_packed_size(body);
    uint8_t *bytes = malloc(n + 1);
    wf_status rc;

    if (!bytes)
        return wf_fail_nomem(err, n);
    weft__saved__pack(body, bytes);
    rc = wf_control_unpack(bytes, n, &weft__saved__descriptor, out, err);
    free(bytes);
    return rc;
}

static wf_status save(wf_exchange *x, wf_err *err)
{
    const local *l = (const local *)x;
    struct wf_exchange_shard *shard = &x->saving.shards[0];
    Weft__Saved body = WEFT__SAVED__INIT;
    char path[WF_CKPT_PATH], file[64], sum[WF_SUM_TEXT] = "";
    wf_arena *a = wf_arena_new(0);
    wf_err why = {0};
    wf_status rc;

    if (!a)
        return wf_fail_nomem(err, 4096);
    wf_ckpt_shard_name(0, 1, file, sizeof file);
    snprintf(path, sizeof path, "%s/%s", x->saving.folder, file);
    body.folder = x->saving.folder;
    body.file = file;
    rc = list_slices(l, a, &body, err);
    if (rc == WF_OK && write_file(l, path, &body.bytes, sum, &why) != WF_OK) {
        body.what = why.what;
        body.hint = why.hint;
    }
    body.xxh3 = sum;
    if (rc == WF_OK)
        rc = keep_result(&body, &shard->result, err);
    shard->copied = rc == WF_OK;
    wf_arena_free(&a);
    return rc;
}

/* ---- beginning and end ---- */

static wf_status init_variable(const local *l, const Weft__Variable *row, variable *v, wf_err *err)
{
    int64_t n;
    size_t bytes;

    v->row = row;
    if (row->n_dims > WF_MAX_RANK || !wf_dims_elems((uint32_t)row->n_dims, row->dims, &n) ||
        !wf_mul_size((size_t)n, sizeof(float), &bytes))
        return wf_fail(err, WF_PROTO, NULL, "variable \"%.200s\" has no size that fits", row->name);
    v->count = (uint64_t)n;
    v->weights = wf_buf_new(bytes);
    if (!v->weights)
        return wf_fail_nomem(err, bytes);
    for (uint32_t i = 0; i < count_slots(l, v); i++) {
        float first = wf_opt_slot_initial(&l->opt, i);

        v->slots[i] = wf_pages_alloc(bytes);
        if (!v->slots[i])
            return wf_fail_nomem(err, bytes);
        for (uint64_t k = 0; k < v->count; k++)
            v->slots[i][k] = first;
    }
    return WF_OK;
}

static wf_status load_variable(const local *l, wf_values *from, variable *v, wf_err *err)
{
    const char *name = v->row->name;

    WF_TRY(wf_values_read(from, name, is_frozen(v), 0, v->count, v->weights->data, err));
    for (uint32_t i = 0; i < count_slots(l, v); i++)
        WF_TRY(wf_values_read_slot(from, name, wf_opt_slot_name(&l->opt, i), 0, v->count,
                                   v->slots[i], err));
    v->updates = is_frozen(v) ? 0 : wf_values_updates(from, name, 0);
    return WF_OK;
}

static wf_status load(const local *l, wf_err *err)
{
    const Weft__Start *s = l->conf.start;
    wf_values *from = NULL;
    wf_status rc;

    WF_TRY(wf_values_open(l->conf.disk, s->checkpoint_dir, s->job, s->initial, s->restore_step,
                          &from, err));
    rc = WF_OK;
    for (uint32_t i = 0; rc == WF_OK && i < l->n_variables; i++)
        rc = load_variable(l, from, &l->variables[i], err);
    wf_values_close(&from);
    return rc;
}

static wf_status choose_rule(local *l, wf_err *err)
{
    const Weft__Start *s = l->conf.start;

    WF_TRY(wf_rule_get(s->rule, s->options, s->n_options, &l->opt, err));
    return s->learning_rate > 0 ? wf_opt_set_rate(&l->opt, s->learning_rate, err) : WF_OK;
}

/* Checkpoints name slices: each variable is one. */
static wf_status check_slices(const local *l, wf_err *err)
{
    const Weft__Start *s = l->conf.start;

    for (size_t i = 0; i < s->n_slices; i++)
        if (s->slices[i]->variable >= l->n_variables || s->slices[i]->ps != 0)
            return wf_fail(err, WF_PROTO, NULL, "slice %zu is of variable %u, on ps %u", i,
                           s->slices[i]->variable, s->slices[i]->ps);
    return WF_OK;
}

static wf_status begin(local *l, wf_err *err)
{
    const Weft__Start *s = l->conf.start;

    WF_TRY(choose_rule(l, err));
    l->variables = calloc(s->n_variables + 1, sizeof *l->variables);
    l->updated = calloc(s->n_variables + 1, sizeof(*l->updated));
    if (!l->variables || !l->updated)
        return wf_fail_nomem(err, s->n_variables * sizeof *l->variables);
    for (; l->n_variables < s->n_variables; l->n_variables++)
        WF_TRY(init_variable(l, s->variables[l->n_variables], &l->variables[l->n_variables], err));
    WF_TRY(check_slices(l, err));
    return load(l, err);
}

static void local_free(wf_exchange *x)
{
    local *l = (local *)x;

    for (size_t i = 0; l->variables && i < l->conf.start->n_variables; i++) {
        wf_buf_unref(&l->variables[i].weights);
        wf_buf_unref(&l->variables[i].gradient);
        for (int k = 0; k < WF_MAX_SLOTS; k++)
            free(l->variables[i].slots[k]);
    }
    free(l->variables);
    free(l->updated);
    free(l);
}

static const wf_exchange_ops local_ops = {
    .free = local_free,
    .want = want,
    .ready = ready,
    .weights = weights,
    .gradient = gradient,
    .push = push,
    .drop_step = drop_step,
    .end_step = end_step,
    .tune = tune,
    .count_shards = count_shards,
    .save = save,
};

static wf_status local_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err)
{
    local *l = calloc(1, sizeof *l);
    wf_status rc;

    if (!l)
        return wf_fail_nomem(err, sizeof *l);
    l->base.ops = &local_ops;
    l->conf = *conf;
    *out = &l->base;
    rc = begin(l, err);
    if (rc != WF_OK)
        wf_exchange_free(out);
    return rc;
}

const wf_exchange_kind wf_exchange_local = {.name = "local", .open = local_open};
