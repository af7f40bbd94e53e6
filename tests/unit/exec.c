/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exec.c - what a plan promises: ports and bindings, outputs straight into the caller's
 * memory and announced when final, no allocation in a step, random numbers by key, errors with
 * names.
 */
#include "common/exec/exec.h"
#include "tests/cuda/host.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Counts what the program takes from the heap, by standing in front of the allocator. The
 * sanitizers have their own in the way; there the count stays 0 and the test says nothing. */
static atomic_long n_allocations;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
    n_allocations++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    n_allocations++;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    n_allocations++;
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    n_allocations++;
    return __libc_memalign(align, n);
}
#endif

enum { BATCH = 8, IN = 20, HIDDEN = 16, OUT = 5 };

static wf_value *labels(wf_graph *g, const char *name, int64_t n)
{
    wf_value *v = input(g, name, 1, &n);

    v->dtype = WF_I64;
    return v;
}

static const int64_t w1_dims[] = {IN, HIDDEN}, b1_dims[] = {HIDDEN}, w2_dims[] = {HIDDEN, OUT};

/* x -> Gemm, Relu, MatMul -> loss against y, with gradients of w1, b1, w2 as further outputs. */
static wf_graph *mlp(void)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", 2, (int64_t[]){-1, IN}), *y = labels(g, "y", -1), *loss, *grads[3];
    wf_value *v[3];
    wf_emit e;
    wf_err err;

    v[0] = variable(g, "w1", 2, w1_dims);
    v[1] = variable(g, "b1", 1, b1_dims);
    v[2] = variable(g, "w2", 2, w2_dims);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < wf_elems(v[k]->known); i++)
            wf_f32_mut(v[k]->known)[i] = (float)((i * 7 + k) % 11 - 5) * 0.1f;
    e = wf_emit_begin(g, "mlp", &err);
    x = wf_emit_unary(&e, "Relu", wf_emit_gemm(&e, x, v[0], v[1], 1, 1, false, false));
    loss = wf_emit_op(&e, "SoftmaxCrossEntropyLoss", 2,
                      (wf_value *[]){wf_emit_matmul(&e, x, v[2]), y}, 0, NULL);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_add_output(g, loss, &err), err);
    assert_ok(wf_graph_differentiate(g, loss, v, 3, grads, &err), err);
    for (int k = 0; k < 3; k++)
        assert_ok(wf_graph_add_output(g, grads[k], &err), err);
    return g;
}

static wf_plan *plan_of(const wf_graph *g)
{
    wf_plan_options o = {
        .device = test_device(), .n_symbols = 1, .symbols = &(wf_plan_symbol){"batch", BATCH}};
    wf_plan *p = NULL;
    wf_err err;

    assert_ok(wf_plan_new(g, &o, &p, &err), err);
    return p;
}

static float x_data[BATCH * IN];
static int64_t y_data[BATCH];

static wf_plan *fed_mlp(void)
{
    wf_graph *g = mlp();
    wf_plan *p = plan_of(g);

    wf_graph_free(&g); /* the plan has what it needs */
    for (int i = 0; i < BATCH * IN; i++)
        x_data[i] = (float)((i * 13) % 17 - 8) * 0.1f;
    for (int i = 0; i < BATCH; i++)
        y_data[i] = i % OUT;
    wf_plan_bind_input(p, 0, x_data);
    wf_plan_bind_input(p, 1, y_data);
    return p;
}

static void run(wf_plan *p)
{
    wf_err err;

    assert_ok(wf_plan_run(p, &(wf_step_key){.seed = 1}, NULL, NULL, &err), err);
}

static void ports_have_names_variables_and_dims(void **state)
{
    wf_plan *p = fed_mlp();

    (void)state;
    assert_int_equal(wf_plan_n_inputs(p), 5);
    assert_string_equal(wf_plan_input(p, 0)->name, "x");
    assert_null(wf_plan_input(p, 0)->variable);
    assert_int_equal(wf_plan_input(p, 0)->dims[0], BATCH);
    assert_string_equal(wf_plan_input(p, 2)->variable, "w1");
    assert_int_equal(wf_plan_find_input(p, "w2"), 4);
    assert_int_equal(wf_plan_n_outputs(p), 4);
    assert_int_equal(wf_plan_find_output(p, "grad/b1"), 2);
    assert_int_equal(wf_plan_output(p, 2)->bytes, HIDDEN * sizeof(float));
    assert_int_equal(wf_plan_find_output(p, "nothing"), -1);
    wf_plan_free(&p);
}

static float loss_with(wf_plan *p, float *w, int at, float value)
{
    float before = w[at], loss;

    w[at] = value;
    run(p);
    loss = *(const float *)wf_plan_output_data(p, 0);
    w[at] = before;
    return loss;
}

static void gradients_are_the_slopes_of_the_loss(void **state)
{
    wf_plan *p = fed_mlp();
    float w[IN * HIDDEN], g[IN * HIDDEN];

    (void)state;
    for (int i = 0; i < IN * HIDDEN; i++)
        w[i] = (float)((i * 5) % 13 - 6) * 0.07f;
    wf_plan_bind_input(p, 2, w); /* in place of what the variable holds */
    wf_plan_bind_output(p, 1, g);
    run(p);
    for (int i = 0; i < IN * HIDDEN; i += 17) {
        float grad = g[i], h = 1e-2f;
        float slope;

        slope = (loss_with(p, w, i, w[i] + h) - loss_with(p, w, i, w[i] - h)) / (2 * h);
        assert_true(fabsf(slope - grad) < 2e-3f);
        run(p);
    }
    wf_plan_free(&p);
}

typedef struct seen {
    wf_plan *plan;
    uint32_t order[8], n;
    float *bound;
    float first; /* of the bound output when it was announced */
    uint32_t stop_at;
} seen;

static wf_status on_ready(void *arg, uint32_t i, wf_device_event *done, wf_err *err)
{
    seen *s = arg;

    WF_TRY(wf_device_event_wait(done, err));
    if (i == s->stop_at)
        return wf_fail(err, WF_STOPPED, NULL, "enough");
    s->order[s->n++] = i;
    if (i == 1)
        s->first = s->bound[0];
    return WF_OK;
}

static void outputs_are_announced_once_they_are_final(void **state)
{
    wf_plan *p = fed_mlp();
    float g[IN * HIDDEN];
    seen s = {.bound = g, .stop_at = UINT32_MAX};
    wf_err err;

    (void)state;
    memset(g, 0x7F, sizeof g);
    wf_plan_bind_output(p, 1, g);
    assert_ok(wf_plan_run(p, &(wf_step_key){0}, on_ready, &s, &err), err);
    assert_int_equal(s.n, 4);
    assert_int_equal(s.order[0], 0);                /* the loss */
    assert_true(s.first == g[0] && isfinite(g[0])); /* written before it was announced */
    s = (seen){.bound = g, .stop_at = 3};
    assert_int_equal(wf_plan_run(p, &(wf_step_key){0}, on_ready, &s, &err), WF_STOPPED);
    assert_string_equal(err.what, "enough");
    wf_plan_free(&p);
}

static void where_outputs_go_may_change_with_every_step(void **state)
{
    wf_plan *p = fed_mlp();
    float a[HIDDEN], b[HIDDEN];

    (void)state;
    run(p);
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    wf_plan_bind_output(p, 2, a);
    assert_ptr_equal(wf_plan_output_data(p, 2), a);
    run(p);
    wf_plan_bind_output(p, 2, b);
    run(p);
    assert_memory_equal(a, b, sizeof a);
    memset(a, 0, sizeof a);
    wf_plan_bind_output(p, 2, NULL);
    run(p);
    assert_memory_equal(wf_plan_output_data(p, 2), b, sizeof b);
    assert_true(a[0] == 0 && a[1] == 0);
    wf_plan_free(&p);
}

/* The allocations that devices of the tests made for work that was queued. */
static long allocations_of_devices(void)
{
    return (long)(remote_devices_queued() + cuda_host_count().queued);
}

static void a_step_allocates_nothing(void **state)
{
    wf_plan *p = fed_mlp();
    float g[2][IN * HIDDEN];
    cuda_host_counts gpu;
    long before, queued;
    int index;
    wf_err err;

    (void)state;
    if (wf_device_is_gpu(test_device()->name, &index)) {
        wf_plan_free(&p);
        skip(); /* CUDA's own allocations cannot be told from weft's */
    }
    wf_plan_bind_input(p, 0, x_data);
    for (int i = 0; i <= 2; i++) { /* outputs that nobody bound get their memory here, BLAS its own;
                                    * what a device records it records */
        wf_plan_bind_output(p, 1, g[i % 2]);
        run(p);
    }
    before = n_allocations;
    gpu = cuda_host_count();
    queued = allocations_of_devices();
    for (int i = 0; i < 100; i++) {
        wf_step_key key = {1, 0, 0, (uint64_t)i};

        wf_plan_bind_output(p, 1, g[i % 2]);
        assert_ok(wf_plan_run(p, &key, NULL, NULL, &err), err);
    }
    queued = allocations_of_devices() - queued;
    assert_int_equal(n_allocations - before, n_allocations ? queued : 0);
    assert_int_equal(cuda_host_count().made, gpu.made);
    if (cuda_host_count().queued != gpu.queued) /* a GPU is waited for at the end of a step alone */
        assert_int_equal(cuda_host_count().waits - gpu.waits, 100);
    wf_plan_free(&p);
}

static void memory_is_shared_by_liveness(void **state)
{
    wf_graph *g = new_graph();
    wf_value *v = input(g, "x", 1, (int64_t[]){1000});
    wf_emit e = wf_emit_begin(g, "chain", NULL);
    bool is_host = test_device()->is_host;
    wf_plan_usage u;
    wf_plan *p;

    (void)state;
    for (int i = 0; i < 20; i++)
        v = wf_emit_op(&e, "Softmax", 1, &v, 0, NULL);
    v = wf_emit_reduce_sum(&e, v, 0, NULL, false);
    assert_int_equal(wf_graph_add_output(g, v, NULL), WF_OK);
    p = plan_of(g);
    u = wf_plan_memory(p);
    assert_int_equal(u.n_nodes, 21 + (is_host ? 0 : 2)); /* a copy at each border of a device */
    assert_int_equal(u.tensors_bytes, 20 * 4000 + 4 + (is_host ? 0 : 4000 + 4));
    assert_true(u.arena_bytes <= 4096); /* each in place of the one before */
    wf_plan_free(&p);
    wf_graph_free(&g);
}

static void what_follows_from_constants_is_not_run(void **state)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", 2, (int64_t[]){-1, 6}), *flat;
    wf_emit e = wf_emit_begin(g, "fold", NULL);
    wf_plan *p;
    float data[BATCH * 6] = {1, 2, 3};

    (void)state;
    /* Reshape to [shape[0] * 2, 3], worked out from the shape of x. */
    flat = wf_emit_op(&e, "Concat", 2,
                      (wf_value *[]){wf_emit_mul(&e, wf_emit_dim_of(&e, x, 0),
                                                 wf_emit_ints(&e, 1, (int64_t[]){2})),
                                     wf_emit_ints(&e, 1, (int64_t[]){3})},
                      1, (wf_attr[]){wf_attr_int("axis", 0)});
    flat = wf_emit_op(&e, "Reshape", 2, (wf_value *[]){x, flat}, 0, NULL);
    assert_int_equal(wf_emit_end(&e), WF_OK);
    assert_int_equal(wf_graph_add_output(g, flat, NULL), WF_OK);
    p = plan_of(g);
    assert_int_equal(wf_plan_memory(p).n_nodes, 0); /* a view of the input is all that is left */
    assert_int_equal(wf_plan_output(p, 0)->dims[0], BATCH * 2);
    wf_plan_bind_input(p, 0, data);
    run(p);
    assert_memory_equal(wf_plan_output_data(p, 0), data, sizeof data);
    wf_plan_free(&p);
    wf_graph_free(&g);
}

static void one_value_may_be_several_outputs(void **state)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", 1, (int64_t[]){4}), *y, *view;
    wf_emit e = wf_emit_begin(g, "twice", NULL);
    float data[] = {1, -2, 3, -4}, out[3][4] = {{0}};
    wf_plan *p;

    (void)state;
    y = wf_emit_unary(&e, "Relu", x);
    view = wf_emit_reshape(&e, y, 2, (int64_t[]){2, 2});
    assert_int_equal(wf_graph_add_output(g, y, NULL), WF_OK);
    assert_int_equal(wf_graph_add_output(g, view, NULL), WF_OK);
    assert_int_equal(wf_graph_add_output(g, x, NULL), WF_OK); /* an input handed through */
    p = plan_of(g);
    wf_plan_bind_input(p, 0, data);
    for (uint32_t i = 0; i < 3; i++)
        wf_plan_bind_output(p, i, out[i]);
    run(p);
    assert_memory_equal(out[0], ((float[]){1, 0, 3, 0}), sizeof out[0]);
    assert_memory_equal(out[1], out[0], sizeof out[0]);
    assert_memory_equal(out[2], data, sizeof data);
    wf_plan_free(&p);
    wf_graph_free(&g);
}

/* Dropout of ones: the sum of a run depends on what was dropped. */
static wf_plan *dropout_plan(float *ones, int64_t n)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", 1, &n), *on;
    wf_emit e = wf_emit_begin(g, "drop", NULL);
    wf_tensor *t = NULL;
    wf_plan *p;

    assert_int_equal(wf_tensor_new(WF_BOOL, 0, NULL, &t, NULL), WF_OK);
    *(uint8_t *)t->data = 1;
    on = wf_emit_constant(&e, "training", &t);
    x = wf_emit_op(&e, "Dropout", 3, (wf_value *[]){x, wf_emit_scalar(&e, WF_F32, 0.25), on}, 0,
                   NULL);
    assert_int_equal(wf_emit_end(&e), WF_OK);
    assert_int_equal(wf_graph_add_output(g, x, NULL), WF_OK);
    p = plan_of(g);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    wf_plan_bind_input(p, 0, ones);
    wf_graph_free(&g);
    return p;
}

static void dropout_depends_on_the_key_and_nothing_else(void **state)
{
    enum { N = 4000 };
    static float ones[N], first[N];
    wf_plan *p = dropout_plan(ones, N);
    wf_step_key keys[] = {{1, 0, 0, 0}, {2, 0, 0, 0}, {1, 1, 0, 0}, {1, 0, 1, 0}, {1, 0, 0, 1}};
    const float *out;
    double sum = 0;

    (void)state;
    assert_int_equal(wf_plan_run(p, &keys[0], NULL, NULL, NULL), WF_OK);
    out = wf_plan_output_data(p, 0);
    for (int i = 0; i < N; i++) {
        assert_true(out[i] == 0 || out[i] == 1 / 0.75f);
        sum += (double)out[i];
    }
    assert_true(fabs(sum / N - 1) < 0.05);
    memcpy(first, out, sizeof first);
    for (int k = 1; k < 5; k++) {
        assert_int_equal(wf_plan_run(p, &keys[k], NULL, NULL, NULL), WF_OK);
        assert_int_not_equal(memcmp(first, out, sizeof first), 0);
    }
    assert_int_equal(wf_plan_run(p, &keys[0], NULL, NULL, NULL), WF_OK);
    assert_memory_equal(first, out, sizeof first);
    wf_plan_free(&p);
}

static void pull_and_push_are_ports(void **state)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", 1, (int64_t[]){3}), *w;
    wf_attr name = wf_attr_string("variable", "dense/kernel");
    wf_emit e = wf_emit_begin(g, "ps", NULL);
    float data[] = {1, 2, 3}, weights[] = {4, 5, 6}, grad[3];
    wf_plan *p;

    (void)state;
    w = wf_emit_op(&e, "Pull", 0, NULL, 1, &name);
    assert_non_null(w);
    wf_value_set_type(w, WF_F32, 1, (int64_t[]){3});
    wf_emit_node(&e, "Push", 1, (wf_value *[]){wf_emit_mul(&e, x, w)}, 1, &name, 0, NULL);
    assert_int_equal(wf_emit_end(&e), WF_OK);
    p = plan_of(g);
    assert_int_equal(wf_plan_n_inputs(p), 2);
    assert_int_equal(wf_plan_n_outputs(p), 1);
    assert_string_equal(wf_plan_input(p, 1)->variable, "dense/kernel");
    assert_int_equal(wf_plan_find_output(p, "dense/kernel"), 0);
    wf_plan_bind_input(p, 0, data);
    wf_plan_bind_input(p, 1, weights);
    wf_plan_bind_output(p, 0, grad);
    run(p);
    assert_memory_equal(grad, ((float[]){4, 10, 18}), sizeof grad);
    wf_plan_free(&p);
    wf_graph_free(&g);
}

static void errors_name_what_is_wrong(void **state)
{
    wf_graph *g = mlp();
    wf_plan *p = NULL;
    wf_err err;

    (void)state;
    assert_int_equal(wf_plan_new(g, &(wf_plan_options){.device = test_device()}, &p, &err),
                     WF_SHAPE);
    assert_says(err, "input \"x\": the extent of axis 0 (batch) is not known");
    assert_int_equal(
        wf_plan_new(g,
                    &(wf_plan_options){.device = test_device(),
                                       .n_shapes = 1,
                                       .shapes = &(wf_plan_shape){"x", 2, {BATCH, IN + 1}}},
                    &p, &err),
        WF_SHAPE);
    assert_says(err, "and was given [8, 21]");
    assert_int_equal(wf_plan_new(g,
                                 &(wf_plan_options){.device = test_device(),
                                                    .n_symbols = 1,
                                                    .symbols = &(wf_plan_symbol){"batch", BATCH},
                                                    .limit_bytes = 100},
                                 &p, &err),
                     WF_NOMEM);
    assert_null(p);
    assert_says(err, " makes float32[20, 16]");
    assert_says(err, "100 may be used here");
    p = plan_of(g);
    assert_int_equal(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), WF_INVALID);
    assert_says(err, "input \"x\" has no content");
    wf_plan_free(&p);
    wf_graph_free(&g);
    p = fed_mlp();
    y_data[3] = OUT;
    assert_int_equal(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), WF_INVALID);
    assert_says(err, "SoftmaxCrossEntropyLoss");
    assert_says(err, "label 5 of record 3 is none of the 5 classes");
    wf_plan_free(&p);
}

static void a_nan_is_found_and_its_variable_named(void **state)
{
    wf_plan *p = fed_mlp();
    uint32_t just_w1 = 1;
    wf_err err;

    (void)state;
    run(p);
    assert_ok(wf_plan_check_finite(p, 0, NULL, &err), err);
    x_data[5] = NAN;
    run(p);
    assert_int_equal(wf_plan_check_finite(p, 0, NULL, &err), WF_NUMERIC);
    assert_int_equal(wf_plan_check_finite(p, 1, &just_w1, &err), WF_NUMERIC);
    assert_says(err, "\"grad/w1\" holds a NaN or an infinity");
    wf_plan_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_have_names_variables_and_dims),
        cmocka_unit_test(gradients_are_the_slopes_of_the_loss),
        cmocka_unit_test(outputs_are_announced_once_they_are_final),
        cmocka_unit_test(where_outputs_go_may_change_with_every_step),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(memory_is_shared_by_liveness),
        cmocka_unit_test(what_follows_from_constants_is_not_run),
        cmocka_unit_test(one_value_may_be_several_outputs),
        cmocka_unit_test(dropout_depends_on_the_key_and_nothing_else),
        cmocka_unit_test(pull_and_push_are_ports),
        cmocka_unit_test(errors_name_what_is_wrong),
        cmocka_unit_test(a_nan_is_found_and_its_variable_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
