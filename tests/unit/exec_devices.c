/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exec_devices.c - what a plan promises on a device that is not the host: the cpu's
 * bits, late outputs with an event each, the cpu's kernels where the device has none, errors that
 * come late. */
#include "common/base/cc.h"
#include "common/exec/exec.h"
#include "common/kernels/kernel.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"

#include <stdlib.h>

enum { SIDE = 4, N = SIDE * SIDE };

static const int64_t square[] = {SIDE, SIDE};

static const wf_device *device_called(const char *name)
{
    const wf_device *d = NULL;
    wf_err err;

    test_device(); /* makes the remote ones known */
    assert_ok(wf_device_find(name, &d, &err), err);
    return d;
}

/* x -> ops in turn, each an output of the graph; between two of them a product with a constant. */
static wf_graph *chain(size_t n, const char *const ops[])
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", 2, square), *c = NULL;
    wf_emit e = wf_emit_begin(g, "m", NULL);
    wf_tensor *t = NULL;

    assert_int_equal(wf_tensor_new(WF_F32, 2, square, &t, NULL), WF_OK);
    for (int i = 0; i < N; i++)
        wf_f32_mut(t)[i] = (float)(i % 5) * 0.3f - 0.5f;
    assert_int_equal(wf_graph_add_constant(g, "c", &t, &c, NULL), WF_OK);
    for (size_t i = 0; i < n; i++) {
        x = wf_emit_unary(&e, ops[i], wf_emit_matmul(&e, x, c));
        assert_int_equal(wf_graph_add_output(g, x, NULL), WF_OK);
    }
    assert_int_equal(wf_emit_end(&e), WF_OK);
    return g;
}

static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "Erf", "Softplus", "Softmax"};

static wf_plan *plan_on(const wf_device *d, const wf_graph *g, const float x[N])
{
    wf_plan *p = NULL;
    wf_err err;

    assert_ok(wf_plan_new(g, &(wf_plan_options){.device = d}, &p, &err), err);
    wf_plan_bind_input(p, 0, x);
    return p;
}

static void every_device_gives_the_bits_of_the_cpu(void **state)
{
    static const char *const devices[] = {"cpu-remote", "cpu-remote-half"};
    wf_graph *g = chain(WF_COUNT(ops), ops);
    float x[N];
    wf_plan *cpu;
    wf_err err;

    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i * 7 % 11) * 0.2f - 1;
    cpu = plan_on(&wf_cpu, g, x);
    for (size_t d = 0; d < WF_COUNT(devices); d++) {
        wf_plan *p = plan_on(device_called(devices[d]), g, x);

        for (int round = 0; round < 2; round++, x[round] += 0.5f) {
            assert_ok(wf_plan_run(cpu, &(wf_step_key){0}, NULL, NULL, &err), err);
            assert_ok(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), err);
            for (uint32_t i = 0; i < WF_COUNT(ops); i++)
                assert_memory_equal(wf_plan_output_data(p, i), wf_plan_output_data(cpu, i),
                                    sizeof x);
        }
        assert_true(remote_devices_held() > 0);
        wf_plan_free(&p);
        assert_int_equal(remote_devices_held(), 0);
    }
    wf_plan_free(&cpu);
    wf_graph_free(&g);
}

/* How many kernels and copies a run queues on the device. */
static size_t queued_by(wf_plan *p)
{
    size_t before = remote_devices_queued() - remote_devices_waits();
    wf_err err;

    assert_ok(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), err);
    return remote_devices_queued() - remote_devices_waits() - before;
}

static void where_a_kernel_is_missing_the_cpu_computes(void **state)
{
    wf_graph *g = chain(WF_COUNT(ops), ops);
    float x[N] = {0};
    const wf_device *half = device_called("cpu-remote-half");
    wf_plan *whole = plan_on(device_called("cpu-remote"), g, x), *p = plan_on(half, g, x);
    size_t missing = 0;
    const wf_kernel *k;

    (void)state;
    for (size_t i = 0; i < g->n_nodes; i++)
        missing += wf_kernel_find(g->nodes[i], half, &k, NULL) != WF_OK;
    assert_true(missing > 0 && missing < g->n_nodes);
    assert_int_equal(wf_plan_memory(whole).n_nodes, g->n_nodes + 1 + WF_COUNT(ops));
    assert_int_equal(queued_by(whole), wf_plan_memory(whole).n_nodes);
    assert_int_equal(queued_by(p), wf_plan_memory(p).n_nodes - missing);
    wf_plan_free(&whole);
    wf_plan_free(&p);
    wf_graph_free(&g);
}

/* Marks the nodes with the devices in turn, and says how many copies the plan then needs. */
static size_t copies_when_spread(const wf_graph *g, const wf_plan_options *o,
                                 const char *const names[2], wf_plan **out)
{
    wf_err err;

    for (size_t i = 0; i < g->n_nodes; i++)
        g->nodes[i]->device = names[i % 2];
    assert_ok(wf_plan_new(g, o, out, &err), err);
    return wf_plan_memory(*out).n_nodes - g->n_nodes;
}

static void a_node_runs_on_the_device_of_its_mark(void **state)
{
    const wf_device *remote = device_called("cpu-remote");
    const wf_plan_options o = {.devices = &remote, .n_devices = 1};
    const char *const spread[2] = {NULL, "cpu-remote"}, *const whole[2] = {"cpu", NULL};
    wf_graph *g = chain(WF_COUNT(ops), ops);
    float x[N] = {1, -2, 3};
    wf_plan *cpu = plan_on(&wf_cpu, g, x), *p = NULL, *unmarked = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(copies_when_spread(g, &o, whole, &unmarked),
                     0); /* the first device is the cpu */
    /* Each product is the cpu's and each function the other's: a copy there, and one back for what
     * the next product reads; the port has its own. */
    assert_int_equal(copies_when_spread(g, &o, spread, &p), 3 * WF_COUNT(ops) - 1);
    wf_plan_bind_input(p, 0, x);
    assert_ok(wf_plan_run(cpu, &(wf_step_key){0}, NULL, NULL, &err), err);
    assert_int_equal(queued_by(p), 3 * WF_COUNT(ops) - 1 + WF_COUNT(ops));
    for (uint32_t i = 0; i < WF_COUNT(ops); i++)
        assert_memory_equal(wf_plan_output_data(p, i), wf_plan_output_data(cpu, i), sizeof x);
    wf_plan_free(&cpu);
    wf_plan_free(&p);
    wf_plan_free(&unmarked);
    wf_graph_free(&g);
}

typedef struct seen {
    float (*out)[N];
    wf_device_event *events[WF_COUNT(ops)];
    uint32_t n;
} seen;

static wf_status on_ready(void *arg, uint32_t i, wf_device_event *done, wf_err *err)
{
    seen *s = arg;

    (void)err;
    assert_int_equal(i, s->n);
    assert_true(s->out[i][0] == -7); /* its copy is queued, and nobody has waited */
    s->events[s->n++] = done;
    return WF_OK;
}

static void an_output_is_there_when_its_event_is_done(void **state)
{
    wf_graph *g = chain(WF_COUNT(ops), ops);
    float x[N] = {1, 2, 3}, out[WF_COUNT(ops)][N];
    wf_plan *cpu = plan_on(&wf_cpu, g, x), *p = plan_on(device_called("cpu-remote"), g, x);
    seen s = {.out = out};
    wf_err err;

    (void)state;
    assert_ok(wf_plan_run(cpu, &(wf_step_key){0}, NULL, NULL, &err), err);
    for (uint32_t i = 0; i < WF_COUNT(ops); i++) {
        out[i][0] = -7;
        wf_plan_bind_output(p, i, out[i]);
    }
    assert_ok(wf_plan_start(p, &(wf_step_key){0}, on_ready, &s, &err), err);
    assert_int_equal(s.n, WF_COUNT(ops));
    for (uint32_t i = 0; i < s.n; i++) {
        assert_false(wf_device_event_done(s.events[i])); /* one piece of work is not all of it */
        assert_ok(wf_device_event_wait(s.events[i], &err), err);
        assert_memory_equal(out[i], wf_plan_output_data(cpu, i), sizeof x);
        assert_true(i + 1 == s.n || out[i + 1][0] == -7); /* the others are not waited for */
    }
    assert_ok(wf_plan_wait(p, &err), err);
    wf_plan_free(&cpu);
    wf_plan_free(&p);
    wf_graph_free(&g);
}

static wf_status wait_for_output(void *arg, uint32_t i, wf_device_event *done, wf_err *err)
{
    (void)arg, (void)i;
    return wf_device_event_wait(done, err);
}

/* Whether the end of the run is waited for first, or its output. */
static void a_late_error_names_its_node_and_the_plan_goes_on(void **state)
{
    static const char *const devices[] = {"cpu-remote", "cuda-host:0"};
    wf_graph *g = new_graph();
    wf_value *in[2] = {input(g, "x", 2, square), input(g, "ids", 1, (int64_t[]){1})}, *y;
    wf_emit e = wf_emit_begin(g, "m", NULL);
    float x[N] = {5, 6, 7, 8};
    wf_err err;

    (void)state;
    in[1]->dtype = WF_I64;
    y = wf_emit_op(&e, "Gather", 2, in, 0, NULL);
    assert_int_equal(wf_emit_end(&e), WF_OK);
    assert_int_equal(wf_graph_add_output(g, y, NULL), WF_OK);
    for (size_t d = 0; d < WF_COUNT(devices); d++) {
        wf_plan *p = plan_on(device_called(devices[d]), g, x);
        float first[SIDE];
        int64_t id;

        wf_plan_bind_input(p, 1, &id);
        wf_plan_bind_output(p, 0, first);
        for (int waits = 0; waits < 2; waits++) {
            id = SIDE;
            assert_int_equal(
                wf_plan_run(p, &(wf_step_key){0}, waits ? wait_for_output : NULL, NULL, &err),
                WF_INVALID);
            assert_says(err,
                        "Gather \"m/Gather\": index 4, number 0 of them, is not in an axis of 4");
            id = 0;
            memset(first, 0, sizeof first);
            assert_ok(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), err);
            assert_memory_equal(first, x, sizeof first);
        }
        wf_plan_free(&p);
    }
    wf_graph_free(&g);
}

/* x and ids -> one operation; `n` ids are all `good`, and then the last one is `bad`. */
typedef struct id_case {
    const char *op;
    uint32_t rank;
    int64_t dims[2], n, good, bad;
} id_case;

static wf_graph *graph_of_ids(const id_case *c)
{
    wf_graph *g = new_graph();
    wf_value *in[2] = {input(g, "x", 2, square), input(g, "ids", c->rank, c->dims)}, *y;
    wf_emit e = wf_emit_begin(g, "m", NULL);

    in[1]->dtype = WF_I64;
    y = wf_emit_op(&e, c->op, 2, in, 0, NULL);
    assert_int_equal(wf_emit_end(&e), WF_OK);
    assert_int_equal(wf_graph_add_output(g, y, NULL), WF_OK);
    return g;
}

static void ids_that_name_nothing_are_told_by_each_device_alike(void **state)
{
    static const id_case cases[] = {
        {"Gather", 1, {3}, 3, -4, 4},
        {"Gather", 1, {9000}, 9000, 0, -5}, /* several blocks look at so many */
        {"GatherElements", 2, {1, 4}, 4, 3, -5},
        {"GatherND", 2, {2, 2}, 4, -1, 4},
        {"EmbeddingBag", 2, {2, 2}, 4, -1, 4},
        {"ReverseSequence", 1, {4}, 4, 2, 5},
        {"CumSum", 0, {0}, 1, -2, 2},
    };
    float x[N];
    wf_err err, errs[2];

    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    for (const id_case *c = cases; c < cases + WF_COUNT(cases); c++) {
        wf_graph *g = graph_of_ids(c);
        int64_t *ids = malloc((size_t)c->n * sizeof *ids);
        wf_plan *plans[] = {plan_on(&wf_cpu, g, x), plan_on(device_called("cuda-host:0"), g, x)};

        assert_non_null(ids);
        for (int64_t i = 0; i < c->n; i++)
            ids[i] = c->good;
        for (int i = 0; i < 2; i++) {
            wf_plan_bind_input(plans[i], 1, ids);
            ids[c->n - 1] = c->bad;
            assert_int_equal(wf_plan_run(plans[i], &(wf_step_key){0}, NULL, NULL, &errs[i]),
                             WF_INVALID);
            ids[c->n - 1] = c->good;
            assert_ok(wf_plan_run(plans[i], &(wf_step_key){0}, NULL, NULL, &err), err);
        }
        assert_string_equal(errs[1].what, errs[0].what);
        assert_memory_equal(wf_plan_output_data(plans[1], 0), wf_plan_output_data(plans[0], 0),
                            sizeof *x);
        wf_plan_free(&plans[0]);
        wf_plan_free(&plans[1]);
        free(ids);
        wf_graph_free(&g);
    }
}

static void an_operation_without_any_kernel_is_an_error(void **state)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", 2, square), *y;
    wf_emit e = wf_emit_begin(g, "m", NULL);
    wf_plan *p = NULL;
    wf_err err;

    (void)state;
    x->dtype = WF_F16;
    y = wf_emit_unary(&e, "Exp", x);
    assert_int_equal(wf_emit_end(&e), WF_OK);
    assert_int_equal(wf_graph_add_output(g, y, NULL), WF_OK);
    assert_int_equal(
        wf_plan_new(g, &(wf_plan_options){.device = device_called("cpu-remote")}, &p, &err),
        WF_UNSUPPORTED);
    assert_says(err, "Exp \"m/Exp\": weft does not compute it in float16");
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_gives_the_bits_of_the_cpu),
        cmocka_unit_test(where_a_kernel_is_missing_the_cpu_computes),
        cmocka_unit_test(a_node_runs_on_the_device_of_its_mark),
        cmocka_unit_test(an_output_is_there_when_its_event_is_done),
        cmocka_unit_test(a_late_error_names_its_node_and_the_plan_goes_on),
        cmocka_unit_test(ids_that_name_nothing_are_told_by_each_device_alike),
        cmocka_unit_test(an_operation_without_any_kernel_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
