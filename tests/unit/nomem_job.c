/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_job.c - from the text of a job to the outputs of a step while memory ends. */
#include "common/base/size.h"
#include "common/compile/compile.h"
#include "common/conf/conf.h"
#include "common/exec/exec.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/nomem.h"

#include <math.h>

static const char cluster_text[] = "cluster: demo\n"
                                   "master: {address: tcp://127.0.0.1:7700}\n"
                                   "ps:\n"
                                   "  - {address: tcp://127.0.0.1:7710}\n"
                                   "  - {address: tcp://127.0.0.1:7711}\n"
                                   "workers:\n"
                                   "  - {address: tcp://127.0.0.1:7720, devices: [cpu]}\n"
                                   "state_dir: /tmp/weft\n";

#define SCHEDULE "optimizer.learning_rate.cosine_decay"

static const char convolutional[] =
    "job: j\n"
    "model:\n"
    "  input: {pixels: [8, 8, 1]}\n"
    "  layers:\n"
    "    - conv2d: {filters: 3, kernel_size: 3, activation: relu, kernel_regularizer: {l2: 0.01}}\n"
    "    - batch_normalization\n"
    "    - max_pooling2d: 2\n"
    "    - flatten\n"
    "    - dropout: 0.5\n"
    "    - dense: {units: 5, activation: softmax}\n"
    "loss: sparse_categorical_crossentropy\n"
    "metrics: [accuracy, {sparse_top_k_categorical_accuracy: {k: 2}}]\n"
    "data:\n"
    "  format: idx\n"
    "  train: {pixels: a.gz, digit: b.gz}\n"
    "  eval: {pixels: c.gz, digit: d.gz}\n"
    "  map: {pixels: [{scale: 0.5}, {reshape: [8, 8, 1]}]}\n"
    "batch: 4\n"
    "seed: 3\n"
    "optimizer:\n"
    "  adam:\n"
    "    learning_rate:\n"
    "      cosine_decay: {initial_learning_rate: 0.01, decay_steps: 100}\n"
    "callbacks:\n"
    "  - early_stopping: {patience: 2}\n";

static const char recurrent[] =
    "job: j\n"
    "model:\n"
    "  input: {words: {shape: [6], dtype: int64}}\n"
    "  layers:\n"
    "    - embedding: {input_dim: 9, output_dim: 4, name: table}\n"
    "    - bidirectional: {layer: {lstm: {units: 2, return_sequences: true}}, name: both}\n"
    "    - multi_head_attention: {num_heads: 2, key_dim: 3, inputs: [both, both]}\n"
    "    - layer_normalization\n"
    "    - global_average_pooling1d\n"
    "    - dense: {units: 1}\n"
    "loss: mse\n"
    "freeze: [table/*]\n"
    "data:\n"
    "  format: npy\n"
    "  train: {words: a.npy, y: b.npy}\n"
    "batch: 4\n"
    "optimizer: sgd\n";

static const char clicks[] =
    "job: j\n"
    "model:\n"
    "  input: {numbers: [6], ids: {shape: [6], dtype: int64}}\n"
    "  layers:\n"
    "    - embedding: {input_dim: 9, output_dim: 3, inputs: ids}\n"
    "    - factorization_machine\n"
    "    - dense: {units: 3, inputs: numbers}\n"
    "    - dot_interaction: {inputs: [embedding, dense]}\n"
    "    - concatenate: {inputs: [factorization_machine, dot_interaction]}\n"
    "    - dense: {units: 1, name: click}\n"
    "loss: mse\n"
    "data: {format: csv, schema: criteo, train: a.tsv, map: {ids: [{hash: 9}]}}\n"
    "batch: 4\n"
    "optimizer: sgd\n";

static const char *const job_texts[] = {convolutional, recurrent, clicks};
enum { JOBS = WF_COUNT(job_texts), MODES = WF_COMPILE_INFER };

static wf_status parse_cluster(void *unused, wf_err *err)
{
    wf_cluster_conf *c = NULL;
    wf_status rc =
        wf_cluster_parse(cluster_text, strlen(cluster_text), "/jobs/cluster.yaml", &c, err);

    (void)unused;
    wf_cluster_free(&c);
    return rc;
}

static wf_status parse(const char *text, wf_job_conf **j, wf_err *err)
{
    return wf_job_parse(text, strlen(text), "/jobs/j.yaml", j, err);
}

static wf_status parse_job(void *text, wf_err *err)
{
    wf_job_conf *j = NULL;
    wf_status rc = parse(text, &j, err);
    wf_opt opt;

    if (rc == WF_OK)
        rc = wf_compile_optimizer_of_job(j, &opt, err);
    wf_job_free(&j);
    return rc;
}

static wf_status change_job(void *unused, wf_err *err)
{
    char *changed = NULL, *again = NULL;
    wf_status rc =
        wf_job_change(convolutional, "callbacks.early_stopping.patience=3", true, &changed, err);

    (void)unused;
    if (rc == WF_OK)
        rc = wf_job_change(changed, SCHEDULE ".decay_steps=200", true, &again, err);
    free(changed);
    free(again);
    return rc;
}

/* A job in one mode, and what that comes to when memory does not end. */
typedef struct expected {
    const wf_job_conf *job; /* borrowed */
    wf_compile_mode mode;
    wf_compiled *c;
    char *outputs; /* one after the other */
    size_t n;      /* bytes of them; 0: not known yet */
} expected;

static wf_job_conf *jobs[JOBS];
static expected all[JOBS * MODES];

static wf_status compile(const expected *e, wf_compiled **c, wf_err *err)
{
    wf_compile_spec spec;
    wf_model m;

    wf_compile_spec_of_job(e->job, e->mode, wf_strategy_find("parameter_server"), 2, &m, &spec);
    return wf_compile(&spec, c, err);
}

static wf_status is_expected(const wf_compiled *c, const wf_compiled *e, wf_err *err)
{
    if (c->digest != e->digest || c->graph->n_nodes != e->graph->n_nodes ||
        c->n_slices != e->n_slices || c->n_outputs != e->n_outputs || c->n_feeds != e->n_feeds ||
        c->n_variables != e->n_variables || c->n_warnings != e->n_warnings)
        return wrong(err, "compiled to something else: %zu nodes, %zu expected", c->graph->n_nodes,
                     e->graph->n_nodes);
    for (size_t i = 0; i < c->n_variables; i++)
        if (memcmp(c->variables[i].initial->data, e->variables[i].initial->data,
                   c->variables[i].bytes) != 0)
            return wrong(err, "variable %s has other initial values", c->variables[i].name);
    return WF_OK;
}

static wf_status compile_mode(void *of, wf_err *err)
{
    const expected *e = of;
    wf_compiled *c = NULL;
    wf_status rc = compile(e, &c, err);

    if (rc == WF_OK)
        rc = is_expected(c, e->c, err);
    wf_compiled_free(&c);
    return rc;
}

static float images[4 * 8 * 8];
static int64_t digits[4 * 6];

/* As near as two ways to convolve are: where one of them finds no memory, the plan takes another.
 */
static bool is_near(const wf_port *port, const void *a, const void *b)
{
    const float *x = a, *y = b;
    bool near = port->dtype == WF_F32 || memcmp(a, b, port->bytes) == 0;

    for (int64_t i = 0; port->dtype == WF_F32 && i < port->elems; i++)
        near &= fabsf(x[i] - y[i]) <= 1e-5f * (1 + fabsf(y[i]));
    return near;
}

/* Binds what is fed, and the variables that the ps would send. */
static void bind(wf_plan *p, const wf_compiled *c)
{
    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++) {
        const wf_port *port = wf_plan_input(p, i);

        if (!port->variable)
            wf_plan_bind_input(p, i, port->dtype == WF_I64 ? (const void *)digits : images);
        for (size_t k = 0; port->variable && k < c->n_variables; k++)
            if (strcmp(c->variables[k].name, port->variable) == 0)
                wf_plan_bind_input(p, i, c->variables[k].initial->data);
    }
}

static wf_status plan_and_run(void *of, wf_err *err)
{
    expected *e = of;
    wf_plan_options o = {
        .device = test_device(), .n_symbols = 1, .symbols = &(wf_plan_symbol){"batch", 4}};
    wf_plan *p = NULL;
    wf_status rc = wf_plan_new(e->c->graph, &o, &p, err);
    size_t at = 0;

    if (rc == WF_OK) {
        bind(p, e->c);
        rc = wf_plan_run(p, &(wf_step_key){.seed = 1}, NULL, NULL, err);
    }
    for (uint32_t i = 0; rc == WF_OK && i < wf_plan_n_outputs(p); i++) {
        const wf_port *port = wf_plan_output(p, i);

        if (!e->n)
            memcpy(e->outputs + at, wf_plan_output_data(p, i), port->bytes);
        else if (!is_near(port, wf_plan_output_data(p, i), e->outputs + at))
            rc = wrong(err, "output %s is another", port->name);
        at += wf_align_up(port->bytes, 8);
    }
    if (rc == WF_OK)
        e->n = at;
    wf_plan_free(&p);
    return rc;
}

static void a_cluster_is_read(void **state)
{
    (void)state;
    assert_survives(parse_cluster, NULL);
}

static void a_job_is_read(void **state)
{
    (void)state;
    for (int i = 0; i < JOBS; i++)
        assert_survives(parse_job, (void *)job_texts[i]);
    assert_survives(change_job, NULL);
}

/* The second job makes thousands: every one of them takes 15 s. */
static uint64_t stride_of(int i)
{
    return i < MODES ? 1 : 7;
}

static void a_job_is_compiled(void **state)
{
    (void)state;
    for (int i = 0; i < JOBS * MODES; i++)
        assert_survives_by(stride_of(i), compile_mode, &all[i]);
}

static void a_plan_is_made_and_run(void **state)
{
    (void)state;
    for (int i = 0; i < JOBS * MODES; i++)
        assert_survives_by(stride_of(i), plan_and_run, &all[i]);
}

static int set_up(void **state)
{
    wf_err err = {0};
    wf_status rc = WF_OK;

    (void)state;
    for (int i = 0; i < 4 * 8 * 8; i++)
        images[i] = (float)(i % 7);
    for (int i = 0; i < 4 * 6; i++)
        digits[i] = i % 5;
    for (int i = 0; rc == WF_OK && i < JOBS; i++)
        rc = parse(job_texts[i], &jobs[i], &err);
    for (int i = 0; rc == WF_OK && i < JOBS * MODES; i++) {
        all[i] = (expected){.job = jobs[i / MODES],
                            .mode = (wf_compile_mode)(WF_COMPILE_TRAIN + i % MODES),
                            .outputs = malloc(1 << 20)};
        rc = compile(&all[i], &all[i].c, &err);
        if (rc == WF_OK)
            rc = plan_and_run(&all[i], &err);
    }
    if (rc != WF_OK)
        print_error("%s\n", err.what);
    return rc == WF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < JOBS * MODES; i++) {
        wf_compiled_free(&all[i].c);
        free(all[i].outputs);
    }
    for (int i = 0; i < JOBS; i++)
        wf_job_free(&jobs[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cluster_is_read),
        cmocka_unit_test(a_job_is_read),
        cmocka_unit_test(a_job_is_compiled),
        cmocka_unit_test(a_plan_is_made_and_run),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
