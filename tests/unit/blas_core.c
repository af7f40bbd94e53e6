/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/blas_core.c - which of its kernels OpenBLAS multiplies with, and on which threads.
 * What it would take for a processor that it does not know is chosen by its own variable, before
 * the function is asked. */
#include "common/base/clock.h"
#include "common/kernels/cpu/product/blas.h"
#include "common/kernels/kernel.h"
#include "tests/unit/skip.h"

#include <cblas.h>
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define CORE "OPENBLAS_CORETYPE"
enum { M = 70, N = 33, K = 129 };

void gotoblas_dynamic_quit(void) __attribute__((weak));
void gotoblas_dynamic_init(void) __attribute__((weak));

static bool has_vectors(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* OpenBLAS as it is after a start on some processor; leaves no variable. */
static void begin_with(const char *core)
{
    if (!has_vectors() || !gotoblas_dynamic_quit || !gotoblas_dynamic_init)
        skip_file();
    setenv(CORE, core, 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv(CORE);
    assert_string_equal(openblas_get_corename(), core);
}

/* Whole numbers that float says exactly, sums among them. */
static void check_product(void)
{
    static float a[M * K], b[K * N], c[M * N];
    const wf_strided_product p = {.dtype = WF_F32,
                                  .m = M,
                                  .n = N,
                                  .k = K,
                                  .a = a,
                                  .b = b,
                                  .c = c,
                                  .lda = K,
                                  .ldb = N,
                                  .ldc = N};

    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 11 - 5);
    for (int i = 0; i < K * N; i++)
        b[i] = (float)(i % 7 - 3);
    wf_product_strided(&p);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float want = 0;

            for (int k = 0; k < K; k++)
                want += a[i * K + k] * b[k * N + j];
            assert_float_equal(c[i * N + j], want, 0);
        }
}

static void an_unknown_processor_has_kernels_by_its_features(void **state)
{
    (void)state;
    begin_with("Prescott");
    wf_kernels_own_process();
    assert_string_not_equal(openblas_get_corename(), "Prescott");
    assert_null(getenv(CORE)); /* which programs that this one starts would heed */
    check_product();
}

static void a_known_processor_keeps_its_kernels(void **state)
{
    (void)state;
    begin_with("Haswell");
    wf_kernels_own_process();
    assert_string_equal(openblas_get_corename(), "Haswell");
    check_product();
}

static void what_the_user_has_chosen_stays(void **state)
{
    (void)state;
    begin_with("Prescott");
    setenv(CORE, "Prescott", 1);
    wf_kernels_own_process();
    assert_string_equal(openblas_get_corename(), "Prescott");
    assert_string_equal(getenv(CORE), "Prescott");
    unsetenv(CORE);
    check_product();
}

static int count_threads(void)
{
    DIR *all = opendir("/proc/self/task");
    int n = -2; /* . and .. */

    assert_non_null(all);
    while (readdir(all))
        n++;
    closedir(all);
    return n;
}

/* One that was joined may be listed for a moment more. */
static void wait_for_one_thread(void)
{
    const int64_t until_ns = wf_now_ns() + 10 * WF_NS_PER_S;

    while (count_threads() > 1 && wf_now_ns() < until_ns)
        sched_yield();
    assert_int_equal(count_threads(), 1);
}

static void its_threads_are_ended(void **state)
{
    (void)state;
    openblas_set_num_threads(2);
    check_product();
    if (count_threads() == 1)
        skip_file(); /* an OpenBLAS without threads */
    wf_kernels_own_process();
    wait_for_one_thread();
    assert_int_equal(openblas_get_num_threads(), 1);
    check_product();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_threads_are_ended),
        cmocka_unit_test(an_unknown_processor_has_kernels_by_its_features),
        cmocka_unit_test(a_known_processor_keeps_its_kernels),
        cmocka_unit_test(what_the_user_has_chosen_stays),
    };

    return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
