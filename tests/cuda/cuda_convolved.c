/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_convolved.c - a small residual network in bfloat16 and float16 on the host's GPU:
 * what its convolutions make stays narrow up to the mean at its end, and back, no copy widens it,
 * and it trains as in float32 on the cpu. */
#include "common/base/cc.h"
#include "common/base/rng.h"
#include "common/compile/compile.h"
#include "common/exec/plan.h"
#include "common/graph/narrow.h"
#include "common/kernels/kernel.h"
#include "common/log/log.h"
#include "tests/cuda/host.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <stdlib.h>

enum { IMAGES = 8, CHANNELS = 3, SIZE = 16, CLASSES = 4, STEPS = 12, SEED = 5, MOST_PORTS = 64 };

/* The scale divides out of gradients again; it is there for float16 alone. */
static const float rate = 0.02f, loss_scale = 128;

/* The stem of a ResNet and one of its blocks (He and others, "Deep Residual Learning", 2015). */
#define CONV(width, kernel, from)                                                                  \
    "    - conv2d: {filters: " #width ", kernel_size: " #kernel ", padding: same, "                \
    "use_bias: false, data_format: channels_first" from "}\n"                                      \
    "    - batch_normalization: {axis: 1"
#define FROM(layer) ", inputs: " #layer
static const char job_text[] =
    "job: residual\n"
    "model:\n"
    "  input: {x: [3, 16, 16]}\n"
    "  layers:\n" CONV(
        16, 7, "") "}\n"
                   "    - relu: {}\n"
                   "    - max_pooling2d: {name: stem, pool_size: 3, strides: 2, padding: same, "
                   "data_format: channels_first}\n" CONV(
                       16, 1,
                       "") "}\n"
                           "    - relu: {}\n" CONV(
                               16, 3,
                               "") "}\n"
                                   "    - relu: {}\n" CONV(32, 1, "") ", name: straight}\n" CONV(
                                       32, 1,
                                       FROM(stem)) ", name: short}\n"
                                                   "    - add: {inputs: [straight, short]}\n"
                                                   "    - relu: {}\n"
                                                   "    - global_average_pooling2d: {data_format: "
                                                   "channels_first}\n"
                                                   "    - dense: {units: 4}\n"
                                                   "loss: {sparse_categorical_crossentropy: "
                                                   "{from_logits: true}}\n"
                                                   "data: {format: synthetic, records: 64}\n"
                                                   "batch: 8\n"
                                                   "seed: 3\n"
                                                   "optimizer: {sgd: {learning_rate: 0.1}}\n";

static wf_err err;

/* A graph of the job, and a plan over one batch. */
typedef struct trained {
    wf_job_conf *job;
    wf_model layers;
    wf_compiled *c;
    wf_plan *plan;
    void *inputs[MOST_PORTS]; /* of the plan; ours */
} trained;

static void compile(trained *t, wf_compute compute, wf_compile_mode mode)
{
    wf_compile_spec spec;

    *t = (trained){0};
    assert_ok(wf_job_parse(job_text, strlen(job_text), "residual.yaml", &t->job, &err), err);
    t->job->compute = compute;
    wf_compile_spec_of_job(t->job, mode, wf_strategy_find("parameter_server"), 1, &t->layers,
                           &spec);
    assert_ok(wf_compile(&spec, &t->c, &err), err);
}

/* Variables have their first values, a picture's brightness goes with its class. */
static void fill(const trained *t, const wf_port *port, void *data)
{
    const int64_t v = port->variable ? wf_compiled_find(t->c, port->variable) : -1;
    const int64_t elems = CHANNELS * SIZE * SIZE;
    const wf_rng_key key = {SEED, 7};

    if (v >= 0)
        memcpy(data, t->c->variables[v].initial->data, port->bytes);
    else if (port->dtype == WF_I64)
        for (int64_t i = 0; i < IMAGES; i++)
            ((int64_t *)data)[i] = i % CLASSES;
    else if (port->rank == 0)
        *(float *)data = loss_scale;
    else
        for (int64_t i = 0; i < port->elems; i++)
            ((float *)data)[i] =
                2 * wf_rng_f32(key, (uint64_t)i) - 1 + 0.5f * (float)(i / elems % CLASSES);
}

static void plan(trained *t, const wf_device *device)
{
    wf_plan_options o = {.device = device,
                         .compute = t->job->compute,
                         .n_symbols = 1,
                         .symbols = &(wf_plan_symbol){"batch", IMAGES},
                         .deterministic = true};

    assert_ok(wf_plan_new(t->c->graph, &o, &t->plan, &err), err);
    assert_true(wf_plan_n_inputs(t->plan) <= MOST_PORTS);
    for (uint32_t i = 0; i < wf_plan_n_inputs(t->plan); i++) {
        const wf_port *port = wf_plan_input(t->plan, i);

        t->inputs[i] = malloc(port->bytes);
        assert_non_null(t->inputs[i]);
        fill(t, port, t->inputs[i]);
        wf_plan_bind_input(t->plan, i, t->inputs[i]);
    }
}

static void end(trained *t)
{
    for (uint32_t i = 0; i < MOST_PORTS; i++)
        free(t->inputs[i]);
    wf_plan_free(&t->plan);
    wf_compiled_free(&t->c);
    wf_job_free(&t->job);
}

/* Moves the weights by what the last run pushed; statistics are of no variable that is read. */
static void update(trained *t)
{
    for (uint32_t i = 0; i < wf_plan_n_outputs(t->plan); i++) {
        const wf_port *port = wf_plan_output(t->plan, i);
        const float *grad = wf_plan_output_data(t->plan, i);

        for (uint32_t k = 0; port->variable && k < wf_plan_n_inputs(t->plan); k++) {
            const char *name = wf_plan_input(t->plan, k)->variable;

            if (!name || strcmp(name, port->variable) != 0)
                continue;
            for (int64_t e = 0; e < port->elems; e++)
                ((float *)t->inputs[k])[e] -= rate * grad[e];
        }
    }
}

/* Runs it once and gives the loss. */
static double step(trained *t, uint64_t number)
{
    const wf_step_key key = {.batch = number};
    const int64_t loss = wf_plan_find_output(t->plan, "loss");

    assert_true(loss >= 0);
    assert_ok(wf_plan_run(t->plan, &key, NULL, NULL, &err), err);
    return (double)*(const float *)wf_plan_output_data(t->plan, (uint32_t)loss);
}

static void train(wf_compute compute, const wf_device *device, double losses[STEPS])
{
    trained t;

    compile(&t, compute, WF_COMPILE_TRAIN);
    plan(&t, device);
    for (uint64_t i = 0; i < STEPS; i++) {
        losses[i] = step(&t, i);
        update(&t);
    }
    end(&t);
}

static size_t count(const wf_graph *g, const char *op)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++)
        n += strcmp(g->nodes[i]->op->name, op) == 0;
    return n;
}

/* Each narrow image behind the pictures has its channels last, of which there are at least 16. */
static void assert_last(const wf_graph *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i]->n_out; k++) {
            const wf_value *v = g->nodes[i]->out[k];

            if (!v || v->rank != 4 || !wf_dtype_is_narrow(v->dtype) || v->axes[2].size == 1)
                continue;
            if (v->axes[3].size < 16 || v->axes[1].size != v->axes[2].size)
                fail_msg("%s of %s has its channels second", v->name, g->nodes[i]->op->name);
            n++;
        }
    assert_true(n > 10);
}

/* The copies in another type that a step makes: each convolution rounds its weights, which are
 * float32, and gives their gradients as such; the first rounds the pictures. Results and their
 * gradients are not copied. */
static void only_weights_and_pictures_are_converted_in(wf_compute compute, wf_compile_mode mode)
{
    const wf_graph *g;
    size_t before, weights, executed;
    trained t;

    compile(&t, compute, mode);
    g = t.c->graph;
    weights = count(g, "Conv") + count(g, "ConvDataGrad") + count(g, "ConvWeightGrad");
    assert_int_equal(count(g, "Conv"), 5);
    assert_int_equal(weights, mode == WF_COMPILE_TRAIN ? 14 : 5);
    plan(&t, cuda_host_device());
    before = cuda_host_count().converted;
    executed = cuda_host_count().dnn_executed;
    (void)step(&t, 0);
    assert_int_equal(cuda_host_count().converted - before,
                     weights + (mode == WF_COMPILE_TRAIN ? 2 : 1));
    /* cuDNN computes them all, and nothing else: images have their channels last. */
    assert_int_equal(cuda_host_count().dnn_executed - executed, weights);
    assert_int_equal(count(t.plan->g, "Transpose"), 0);
    assert_int_equal(count(t.plan->g, "Relu"), 0); /* normalisations compute it */
    assert_last(t.plan->g);
    end(&t);
}

static void only_weights_and_pictures_are_converted(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const wf_compute compute = i ? WF_COMPUTE_F16 : WF_COMPUTE_BF16;

        only_weights_and_pictures_are_converted_in(compute, WF_COMPILE_TRAIN);
        only_weights_and_pictures_are_converted_in(compute, WF_COMPILE_EVAL);
    }
}

static void what_is_as_large_as_images_is_narrow(void **state)
{
    size_t narrow = 0;
    trained t;

    (void)state;
    compile(&t, WF_COMPUTE_BF16, WF_COMPILE_TRAIN);
    assert_ok(wf_narrow_for_gpus(t.c->graph, WF_BF16, &err), err);
    assert_ok(wf_infer(t.c->graph, &err), err);
    for (size_t i = 0; i < t.c->graph->n_values; i++) {
        const wf_value *v = t.c->graph->values[i];

        if (!v->producer || v->rank != 4 || v->axes[0].size >= 0 || v->axes[2].size == 1)
            continue;
        if (v->dtype != WF_BF16)
            fail_msg("%s of %s is %s", v->name, v->producer->op->name, wf_dtype_name(v->dtype));
        narrow++;
    }
    assert_in_range(narrow, 25, 50);
    end(&t);
}

/* Losses of the same weights, and of those that 12 steps of SGD lead to. */
static void losses_are_near_those_of_float32(void **state)
{
    static const struct {
        wf_compute compute;
        double first, later; /* relative: half a bit of the type, and what steps make of it */
    } types[] = {{WF_COMPUTE_BF16, 0x1p-8, 0.02}, {WF_COMPUTE_F16, 0x1p-11, 0.02}};
    double want[STEPS], got[STEPS];

    (void)state;
    train(WF_COMPUTE_F32, &wf_cpu, want);
    assert_true(want[STEPS - 1] < 0.7 * want[0]);
    for (size_t i = 0; i < WF_COUNT(types); i++) {
        train(types[i].compute, cuda_host_device(), got);
        for (int k = 0; k < STEPS; k++) {
            const double most = k ? types[i].later : types[i].first;

            if (!(fabs(got[k] - want[k]) <= most * want[k]))
                fail_msg("%s: loss %d is %g, not %g", wf_compute_name(types[i].compute), k, got[k],
                         want[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_weights_and_pictures_are_converted),
        cmocka_unit_test(what_is_as_large_as_images_is_narrow),
        cmocka_unit_test(losses_are_near_those_of_float32),
    };

    wf_log_init("", WF_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
