/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/gradients.c - a step's gradients: means over batches, clipping, the same bits with any
 * number of threads. */
#include "worker/gradients.h"
#include "common/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, MOST = 200001, BATCHES = 3 };

static const int64_t counts[N] = {MOST, 17, 1000};
static float pushed[N][MOST], batch[BATCHES][N][MOST];
static int left[N];
static bool checked, sound;

static wf_status leave(void *arg, uint32_t variable, wf_err *err)
{
    (void)arg, (void)err;
    left[variable]++;
    return WF_OK;
}

static void fill(void)
{
    for (int b = 0; b < BATCHES; b++)
        for (int v = 0; v < N; v++)
            for (int64_t i = 0; i < counts[v]; i++)
                batch[b][v][i] =
                    wf_rng_f32((wf_rng_key){3, (uint64_t)(b * N + v)}, (uint64_t)i) - 0.4f;
}

static const uint64_t records[BATCHES] = {4, 4, 2};

static wf_gradients *begin_step(const char *option, double value, uint32_t replicas, wf_pool *pool)
{
    const wf_gradients_variable rows[N] = {
        {counts[0], true}, {counts[1], true}, {counts[2], false}};
    wf_gradients *g = NULL;
    wf_opt opt;

    memset(left, 0, sizeof left);
    memset(pushed, 0, sizeof pushed);
    assert_int_equal(wf_opt_init(&opt, "sgd", option ? 1 : 0, &option, &value, NULL), WF_OK);
    assert_int_equal(wf_gradients_new(&(wf_gradients_conf){.opt = &opt,
                                                           .variables = rows,
                                                           .n = N,
                                                           .n_replicas = replicas,
                                                           .checked = checked,
                                                           .pool = pool},
                                      &g, NULL),
                     WF_OK);
    return g;
}

static void end_step(wf_gradients *g)
{
    sound = wf_gradients_finite(g);
    assert_int_equal(wf_gradients_end(g, leave, NULL, NULL), WF_OK);
    for (int v = 0; v < N; v++)
        assert_int_equal(left[v], 1);
    wf_gradients_free(&g);
}

/* One step of batches of 4, 4 and 2 records, or of the first alone; the last variable is a
 * statistic. */
static void step(const char *option, double value, int batches, uint32_t threads)
{
    wf_gradients *g;
    wf_pool *pool = NULL;

    assert_int_equal(wf_pool_new(threads, &pool, NULL), WF_OK);
    g = begin_step(option, value, 0, pool);
    for (int b = 0; b < batches; b++) {
        wf_gradients_begin(g, &records[b], batches == 1 ? 4 : 10, b == 0, b == batches - 1);
        for (uint32_t v = 0; v < N; v++) {
            float *to = wf_gradients_into(g, 0, v, pushed[v]);

            assert_true((to == pushed[v]) == (batches == 1));
            memcpy(to, batch[b][v], (size_t)counts[v] * sizeof(float));
            if (wf_gradients_take(g, v))
                left[v]++;
        }
    }
    end_step(g);
    wf_pool_free(&pool);
}

/* The same three batches, by two replicas: the first two at once, and then the last by the replica
 * `last`, while the other has no records. */
static void step_of_replicas(const char *option, double value, uint32_t last, uint32_t threads)
{
    wf_gradients *g;
    wf_pool *pool = NULL;

    assert_int_equal(wf_pool_new(threads, &pool, NULL), WF_OK);
    g = begin_step(option, value, 2, pool);
    for (int b = 0; b < BATCHES; b += 2) {
        uint64_t of[2] = {4, 4};

        if (b > 0) {
            of[last] = records[b];
            of[1 - last] = 0;
        }
        wf_gradients_begin(g, of, 10, b == 0, b > 0);
        for (uint32_t v = 0; v < N; v++) {
            for (uint32_t r = 0; r < 2; r++)
                if (of[r] > 0)
                    memcpy(wf_gradients_into(g, r, v, pushed[v]), batch[b == 0 ? (int)r : b][v],
                           (size_t)counts[v] * sizeof(float));
            if (wf_gradients_take(g, v))
                left[v]++;
        }
    }
    end_step(g);
    wf_pool_free(&pool);
}

static double mean_at(int v, int64_t i, int batches)
{
    if (batches == 1)
        return batch[0][v][i];
    return 0.4 * batch[0][v][i] + 0.4 * batch[1][v][i] + 0.2 * batch[2][v][i];
}

static double norm_of(int v, int batches)
{
    double sum = 0;

    for (int64_t i = 0; i < counts[v]; i++)
        sum += mean_at(v, i, batches) * mean_at(v, i, batches);
    return sqrt(sum);
}

/* Each is its mean times `by`, bounded by `most`. */
static void check(int v, int batches, double by, double most)
{
    for (int64_t i = 0; i < counts[v]; i++) {
        double want = fmax(fmin(mean_at(v, i, batches) * by, most), -most);

        if (fabs(pushed[v][i] - want) > 1e-6 * fabs(want) + 1e-7)
            fail_msg("variable %d, element %ld: %.9g, not %.9g", v, (long)i, (double)pushed[v][i],
                     want);
    }
}

static void several_batches_make_one_mean(void **unused)
{
    (void)unused;
    for (int batches = 1; batches <= BATCHES; batches += 2) {
        step(NULL, 0, batches, 1);
        for (int v = 0; v < N; v++)
            check(v, batches, 1, INFINITY);
    }
}

static void clipping_is_of_the_mean_and_not_of_statistics(void **unused)
{
    (void)unused;
    for (int batches = 1; batches <= BATCHES; batches += 2) {
        double all = hypot(norm_of(0, batches), norm_of(1, batches));

        step("clipvalue", 0.1, batches, 1);
        for (int v = 0; v < N; v++)
            check(v, batches, 1, v < 2 ? 0.1 : INFINITY);
        step("clipnorm", 0.75, batches, 1);
        for (int v = 0; v < N; v++)
            check(v, batches, v < 2 ? fmin(0.75 / norm_of(v, batches), 1) : 1, INFINITY);
        step("global_clipnorm", 0.75, batches, 1);
        for (int v = 0; v < N; v++)
            check(v, batches, v < 2 ? 0.75 / all : 1, INFINITY);
        step("global_clipnorm", 1e6, batches, 1);
        for (int v = 0; v < N; v++)
            check(v, batches, 1, INFINITY);
    }
}

static void threads_change_no_bit(void **unused)
{
    static const char *const options[] = {"clipnorm", "global_clipnorm"};
    static float kept[N][MOST];

    (void)unused;
    for (int k = 0; k < 2; k++) {
        step(options[k], 0.5, BATCHES, 1);
        memcpy(kept, pushed, sizeof kept);
        step(options[k], 0.5, BATCHES, 3);
        assert_memory_equal(kept, pushed, sizeof kept);
    }
}

static void replicas_have_the_bits_of_batches(void **unused)
{
    static const char *const options[] = {NULL, "clipvalue", "global_clipnorm"};
    static float kept[N][MOST];

    (void)unused;
    for (int k = 0; k < 3; k++)
        for (uint32_t last = 0; last < 2; last++) {
            step(options[k], 0.3, BATCHES, 1);
            memcpy(kept, pushed, sizeof kept);
            step_of_replicas(options[k], 0.3, last, 1 + 2 * last);
            assert_memory_equal(kept, pushed, sizeof kept);
        }
}

static void what_is_no_number_stays_so(void **unused)
{
    static const char *const options[] = {"clipvalue", "clipnorm", "global_clipnorm"};

    (void)unused;
    batch[0][1][5] = NAN;
    for (int k = 0; k < 3; k++) {
        step(options[k], 0.5, 1, 1);
        assert_true(isnan(pushed[1][5]));
    }
    fill();
}

static void a_check_sees_all_gradients_before_one_leaves(void **unused)
{
    (void)unused;
    checked = true;
    step("global_clipnorm", 1e6, BATCHES, 1);
    for (int v = 0; v < N; v++)
        check(v, BATCHES, 1, INFINITY);
    assert_true(sound);
    batch[1][2][999] = INFINITY; /* of the statistic */
    step(NULL, 0, BATCHES, 1);
    assert_false(sound);
    checked = false;
    fill();
}

static int set_up(void **unused)
{
    (void)unused;
    fill();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_batches_make_one_mean),
        cmocka_unit_test(clipping_is_of_the_mean_and_not_of_statistics),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(replicas_have_the_bits_of_batches),
        cmocka_unit_test(a_check_sees_all_gradients_before_one_leaves),
        cmocka_unit_test(what_is_no_number_stays_so),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
