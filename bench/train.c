/* SPDX-License-Identifier: Apache-2.0 */
/* bench/train.c - the arithmetic of training alone: what one worker computes and what a ps applies,
 * in one process with no network.
 *
 *     bench_train JOB.yaml THREADS [SECONDS]
 *
 * Prints one line: examples per second (median, least and most of five windows), the shares of
 * gathering, network and update, the loss, and what training takes in memory beside the weights
 * (gradients, the optimizer's slots, activations, workspace). Labels are drawn when the job's data
 * is synthetic.
 */
#include "common/base/clock.h"
#include "common/base/pages.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/base/subnormal.h"
#include "common/compile/compile.h"
#include "common/compile/model.h"
#include "common/data/data.h"
#include "common/exec/exec.h"
#include "common/optim/rule.h"
#include "common/session/job_data_conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 5, GRAIN = 16384 };

typedef struct variable {
    float *weights, *gradient, *slots[WF_MAX_SLOTS];
    int64_t elems;
} variable;

typedef struct bench {
    wf_job_conf *job;
    wf_model model;
    wf_compiled *c;
    wf_dataset *data;
    wf_pool *pool;
    wf_plan *plan;
    wf_opt opt;
    variable *variables;
    uint32_t *field_of; /* [inputs of the plan]: UINT32_MAX for a variable */
    void **fed;         /* [inputs]: a batch of each field */
    uint64_t *records, at, updates;
    int64_t spent_ns[3];
    int64_t before; /* bytes resident before there were weights, and the weights' own */
} bench;

/* The process's resident bytes: as they are, or "VmHWM", the most that they were. */
static int64_t resident(const char *which)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[200];
    long kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, which, strlen(which)) == 0)
            kib = strtol(line + strlen(which) + 1, NULL, 10);
    if (f)
        fclose(f);
    return (int64_t)kib * 1024;
}

static void *zeroes(size_t bytes)
{
    void *p = wf_pages_alloc(bytes);

    if (p)
        memset(p, 0, bytes);
    return p;
}

static wf_status make_variables(bench *b, wf_err *err)
{
    b->variables = calloc(b->c->n_variables + 1, sizeof *b->variables);
    if (!b->variables)
        return wf_fail_nomem(err, b->c->n_variables * sizeof *b->variables);
    for (size_t i = 0; i < b->c->n_variables; i++) {
        const wf_compiled_variable *v = &b->c->variables[i];
        variable *to = &b->variables[i];

        b->before += (int64_t)v->bytes;
        to->elems = v->elems;
        to->weights = zeroes(v->bytes);
        to->gradient = zeroes(v->bytes);
        if (!to->weights || !to->gradient)
            return wf_fail_nomem(err, v->bytes);
        memcpy(to->weights, v->initial->data, v->bytes);
        for (uint32_t s = 0; s < wf_opt_n_slots(&b->opt); s++) {
            to->slots[s] = zeroes(v->bytes);
            if (!to->slots[s])
                return wf_fail_nomem(err, v->bytes);
            for (int64_t k = 0; k < v->elems; k++)
                to->slots[s][k] = wf_opt_slot_initial(&b->opt, s);
        }
    }
    return WF_OK;
}

static wf_status choose_rule(bench *b, wf_err *err)
{
    const wf_conf_item *item = &b->job->optimizer;
    const char *names[WF_MAX_OPTIONS];
    double values[WF_MAX_OPTIONS];
    uint32_t n = (uint32_t)WF_MIN(item->n_options, (size_t)WF_MAX_OPTIONS);

    for (uint32_t i = 0; i < n; i++) {
        names[i] = item->options[i].name;
        values[i] = item->options[i].number;
    }
    return wf_opt_init(&b->opt, item->type, n, names, values, err);
}

static wf_status make_plan(bench *b, wf_err *err)
{
    wf_plan_shape shapes[WF_DATA_MAX_FIELDS];
    wf_plan_options options = {.pool = b->pool, .shapes = shapes, .compute = b->job->compute};

    for (size_t i = 0; i < b->c->graph->n_inputs && i < WF_DATA_MAX_FIELDS; i++) {
        const wf_value *v = b->c->graph->inputs[i];
        const wf_field_info *f =
            wf_dataset_field(b->data, (uint32_t)wf_dataset_find(b->data, v->name));
        wf_plan_shape *s = &shapes[options.n_shapes++];

        *s = (wf_plan_shape){.name = v->name, .rank = f->rank + 1};
        s->dims[0] = (int64_t)b->job->batch;
        memcpy(&s->dims[1], f->dims, f->rank * sizeof f->dims[0]);
    }
    return wf_plan_new(b->c->graph, &options, &b->plan, err);
}

static wf_status bind(bench *b, wf_err *err)
{
    uint32_t n = wf_plan_n_inputs(b->plan);

    b->field_of = calloc(n + 1, sizeof *b->field_of);
    b->fed = calloc(n + 1, sizeof *b->fed);
    b->records = calloc(b->job->batch, sizeof *b->records);
    if (!b->field_of || !b->fed || !b->records)
        return wf_fail_nomem(err, n * sizeof *b->fed);
    for (uint32_t i = 0; i < n; i++) {
        const wf_port *port = wf_plan_input(b->plan, i);
        int64_t v = port->variable ? wf_compiled_find(b->c, port->variable) : -1;

        b->field_of[i] = v >= 0 ? UINT32_MAX : (uint32_t)wf_dataset_find(b->data, port->name);
        if (v < 0) {
            b->fed[i] = zeroes(port->bytes);
            if (!b->fed[i])
                return wf_fail_nomem(err, port->bytes);
        }
        wf_plan_bind_input(b->plan, i, v >= 0 ? b->variables[v].weights : b->fed[i]);
    }
    for (uint32_t i = 0; i < wf_plan_n_outputs(b->plan); i++) {
        const wf_port *port = wf_plan_output(b->plan, i);

        if (port->variable)
            wf_plan_bind_output(b->plan, i,
                                b->variables[wf_compiled_find(b->c, port->variable)].gradient);
    }
    return WF_OK;
}

static wf_status begin(bench *b, const char *path, uint32_t threads, wf_err *err)
{
    wf_compile_spec spec;
    wf_job_data data;

    WF_TRY(wf_job_load(path, &b->job, err));
    WF_TRY(choose_rule(b, err));
    wf_compile_spec_of_job(b->job, WF_COMPILE_TRAIN, wf_strategy_find("parameter_server"), 1,
                           &b->model, &spec);
    WF_TRY(wf_compile(&spec, &b->c, err));
    WF_TRY(wf_job_data_of(b->job, &b->job->train, b->c, &data, err));
    WF_TRY(wf_job_data_open(&data, b->c->graph, &b->data, err));
    WF_TRY(wf_pool_new(threads, &b->pool, err));
    b->before = resident("VmRSS:");
    WF_TRY(make_variables(b, err));
    WF_TRY(make_plan(b, err));
    return bind(b, err);
}

typedef struct turn {
    const bench *b;
    const variable *v;
} turn;

static void apply_range(void *arg, int64_t begin, int64_t end)
{
    const turn *t = arg;
    float *slots[WF_MAX_SLOTS];

    for (uint32_t s = 0; s < wf_opt_n_slots(&t->b->opt); s++)
        slots[s] = t->v->slots[s] + begin;
    wf_opt_apply(&t->b->opt, t->b->updates, (uint64_t)(end - begin), t->v->weights + begin,
                 t->v->gradient + begin, slots);
}

static wf_status gather(bench *b, wf_err *err)
{
    uint64_t n = wf_dataset_records(b->data);

    for (uint64_t i = 0; i < b->job->batch; i++, b->at++)
        b->records[i] = wf_rng_below((wf_rng_key){b->job->seed, 5}, b->at, n);
    for (uint32_t i = 0; i < wf_plan_n_inputs(b->plan); i++)
        if (b->fed[i])
            WF_TRY(wf_dataset_gather(b->data, b->field_of[i], b->records, b->job->batch, b->fed[i],
                                     err));
    return WF_OK;
}

static wf_status step(bench *b, wf_err *err)
{
    wf_step_key key = {.seed = b->job->seed, .batch = b->updates};
    int64_t from = wf_now_ns(), now;

    WF_TRY(gather(b, err));
    now = wf_now_ns();
    b->spent_ns[0] += now - from;
    from = now;
    WF_TRY(wf_plan_run(b->plan, &key, NULL, NULL, err));
    now = wf_now_ns();
    b->spent_ns[1] += now - from;
    from = now;
    b->updates++;
    for (size_t i = 0; i < b->c->n_variables; i++) {
        turn t = {b, &b->variables[i]};

        if (b->c->variables[i].pushed && b->c->variables[i].kind == WF_VAR_TRAINABLE)
            wf_pool_for(b->pool, t.v->elems, GRAIN, apply_range, &t);
    }
    b->spent_ns[2] += wf_now_ns() - from;
    return WF_OK;
}

static double loss(const bench *b)
{
    for (size_t i = 0; i < b->c->n_outputs; i++)
        if (b->c->outputs[i].meaning == WF_MEANS_LOSS) {
            int64_t at = wf_plan_find_output(b->plan, b->c->outputs[i].name);

            return (double)*(const float *)wf_plan_output_data(b->plan, (uint32_t)at);
        }
    return 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static wf_status measure(bench *b, double seconds, wf_err *err)
{
    double rate[WINDOWS], whole;
    double first;

    for (int i = 0; i < 5; i++)
        WF_TRY(step(b, err));
    first = loss(b);
    memset(b->spent_ns, 0, sizeof b->spent_ns);
    for (int w = 0; w < WINDOWS; w++) {
        int64_t from = wf_now_ns(), steps = 0;

        do {
            WF_TRY(step(b, err));
            steps++;
        } while ((double)(wf_now_ns() - from) < seconds / WINDOWS * 1e9);
        rate[w] = (double)steps * (double)b->job->batch / ((double)(wf_now_ns() - from) / 1e9);
    }
    qsort(rate, WINDOWS, sizeof rate[0], by_size);
    whole = (double)(b->spent_ns[0] + b->spent_ns[1] + b->spent_ns[2]) / 100;
    printf("%s batch %lu threads %u: %.2f (%.2f-%.2f) examples/s   gather %.0f %% network %.0f %% "
           "update %.0f %%   loss %.4f -> %.4f   memory %.0f MiB\n",
           b->job->name, (unsigned long)b->job->batch, wf_pool_threads(b->pool), rate[WINDOWS / 2],
           rate[0], rate[WINDOWS - 1], (double)b->spent_ns[0] / whole,
           (double)b->spent_ns[1] / whole, (double)b->spent_ns[2] / whole, first, loss(b),
           (double)(resident("VmHWM:") - b->before) / (1 << 20));
    return WF_OK;
}

int main(int argc, char *argv[])
{
    bench b = {.updates = 0};
    wf_err err;
    wf_status rc;

    if (argc < 3) {
        fprintf(stderr, "bench_train JOB.yaml THREADS [SECONDS]\n");
        return 2;
    }
    wf_flush_subnormals();
    rc = begin(&b, argv[1], (uint32_t)atoi(argv[2]), &err);
    if (rc == WF_OK)
        rc = measure(&b, argc > 3 ? atof(argv[3]) : 5, &err);
    if (rc != WF_OK)
        fprintf(stderr, "%s; %s\n", err.what, err.hint);
    return rc == WF_OK ? 0 : 1; /* the system takes back what was made */
}
