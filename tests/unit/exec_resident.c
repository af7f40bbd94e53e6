/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exec_resident.c - ports of a plan that lie in memory of its device: nothing is copied
 * for them, on the cpu they are as others, and a port that lies elsewhere is brought there. */
#include "common/base/cc.h"
#include "common/exec/exec.h"
#include "common/kernels/kernel.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"

#include <math.h>

enum { N = 6 };

/* Of the operations here cpu-remote-half has Erf and lacks Mul. */
static const char *const devices[] = {"cpu", "cpu-remote", "cpu-remote-half", "cuda-host:0"};
static const char *const of_w[] = {"w", "nobody"};

static const wf_device *device_called(const char *name)
{
    const wf_device *d = NULL;
    wf_err err;

    test_device(); /* makes the others known */
    assert_ok(test_device_called(name, &d, &err), err);
    return d;
}

/* Memory of a device, and the stream by which a test writes and reads it. */
typedef struct place {
    wf_stream *stream;
    float *data;
} place;

static place place_on(const wf_device *d, const float first[N])
{
    place p = {.data = wf_device_alloc(d, N * sizeof(float))};
    wf_err err;

    assert_non_null(p.data);
    assert_ok(wf_stream_new(d, &p.stream, &err), err);
    if (first) {
        assert_ok(wf_stream_copy(p.stream, WF_COPY_IN, p.data, first, N * sizeof(float), &err),
                  err);
        assert_ok(wf_stream_wait(p.stream, &err), err);
    }
    return p;
}

static void read_place(place *p, const void *from, float out[N])
{
    wf_err err;

    assert_ok(wf_stream_copy(p->stream, WF_COPY_OUT, out, from, N * sizeof(float), &err), err);
    assert_ok(wf_stream_wait(p->stream, &err), err);
}

static void leave_place(place *p)
{
    const wf_device *d = p->stream->device;

    wf_stream_free(&p->stream);
    wf_device_free(d, p->data);
}

/* x, Pull w -> y = Erf(x * w), Push w = y * w: Erf alone is an output of the graph. */
static wf_graph *step_graph(void)
{
    const wf_attr name = wf_attr_string("variable", "w");
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", DIMS(N)), *w, *y;
    wf_emit e = wf_emit_begin(g, "m", NULL);

    w = wf_emit_op(&e, "Pull", 0, NULL, 1, &name);
    wf_value_set_type(w, WF_F32, DIMS(N));
    y = wf_emit_unary(&e, "Erf", wf_emit_mul(&e, x, w));
    wf_emit_node(&e, "Push", 1, (wf_value *[]){wf_emit_mul(&e, y, w)}, 1, &name, 0, NULL);
    assert_int_equal(wf_emit_end(&e), WF_OK);
    assert_int_equal(wf_graph_add_output(g, y, NULL), WF_OK);
    return g;
}

static const float xs[N] = {1, -2, 0.5f, 3, -0.25f, 0}, ws[N] = {0.5f, 0.25f, -1, 2, 1, 7};

static wf_plan *plan_with(const wf_graph *g, const wf_device *d, size_t n,
                          const char *const names[])
{
    wf_plan *p = NULL;
    wf_err err;

    assert_ok(wf_plan_new(g, &(wf_plan_options){.device = d, .n_resident = n, .resident = names},
                          &p, &err),
              err);
    return p;
}

static void run(wf_plan *p)
{
    wf_err err;

    assert_ok(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), err);
}

/* What step_graph gives on the cpu, without residents. */
static void expected(const wf_graph *g, const float w[N], float y[N], float gradient[N])
{
    wf_plan *p = plan_with(g, &wf_cpu, 0, NULL);

    wf_plan_bind_input(p, 0, xs);
    wf_plan_bind_input(p, 1, w);
    run(p);
    memcpy(y, wf_plan_output_data(p, 0), N * sizeof(float));
    memcpy(gradient, wf_plan_output_data(p, 1), N * sizeof(float));
    wf_plan_free(&p);
}

static void assert_near(const float got[N], const float want[N])
{
    for (int i = 0; i < N; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-6f))
            fail_msg("[%d] is %g instead of %g", i, (double)got[i], (double)want[i]);
}

static void weights_and_gradients_stay_on_the_device(void **state)
{
    wf_graph *g = step_graph();
    float y[N], gradient[N], got[N];

    (void)state;
    expected(g, ws, y, gradient);
    for (size_t i = 0; i < WF_COUNT(devices); i++) {
        const wf_device *d = device_called(devices[i]);
        place w = place_on(d, ws), to = place_on(d, NULL);
        wf_plan *p = plan_with(g, d, WF_COUNT(of_w), of_w);

        assert_ptr_equal(wf_plan_input(p, 0)->device, &wf_cpu);
        assert_ptr_equal(wf_plan_input(p, 1)->device, d);
        assert_ptr_equal(wf_plan_output(p, 0)->device, &wf_cpu);
        assert_ptr_equal(wf_plan_output(p, 1)->device, d);
        wf_plan_bind_input(p, 0, xs);
        wf_plan_bind_input(p, 1, w.data);
        for (int bound = 0; bound < 2; bound++) { /* first in memory of the plan */
            if (bound)
                wf_plan_bind_output(p, 1, to.data);
            run(p);
            assert_near(wf_plan_output_data(p, 0), y);
            if (bound)
                assert_ptr_equal(wf_plan_output_data(p, 1), to.data);
            read_place(&to, wf_plan_output_data(p, 1), got);
            assert_near(got, gradient);
        }
        wf_plan_free(&p);
        leave_place(&w);
        leave_place(&to);
    }
    wf_graph_free(&g);
}

/* Weights on the device, and gradients that leave. */
static void outputs_may_be_the_hosts_all_the_same(void **state)
{
    wf_graph *g = step_graph();
    float y[N], gradient[N];
    wf_err err;

    (void)state;
    expected(g, ws, y, gradient);
    for (size_t i = 0; i < WF_COUNT(devices); i++) {
        const wf_device *d = device_called(devices[i]);
        place w = place_on(d, ws);
        wf_plan *p = NULL;

        assert_ok(wf_plan_new(g,
                              &(wf_plan_options){.device = d,
                                                 .n_resident = WF_COUNT(of_w),
                                                 .resident = of_w,
                                                 .outputs_on_host = true},
                              &p, &err),
                  err);
        assert_ptr_equal(wf_plan_input(p, 1)->device, d);
        assert_ptr_equal(wf_plan_output(p, 1)->device, &wf_cpu);
        wf_plan_bind_input(p, 0, xs);
        wf_plan_bind_input(p, 1, w.data);
        run(p);
        assert_near(wf_plan_output_data(p, 0), y);
        assert_near(wf_plan_output_data(p, 1), gradient);
        wf_plan_free(&p);
        leave_place(&w);
    }
    wf_graph_free(&g);
}

static size_t kernels_and_copies(void)
{
    return remote_devices_queued() - remote_devices_waits();
}

/* A run queues its three kernels, x to the device, y to the host; and without residents w and the
 * gradient. */
static void nothing_is_copied_for_them(void **state)
{
    const wf_device *d = device_called("cpu-remote");
    wf_graph *g = step_graph();
    place w = place_on(d, ws);
    wf_plan *plain = plan_with(g, d, 0, NULL), *p = plan_with(g, d, 1, of_w);
    size_t before;

    (void)state;
    wf_plan_bind_input(plain, 0, xs);
    wf_plan_bind_input(plain, 1, ws);
    wf_plan_bind_input(p, 0, xs);
    wf_plan_bind_input(p, 1, w.data);
    before = kernels_and_copies();
    run(plain);
    assert_int_equal(kernels_and_copies() - before, 3 + 4);
    before = kernels_and_copies();
    run(p);
    assert_int_equal(kernels_and_copies() - before, 3 + 2);
    wf_plan_free(&plain);
    wf_plan_free(&p);
    leave_place(&w);
    wf_graph_free(&g);
}

/* The weights are written by a stream of somebody else's just before each run. */
static void a_run_begins_behind_an_event(void **state)
{
    wf_graph *g = step_graph();
    float y[N], gradient[N], got[N], next[N];
    wf_err err;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(devices); i++) {
        const wf_device *d = device_called(devices[i]);
        place w = place_on(d, ws);
        wf_plan *p = plan_with(g, d, 1, of_w);
        wf_device_event *written = NULL;

        assert_ok(wf_device_event_new(d, &written, &err), err);
        wf_plan_bind_input(p, 0, xs);
        wf_plan_bind_input(p, 1, w.data);
        for (int round = 1; round <= 3; round++) {
            for (int k = 0; k < N; k++)
                next[k] = ws[k] * (float)round;
            expected(g, next, y, gradient);
            assert_ok(wf_stream_copy(w.stream, WF_COPY_IN, w.data, next, sizeof next, &err), err);
            assert_ok(wf_device_event_record(written, w.stream, &err), err);
            assert_ok(wf_plan_after_event(p, written, &err), err);
            run(p);
            assert_near(wf_plan_output_data(p, 0), y);
            read_place(&w, wf_plan_output_data(p, 1), got);
            assert_near(got, gradient);
        }
        wf_plan_free(&p);
        wf_device_event_free(&written);
        leave_place(&w);
    }
    wf_graph_free(&g);
}

static void an_event_of_a_strange_device_is_an_error(void **state)
{
    const wf_device *d = device_called("cpu-remote");
    wf_graph *g = step_graph();
    wf_plan *p = plan_with(g, &wf_cpu, 0, NULL);
    wf_device_event *e = NULL;
    wf_err err;

    (void)state;
    assert_ok(wf_device_event_new(d, &e, &err), err);
    assert_int_equal(wf_plan_after_event(p, e, &err), WF_USAGE);
    assert_says(err, "a plan without cpu-remote");
    wf_device_event_free(&e);
    wf_plan_free(&p);
    wf_graph_free(&g);
}

/* Outputs that no kernel writes: an input that stays, one that is fed and goes to the device, a
 * view of the first, a constant, one value twice, and a resident input that goes to the host. */
static void what_lies_elsewhere_is_brought(void **state)
{
    static const char *const names[] = {"a", "va", "b", "c", "e"};
    const float c[N] = {9, 8, 7, 6, 5, 4};
    wf_graph *g = new_graph();
    wf_value *a = input(g, "a", DIMS(N)), *b = input(g, "b", DIMS(N)), *k = NULL, *e;
    wf_emit m = wf_emit_begin(g, "m", NULL);
    wf_tensor *t = NULL;
    wf_value *outs[6];
    wf_err err;

    (void)state;
    assert_int_equal(wf_tensor_new(WF_F32, DIMS(N), &t, NULL), WF_OK);
    memcpy(wf_f32_mut(t), c, sizeof c);
    assert_ok(wf_graph_add_constant(g, "c", &t, &k, &err), err);
    e = wf_emit_unary(&m, "Erf", a);
    outs[0] = a;
    outs[1] = wf_emit_reshape(&m, a, DIMS(2, N / 2));
    outs[2] = b;
    outs[3] = k;
    outs[4] = outs[5] = e;
    assert_int_equal(wf_emit_end(&m), WF_OK);
    assert_ok(wf_graph_rename_value(g, outs[1], "va", &err), err);
    assert_ok(wf_graph_rename_value(g, e, "e", &err), err);
    for (size_t i = 0; i < WF_COUNT(outs); i++)
        assert_ok(wf_graph_add_output(g, outs[i], &err), err);
    for (size_t i = 0; i < WF_COUNT(devices); i++) {
        const wf_device *d = device_called(devices[i]);
        wf_plan *p = plan_with(g, d, WF_COUNT(names), names);
        place to[WF_COUNT(outs)], from = place_on(d, xs), fed = place_on(d, ws);
        float got[N], erf[N];

        for (int n = 0; n < N; n++)
            erf[n] = erff(xs[n]);
        wf_plan_bind_input(p, 0, from.data);
        wf_plan_bind_input(p, 1, fed.data);
        for (uint32_t o = 0; o < WF_COUNT(outs); o++) {
            to[o] = place_on(d, NULL);
            wf_plan_bind_output(p, o, to[o].data);
        }
        run(p);
        for (uint32_t o = 0; o < WF_COUNT(outs); o++) {
            assert_ptr_equal(wf_plan_output(p, o)->device, d);
            read_place(&to[o], to[o].data, got);
            assert_near(got, o < 2 ? xs : o == 2 ? ws : o == 3 ? c : erf);
            leave_place(&to[o]);
        }
        wf_plan_free(&p);
        /* The inputs alone: their values go out by the host. */
        p = plan_with(g, d, 1, (const char *const[]){"b"});
        wf_plan_bind_input(p, 0, xs);
        wf_plan_bind_input(p, 1, fed.data);
        run(p);
        assert_near(wf_plan_output_data(p, 0), xs);
        read_place(&fed, wf_plan_output_data(p, 2), got);
        assert_near(got, ws);
        wf_plan_free(&p);
        leave_place(&from);
        leave_place(&fed);
    }
    wf_graph_free(&g);
}

static void a_resident_input_starts_out_unbound(void **state)
{
    wf_graph *g = step_graph();
    wf_err err;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(devices); i++) {
        wf_plan *p = plan_with(g, device_called(devices[i]), 1, of_w);

        wf_plan_bind_input(p, 0, xs);
        assert_int_equal(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), WF_INVALID);
        assert_says(err, "input \"w\" has no content");
        wf_plan_free(&p);
    }
    wf_graph_free(&g);
}

static void a_bad_value_on_the_device_is_found(void **state)
{
    const float bad[N] = {1, 2, NAN, 4, 5, 6};
    wf_graph *g = step_graph();
    uint32_t gradient = 1;
    wf_blame blame;
    wf_err err;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(devices); i++) {
        const wf_device *d = device_called(devices[i]);
        place w = place_on(d, ws), ill = place_on(d, bad);
        wf_plan *p = plan_with(g, d, 1, of_w);

        wf_plan_bind_input(p, 0, xs);
        wf_plan_bind_input(p, 1, w.data);
        run(p);
        assert_ok(wf_plan_check_finite(p, 1, &gradient, &err), err);
        wf_plan_bind_input(p, 1, ill.data);
        run(p);
        assert_int_equal(wf_plan_check_finite(p, 1, &gradient, &err), WF_NUMERIC);
        assert_says(err, "the gradient of \"w\" holds a NaN");
        assert_ok(wf_plan_blame(p, &(wf_step_key){0}, gradient, &blame, &err), err);
        assert_int_equal(blame.kind, WF_BLAME_INPUT);
        assert_string_equal(blame.variable, "w");
        wf_plan_free(&p);
        leave_place(&w);
        leave_place(&ill);
    }
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_and_gradients_stay_on_the_device),
        cmocka_unit_test(outputs_may_be_the_hosts_all_the_same),
        cmocka_unit_test(nothing_is_copied_for_them),
        cmocka_unit_test(a_run_begins_behind_an_event),
        cmocka_unit_test(an_event_of_a_strange_device_is_an_error),
        cmocka_unit_test(what_lies_elsewhere_is_brought),
        cmocka_unit_test(a_resident_input_starts_out_unbound),
        cmocka_unit_test(a_bad_value_on_the_device_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
