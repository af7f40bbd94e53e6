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

/* One step of batches of 4, 4 and 2 records, or of the first alone; the last variable is a
 * statistic. */
static void step(const char *option, double value, int batches, uint32_t threads)
{
    static const uint64_t records[BATCHES] = {4, 4, 2};
    wf_gradients_variable rows[N] = {{counts[0], true}, {counts[1], true}, {counts[2], false}};
    wf_gradients *g = NULL;
    wf_pool *pool = NULL;
    wf_opt opt;

    memset(left, 0, sizeof left);
    memset(pushed, 0, sizeof pushed);
    assert_int_equal(wf_opt_init(&opt, "sgd", option ? 1 : 0, &option, &value, NULL), WF_OK);
    assert_int_equal(wf_pool_new(threads, &pool, NULL), WF_OK);
    assert_int_equal(wf_gradients_new(&opt, rows, N, pool, &g, NULL), WF_OK);
    for (int b = 0; b < batches; b++) {
        wf_gradients_begin(g, records[b], batches == 1 ? 4 : 10, b == 0, b == batches - 1);
        for (uint32_t v = 0; v < N; v++) {
            float *to = wf_gradients_into(g, v, pushed[v]);

            assert_true((to == pushed[v]) == (batches == 1));
            memcpy(to, batch[b][v], (size_t)counts[v] * sizeof(float));
            if (wf_gradients_take(g, v))
                left[v]++;
        }
    }
    assert_int_equal(wf_gradients_end(g, leave, NULL, NULL), WF_OK);
    for (int v = 0; v < N; v++)
        assert_int_equal(left[v], 1);
    wf_gradients_free(&g);
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
        cmocka_unit_test(what_is_no_number_stays_so),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
