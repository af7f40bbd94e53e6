/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/clip.c - clipping on a device has the bits of the host's. */
#include "common/base/cc.h"
#include "common/base/rng.h"
#include "common/kernels/kernel.h"
#include "tests/cuda/host.h"
#include "worker/gradients.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* More gradients than a launch has; two have several blocks, of whose last one is full. */
enum { N = 70, MOST = 3 * WF_CLIP_BLOCK + 5 };

static uint64_t size_of(uint32_t i)
{
    static const uint64_t some[] = {1, 15, 16, 17, 0, 300, 1025};

    return i == 3 ? MOST : i == 50 ? 2 * WF_CLIP_BLOCK : some[i % WF_COUNT(some)];
}

/* Gradients whose norms are about 0.3 sqrt(n). */
static float value(uint32_t i, uint64_t k)
{
    return wf_rng_f32((wf_rng_key){7, i}, k) - 0.5F;
}

static wf_status keep(void *arg, uint32_t variable, wf_err *err)
{
    (void)arg, (void)variable, (void)err;
    return WF_OK;
}

static void clip_on_host(const wf_opt *opt, float *const gradients[N])
{
    wf_gradients_variable rows[N];
    wf_gradients *g = NULL;

    for (uint32_t i = 0; i < N; i++)
        rows[i] = (wf_gradients_variable){.count = (int64_t)size_of(i), .clipped = true};
    assert_int_equal(
        wf_gradients_new(&(wf_gradients_conf){.opt = opt, .variables = rows, .n = N}, &g, NULL),
        WF_OK);
    wf_gradients_begin(g, &(uint64_t){1}, 1, true, true);
    for (uint32_t i = 0; i < N; i++)
        assert_ptr_equal(wf_gradients_into(g, 0, i, gradients[i]), gradients[i]);
    for (uint32_t i = 0; i < N; i++)
        (void)wf_gradients_take(g, i);
    assert_int_equal(wf_gradients_end(g, keep, NULL, NULL), WF_OK);
    wf_gradients_free(&g);
}

static void clip_on_device(const wf_opt *opt, float *const gradients[N])
{
    const wf_device *d = cuda_host_device();
    const wf_clip_limits limits = {.value = opt->shared[WF_OPT_CLIPVALUE],
                                   .norm = opt->shared[WF_OPT_CLIPNORM],
                                   .global_norm = opt->shared[WF_OPT_GLOBAL_CLIPNORM]};
    const bool sums = limits.norm > 0 || limits.global_norm > 0;
    wf_clip_segment of[N];
    double *total = wf_device_alloc(d, sizeof *total);
    wf_stream *s = NULL;
    wf_err err;

    assert_int_equal(wf_stream_new(d, &s, &err), WF_OK);
    for (uint32_t i = 0; i < N; i++) {
        of[i] = (wf_clip_segment){size_of(i), wf_device_alloc(d, size_of(i) * sizeof(float)), NULL};
        if (sums)
            of[i].scratch = wf_device_alloc(d, wf_clip_scratch(size_of(i)) * sizeof(double));
        assert_true(of[i].g && total && (of[i].scratch || !sums));
        assert_int_equal(
            wf_stream_copy(s, WF_COPY_IN, of[i].g, gradients[i], of[i].n * sizeof(float), &err),
            WF_OK);
    }
    assert_int_equal(wf_updates_of(d)->clip(s, &limits, sums ? total : NULL, N, of, &err), WF_OK);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(
            wf_stream_copy(s, WF_COPY_OUT, gradients[i], of[i].g, of[i].n * sizeof(float), &err),
            WF_OK);
    assert_int_equal(wf_stream_wait(s, &err), WF_OK);
    wf_stream_free(&s);
    for (uint32_t i = 0; i < N; i++) {
        wf_device_free(d, of[i].g);
        wf_device_free(d, of[i].scratch);
    }
    wf_device_free(d, total);
}

static void clipping_has_the_bits_of_the_host(void **state)
{
    /* None is above the limit, some are, and all are. */
    static const double cases[][3] = {{1e9, 0, 0}, {4, 0, 0}, {0.01, 0, 0}, {0, 1e9, 0}, {0, 2, 0},
                                      {3, 5, 0},   {0, 0, 1}, {0, 0, 0.3},  {0, 0, 1e-3}};
    float *host[N], *device[N];

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        host[i] = malloc(size_of(i) * sizeof(float) + 1);
        device[i] = malloc(size_of(i) * sizeof(float) + 1);
        assert_true(host[i] && device[i]);
    }
    for (size_t c = 0; c < WF_COUNT(cases); c++) {
        bool changed = false;
        wf_opt opt;

        assert_int_equal(wf_opt_init(&opt, "sgd", 0, NULL, NULL, NULL), WF_OK);
        opt.shared[WF_OPT_CLIPNORM] = cases[c][0];
        opt.shared[WF_OPT_GLOBAL_CLIPNORM] = cases[c][1];
        opt.shared[WF_OPT_CLIPVALUE] = cases[c][2];
        for (uint32_t i = 0; i < N; i++)
            for (uint64_t k = 0; k < size_of(i); k++)
                host[i][k] = device[i][k] = value(i, k);
        if (cases[c][2] > 0) /* it is seen, and not made a number */
            host[3][7] = device[3][7] = NAN;
        clip_on_host(&opt, host);
        clip_on_device(&opt, device);
        for (uint32_t i = 0; i < N; i++) {
            if (memcmp(host[i], device[i], size_of(i) * sizeof(float)) != 0)
                fail_msg(
                    "clipnorm %g, global_clipnorm %g, clipvalue %g: gradient %u has other bits",
                    cases[c][0], cases[c][1], cases[c][2], i);
            for (uint64_t k = 0; k < size_of(i); k++)
                changed |= device[i][k] != value(i, k) && !isnan(device[i][k]);
        }
        assert_int_equal(isnan(device[3][7]), cases[c][2] > 0);
        assert_int_equal(changed, cases[c][0] < 1e8 && cases[c][1] < 1e8 && cases[c][2] < 0.5);
    }
    for (uint32_t i = 0; i < N; i++) {
        free(host[i]);
        free(device[i]);
    }
}

/* What stages do, of which each has some of the gradients: sums of squares are taken first, and all
 * are multiplied by what the norm of all comes to. */
static void sums_and_factors_have_the_bits_of_the_host(void **state)
{
    const wf_device *d = cuda_host_device();
    const double limit = 2;
    double squares[N], *on = wf_device_alloc(d, sizeof squares), sum = 0;
    wf_clip_limits limits = {0};
    wf_clip_segment of[N];
    float *host[N];
    wf_stream *s = NULL;
    wf_opt opt;
    wf_err err;

    (void)state;
    assert_int_equal(wf_stream_new(d, &s, &err), WF_OK);
    assert_int_equal(wf_opt_init(&opt, "sgd", 0, NULL, NULL, NULL), WF_OK);
    opt.shared[WF_OPT_GLOBAL_CLIPNORM] = limit;
    for (uint32_t i = 0; i < N; i++) {
        host[i] = malloc(size_of(i) * sizeof(float) + 1);
        of[i] = (wf_clip_segment){size_of(i), wf_device_alloc(d, size_of(i) * sizeof(float)),
                                  wf_device_alloc(d, wf_clip_scratch(size_of(i)) * sizeof(double))};
        for (uint64_t k = 0; k < size_of(i); k++)
            host[i][k] = value(i, k);
        assert_int_equal(
            wf_stream_copy(s, WF_COPY_IN, of[i].g, host[i], of[i].n * sizeof(float), &err), WF_OK);
    }
    memset(squares, 0xff, sizeof squares);
    assert_int_equal(wf_stream_copy(s, WF_COPY_IN, on, squares, sizeof squares, &err), WF_OK);
    assert_int_equal(wf_updates_of(d)->squares(s, on, N, of, &err), WF_OK);
    assert_int_equal(wf_stream_copy(s, WF_COPY_OUT, squares, on, sizeof squares, &err), WF_OK);
    assert_int_equal(wf_stream_wait(s, &err), WF_OK);
    for (uint32_t i = 0; i < N; i++) {
        assert_true(size_of(i) ? squares[i] > 0 : squares[i] == 0);
        sum += squares[i];
    }
    limits.by = (float)(limit / sqrt(sum));
    assert_int_equal(wf_updates_of(d)->clip(s, &limits, NULL, N, of, &err), WF_OK);
    clip_on_host(&opt, host);
    for (uint32_t i = 0; i < N; i++) {
        float *got = malloc(size_of(i) * sizeof(float) + 1);

        assert_int_equal(
            wf_stream_copy(s, WF_COPY_OUT, got, of[i].g, of[i].n * sizeof(float), &err), WF_OK);
        assert_int_equal(wf_stream_wait(s, &err), WF_OK);
        assert_memory_equal(got, host[i], size_of(i) * sizeof(float));
        free(got);
        free(host[i]);
        wf_device_free(d, of[i].g);
        wf_device_free(d, of[i].scratch);
    }
    wf_stream_free(&s);
    wf_device_free(d, on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clipping_has_the_bits_of_the_host),
        cmocka_unit_test(sums_and_factors_have_the_bits_of_the_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
