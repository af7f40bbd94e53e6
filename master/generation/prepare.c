/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation/prepare.c */
#include "master/generation/prepare.h"
#include "common/base/clock.h"
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "common/ckpt/pretrained.h"
#include "common/compile/compile.h"
#include "common/conf/conf.h"
#include "common/log/log.h"
#include "common/onnx/onnx.h"
#include "common/optim/rule.h"
#include "common/session/job_data_conf.h"
#include "common/session/job_data_message.h"
#include "common/session/prediction.h"
#include "common/wire/coding.h"
#include "master/generation/divided.h"
#include "master/generation/predicted.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVAL_UNIT_BATCHES = 4 /* few messages, and no worker idle for long at the end */ };

static wf_status out_of_memory(wf_err *err)
{
    return wf_fail_nomem(err, 4096);
}

/* The rule's options, all of them, with defaults filled in: what is trained with stands in the
 * checkpoint in full. */
static wf_status fill_rule(wf_prepared *p, const wf_job_conf *job, wf_err *err)
{
    wf_arena *a = p->arena;
    wf_opt opt;

    WF_TRY(wf_compile_optimizer_of_job(job, &opt, err));
    p->setup.rule = wf_arena_strdup(a, job->optimizer.type);
    p->setup.options = wf_arena_array(a, WF_MAX_SETTINGS, sizeof(*p->setup.options));
    p->start.slots = wf_arena_array(a, WF_MAX_SLOTS, sizeof(*p->start.slots));
    if (!p->setup.rule || !p->setup.options || !p->start.slots)
        return out_of_memory(err);
    /* A step takes all batches whose gradients it accumulates: splits, cuts and the ledger know
     * steps only, so that none of them can fall between two batches of one. */
    p->batch = job->batch * (uint64_t)WF_MAX(opt.shared[WF_OPT_ACCUMULATION], 1.0);
    for (uint32_t i = 0; i < wf_opt_n_options(&opt); i++) {
        Weft__Option *o = wf_arena_alloc(a, sizeof *o);

        if (!o)
            return out_of_memory(err);
        weft__option__init(o);
        o->name = (char *)wf_opt_option_name(&opt, i);
        o->value = wf_opt_option_value(&opt, i);
        p->setup.options[p->setup.n_options++] = o;
    }
    for (uint32_t i = 0; i < wf_opt_n_slots(&opt); i++)
        p->start.slots[p->start.n_slots++] = (char *)wf_opt_slot_name(&opt, i);
    return WF_OK;
}

/* Of each slice: ids are spread evenly over them. */
static wf_status add_rows(wf_prepared *p, const wf_compiled_rows *from, Weft__Variable *to,
                          wf_err *err)
{
    Weft__Rows *r = wf_arena_alloc(p->arena, sizeof *r);

    if (!r)
        return out_of_memory(err);
    weft__rows__init(r);
    r->seed = from->seed;
    r->stream = from->stream;
    r->distribution = from->first.kind;
    r->centre = from->first.centre;
    r->spread = from->first.spread;
    r->admit_after = from->admit_after;
    r->evict_after = from->evict_after;
    r->max_rows = (from->max_rows + WF_ROW_BUCKETS - 1) / WF_ROW_BUCKETS;
    r->max_bytes = from->max_bytes / WF_ROW_BUCKETS;
    r->filter_bytes = from->filter_bytes / WF_ROW_BUCKETS;
    r->fails_full = from->fails_full;
    r->by_frequency = from->by_frequency;
    r->on_disk = from->on_disk;
    to->rows = r;
    return WF_OK;
}

static wf_status add_variable(wf_prepared *p, const wf_compiled_variable *v, const wf_tensor **to,
                              wf_err *err)
{
    wf_arena *a = p->arena;
    Weft__Variable *row = wf_arena_alloc(a, sizeof *row);
    wf_tensor *first = wf_arena_alloc(a, sizeof *first);

    if (v->dtype != WF_F32)
        return wf_fail(err, WF_UNSUPPORTED, "cast the model's weights to float32",
                       "variable \"%s\" is %s; parameter servers keep float32", v->name,
                       wf_dtype_name(v->dtype));
    if (!row || !first)
        return out_of_memory(err);
    weft__variable__init(row);
    row->name = wf_arena_strdup(a, v->name);
    row->dtype = v->is_table ? v->row_dtype : v->dtype;
    row->rounding = v->rounding;
    row->kind = v->pushed ? (uint32_t)v->kind : WF_VAR_FROZEN;
    row->momentum = v->momentum;
    row->on_workers = v->on_workers;
    row->stage = v->stage;
    if (v->is_table) {
        row->slice_kind = (char *)(v->is_unbounded ? "hashed" : "table");
        row->rows_most = v->rows_most;
        row->unbounded = v->is_unbounded;
        row->cache_rows = v->cache_rows;
        row->cache_staleness = v->cache_staleness;
    }
    if (v->codec) {
        row->push_coding = wf_coding_find(v->codec->push);
        row->push_kept = row->push_coding == WF_CODING_TOPK ? v->codec->ratio : 0;
        row->pull_coding = wf_coding_find(v->codec->pull);
    }
    if (v->is_seeded)
        WF_TRY(add_rows(p, &v->rows, row, err));
    row->n_dims = v->rank;
    row->dims = wf_arena_memdup(a, v->dims, v->rank * sizeof v->dims[0]);
    *first = *v->initial;
    first->buf = NULL;
    first->data = v->is_seeded ? NULL : wf_arena_memdup(a, v->initial->data, v->bytes);
    if (!row->name || !row->dims || (!v->is_seeded && !first->data))
        return out_of_memory(err);
    p->setup.variables[p->setup.n_variables++] = row;
    *to = first;
    return WF_OK;
}

static wf_status add_slices(wf_prepared *p, const wf_compiled *c, const wf_compiled_variable *v,
                            uint32_t variable, wf_err *err)
{
    for (uint32_t k = 0; k < v->n_slices; k++) {
        const wf_compiled_slice *from = &c->slices[v->first_slice + k];
        Weft__Slice *s = wf_arena_alloc(p->arena, sizeof *s);

        if (!s)
            return out_of_memory(err);
        weft__slice__init(s);
        s->variable = variable;
        s->offset = (uint64_t)from->offset;
        s->count = (uint64_t)from->count;
        s->ps = from->ps;
        s->pinned = v->pinned;
        p->setup.slices[p->setup.n_slices++] = s;
    }
    return WF_OK;
}

/* A larger copy of a list, with room for `more` rows. */
static void *longer(wf_arena *a, const void *list, size_t n, size_t more, size_t size)
{
    void *copy = wf_arena_array(a, n + more, size);

    if (copy && n)
        memcpy(copy, list, n * size);
    return copy;
}

/* The place of a variable in the lists, or -1. */
static int64_t find_variable(const wf_prepared *p, const char *name)
{
    for (size_t i = 0; i < p->setup.n_variables; i++)
        if (strcmp(p->setup.variables[i]->name, name) == 0)
            return (int64_t)i;
    return -1;
}

/* The variables that live on ps, and their slices in the order of variables and offsets. First
 * those of the train graph; then frozen ones that the eval graph alone uses. */
static wf_status fill_variables(wf_prepared *p, const wf_compiled *c, bool train, wf_err *err)
{
    size_t n = p->setup.n_variables;
    const wf_tensor **initial = longer(p->arena, p->initial, n, c->n_variables, sizeof(*initial));

    p->setup.variables =
        longer(p->arena, p->setup.variables, n, c->n_variables, sizeof(*p->setup.variables));
    p->setup.slices =
        longer(p->arena, p->setup.slices, p->setup.n_slices, c->n_slices, sizeof(*p->setup.slices));
    if (!initial || !p->setup.variables || !p->setup.slices)
        return out_of_memory(err);
    for (size_t i = 0; i < c->n_variables; i++) {
        const wf_compiled_variable *v = &c->variables[i];
        uint32_t index = (uint32_t)p->setup.n_variables;

        if (!v->on_ps || (!train && (v->kind != WF_VAR_FROZEN || find_variable(p, v->name) >= 0)))
            continue;
        WF_TRY(add_variable(p, v, &initial[index], err));
        WF_TRY(add_slices(p, c, v, index, err));
    }
    p->initial = initial;
    return WF_OK;
}

static wf_status fill_outputs(wf_arena *a, const wf_compiled *c, Weft__Output ***list, size_t *n,
                              wf_err *err)
{
    *list = wf_arena_array(a, c->n_outputs, sizeof(**list));
    if (!*list)
        return out_of_memory(err);
    for (size_t i = 0; i < c->n_outputs; i++) {
        Weft__Output *o = wf_arena_alloc(a, sizeof *o);

        if (!o)
            return out_of_memory(err);
        weft__output__init(o);
        o->name = wf_arena_strdup(a, c->outputs[i].name ? c->outputs[i].name : "");
        o->label = wf_arena_strdup(a, c->outputs[i].label ? c->outputs[i].label : "");
        o->meaning = c->outputs[i].meaning;
        o->per_record = c->outputs[i].per_record;
        o->metric = wf_arena_strdup(a, c->outputs[i].metric ? c->outputs[i].metric : "");
        if (!o->name || !o->label || !o->metric)
            return out_of_memory(err);
        (*list)[(*n)++] = o;
    }
    return WF_OK;
}

static wf_status encode_graph(wf_arena *a, const wf_graph *g, ProtobufCBinaryData *out, wf_err *err)
{
    wf_bytes bytes = {0};
    wf_status rc = g ? wf_onnx_encode(g, &bytes, err) : WF_OK;

    if (rc == WF_OK) {
        out->data = wf_arena_memdup(a, bytes.data, bytes.size);
        out->len = bytes.size;
        if (!out->data)
            rc = wf_fail_nomem(err, bytes.size);
    }
    wf_bytes_close(&bytes);
    return rc;
}

/* The uses of tables, and the graph of their ids. */
static wf_status fill_uses(wf_prepared *p, const wf_compiled *c, Weft__TableUse ***list, size_t *n,
                           ProtobufCBinaryData *ids, wf_err *err)
{
    *list = wf_arena_array(p->arena, c->n_uses, sizeof(**list));
    if (!*list)
        return out_of_memory(err);
    for (size_t i = 0; i < c->n_uses; i++) {
        int64_t at = find_variable(p, c->variables[c->uses[i].variable].name);
        Weft__TableUse *use = wf_arena_alloc(p->arena, sizeof *use);

        if (!use)
            return out_of_memory(err);
        wf_assert(at >= 0); /* a table is trained, so the train graph has it */
        weft__table_use__init(use);
        use->variable = (uint32_t)at;
        use->places = wf_arena_strdup(p->arena, c->uses[i].places);
        use->ids = wf_arena_strdup(p->arena, c->uses[i].ids);
        use->is_bag = c->uses[i].is_bag;
        if (!use->places || !use->ids)
            return out_of_memory(err);
        (*list)[(*n)++] = use;
    }
    return encode_graph(p->arena, c->n_uses ? c->ids_graph : NULL, ids, err);
}

static wf_status fill_growth(wf_prepared *p, const wf_job_conf *job, const wf_job_data *d,
                             wf_err *err)
{
    const char *const *patterns;
    const char **copy;

    WF_TRY(wf_job_data_patterns(d, p->arena, &patterns, &p->n_patterns, err));
    copy = wf_arena_array(p->arena, p->n_patterns, sizeof *copy);
    if (!copy)
        return out_of_memory(err);
    for (size_t i = 0; i < p->n_patterns; i++) {
        copy[i] = wf_arena_strdup(p->arena, patterns[i]);
        if (!copy[i])
            return out_of_memory(err);
    }
    p->patterns = copy;
    p->grows = true;
    p->poll_ns = (int64_t)(job->poll_seconds * WF_NS_PER_S);
    p->settle_ns = (int64_t)(job->settle_seconds * WF_NS_PER_S);
    p->idle_ns = (int64_t)(job->idle_stop_seconds * WF_NS_PER_S);
    return WF_OK;
}

static wf_status fill_data(wf_prepared *p, const wf_job_conf *job, const wf_compiled *c, bool train,
                           wf_err *err)
{
    wf_job_data d;

    if (!train && !wf_job_evaluates(job))
        return WF_OK;
    WF_TRY(wf_job_data_of(job, train ? &job->train : &job->eval, c, &d, err));
    if (!train)
        d.shuffle = false;
    if (p->start.n_stages > 0)
        d.batch = job->batch / p->start.micro_batches;
    else if (!train)
        d.batch = wf_eval_batch(job->batch);
    if (d.grows)
        WF_TRY(fill_growth(p, job, &d, err));
    return wf_job_data_put(&d, p->arena, train ? &p->start.train_data : &p->start.eval_data, err);
}

/* The graphs of a mode, and what their ports mean. */
static wf_status fill_start(wf_prepared *p, const wf_compiled *c, bool train, wf_err *err)
{
    Weft__Start *s = &p->start;

    WF_TRY(encode_graph(p->arena, c->graph, train ? &s->train_graph : &s->eval_graph, err));
    if (train) {
        WF_TRY(fill_outputs(p->arena, c, &s->train_outputs, &s->n_train_outputs, err));
        if (c->loss_scale)
            s->loss_scale = wf_arena_strdup(p->arena, c->loss_scale);
        if (!s->loss_scale)
            return out_of_memory(err);
        return fill_uses(p, c, &s->train_uses, &s->n_train_uses, &s->train_ids, err);
    }
    WF_TRY(fill_outputs(p->arena, c, &s->eval_outputs, &s->n_eval_outputs, err));
    return fill_uses(p, c, &s->eval_uses, &s->n_eval_uses, &s->eval_ids, err);
}

static wf_status compile_mode(wf_prepared *p, const wf_job_conf *job, wf_compile_mode mode,
                              const wf_master_cluster *cluster, wf_err *err)
{
    const wf_stage_workers of = {cluster->workers, cluster->n_workers};
    bool train = mode == WF_COMPILE_TRAIN;
    wf_compile_spec spec;
    wf_compiled *c = NULL;
    wf_model model;
    char digest[32];
    wf_status rc;

    wf_compile_spec_of_job(job, mode, p->strategy, cluster->n_ps, &model, &spec);
    spec.read_weights = wf_pretrained_read;
    spec.train_metrics = train;
    spec.unit_batches = wf_ceil_div((int64_t)p->eval_unit, (int64_t)job->batch);
    rc = p->strategy->divides ? wf_divided_begin(p, job, &of, &spec, err) : WF_OK;
    if (rc == WF_OK)
        rc = wf_compile(&spec, &c, err);
    /* Whoever submitted the job was warned before (wf_job_check); in --local it is this process. */
    for (size_t i = 0; rc == WF_OK && train && i < c->n_warnings; i++)
        WF_LOG_INFO("compile.warning", "job=%s %s", job->name, c->warnings[i]);
    if (rc == WF_OK && train) {
        snprintf(digest, sizeof digest, "%016" PRIx64, c->digest);
        p->setup.digest = wf_arena_strdup(p->arena, digest);
        rc = p->setup.digest ? WF_OK : out_of_memory(err);
    }
    if (rc == WF_OK)
        rc = fill_variables(p, c, train, err);
    if (rc == WF_OK)
        rc = fill_start(p, c, train, err);
    if (rc == WF_OK && p->strategy->divides)
        rc = wf_divided_fill(p, c, train, err);
    if (rc == WF_OK)
        rc = fill_data(p, job, c, train, err);
    wf_compiled_free(&c);
    return rc;
}

static void share_with_start(wf_prepared *p)
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
}

static wf_status fill_callbacks(wf_prepared *p, const wf_job_conf *job, wf_err *err)
{
    const char **names = wf_arena_array(p->arena, p->start.n_eval_outputs, sizeof(*names));
    wf_opt opt;

    if (!names)
        return out_of_memory(err);
    for (size_t i = 0; i < p->start.n_eval_outputs; i++)
        names[i] = p->start.eval_outputs[i]->label;
    WF_TRY(wf_compile_optimizer_of_job(job, &opt, err));
    return wf_callbacks_init(&p->callbacks, job, names, p->start.n_eval_outputs,
                             opt.schedule ? (double)NAN : opt.values[0], err);
}

static wf_status fill_hosts(wf_prepared *p, const wf_job_conf *job, wf_err *err)
{
    struct wf_prepared_hosts *rows = wf_arena_array(p->arena, job->n_hosts, sizeof *rows);

    if (!rows)
        return out_of_memory(err);
    for (size_t i = 0; i < job->n_hosts; i++) {
        rows[i].match = wf_arena_strdup(p->arena, job->hosts[i].match);
        rows[i].hosts = wf_words_copy(p->arena, job->hosts[i].hosts, job->hosts[i].n);
        rows[i].n = job->hosts[i].n;
        if (!rows[i].match || !rows[i].hosts)
            return out_of_memory(err);
    }
    p->hosts = rows;
    p->n_hosts = job->n_hosts;
    p->start.tells_files = p->n_hosts > 0 || (job->shard != WF_SHARD_DATA && !job->grows);
    return WF_OK;
}

static wf_status choose_strategy(wf_prepared *p, const wf_job_conf *job,
                                 const wf_master_cluster *cluster, wf_err *err)
{
    const wf_stage_workers of = {cluster->workers, cluster->n_workers};

    if (cluster->strategy)
        p->strategy = wf_strategy_find(cluster->strategy);
    else
        WF_TRY(wf_strategy_of_job(job, cluster->n_ps, cluster->n_workers, &p->strategy, err));
    wf_assert(p->strategy);
    p->start.strategy = (char *)p->strategy->name;
    /* A job of several workers may be trained by one process. */
    p->start.shard_optimizer = job->shard_optimizer && wf_strategy_shards_optimizer(p->strategy);
    WF_TRY(wf_strategy_check_backups(job, p->strategy, cluster->n_workers, err));
    return wf_strategy_check_devices(job, p->strategy, &of, err);
}

static wf_status fill(wf_prepared *p, const wf_job_conf *job, const char *run,
                      const wf_master_cluster *cluster, wf_err *err)
{
    weft__setup__init(&p->setup);
    weft__start__init(&p->start);
    p->setup.job = wf_arena_strdup(p->arena, run);
    if (!p->setup.job)
        return out_of_memory(err);
    p->start.seed = job->seed;
    p->start.pipeline = job->pipeline;
    if (strcmp(job->mode, "ssp") == 0)
        p->setup.bounded = 1 + job->staleness;
    p->setup.staleness_aware = job->staleness_aware;
    if (strcmp(job->mode, "bsp") == 0) {
        p->setup.bounded = 1;
        p->setup.together = true;
        p->setup.backups = job->backup_workers;
    }
    p->start.bounded = p->setup.bounded;
    p->start.together = p->setup.together;
    p->start.skip_nan = job->on_nan == WF_NAN_SKIP;
    p->start.compute = job->compute;
    p->start.deterministic = job->deterministic;
    p->start.initial_scale = job->initial_scale;
    p->start.growth_steps = job->growth_steps;
    p->epochs = job->epochs;
    p->steps = job->steps;
    p->every_steps = job->every_steps;
    p->every_seconds = job->every_seconds;
    p->keep = job->keep;
    p->split_records = job->split_records;
    p->shard = job->shard;
    p->evaluates = wf_job_evaluates(job);
    p->balances = job->balance;
    p->balance_over = job->balance_over;
    p->balance_after_ns = (int64_t)(job->balance_after_s * 1e9);
    p->eval_unit = EVAL_UNIT_BATCHES * wf_eval_batch(job->batch);
    p->rolls_back = job->on_nan == WF_NAN_ROLLBACK;
    WF_TRY(fill_rule(p, job, err));
    WF_TRY(fill_hosts(p, job, err));
    WF_TRY(choose_strategy(p, job, cluster, err));
    WF_TRY(compile_mode(p, job, WF_COMPILE_TRAIN, cluster, err));
    WF_TRY(compile_mode(p, job, WF_COMPILE_EVAL, cluster, err));
    p->in_step = p->strategy->sends;
    p->drains = job->pipeline > 0 && p->start.train_ids.len > 0; /* ids of tables */
    WF_TRY(fill_callbacks(p, job, err));
    share_with_start(p);
    return WF_OK;
}

/* A row of hosts for each set of them, named by itself. */
static wf_status add_near_hosts(wf_prepared *p, struct wf_prepared_hosts *rows, const char *name,
                                const wf_prediction_run *run, wf_err *err)
{
    for (size_t i = 0; i < p->n_hosts; i++)
        if (strcmp(rows[i].match, name) == 0)
            return WF_OK;
    rows[p->n_hosts].match = name;
    rows[p->n_hosts].hosts = wf_words_copy(p->arena, run->hosts, run->n_hosts);
    rows[p->n_hosts].n = run->n_hosts;
    return rows[p->n_hosts++].hosts ? WF_OK : out_of_memory(err);
}

/* "/a,b": the set of hosts of a run. */
static char *name_of_run(wf_prepared *p, const wf_prediction_run *run)
{
    char *name = wf_arena_strdup(p->arena, "/");

    for (size_t i = 0; name && i < run->n_hosts; i++)
        name = wf_arena_printf(p->arena, "%s%s,", name, run->hosts[i]);
    return name;
}

/* The records of a request that are near hosts: as files that lie there. */
static wf_status fill_near(wf_prepared *p, const wf_prediction_ask *ask, wf_err *err)
{
    struct wf_prepared_hosts *rows = wf_arena_array(p->arena, ask->n_near + 1, sizeof *rows);

    p->near = wf_arena_array(p->arena, ask->n_near + 1, sizeof(*p->near));
    if (!rows || !p->near)
        return out_of_memory(err);
    p->hosts = rows;
    for (size_t i = 0; i < ask->n_near; i++) {
        Weft__FileRecords *file = wf_arena_alloc(p->arena, sizeof *file);
        char *name = name_of_run(p, &ask->near[i]);

        if (!file || !name)
            return out_of_memory(err);
        weft__file_records__init(file);
        file->path = name;
        file->records = ask->near[i].records;
        p->near[p->n_near++] = file;
        WF_TRY(add_near_hosts(p, rows, name, &ask->near[i], err));
    }
    return WF_OK;
}

/* A request instead of a job: its records are dealt in the splits that it has, each of which is one
 * step. Workers read the model and the files themselves. */
static wf_status fill_prediction(wf_prepared *p, const char *run, const char *text,
                                 const wf_master_cluster *cluster, wf_err *err)
{
    const wf_stage_workers of = {cluster->workers, cluster->n_workers};
    wf_prediction_ask ask;

    WF_TRY(wf_prediction_read(text, strlen(text), p->arena, &ask, err));
    weft__setup__init(&p->setup);
    weft__start__init(&p->start);
    p->setup.job = wf_arena_strdup(p->arena, run);
    p->setup.digest = wf_arena_printf(p->arena, "%016" PRIx64, ask.tag);
    p->start.prediction = wf_arena_strdup(p->arena, text);
    if (!p->setup.job || !p->setup.digest || !p->start.prediction)
        return out_of_memory(err);
    p->start.strategy = (char *)"none";
    p->predicts = true;
    p->epochs = 1;
    p->batch = p->split_records = ask.split_records;
    WF_TRY(wf_predicted_fill(p, &ask, &of, err));
    share_with_start(p);
    return fill_near(p, &ask, err);
}

static wf_status fill_job(wf_prepared *p, const char *run, const char *text, const char *path,
                          const wf_master_cluster *cluster, wf_err *err)
{
    wf_job_conf *job = NULL;
    wf_status rc;

    WF_TRY(wf_job_parse(text, strlen(text), path, &job, err));
    rc = fill(p, job, run, cluster, err);
    wf_job_free(&job);
    return rc;
}

wf_status wf_master_prepare(const char *run, const char *text, const char *path,
                            const wf_master_cluster *cluster, wf_prepared **out, wf_err *err)
{
    wf_prepared *p = calloc(1, sizeof *p);
    wf_status rc;

    if (p)
        p->arena = wf_arena_new(0);
    if (!p || !p->arena)
        rc = out_of_memory(err);
    else if (wf_prediction_is(text))
        rc = fill_prediction(p, run, text, cluster, err);
    else
        rc = fill_job(p, run, text, path, cluster, err);
    if (rc != WF_OK)
        wf_prepared_free(&p);
    *out = p;
    return rc;
}
