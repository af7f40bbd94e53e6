/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_tune.c - algorithms are chosen by the time that they take, over the host's
 * cuBLASLt, whose algorithms take what the seed says: the fastest is taken, the next process takes
 * it from the file, and whatever is wrong with the file or with measuring does no harm. */
#include "common/base/cc.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/kernels/cuda/kept.h"
#include "common/kernels/cuda/product/product.h"
#include "common/log/log.h"
#include "tests/cuda/host.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != WF_OK)                                                                       \
            fail_msg("%s; %s", err.what, err.hint);                                                \
    } while (0)

enum { M = 3, N = 5, K = 4, SEEDS = 24 };

static wf_err err;
static char folder[] = "/tmp/weft-cuda-tune-XXXXXX";
static wf_cuda_gpu *gpu;

static int on_entry(void **state)
{
    (void)state;
    cuda_host_fail(NULL, 0, 0);
    cuda_host_seed(1);
    setenv("WEFT_CACHE", folder, 1);
    (void)!wf_remove_tree(folder, NULL);
    return wf_cuda_open(&wf_cuda_host, "cuda-host", 0, &gpu, &err) == WF_OK ? 0 : -1;
}

/* All is given back. */
static int on_exit_of_test(void **state)
{
    cuda_host_counts c;

    (void)state;
    cuda_host_fail(NULL, 0, 0);
    cuda_host_algorithms(3);
    wf_cuda_close(&gpu);
    c = cuda_host_count();
    return c.held == 0 && c.streams == 0 && c.events == 0 && c.objects == 0 ? 0 : -1;
}

/* Another process has nothing of this one but its files. */
static void begin_process(void)
{
    wf_cuda_close(&gpu);
    assert_ok(wf_cuda_open(&wf_cuda_host, "cuda-host", 0, &gpu, &err));
}

static wf_cuda_gemm a_product(int64_t m)
{
    return (wf_cuda_gemm){.dtype = WF_F32,
                          .adds_row = true,
                          .m = m,
                          .n = N,
                          .k = K,
                          .alpha = 1,
                          .batch = 1,
                          .aligned = 64};
}

/* Plans a product of m rows and runs it. Gives what it took, and in *measured whether products were
 * run while it was planned. */
static double time_of(int64_t m, bool untimed, bool *measured)
{
    const wf_cuda_gemm g = a_product(m);
    wf_prep prep = {.device = &gpu->base, .untimed = untimed};
    wf_run run = {.device = &gpu->base};
    double before = cuda_host_count().ms, took;
    wf_cuda_gemm_way *way = NULL;
    float *memory;

    assert_ok(wf_cuda_gemm_new(&prep, &g, &way, &err));
    *measured = cuda_host_count().ms > before;
    memory = wf_device_alloc(&gpu->base, 4096 * sizeof *memory);
    run.workspace = wf_device_alloc(&gpu->base, prep.workspace_bytes);
    assert_true(memory && run.workspace);
    assert_ok(wf_stream_new(&gpu->base, &run.stream, &err));
    before = cuda_host_count().ms;
    assert_ok(
        wf_cuda_gemm_go(way, &run, memory, memory + 1024, memory + 2048, memory + 3072, &err));
    assert_ok(wf_stream_wait(run.stream, &err));
    took = cuda_host_count().ms - before;
    wf_stream_free(&run.stream);
    wf_device_free(&gpu->base, memory);
    wf_device_free(&gpu->base, run.workspace);
    wf_cuda_gemm_free(way);
    return took;
}

/* What the heuristic's first takes. */
static double first_of(int64_t m)
{
    bool measured;
    double took = time_of(m, true, &measured);

    assert_false(measured);
    return took;
}

static unsigned count_files(void)
{
    unsigned n = 0;
    DIR *d = opendir(folder);

    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static void path_of_only_file(char out[static PATH_MAX])
{
    DIR *d = opendir(folder);

    assert_non_null(d);
    out[0] = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.')
            snprintf(out, PATH_MAX, "%s/%s", folder, e->d_name);
    closedir(d);
    assert_true(out[0] != 0);
}

/* ---- what is chosen ---- */

/* More algorithms to choose from make a product faster, and never slower. */
static void the_fastest_is_taken(void **state)
{
    unsigned faster = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        double took[4], first;
        bool measured;

        cuda_host_seed(seed);
        first = first_of(M);
        for (int n = 1; n <= 3; n++) {
            (void)!wf_remove_tree(folder, NULL);
            cuda_host_algorithms(n);
            took[n] = time_of(M, false, &measured);
            assert_int_equal(measured, n > 1);
        }
        assert_true(took[1] == first && took[2] <= took[1] && took[3] <= took[2]);
        faster += took[3] < took[1];
    }
    assert_in_range(faster, SEEDS / 3, SEEDS); /* of three the first is the fastest for a third */
}

static void the_next_process_takes_it_from_the_file(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        double took;
        bool measured;

        cuda_host_seed(seed);
        (void)!wf_remove_tree(folder, NULL);
        took = time_of(M, false, &measured);
        assert_true(measured && count_files() == 1);
        (void)time_of(M + 1, false, &measured); /* another shape is another case */
        assert_true(measured && count_files() == 2);
        begin_process();
        assert_true(time_of(M, false, &measured) == took);
        assert_false(measured);
        cuda_host_seed(seed + 1000); /* whatever they take now */
        (void)time_of(M, false, &measured);
        assert_false(measured);
        assert_int_equal(count_files(), 2);
    }
}

/* A seed for which the last of three algorithms is the fastest. */
static void find_seed_of_last(void)
{
    for (uint64_t seed = 1;; seed++) {
        double two, three;
        bool measured;

        cuda_host_seed(seed);
        (void)!wf_remove_tree(folder, NULL);
        cuda_host_algorithms(2);
        two = time_of(M, false, &measured);
        (void)!wf_remove_tree(folder, NULL);
        cuda_host_algorithms(3);
        three = time_of(M, false, &measured);
        if (three < two)
            return;
    }
}

static void a_job_can_forbid_it(void **state)
{
    double first;
    bool measured;

    (void)state;
    find_seed_of_last();
    first = first_of(M); /* though a file has another */
    assert_true(time_of(M, false, &measured) < first);
    (void)!wf_remove_tree(folder, NULL);
    assert_true(first_of(M) == first);
    assert_int_equal(count_files(), 0);
}

static void what_is_not_offered_any_more_is_dropped(void **state)
{
    double second;
    bool measured;

    (void)state;
    find_seed_of_last();
    cuda_host_algorithms(2);
    second = time_of(M, false, &measured);
    assert_true(measured && count_files() == 1);
    begin_process();
    assert_true(time_of(M, false, &measured) == second);
    assert_false(measured);
}

/* ---- files ---- */

static void damage(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    int byte;

    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    byte = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, f), byte ^ 1);
    assert_int_equal(fclose(f), 0);
}

/* Each byte, and each length: it is measured again, and the file is right again. */
static void a_damaged_file_counts_as_missing(void **state)
{
    char path[PATH_MAX];
    wf_bytes whole = {0}, again = {0};
    bool measured;
    double took;

    (void)state;
    find_seed_of_last();
    took = time_of(M, false, &measured);
    path_of_only_file(path);
    assert_ok(wf_file_read(path, 1 << 20, &whole, &err));
    for (size_t at = 0; at < 2 * whole.size; at++) {
        if (at < whole.size)
            damage(path, (long)at);
        else
            assert_int_equal(truncate(path, (off_t)(at - whole.size)), 0);
        begin_process();
        assert_true(time_of(M, false, &measured) == took);
        assert_true(measured);
        assert_ok(wf_file_read(path, 1 << 20, &again, &err));
        assert_int_equal(again.size, whole.size);
        assert_memory_equal(again.data, whole.data, whole.size);
        wf_bytes_close(&again);
        assert_int_equal(count_files(), 1);
    }
    wf_bytes_close(&whole);
}

/* Of several processes that measure at once: all have the choice of one. */
static void the_first_file_stays(void **state)
{
    static const wf_cuda_kind kind = {"choice", "weftpick"};
    const wf_cuda_key key = {1, 2};
    char path[PATH_MAX];
    wf_bytes got = {0};

    (void)state;
    assert_true(wf_cuda_kept_add(&kind, key, "mine", 5));
    assert_false(wf_cuda_kept_add(&kind, key, "yours", 6));
    assert_true(wf_cuda_kept_read(&kind, key, &got));
    assert_string_equal(wf_bytes_str(&got), "mine");
    wf_bytes_clear(&got);
    path_of_only_file(path);
    damage(path, 42);
    assert_false(wf_cuda_kept_read(&kind, key, &got));
    assert_true(wf_cuda_kept_add(&kind, key, "yours", 6));
    assert_true(wf_cuda_kept_read(&kind, key, &got));
    assert_string_equal(wf_bytes_str(&got), "yours");
    assert_int_equal(count_files(), 1);
    wf_bytes_close(&got);
}

static void without_a_folder_nothing_is_measured(void **state)
{
    char below_a_file[sizeof folder + 16];
    double first;
    bool measured;

    (void)state;
    find_seed_of_last();
    first = first_of(M);
    snprintf(below_a_file, sizeof below_a_file, "%s/file", folder);
    (void)!wf_remove_tree(folder, NULL);
    assert_ok(wf_make_dirs(folder, &err));
    assert_ok(wf_file_write(below_a_file, "", 0, &err));
    strcat(below_a_file, "/below");
    setenv("WEFT_CACHE", below_a_file, 1);
    assert_true(time_of(M, false, &measured) == first);
    assert_false(measured);
}

/* ---- failures ---- */

/* Whichever call of measuring fails, the first is taken, and nothing is kept; or another candidate,
 * if one cannot be queued. */
static void a_failure_while_measuring_does_no_harm(void **state)
{
    static const struct {
        const char *call;
        int times;
    } calls[] = {{"alloc", 1},        {"fill", 1},       {"stream_new", 1}, {"timer_new", 2},
                 {"event_record", 8}, {"event_wait", 4}, {"timer_ms", 4}};
    double first;
    bool measured;

    (void)state;
    find_seed_of_last();
    first = first_of(M);
    for (size_t k = 0; k < WF_COUNT(calls); k++)
        for (int after = 0; after < calls[k].times; after++) {
            wf_prep prep = {.device = &gpu->base};
            const wf_cuda_gemm g = a_product(M);
            wf_cuda_gemm_way *way = NULL;

            (void)!wf_remove_tree(folder, NULL);
            cuda_host_fail(calls[k].call, after, 719);
            assert_ok(wf_cuda_gemm_new(&prep, &g, &way, &err));
            cuda_host_fail(NULL, 0, 0);
            wf_cuda_gemm_free(way);
            assert_int_equal(count_files(), 0);
        }
    for (int after = 0; after < 3; after++) { /* one of three cannot be queued */
        wf_prep prep = {.device = &gpu->base};
        const wf_cuda_gemm g = a_product(M);
        wf_cuda_gemm_way *way = NULL;

        (void)!wf_remove_tree(folder, NULL);
        cuda_host_fail("multiply", after, 10015);
        assert_ok(wf_cuda_gemm_new(&prep, &g, &way, &err));
        cuda_host_fail(NULL, 0, 0);
        wf_cuda_gemm_free(way);
        assert_int_equal(count_files(), 1);
        assert_int_equal(time_of(M, false, &measured) < first, after != 2);
        assert_false(measured);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, on_entry, on_exit_of_test)
    const struct CMUnitTest tests[] = {
        TEST(the_fastest_is_taken),
        TEST(the_next_process_takes_it_from_the_file),
        TEST(a_job_can_forbid_it),
        TEST(what_is_not_offered_any_more_is_dropped),
        TEST(a_damaged_file_counts_as_missing),
        TEST(the_first_file_stays),
        TEST(without_a_folder_nothing_is_measured),
        TEST(a_failure_while_measuring_does_no_harm),
    };
    int failed;

    wf_log_init("", WF_ERROR);
    if (!mkdtemp(folder))
        return 2;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)!wf_remove_tree(folder, NULL);
    return failed;
}
