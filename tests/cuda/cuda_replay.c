/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_replay.c - plans whose steps a GPU has recorded: results are the CPU's whatever
 * memory is lent and whatever order streams run in, a step is queued by few calls, and what cannot
 * be recorded is computed all the same.
 *
 *   cuda_replay [SEEDS]    of orders of streams, 30
 */
#include "common/base/cc.h"
#include "common/base/rng.h"
#include "common/exec/exec.h"
#include "tests/cuda/host.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <stdlib.h>

enum { BATCH = 6, IN = 8, HIDDEN = 5, OUT = 3, VARIABLES = 3, SETS = 6 };

static const char *const names[VARIABLES] = {"w1", "b1", "w2"};
static const int64_t dims[VARIABLES][2] = {{IN, HIDDEN}, {HIDDEN, 0}, {HIDDEN, OUT}};

static size_t size_of(int variable)
{
    return (size_t)(dims[variable][0] * (dims[variable][1] ? dims[variable][1] : 1));
}

static wf_value *fed(wf_graph *g, const char *name, wf_dtype dtype, uint32_t rank,
                     const int64_t d[])
{
    wf_value *v = NULL;

    assert_int_equal(wf_graph_add_value(g, name, &v, NULL), WF_OK);
    wf_value_set_type(v, dtype, rank, d);
    assert_int_equal(wf_graph_add_input(g, v, NULL), WF_OK);
    return v;
}

/* A step of training: x, y and the variables in; the loss and the variables' gradients out. */
static wf_graph *step_graph(bool drops)
{
    wf_graph *g = new_graph();
    wf_value *x = fed(g, "x", WF_F32, DIMS(BATCH, IN)), *y = fed(g, "y", WF_I64, DIMS(BATCH));
    wf_value *v[VARIABLES], *grads[VARIABLES], *loss;
    wf_emit e;
    wf_err err;

    for (int i = 0; i < VARIABLES; i++)
        v[i] = fed(g, names[i], WF_F32, dims[i][1] ? 2 : 1, dims[i]);
    e = wf_emit_begin(g, "m", &err);
    x = wf_emit_unary(&e, "Tanh", wf_emit_gemm(&e, x, v[0], v[1], 1, 1, false, false));
    if (drops) {
        wf_value *ratio = wf_emit_scalar(&e, WF_F32, 0.5), *training = NULL;
        wf_tensor *t = NULL;

        assert_int_equal(wf_tensor_new(WF_BOOL, 0, NULL, &t, NULL), WF_OK);
        *(bool *)t->data = true;
        assert_ok(wf_graph_add_constant(g, "training", &t, &training, &err), err);
        x = wf_emit_op(&e, "Dropout", 3, (wf_value *[]){x, ratio, training}, 0, NULL);
    }
    x = wf_emit_op(&e, "MatMul", 2, (wf_value *[]){x, v[2]}, 0, NULL);
    loss = wf_emit_op(&e, "SoftmaxCrossEntropyLoss", 2, (wf_value *[]){x, y}, 0, NULL);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_add_output(g, loss, &err), err);
    assert_ok(wf_graph_differentiate(g, loss, v, VARIABLES, grads, &err), err);
    for (int i = 0; i < VARIABLES; i++)
        assert_ok(wf_graph_add_output(g, grads[i], &err), err);
    assert_ok(wf_graph_sort(g, &err), err);
    return g;
}

/* A plan, and what it is lent: weights and gradients of the device are a set of their own, and so
 * is the batch. */
typedef struct trained {
    const wf_device *device;
    wf_plan *plan;
    wf_stream *stream; /* of the test's own copies */
    float *weights[SETS][VARIABLES], *grads[SETS][VARIABLES];
    float x[SETS][BATCH * IN];
    int64_t y[SETS][BATCH];
} trained;

static trained *open_trained(const wf_graph *g, const wf_device *d)
{
    const char *resident[2 * VARIABLES];
    trained *t = calloc(1, sizeof *t);
    wf_err err;

    assert_non_null(t);
    t->device = d;
    for (int i = 0; i < VARIABLES; i++) {
        resident[i] = names[i];
        resident[VARIABLES + i] = g->outputs[1 + i]->name;
    }
    assert_ok(wf_plan_new(g,
                          &(wf_plan_options){
                              .device = d, .resident = resident, .n_resident = WF_COUNT(resident)},
                          &t->plan, &err),
              err);
    assert_ok(wf_stream_new(d, &t->stream, &err), err);
    for (int s = 0; s < SETS; s++)
        for (int i = 0; i < VARIABLES; i++) {
            t->weights[s][i] = wf_device_alloc(d, size_of(i) * sizeof(float));
            t->grads[s][i] = wf_device_alloc(d, size_of(i) * sizeof(float));
            assert_true(t->weights[s][i] && t->grads[s][i]);
        }
    return t;
}

static void close_trained(trained **t)
{
    wf_plan_free(&(*t)->plan);
    wf_stream_free(&(*t)->stream);
    for (int s = 0; s < SETS; s++)
        for (int i = 0; i < VARIABLES; i++) {
            wf_device_free((*t)->device, (*t)->weights[s][i]);
            wf_device_free((*t)->device, (*t)->grads[s][i]);
        }
    free(*t);
    *t = NULL;
}

/* The batch and the weights of run number `n`, in set `s`. */
static void write_set(trained *t, int s, uint64_t n)
{
    wf_rng_key key = {n, 1};
    float w[IN * HIDDEN];
    uint64_t at = 0;
    wf_err err;

    for (int i = 0; i < BATCH * IN; i++)
        t->x[s][i] = wf_rng_f32(key, at++) - 0.5f;
    for (int i = 0; i < BATCH; i++)
        t->y[s][i] = (int64_t)wf_rng_below(key, at++, OUT);
    for (int v = 0; v < VARIABLES; v++) {
        for (size_t i = 0; i < size_of(v); i++)
            w[i] = wf_rng_f32(key, at++) - 0.5f;
        assert_ok(wf_stream_copy(t->stream, WF_COPY_IN, t->weights[s][v], w,
                                 size_of(v) * sizeof(float), &err),
                  err);
        assert_ok(wf_stream_wait(t->stream, &err), err);
    }
}

static wf_status run_set(trained *t, int s, uint64_t n, wf_err *err)
{
    wf_plan_bind_input(t->plan, 0, t->x[s]);
    wf_plan_bind_input(t->plan, 1, t->y[s]);
    for (uint32_t i = 0; i < VARIABLES; i++) {
        wf_plan_bind_input(t->plan, 2 + i, t->weights[s][i]);
        wf_plan_bind_output(t->plan, 1 + i, t->grads[s][i]);
    }
    return wf_plan_run(t->plan, &(wf_step_key){.seed = 3, .batch = n}, NULL, NULL, err);
}

static void read_gradient(trained *t, int s, int variable, float out[IN * HIDDEN])
{
    wf_err err;

    assert_ok(wf_stream_copy(t->stream, WF_COPY_OUT, out, t->grads[s][variable],
                             size_of(variable) * sizeof(float), &err),
              err);
    assert_ok(wf_stream_wait(t->stream, &err), err);
}

static void assert_near(const float *got, const float *want, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-6f))
            fail_msg("%s[%zu] is %g instead of %g", what, i, (double)got[i], (double)want[i]);
}

/* Makes run number n of both, the GPU's in set s, and compares. */
static void one_run(trained *t, trained *cpu, int s, uint64_t n)
{
    float got[IN * HIDDEN], want[IN * HIDDEN];
    wf_err err;

    write_set(t, s, n);
    write_set(cpu, 0, n);
    assert_ok(run_set(t, s, n, &err), err);
    assert_ok(run_set(cpu, 0, n, &err), err);
    assert_near(wf_plan_output_data(t->plan, 0), wf_plan_output_data(cpu->plan, 0), 1, "loss");
    for (int v = 0; v < VARIABLES; v++) {
        read_gradient(t, s, v, got);
        read_gradient(cpu, 0, v, want);
        assert_near(got, want, size_of(v), names[v]);
    }
}

static uint64_t seeds = 30;

static void results_are_those_of_the_cpu(void **state)
{
    (void)state;
    for (int drops = 0; drops < 2; drops++) {
        wf_graph *g = step_graph(drops);
        trained *cpu = open_trained(g, &wf_cpu);

        for (uint64_t seed = 0; seed < seeds; seed++) {
            trained *t = open_trained(g, cuda_host_device());

            cuda_host_seed(seed);
            for (uint64_t n = 0; n < 7; n++)
                one_run(t, cpu, (int)(n % 2), seed + n);
            close_trained(&t);
        }
        close_trained(&cpu);
        wf_graph_free(&g);
    }
}

/* The loss leaves between the forward and the backward part: two graphs. */
static void a_step_is_two_launches(void **state)
{
    (void)state;
    for (int drops = 0; drops < 2; drops++) {
        wf_graph *g = step_graph(drops);
        trained *t = open_trained(g, cuda_host_device()), *cpu = open_trained(g, &wf_cpu);
        cuda_host_counts before, now;
        wf_err err;

        for (uint64_t n = 0; n < 4; n++)
            one_run(t, cpu, (int)(n % 2), n);
        before = cuda_host_count();
        assert_true(before.launches > 0);
        for (uint64_t n = 0; n < 10; n++)
            assert_ok(run_set(t, (int)(n % 2), n, &err), err);
        now = cuda_host_count();
        assert_int_equal(now.replays - before.replays, 20);
        assert_int_equal(now.launches, before.launches);
        assert_int_equal(now.waits - before.waits, 10);
        assert_int_equal(now.made, before.made);
        /* The batch: keys of draws and the loss are pinned. */
        assert_int_equal(now.bytes_by_hand - before.bytes_by_hand,
                         10 * (sizeof t->x[0] + sizeof t->y[0]));
        close_trained(&t);
        close_trained(&cpu);
        wf_graph_free(&g);
    }
}

/* More sets than are kept: each run records, until it is given up. */
static void ever_new_addresses_are_not_recorded_for_ever(void **state)
{
    wf_graph *g = step_graph(false);
    trained *t = open_trained(g, cuda_host_device()), *cpu = open_trained(g, &wf_cpu);
    cuda_host_counts before, now;

    (void)state;
    for (uint64_t n = 0; n < 65; n++)
        one_run(t, cpu, (int)(n % SETS), n);
    before = cuda_host_count();
    for (uint64_t n = 65; n < 65 + SETS; n++)
        one_run(t, cpu, (int)(n % SETS), n);
    now = cuda_host_count();
    assert_true(now.launches > before.launches);
    assert_int_equal(now.objects, before.objects);
    close_trained(&t);
    close_trained(&cpu);
    wf_graph_free(&g);
}

static void a_step_that_is_not_recorded_is_computed(void **state)
{
    static const char *const calls[] = {"capture_begin", "capture_end", "replay_new", "launch"};
    wf_graph *g = step_graph(false);
    trained *cpu = open_trained(g, &wf_cpu);

    (void)state;
    for (size_t k = 0; k < WF_COUNT(calls); k++) {
        trained *t = open_trained(g, cuda_host_device());
        cuda_host_counts before;

        one_run(t, cpu, 0, 1);
        before = cuda_host_count();
        cuda_host_fail(calls[k], 0, 999);
        one_run(t, cpu, 0, 2);
        cuda_host_fail(NULL, 0, 0);
        one_run(t, cpu, 0, 3);
        assert_int_equal(cuda_host_count().replays - before.replays, 2); /* of the other one */
        close_trained(&t);
    }
    close_trained(&cpu);
    wf_graph_free(&g);
}

static void a_graph_that_fails_is_an_error(void **state)
{
    wf_graph *g = step_graph(false);
    trained *t = open_trained(g, cuda_host_device()), *cpu = open_trained(g, &wf_cpu);
    wf_err err;

    (void)state;
    one_run(t, cpu, 0, 1);
    one_run(t, cpu, 0, 2);
    cuda_host_fail("replay", 0, 719);
    assert_int_equal(run_set(t, 0, 3, &err), WF_BROKEN);
    assert_says(err, "CUDA error 719");
    cuda_host_fail(NULL, 0, 0);
    close_trained(&t);
    close_trained(&cpu);
    wf_graph_free(&g);
}

static void what_kernels_find_is_said(void **state)
{
    wf_graph *g = step_graph(false);
    trained *t = open_trained(g, cuda_host_device()), *cpu = open_trained(g, &wf_cpu);
    wf_err err;

    (void)state;
    for (uint64_t n = 0; n < 3; n++)
        one_run(t, cpu, 0, n);
    t->y[0][2] = OUT;
    assert_int_equal(run_set(t, 0, 3, &err), WF_INVALID);
    assert_says(err, "SoftmaxCrossEntropyLoss");
    one_run(t, cpu, 0, 4);
    close_trained(&t);
    close_trained(&cpu);
    wf_graph_free(&g);
}

static int end_of_test(void **state)
{
    (void)state;
    return cuda_host_is_left_as_it_was() ? 0 : -1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(results_are_those_of_the_cpu, end_of_test),
        cmocka_unit_test_teardown(a_step_is_two_launches, end_of_test),
        cmocka_unit_test_teardown(ever_new_addresses_are_not_recorded_for_ever, end_of_test),
        cmocka_unit_test_teardown(a_step_that_is_not_recorded_is_computed, end_of_test),
        cmocka_unit_test_teardown(a_graph_that_fails_is_an_error, end_of_test),
        cmocka_unit_test_teardown(what_kernels_find_is_said, end_of_test),
    };

    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
