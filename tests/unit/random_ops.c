/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/random_ops.c - RandomNormal, RandomUniform and Bernoulli: their distributions, and
 * what their numbers depend on: the step's key, the node and its seed, never the threads. */
#include "common/exec/exec.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"

#include <math.h>

enum { N = 100003 }; /* odd, and no whole number of blocks */

typedef struct drawn {
    wf_graph *g;
    wf_plan *plan;
    wf_pool *pool;
} drawn;

/* One node without inputs, or over `in`, as the only output. */
static drawn draw(const char *op, wf_value *(*in)(wf_graph *), uint32_t n_attrs,
                  const wf_attr attrs[], uint32_t threads, uint64_t batch)
{
    drawn d = {.g = new_graph()};
    wf_emit e = wf_emit_begin(d.g, "draw", NULL);
    wf_value *x = in ? in(d.g) : NULL;
    wf_value *y = wf_emit_op(&e, op, x ? 1 : 0, &x, n_attrs, attrs);
    wf_err err;

    assert_int_equal(wf_emit_end(&e), WF_OK);
    assert_ok(wf_graph_add_output(d.g, y, &err), err);
    assert_ok(wf_pool_new(threads, &d.pool, &err), err);
    assert_ok(wf_plan_new(d.g, &(wf_plan_options){.device = test_device(), .pool = d.pool}, &d.plan,
                          &err),
              err);
    assert_ok(wf_plan_run(d.plan, &(wf_step_key){.seed = 7, .batch = batch}, NULL, NULL, &err),
              err);
    return d;
}

static const float *numbers(const drawn *d)
{
    return wf_plan_output_data(d->plan, 0);
}

static void close_drawn(drawn *d)
{
    wf_plan_free(&d->plan);
    wf_pool_free(&d->pool);
    wf_graph_free(&d->g);
}

static double mean_of(const float *x)
{
    double sum = 0;

    for (int i = 0; i < N; i++)
        sum += (double)x[i];
    return sum / N;
}

static double variance_of(const float *x, double mean)
{
    double sum = 0;

    for (int i = 0; i < N; i++)
        sum += ((double)x[i] - mean) * ((double)x[i] - mean);
    return sum / N;
}

static const int64_t shape[] = {N};

static void normal_ones_have_mean_and_scale(void **state)
{
    wf_attr attrs[] = {wf_attr_ints("shape", 1, shape), wf_attr_float("mean", 2.0f),
                       wf_attr_float("scale", 3.0f)};
    drawn d = draw("RandomNormal", NULL, 3, attrs, 1, 0);
    double mean = mean_of(numbers(&d)), spread = sqrt(variance_of(numbers(&d), mean));
    int beyond = 0;

    (void)state;
    /* Ten deviations of each estimate. */
    assert_true(fabs(mean - 2) < 10 * 3 / sqrt(N) && fabs(spread - 3) < 10 * 3 / sqrt(2.0 * N));
    for (int i = 0; i < N; i++)
        beyond += fabs((double)numbers(&d)[i] - 2) > 6;
    assert_true(fabs(beyond / (double)N - 0.0455) < 10 * sqrt(0.0455 / N));
    close_drawn(&d);
}

static void uniform_ones_stay_within_their_bounds(void **state)
{
    wf_attr attrs[] = {wf_attr_ints("shape", 1, shape), wf_attr_float("low", -1.0f),
                       wf_attr_float("high", 3.0f)};
    drawn d = draw("RandomUniform", NULL, 3, attrs, 1, 0);
    double mean = mean_of(numbers(&d));

    (void)state;
    for (int i = 0; i < N; i++)
        assert_true(numbers(&d)[i] >= -1 && numbers(&d)[i] <= 3);
    assert_true(fabs(mean - 1) < 0.05 && fabs(variance_of(numbers(&d), mean) - 16.0 / 12) < 0.05);
    close_drawn(&d);
}

static wf_value *quarter(wf_graph *g)
{
    wf_tensor *t = NULL;
    wf_value *v = NULL;

    assert_int_equal(wf_tensor_new(WF_F32, 1, shape, &t, NULL), WF_OK);
    for (int i = 0; i < N; i++)
        wf_f32_mut(t)[i] = i % 2 ? 0.25f : 0.0f;
    assert_int_equal(wf_graph_add_constant(g, "p", &t, &v, NULL), WF_OK);
    return v;
}

static void tosses_have_their_probability(void **state)
{
    drawn d = draw("Bernoulli", quarter, 0, NULL, 1, 0);
    double ones = 0;

    (void)state;
    for (int i = 0; i < N; i++) {
        assert_true(numbers(&d)[i] == 0 || (i % 2 && numbers(&d)[i] == 1));
        ones += (double)numbers(&d)[i];
    }
    assert_true(fabs(ones / N - 0.125) < 0.01);
    close_drawn(&d);
}

static void numbers_depend_on_batch_and_seed_but_not_on_threads(void **state)
{
    static const char *const ops[] = {"RandomNormal", "RandomUniform"};
    wf_attr attrs[] = {wf_attr_ints("shape", 1, shape), wf_attr_float("seed", 5.0f)};
    size_t bytes = N * sizeof(float);

    (void)state;
    for (int i = 0; i < 2; i++) {
        drawn one = draw(ops[i], NULL, 1, attrs, 1, 0), three = draw(ops[i], NULL, 1, attrs, 3, 0);
        drawn next = draw(ops[i], NULL, 1, attrs, 1, 1), other = draw(ops[i], NULL, 2, attrs, 1, 0);

        assert_memory_equal(numbers(&one), numbers(&three), bytes);
        assert_memory_not_equal(numbers(&one), numbers(&next), bytes);
        assert_memory_not_equal(numbers(&one), numbers(&other), bytes);
        close_drawn(&one);
        close_drawn(&three);
        close_drawn(&next);
        close_drawn(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_ones_have_mean_and_scale),
        cmocka_unit_test(uniform_ones_stay_within_their_bounds),
        cmocka_unit_test(tosses_have_their_probability),
        cmocka_unit_test(numbers_depend_on_batch_and_seed_but_not_on_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
