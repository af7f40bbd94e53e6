/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_overlap.c - a step whose weights and gradients are the host's, as with parameter
 * servers: copies run beside kernels, results are the CPU's in whatever order the streams run, and
 * what goes wrong reaches the user.
 *
 *   cuda_overlap [SEEDS]    of orders of streams, 20
 */
#include "common/base/cc.h"
#include "common/base/rng.h"
#include "common/exec/exec.h"
#include "tests/cuda/host.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <stdlib.h>

/* Each layer's weights are too many for a group of copies with others (streams.c). */
enum { BATCH = 4, WIDTH = 260, OUT = 3, LAYERS = 4, SETS = 2 };

static const char *const names[LAYERS] = {"w0", "w1", "w2", "w3"};

static size_t columns(int layer)
{
    return layer + 1 < LAYERS ? WIDTH : OUT;
}

static size_t size_of(int layer)
{
    return WIDTH * columns(layer);
}

static wf_value *pulled(wf_emit *e, int layer)
{
    const wf_attr name = wf_attr_string("variable", names[layer]);
    wf_value *w = wf_emit_op(e, "Pull", 0, NULL, 1, &name);

    wf_value_set_type(w, WF_F32, DIMS(WIDTH, (int64_t)columns(layer)));
    return w;
}

/* x and y are fed and weights pulled; the loss is fetched and gradients are pushed. */
static wf_graph *step_graph(void)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", DIMS(BATCH, WIDTH)), *y = input(g, "y", DIMS(BATCH));
    wf_value *w[LAYERS], *grads[LAYERS], *loss;
    wf_err err;
    wf_emit e = wf_emit_begin(g, "m", &err);

    y->dtype = WF_I64;
    for (int i = 0; i < LAYERS; i++) {
        w[i] = pulled(&e, i);
        x = wf_emit_op(&e, "MatMul", 2, (wf_value *[]){x, w[i]}, 0, NULL);
        if (i + 1 < LAYERS)
            x = wf_emit_unary(&e, "Tanh", x);
    }
    loss = wf_emit_op(&e, "SoftmaxCrossEntropyLoss", 2, (wf_value *[]){x, y}, 0, NULL);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_add_output(g, loss, &err), err);
    assert_ok(wf_graph_differentiate(g, loss, w, LAYERS, grads, &err), err);
    e = wf_emit_begin(g, "pushes", &err);
    for (int i = 0; i < LAYERS; i++) {
        const wf_attr name = wf_attr_string("variable", names[i]);

        wf_emit_node(&e, "Push", 1, &grads[i], 1, &name, 0, NULL);
    }
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_sort(g, &err), err);
    return g;
}

/* A plan, and memory of the host that it is lent: weights, gradients and batches of two steps. */
typedef struct stepped {
    wf_plan *plan;
    uint32_t input[LAYERS], output[LAYERS];
    float *weights[SETS][LAYERS], *grads[SETS][LAYERS];
    float x[SETS][BATCH * WIDTH];
    int64_t y[SETS][BATCH];
} stepped;

static stepped *open_stepped(const wf_graph *g, const wf_device *d)
{
    stepped *s = calloc(1, sizeof *s);
    wf_err err;

    assert_non_null(s);
    assert_ok(wf_plan_new(g, &(wf_plan_options){.device = d}, &s->plan, &err), err);
    for (int i = 0; i < LAYERS; i++) {
        s->input[i] = (uint32_t)wf_plan_find_input(s->plan, names[i]);
        s->output[i] = (uint32_t)wf_plan_find_output(s->plan, names[i]);
        for (int set = 0; set < SETS; set++) {
            s->weights[set][i] = calloc(size_of(i), sizeof(float));
            s->grads[set][i] = calloc(size_of(i), sizeof(float));
            assert_true(s->weights[set][i] && s->grads[set][i]);
        }
    }
    return s;
}

static void close_stepped(stepped **s)
{
    wf_plan_free(&(*s)->plan);
    for (int set = 0; set < SETS; set++)
        for (int i = 0; i < LAYERS; i++) {
            free((*s)->weights[set][i]);
            free((*s)->grads[set][i]);
        }
    free(*s);
    *s = NULL;
}

/* The batch and the weights of run number `n`, in a set, whose gradients of an earlier run go. */
static void write_set(stepped *s, int set, uint64_t n)
{
    wf_rng_key key = {n, 1};
    uint64_t at = 0;

    for (int i = 0; i < BATCH * WIDTH; i++)
        s->x[set][i] = wf_rng_f32(key, at++) - 0.5f;
    for (int i = 0; i < BATCH; i++)
        s->y[set][i] = (int64_t)wf_rng_below(key, at++, OUT);
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < size_of(l); i++) {
            s->weights[set][l][i] = (wf_rng_f32(key, at++) - 0.5f) * 0.2f;
            s->grads[set][l][i] = -7;
        }
}

static wf_status start_set(stepped *s, int set, wf_ready_fn *on_ready, void *arg, wf_err *err)
{
    wf_plan_bind_input(s->plan, 0, s->x[set]);
    wf_plan_bind_input(s->plan, 1, s->y[set]);
    for (int i = 0; i < LAYERS; i++) {
        wf_plan_bind_input(s->plan, s->input[i], s->weights[set][i]);
        wf_plan_bind_output(s->plan, s->output[i], s->grads[set][i]);
    }
    return wf_plan_start(s->plan, &(wf_step_key){0}, on_ready, arg, err);
}

static wf_status run_set(stepped *s, int set, wf_err *err)
{
    wf_status rc = start_set(s, set, NULL, NULL, err);
    wf_status waited = wf_plan_wait(s->plan, rc == WF_OK ? err : NULL);

    return rc == WF_OK ? waited : rc;
}

static void assert_near(const float *got, const float *want, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-6f))
            fail_msg("%s[%zu] is %g instead of %g", what, i, (double)got[i], (double)want[i]);
}

static void assert_same(stepped *s, int set, stepped *cpu)
{
    assert_near(wf_plan_output_data(s->plan, 0), wf_plan_output_data(cpu->plan, 0), 1, "loss");
    for (int i = 0; i < LAYERS; i++)
        assert_near(s->grads[set][i], cpu->grads[0][i], size_of(i), names[i]);
}

/* Makes run number n of both, the GPU's in a set, and compares. */
static void one_run(stepped *s, stepped *cpu, int set, uint64_t n)
{
    wf_err err;

    write_set(s, set, n);
    write_set(cpu, 0, n);
    assert_ok(run_set(cpu, 0, &err), err);
    assert_ok(run_set(s, set, &err), err);
    assert_same(s, set, cpu);
}

static uint64_t seeds = 20;

/* In the first run steps are queued one by one, in the second they are recorded. */
static void results_are_those_of_the_cpu(void **state)
{
    wf_graph *g = step_graph();
    stepped *cpu = open_stepped(g, &wf_cpu);

    (void)state;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        stepped *s = open_stepped(g, cuda_host_device());

        cuda_host_seed(seed);
        for (uint64_t n = 0; n < 4; n++) {
            cuda_host_copies_last((seed + n) % 3 == 2);
            one_run(s, cpu, (int)(n % SETS), seed + n);
        }
        cuda_host_copies_last(false);
        close_stepped(&s);
    }
    close_stepped(&cpu);
    wf_graph_free(&g);
}

/* A device on which two runs were made: what follows is recorded. */
static stepped *warm(const wf_graph *g)
{
    stepped *s = open_stepped(g, cuda_host_device());
    wf_err err;

    for (int set = 0; set < SETS; set++) {
        write_set(s, set, (uint64_t)set);
        assert_ok(run_set(s, set, &err), err);
    }
    return s;
}

/* The work of kernels that a run queues behind the copy of its loss is two products and the slope
 * of Tanh for each layer but the first and last, which have one product and no Tanh. None of it
 * waits for the loss, nor for a gradient. And the layers in front of the last do not wait for its
 * weights. */
static void kernels_run_beside_copies(void **state)
{
    wf_graph *g = step_graph();
    stepped *s = warm(g), *cpu = open_stepped(g, &wf_cpu);
    cuda_host_counts before;

    (void)state;
    cuda_host_copies_last(true);
    before = cuda_host_count();
    one_run(s, cpu, 0, 5);
    assert_in_range(cuda_host_count().beside_out - before.beside_out, 3 * LAYERS - 2, SIZE_MAX);
    assert_in_range(cuda_host_count().beside_in - before.beside_in, 2 * (LAYERS - 2), SIZE_MAX);
    cuda_host_copies_last(false);
    close_stepped(&s);
    close_stepped(&cpu);
    wf_graph_free(&g);
}

/* Graphs: of each layer, but of the last two together, whose weights come with one event, and with
 * the loss, whose copy ends it; and of the steps from one gradient to the next. The host waits
 * once, and nothing is made. */
static void a_step_is_few_calls(void **state)
{
    enum { RUNS = 5 };
    wf_graph *g = step_graph();
    stepped *s = warm(g);
    cuda_host_counts before = cuda_host_count(), now;
    wf_err err;

    (void)state;
    for (int n = 0; n < RUNS; n++)
        assert_ok(run_set(s, n % SETS, &err), err);
    now = cuda_host_count();
    assert_int_equal(now.waits - before.waits, RUNS);
    assert_int_equal(now.made, before.made);
    assert_int_equal(now.launches, before.launches);
    assert_int_equal(now.replays - before.replays, RUNS * (2 * LAYERS - 1));
    close_stepped(&s);
    wf_graph_free(&g);
}

typedef struct leaving {
    wf_device_event *done[LAYERS + 1];
    uint32_t n;
} leaving;

static wf_status note_event(void *arg, uint32_t i, wf_device_event *done, wf_err *err)
{
    leaving *l = arg;

    (void)i, (void)err;
    l->done[l->n++] = done;
    return WF_OK;
}

/* A gradient is there when its event is done, while later ones are not. */
static void gradients_leave_one_by_one(void **state)
{
    wf_graph *g = step_graph();
    stepped *s = warm(g), *cpu = open_stepped(g, &wf_cpu);
    leaving l = {0};
    wf_err err;

    (void)state;
    write_set(s, 0, 9);
    write_set(cpu, 0, 9);
    assert_ok(run_set(cpu, 0, &err), err);
    cuda_host_copies_last(true);
    assert_ok(start_set(s, 0, note_event, &l, &err), err);
    assert_int_equal(l.n, LAYERS + 1);
    for (uint32_t i = 1; i < l.n; i++) {
        int layer = LAYERS - (int)i;

        assert_ok(wf_device_event_wait(l.done[i], &err), err);
        assert_near(s->grads[0][layer], cpu->grads[0][layer], size_of(layer), names[layer]);
        assert_true(layer == 0 || s->grads[0][layer - 1][0] == -7);
    }
    cuda_host_copies_last(false);
    assert_ok(wf_plan_wait(s->plan, &err), err);
    close_stepped(&s);
    close_stepped(&cpu);
    wf_graph_free(&g);
}

/* No gradient of a label that is no class leaves as if it were one. */
static void a_bad_label_is_said_by_a_wait_for_a_gradient(void **state)
{
    wf_graph *g = step_graph();
    stepped *s = warm(g), *cpu = open_stepped(g, &wf_cpu);
    leaving l = {0};
    wf_err err;

    (void)state;
    s->y[0][1] = OUT;
    assert_ok(start_set(s, 0, note_event, &l, &err), err);
    assert_int_equal(l.n, LAYERS + 1);
    assert_int_equal(wf_device_event_wait(l.done[1], &err), WF_INVALID);
    assert_says(err, "SoftmaxCrossEntropyLoss");
    assert_int_equal(wf_plan_wait(s->plan, &err), WF_INVALID);
    assert_says(err, "SoftmaxCrossEntropyLoss");
    one_run(s, cpu, 0, 3);
    close_stepped(&s);
    close_stepped(&cpu);
    wf_graph_free(&g);
}

/* Each call of a run fails in turn: the run says so, and all is given back. */
static void each_call_of_a_run_may_fail(void **state)
{
    static const char *const calls[] = {"copy",   "stream_after", "event_record",
                                        "replay", "event_wait",   "stream_wait"};
    wf_graph *g = step_graph();

    (void)state;
    for (size_t k = 0; k < WF_COUNT(calls); k++)
        for (int after = 0; after < 40; after++) {
            stepped *s = warm(g);
            leaving l = {0};
            wf_status rc, waited;
            wf_err err;

            cuda_host_fail(calls[k], after, 719);
            rc = start_set(s, 0, note_event, &l, &err);
            for (uint32_t i = 0; i < l.n && rc == WF_OK; i++)
                rc = wf_device_event_wait(l.done[i], &err);
            waited = wf_plan_wait(s->plan, rc == WF_OK ? &err : NULL);
            cuda_host_fail(NULL, 0, 0);
            rc = rc == WF_OK ? waited : rc;
            if (rc != WF_OK) {
                assert_int_equal(rc, WF_BROKEN);
                assert_says(err, "CUDA error 719");
            }
            assert_true(after > 0 || rc != WF_OK);
            close_stepped(&s);
            after += rc == WF_OK ? 1000 : 0;
        }
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
        cmocka_unit_test_teardown(kernels_run_beside_copies, end_of_test),
        cmocka_unit_test_teardown(a_step_is_few_calls, end_of_test),
        cmocka_unit_test_teardown(gradients_leave_one_by_one, end_of_test),
        cmocka_unit_test_teardown(a_bad_label_is_said_by_a_wait_for_a_gradient, end_of_test),
        cmocka_unit_test_teardown(each_call_of_a_run_may_fail, end_of_test),
    };

    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
