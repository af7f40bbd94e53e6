/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/model.c */
#include "tests/kit/model.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/compile/strategy.h"
#include "common/conf/conf.h"
#include "common/graph/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Weft__Variable *variable(wf_arena *a, const char *name, uint32_t kind, int64_t n,
                                bool logged)
{
    Weft__Variable *v = wf_arena_alloc(a, sizeof *v);

    weft__variable__init(v);
    v->name = wf_arena_strdup(a, name);
    v->dtype = WF_F32;
    v->kind = kind;
    if (logged)
        v->slice_kind = wf_arena_strdup(a, "logged");
    v->n_dims = 1;
    v->dims = wf_arena_memdup(a, &n, sizeof n);
    return v;
}

/* Slices in the order of variables and offsets, dealt to the ps in turn. */
static void slices(wf_arena *a, Weft__Setup *s, const wf_model_spec *spec, uint32_t variable,
                   uint64_t count, uint32_t n)
{
    if (spec->ps == 0)
        n = 1;
    for (uint32_t i = 0; i < n; i++) {
        Weft__Slice *slice = wf_arena_alloc(a, sizeof *slice);

        weft__slice__init(slice);
        slice->variable = variable;
        slice->offset = i * count / n;
        slice->count = (i + 1) * count / n - slice->offset;
        slice->ps = spec->balances ? 0 : (uint32_t)s->n_slices % wf_model_shards(spec->ps);
        s->slices[s->n_slices++] = slice;
    }
}

double wf_model_loss(const wf_model_spec *spec, uint32_t epoch)
{
    return (double)(wf_rng_u64((wf_rng_key){spec->seed, 78}, epoch) >> 11);
}

static uint32_t patience(const wf_model_spec *spec)
{
    return 1 + spec->seed % 2;
}

void wf_model_epochs(const wf_model_spec *spec, uint32_t *last, uint32_t *best)
{
    *best = 0;
    for (*last = 0; *last + 1 < spec->epochs && *last - *best < patience(spec);) {
        ++*last;
        if (wf_model_loss(spec, *last) < wf_model_loss(spec, *best))
            *best = *last;
    }
}

/* A checkpoint after each epoch, or after those that are the best so far; or early stopping, which
 * goes back to the best. And a learning rate that is told to the ps anew, though what it is told is
 * what it was. */
static void callbacks(wf_callbacks *c, const wf_model_spec *spec)
{
    *c = (wf_callbacks){.n = 2, .rate = 1, .epochs = spec->epochs};
    c->rows[0] =
        (wf_callback){.kind = WF_CALLBACK_SAVE, .metric = "loss", .best_only = spec->seed % 3 == 0};
    if (spec->restores_best)
        c->rows[0] = (wf_callback){.kind = WF_CALLBACK_STOP,
                                   .metric = "loss",
                                   .baseline = (double)NAN,
                                   .patience = patience(spec),
                                   .restore_best = true};
    c->rows[1] = (wf_callback){.kind = WF_CALLBACK_RATE, .metric = "loss", .factor = 1};
}

/* Storage in the arena: it goes with the job. */
static wf_tensor *first_values(wf_arena *a, int variable, int64_t n)
{
    float *values = wf_arena_array(a, (size_t)n, sizeof(float));
    wf_tensor *t = wf_arena_alloc(a, sizeof *t);

    *t = (wf_tensor){.dtype = WF_F32, .rank = 1, .dims = {n}, .data = values};
    for (uint32_t k = 0; variable == WF_MODEL_FROZEN && k < WF_MODEL_FROZEN_SIZE; k++)
        values[k] = wf_model_frozen(k);
    return t;
}

static void grow(wf_prepared *p)
{
    static const char *const pattern = "/in/*";

    p->grows = true;
    p->patterns = &pattern;
    p->n_patterns = 1;
    p->epochs = WF_EPOCHS_ANY;
    p->poll_ns = (int64_t)WF_MODEL_POLL_MS * WF_NS_PER_MS;
    p->settle_ns = (int64_t)WF_MODEL_SETTLE_MS * WF_NS_PER_MS;
    p->idle_ns = (int64_t)WF_MODEL_IDLE_MS * WF_NS_PER_MS;
}

/* A variable that lies in the workers, behind those on the ps. */
static void share(wf_prepared *p, uint32_t ps)
{
    Weft__Variable *v = variable(p->arena, "shared", WF_VAR_TRAINABLE, 1, false);
    Weft__Slice *slice = wf_arena_alloc(p->arena, sizeof *slice);

    v->on_workers = true;
    p->setup.variables[p->setup.n_variables++] = v;
    weft__slice__init(slice);
    slice->variable = WF_MODEL_SHARED;
    slice->count = 1;
    slice->ps = ps;
    p->setup.slices[p->setup.n_slices++] = slice;
    p->strategy = wf_strategy_find("hybrid");
}

/* What workers are told as the ps are. */
static void fill_start(wf_prepared *p, const wf_model_spec *spec)
{
    p->start.job = p->setup.job;
    p->start.digest = p->setup.digest;
    p->start.rule = p->setup.rule;
    p->start.options = p->setup.options;
    p->start.n_options = p->setup.n_options;
    p->start.variables = p->setup.variables;
    p->start.n_variables = p->setup.n_variables;
    p->start.slices = p->setup.slices;
    p->start.n_slices = p->setup.n_slices;
    p->start.seed = spec->seed;
}

wf_status wf_model_prepare(const wf_model_spec *spec, const char *job, wf_prepared **out,
                           wf_err *err)
{
    uint32_t shards = wf_model_shards(spec->ps), n_frozen = shards;
    uint32_t n_steps = WF_MODEL_STEP_SLICES * shards, n_records = 2 * shards;
    wf_prepared *p = calloc(1, sizeof *p);
    wf_arena *a = wf_arena_new(0);
    wf_tensor *first[WF_MODEL_VARIABLES] = {NULL};
    int64_t dims[WF_MODEL_VARIABLES] = {n_steps, spec->records, WF_MODEL_FROZEN_SIZE, 1};
    wf_tensor *const *initial;
    Weft__Option *rate;

    wf_assert(p && a);
    p->arena = a;
    weft__setup__init(&p->setup);
    weft__start__init(&p->start);
    p->setup.job = wf_arena_strdup(a, job);
    p->setup.digest = wf_arena_strdup(a, "ledger");
    p->setup.rule = wf_arena_strdup(a, "sgd");
    p->setup.options = wf_arena_array(a, 1, sizeof(*p->setup.options));
    rate = wf_arena_alloc(a, sizeof *rate);
    weft__option__init(rate);
    rate->name = wf_arena_strdup(a, "learning_rate");
    rate->value = 1;
    p->setup.options[p->setup.n_options++] = rate;
    p->setup.variables = wf_arena_array(a, WF_MODEL_VARIABLES, sizeof(*p->setup.variables));
    p->setup.slices =
        wf_arena_array(a, n_steps + n_records + n_frozen + 1, sizeof(*p->setup.slices));
    p->setup.variables[p->setup.n_variables++] =
        variable(a, "steps", WF_VAR_TRAINABLE, dims[0], spec->logged);
    p->setup.variables[p->setup.n_variables++] =
        variable(a, "records", WF_VAR_TRAINABLE, dims[1], spec->logged);
    p->setup.variables[WF_MODEL_RECORDS]->push_coding = spec->push;
    p->setup.variables[WF_MODEL_RECORDS]->pull_coding = spec->pull;
    p->setup.variables[p->setup.n_variables++] =
        variable(a, "frozen", WF_VAR_FROZEN, dims[2], false);
    slices(a, &p->setup, spec, WF_MODEL_STEPS, n_steps, n_steps);
    slices(a, &p->setup, spec, WF_MODEL_RECORDS, spec->records, n_records);
    slices(a, &p->setup, spec, WF_MODEL_FROZEN, WF_MODEL_FROZEN_SIZE, n_frozen);
    if (spec->hybrid)
        share(p, spec->ps);
    for (int i = 0; i < WF_MODEL_VARIABLES; i++)
        first[i] = first_values(a, i, dims[i]);
    initial = wf_arena_memdup(a, first, sizeof first);
    p->initial = (const wf_tensor *const *)initial;
    fill_start(p, spec);
    p->setup.bounded = p->start.bounded = spec->bounded;
    p->setup.together = p->start.together = spec->together;
    p->setup.backups = spec->backups;
    p->start.strategy = (char *)(spec->hybrid     ? "hybrid"
                                 : spec->ps       ? "parameter_server"
                                 : spec->mirrored ? "multi_worker_mirrored"
                                                  : "local");
    p->start.shard_optimizer = spec->divides;
    p->batch = spec->batch;
    p->epochs = spec->epochs;
    if (spec->grows)
        grow(p);
    p->every_steps = spec->every_steps;
    p->every_seconds = spec->every_seconds;
    p->keep = spec->keep;
    p->drains = spec->drains;
    p->rolls_back = spec->rolls_back;
    p->evaluates = spec->evaluates;
    p->balances = spec->balances;
    p->balance_over = 1.05;
    p->balance_after_ns = (int64_t)100 * 1000 * 1000;
    p->eval_unit = spec->eval_unit ? spec->eval_unit : WF_MODEL_EVAL_RECORDS;
    if (spec->restores_best || (spec->evaluates && spec->calls_back))
        callbacks(&p->callbacks, spec);
    if (spec->grows)
        p->callbacks.epochs = p->epochs;
    (void)err;
    *out = p;
    return WF_OK;
}
