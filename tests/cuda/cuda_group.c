/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_group.c - GPUs add up arrays between each other: sums wait for what is queued on
 * each of them, whichever stream comes first, and failures are told. */
#include "common/base/size.h"
#include "common/kernels/kernel.h"
#include "tests/cuda/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { GPUS = 2, ARRAYS = 3, MOST = 1000, ORDERS = 20 };

static const uint64_t counts[ARRAYS] = {MOST, 0, 7};

typedef struct stage {
    const wf_device *devices[GPUS];
    wf_stream *streams[GPUS];
    wf_device_group *group;
    float *arrays[GPUS][ARRAYS];
} stage;

static float value(int gpu, int array, uint64_t i)
{
    return (float)(gpu * 1000 + array * 100) + (float)i * 0.25f;
}

static void set_stage(stage *s)
{
    wf_err err;

    *s = (stage){0};
    for (int k = 0; k < GPUS; k++) {
        s->devices[k] = cuda_host_gpu(k);
        assert_int_equal(wf_stream_new(s->devices[k], &s->streams[k], &err), WF_OK);
        for (int a = 0; a < ARRAYS; a++)
            s->arrays[k][a] = wf_device_alloc(s->devices[k], counts[a] * sizeof(float));
    }
}

static void clear_stage(stage *s)
{
    for (int k = 0; k < GPUS; k++) {
        wf_err err;

        (void)!wf_stream_wait(s->streams[k], &err);
    }
    wf_groups_of(s->devices[0])->close(&s->group);
    assert_null(s->group);
    for (int k = 0; k < GPUS; k++) {
        wf_stream_free(&s->streams[k]);
        for (int a = 0; a < ARRAYS; a++)
            wf_device_free(s->devices[k], s->arrays[k][a]);
    }
}

static wf_status open_group(stage *s, wf_err *err)
{
    return wf_groups_of(s->devices[0])->open(s->devices, GPUS, &s->group, err);
}

static wf_status sum(stage *s, wf_err *err)
{
    wf_group_segment segments[GPUS][ARRAYS];
    const wf_group_segment *of[GPUS];

    for (int k = 0; k < GPUS; k++) {
        for (int a = 0; a < ARRAYS; a++)
            segments[k][a] = (wf_group_segment){counts[a], s->arrays[k][a]};
        of[k] = segments[k];
    }
    return wf_groups_of(s->devices[0])->sum(s->group, s->streams, ARRAYS, of, err);
}

static void each_gpu_has_the_sum_in_any_order_of_streams(void **unused)
{
    static float values[GPUS][ARRAYS][MOST], got[GPUS][ARRAYS][MOST];
    wf_err err;
    stage s;

    (void)unused;
    set_stage(&s);
    assert_int_equal(open_group(&s, &err), WF_OK);
    for (uint64_t order = 0; order < ORDERS; order++) {
        cuda_host_seed(order);
        memset(got, 0, sizeof got);
        for (int k = 0; k < GPUS; k++)
            for (int a = 0; a < ARRAYS; a++) {
                for (uint64_t i = 0; i < counts[a]; i++)
                    values[k][a][i] = value(k, a, i);
                assert_int_equal(wf_stream_copy(s.streams[k], WF_COPY_IN, s.arrays[k][a],
                                                values[k][a], counts[a] * sizeof(float), &err),
                                 WF_OK);
            }
        assert_int_equal(sum(&s, &err), WF_OK);
        for (int k = 0; k < GPUS; k++) {
            for (int a = 0; a < ARRAYS; a++)
                assert_int_equal(wf_stream_copy(s.streams[k], WF_COPY_OUT, got[k][a],
                                                s.arrays[k][a], counts[a] * sizeof(float), &err),
                                 WF_OK);
            assert_int_equal(wf_stream_wait(s.streams[k], &err), WF_OK);
            for (int a = 0; a < ARRAYS; a++)
                for (uint64_t i = 0; i < counts[a]; i++)
                    assert_true(got[k][a][i] == value(0, a, i) + value(1, a, i));
        }
    }
    clear_stage(&s);
}

static void a_failure_is_told_and_all_is_given_back(void **unused)
{
    static const struct {
        const char *call;
        int after;
    } cases[] = {
        {"nccl_new", 0}, {"nccl_begin", 0}, {"nccl_sum", 0}, {"nccl_sum", 2}, {"nccl_end", 0}};
    size_t objects = cuda_host_count().objects, held = cuda_host_count().held;

    (void)unused;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_status rc;
        wf_err err;
        stage s;

        set_stage(&s);
        cuda_host_fail(cases[i].call, cases[i].after, 40002);
        rc = open_group(&s, &err);
        if (rc == WF_OK)
            rc = sum(&s, &err);
        assert_int_equal(rc, WF_BROKEN);
        assert_non_null(strstr(err.what, "CUDA error 40002"));
        cuda_host_fail(NULL, 0, 0);
        clear_stage(&s);
        assert_int_equal(cuda_host_count().objects, objects);
        assert_int_equal(cuda_host_count().held, held);
    }
}

static void without_nccl_one_sentence_says_what_to_install(void **unused)
{
    wf_err err;
    stage s;

    (void)unused;
    set_stage(&s);
    cuda_host_fail("nccl_new", 0, WF_CUDA_NO_NCCL);
    assert_int_equal(open_group(&s, &err), WF_UNSUPPORTED);
    assert_string_equal(err.what,
                        "cuda-host:0 and cuda-host:1: gradients of several GPUs are added "
                        "up by NCCL, and libnccl.so.2 is missing");
    assert_non_null(strstr(err.hint, "install NCCL 2"));
    cuda_host_fail(NULL, 0, 0);
    clear_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gpu_has_the_sum_in_any_order_of_streams),
        cmocka_unit_test(a_failure_is_told_and_all_is_given_back),
        cmocka_unit_test(without_nccl_one_sentence_says_what_to_install),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
