/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cudnn.c - weft's graphs before the real cuDNN, which needs no GPU to describe, to
 * choose and to plan, if it is told what the GPU is like; nothing is executed. Skips where
 * libcudnn.so.9 is missing, or does not know the description of a GPU below (it is that of
 * cuDNN 9.19).
 *
 * Kernels of attention and of normalisation are compiled for a plan, and loaded by the driver:
 * without one cuDNN names the engines that know the graph, if it finds a libcuda.so.1, which the
 * toolkit's stub may be.
 */
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/kernels/cuda/calls_real.h"
#include "common/kernels/cuda/dnn/attention.h"
#include "common/kernels/cuda/dnn/choose.h"
#include "common/kernels/cuda/dnn/convolution.h"
#include "common/kernels/cuda/dnn/norm.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What stands for the handle that a GPU would have. */
enum {
    PROPERTIES = 38,
    IS_CHAR = 24,
    PROPERTIES_JSON = 2702,
    HEURISTIC_PROPERTIES = 204,
    PLAN_PROPERTIES = 407,
    SKIPPED = 77
};

static const char h100[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":85000000000,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800,\"cudaDeviceId\":0,\"deviceVer\":900,"
    "\"driverVer\":13000,\"deviceName\":\"NVIDIA H100\"}";

static wf_cuda_descriptor *properties;

static int set(wf_cuda_descriptor *d, int attribute, int type, int64_t n, const void *values)
{
    int error;

    if (attribute == WF_DNN_GRAPH_HANDLE)
        return 0;
    if (attribute == WF_DNN_PLAN_HANDLE)
        return wf_cuda_real_dnn_set(d, PLAN_PROPERTIES, WF_DNN_IS_DESCRIPTOR, 1, &properties);
    error = wf_cuda_real_dnn_set(d, attribute, type, n, values);
    if (error == 0 && attribute == WF_DNN_HEURISTIC_GRAPH)
        error = wf_cuda_real_dnn_set(d, HEURISTIC_PROPERTIES, WF_DNN_IS_DESCRIPTOR, 1, &properties);
    return error;
}

static const wf_cuda_calls calls = {.dnn_make = wf_cuda_real_dnn_make,
                                    .dnn_unmake = wf_cuda_real_dnn_unmake,
                                    .dnn_set = set,
                                    .dnn_get = wf_cuda_real_dnn_get,
                                    .dnn_finish = wf_cuda_real_dnn_finish};

static bool has_cudnn(void)
{
    wf_cuda_dnn *dnn = NULL;
    int error = wf_cuda_real_dnn_new(&dnn);

    if (error == WF_CUDA_NO_DNN)
        return false;
    if (error == 0) /* this host has a GPU, which the tests do not use */
        (void)wf_cuda_real_dnn_free(dnn);
    return wf_cuda_real_dnn_make(PROPERTIES, &properties) == 0 &&
           wf_cuda_real_dnn_set(properties, PROPERTIES_JSON, IS_CHAR, sizeof h100, h100) == 0 &&
           wf_cuda_real_dnn_finish(properties) == 0;
}

/* Windows of layers as models have them. */
static const wf_dnn_conv cases[] = {
    /* 3 x 3 */
    {.batch = 32,
     .groups = 1,
     .c = 64,
     .m = 64,
     .axes = 2,
     .in = {28, 28},
     .out = {28, 28},
     .kernel = {3, 3},
     .stride = {1, 1},
     .dilation = {1, 1},
     .before = {1, 1},
     .after = {1, 1}},
    /* the first of a residual network */
    {.batch = 32,
     .groups = 1,
     .c = 3,
     .m = 64,
     .axes = 2,
     .in = {224, 224},
     .out = {112, 112},
     .kernel = {7, 7},
     .stride = {2, 2},
     .dilation = {1, 1},
     .before = {3, 3},
     .after = {3, 3}},
    /* along one axis, dilated, with padding in front alone */
    {.batch = 8,
     .groups = 1,
     .c = 32,
     .m = 32,
     .axes = 2,
     .in = {1, 100},
     .out = {1, 100},
     .kernel = {1, 3},
     .stride = {1, 1},
     .dilation = {1, 4},
     .before = {0, 8},
     .after = {0, 0}},
    /* depthwise */
    {.batch = 32,
     .groups = 96,
     .c = 1,
     .m = 1,
     .axes = 2,
     .in = {56, 56},
     .out = {28, 28},
     .kernel = {3, 3},
     .stride = {2, 2},
     .dilation = {1, 1},
     .before = {1, 1},
     .after = {1, 1}},
    /* groups, and paddings that differ */
    {.batch = 32,
     .groups = 2,
     .c = 32,
     .m = 32,
     .axes = 2,
     .in = {28, 28},
     .out = {14, 28},
     .kernel = {3, 3},
     .stride = {2, 1},
     .dilation = {1, 1},
     .before = {1, 1},
     .after = {0, 1}},
    /* in space */
    {.batch = 4,
     .groups = 1,
     .c = 16,
     .m = 32,
     .axes = 3,
     .in = {16, 28, 28},
     .out = {16, 28, 28},
     .kernel = {3, 3, 3},
     .stride = {1, 1, 1},
     .dilation = {1, 1, 1},
     .before = {1, 1, 1},
     .after = {1, 1, 1}},
};

/* Whether an engine computes it; a failure of cuDNN is one of the test. */
static bool is_chosen(const wf_dnn_conv *c)
{
    wf_dnn_graph g;
    wf_dnn_plan p = {0};
    bool chosen;
    const wf_dnn_asked asked = wf_dnn_ask_conv(c);
    int error = asked.build(&calls, NULL, c, &g);
    unsigned n = 0;

    if (error == 0)
        error = wf_dnn_choose(&calls, NULL, &g, asked.rounding, &(wf_dnn_wish){.most = 1}, &p, &n);
    if (error != 0 && !(error >= WF_CUDA_DNN_REFUSES && error < WF_CUDA_DNN_REFUSES + 1000))
        fail_msg("pass %d of %d channels: %s", (int)c->pass, (int)c->c,
                 wf_cuda_real_dnn_error_string(error));
    chosen = p.plan != NULL;
    assert_true(p.workspace <= WF_DNN_MOST_WORKSPACE);
    wf_dnn_plan_free(&p);
    wf_dnn_graph_free(&g);
    return chosen;
}

static void cudnn_computes_what_models_have(void **state)
{
    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++)
        for (int64_t pass = WF_CONV_FORWARD; pass <= WF_CONV_WEIGHTS; pass++)
            for (int allowed = 0; allowed < WF_COMPUTES + 2; allowed++) {
                wf_dnn_conv c = cases[i];

                c.pass = pass;
                c.dtype = allowed == WF_COMPUTES       ? WF_BF16
                          : allowed == WF_COMPUTES + 1 ? WF_F16
                                                       : WF_F32;
                c.compute = c.dtype == WF_F32 ? allowed : WF_COMPUTE_F32;
                if (!is_chosen(&c))
                    fail_msg("case %d, pass %d, %d: no engine", (int)i, (int)pass, allowed);
            }
}

/* cuDNN may refuse them; but it does not take them for mistakes. */
static void a_bias_and_f64_are_described_as_it_wants_them(void **state)
{
    int n = 0, with_bias = 0;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++)
        for (int64_t pass = WF_CONV_FORWARD; pass <= WF_CONV_WEIGHTS; pass++) {
            wf_dnn_conv c = cases[i];

            c.pass = pass;
            c.dtype = WF_F64;
            n += is_chosen(&c);
            c.adds_bias = pass != WF_CONV_WEIGHTS;
            c.dtype = WF_F32;
            with_bias += c.adds_bias && is_chosen(&c);
        }
    print_message("f64: %d, with a bias: %d\n", n, with_bias);
    assert_true(n > 0 && with_bias > 0);
}

static bool compiles(wf_cuda_descriptor *engine)
{
    int32_t behaviours[WF_DNN_NOTES];
    int64_t got = 0;
    bool found = false;

    assert_int_equal(calls.dnn_get(engine, WF_DNN_ENGINE_BEHAVIOURS, WF_DNN_IS_BEHAVIOUR,
                                   WF_DNN_NOTES, &got, behaviours),
                     0);
    for (int64_t k = 0; k < got; k++)
        found = found || behaviours[k] == WF_DNN_BEHAVIOUR_COMPILES;
    return found;
}

/* Engines that mode A of the heuristics names for a graph, all of which cuDNN compiles; false in
 * *same: the results of one differ from run to run. */
static int64_t named(const wf_dnn_graph *g, bool *same)
{
    enum { MOST = 16 };
    wf_cuda_descriptor *heuristic = NULL, *configs[MOST] = {NULL}, *engine;
    const int32_t mode = WF_DNN_MODE_A;
    int64_t n = 0, filled = 0;

    assert_int_equal(calls.dnn_make(WF_DNN_HEURISTIC, &heuristic), 0);
    assert_int_equal(set(heuristic, WF_DNN_HEURISTIC_GRAPH, WF_DNN_IS_DESCRIPTOR, 1, &g->graph), 0);
    assert_int_equal(set(heuristic, WF_DNN_HEURISTIC_MODE, WF_DNN_IS_HEUR_MODE, 1, &mode), 0);
    if (calls.dnn_finish(heuristic) == 0 &&
        calls.dnn_get(heuristic, WF_DNN_HEURISTIC_RESULTS, WF_DNN_IS_DESCRIPTOR, 0, &n, NULL) == 0)
        n = WF_MIN(n, (int64_t)MOST);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(calls.dnn_make(WF_DNN_CONFIG, &configs[i]), 0);
    if (n > 0)
        assert_int_equal(calls.dnn_get(heuristic, WF_DNN_HEURISTIC_RESULTS, WF_DNN_IS_DESCRIPTOR, n,
                                       &filled, configs),
                         0);
    for (int64_t i = 0; i < filled; i++) {
        int32_t notes[WF_DNN_NOTES];
        int64_t got = 0;

        assert_int_equal(calls.dnn_make(WF_DNN_ENGINE, &engine), 0);
        assert_int_equal(
            calls.dnn_get(configs[i], WF_DNN_CONFIG_ENGINE, WF_DNN_IS_DESCRIPTOR, 1, &got, &engine),
            0);
        assert_int_equal(
            calls.dnn_get(engine, WF_DNN_ENGINE_NOTES, WF_DNN_IS_NOTE, WF_DNN_NOTES, &got, notes),
            0);
        for (int64_t k = 0; k < got; k++)
            *same = *same && notes[k] != WF_DNN_NOTE_NONDETERMINISTIC;
        assert_true(compiles(engine));
        (void)calls.dnn_unmake(engine);
    }
    for (int64_t i = 0; i < n; i++)
        (void)calls.dnn_unmake(configs[i]);
    (void)calls.dnn_unmake(heuristic);
    return filled;
}

/* That the heuristics name engines for a case, and none whose results differ from run to run. */
static void assert_recognised(const wf_dnn_asked *asked, const char *what, size_t i)
{
    bool same = true;
    wf_dnn_graph g;

    assert_int_equal(asked->build(&calls, NULL, asked->of, &g), 0);
    if (named(&g, &same) == 0)
        fail_msg("%s %d: no engine", what, (int)i);
    assert_true(same);
    wf_dnn_graph_free(&g);
}

static void need_driver(void)
{
    if (dlopen("libcuda.so.1", RTLD_NOW))
        return;
    print_message("no libcuda.so.1: not looked at\n");
    skip();
}

static void attention_is_recognised(void **state)
{
    static const wf_dnn_attention attentions[] = {
        {.groups = 1,
         .heads = 96,
         .side = 1,
         .t = 1024,
         .s = 1024,
         .d = 64,
         .e = 64,
         .scale = 0.125},
        {.groups = 1,
         .heads = 96,
         .side = 1,
         .t = 1024,
         .s = 1024,
         .d = 64,
         .e = 64,
         .scale = 0.125,
         .causal = 1},
        {.groups = 1,
         .heads = 24,
         .side = 1,
         .t = 200,
         .s = 333,
         .d = 32,
         .e = 32,
         .scale = 1,
         .adds_mask = 1},
        {.groups = 1,
         .heads = 7,
         .side = 1,
         .t = 77,
         .s = 77,
         .d = 128,
         .e = 128,
         .scale = 1,
         .causal = 1},
        {.groups = 8,
         .heads = 12,
         .side = 12,
         .t = 1024,
         .s = 1024,
         .d = 64,
         .e = 64,
         .scale = 0.125,
         .causal = 1},
        {.groups = 4,
         .heads = 6,
         .side = 6,
         .t = 200,
         .s = 333,
         .d = 32,
         .e = 32,
         .scale = 1,
         .adds_mask = 1},
        {.groups = 1, .heads = 2, .side = 8, .t = 77, .s = 77, .d = 128, .e = 128, .scale = 1},
    };

    (void)state;
    need_driver();
    for (size_t i = 0; i < 2 * WF_COUNT(attentions); i++) {
        wf_dnn_attention a = attentions[i / 2];
        const wf_dnn_asked asked = wf_dnn_ask_attention(&a);

        a.dtype = i % 2 ? WF_F16 : WF_BF16;
        assert_recognised(&asked, "attention", i);
        a.is_grad = 1;
        assert_recognised(&asked, "gradient of attention", i);
    }
}

/* Of channels that are 16 bytes together, or several times that: cuDNN 9.19 has no engine for
 * others, which are left to weft's own kernels. */
static void normalisation_is_recognised(void **state)
{
    static const wf_dtype types[] = {WF_F32, WF_BF16, WF_F16};
    static const wf_dnn_norm norms[] = {
        {.batch = 64, .channels = 64, .inner = 112 * 112, .epsilon = 1e-3},
        {.batch = 64, .channels = 2048, .inner = 49, .epsilon = 1e-5},
        {.batch = 128, .channels = 100, .inner = 1, .epsilon = 1e-3},
        {.batch = 16, .channels = 24, .inner = 50, .epsilon = 1e-3},
    };

    (void)state;
    need_driver();
    for (size_t i = 0; i < WF_COUNT(types) * WF_COUNT(norms); i++) {
        wf_dnn_norm n = norms[i / WF_COUNT(types)];
        const wf_dnn_asked asked = wf_dnn_ask_norm(&n);

        n.dtype = types[i % WF_COUNT(types)];
        if (n.channels % (n.dtype == WF_F32 ? 4 : 8) != 0)
            continue;
        assert_recognised(&asked, "normalisation", i);
        n.is_grad = 1;
        assert_recognised(&asked, "gradient of normalisation", i);
    }
}

/* Plans of a graph, with their names. */
static unsigned plans_of(const wf_dnn_graph *g, wf_dnn_rounding may, const wf_tune_name *only,
                         unsigned most, wf_dnn_plan plans[])
{
    const wf_dnn_wish wish = {.most = most, .named = true, .only = only};
    unsigned n = 0;

    assert_int_equal(wf_dnn_choose(&calls, NULL, g, may, &wish, plans, &n), 0);
    for (unsigned i = 0; i < n; i++)
        wf_dnn_plan_free(&plans[i]);
    return n;
}

/* The same engine has the same name whenever it is asked for, and others have others. */
static void engines_have_names(void **state)
{
    unsigned several = 0;

    (void)state;
    for (int64_t pass = WF_CONV_FORWARD; pass <= WF_CONV_WEIGHTS; pass++) {
        wf_dnn_plan plans[WF_TUNE_MOST], again[WF_TUNE_MOST], one;
        wf_dnn_conv c = cases[0];
        wf_dnn_asked asked;
        wf_dnn_graph g;
        unsigned n;

        c.pass = pass;
        c.dtype = WF_F32;
        c.compute = WF_COMPUTE_TF32;
        asked = wf_dnn_ask_conv(&c);
        assert_int_equal(asked.build(&calls, NULL, &c, &g), 0);
        n = plans_of(&g, asked.rounding, NULL, WF_TUNE_MOST, plans);
        assert_int_equal(plans_of(&g, asked.rounding, NULL, WF_TUNE_MOST, again), n);
        several += n > 1;
        for (unsigned i = 0; i < n; i++) {
            assert_memory_equal(&plans[i].name, &again[i].name, sizeof plans[i].name);
            for (unsigned k = 0; k < i; k++)
                assert_memory_not_equal(&plans[i].name, &plans[k].name, sizeof plans[i].name);
            assert_int_equal(plans_of(&g, asked.rounding, &plans[i].name, 1, &one), 1);
            assert_memory_equal(&plans[i].name, &one.name, sizeof one.name);
            assert_int_equal(plans[i].workspace, one.workspace);
        }
        wf_dnn_graph_free(&g);
    }
    assert_true(several > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cudnn_computes_what_models_have),
        cmocka_unit_test(engines_have_names),
        cmocka_unit_test(a_bias_and_f64_are_described_as_it_wants_them),
        cmocka_unit_test(attention_is_recognised),
        cmocka_unit_test(normalisation_is_recognised),
    };
    int failed;

    if (!has_cudnn()) {
        puts("skipped: libcudnn.so.9 is missing, or of a release that this test does not know");
        return SKIPPED;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)wf_cuda_real_dnn_unmake(properties);
    return failed;
}
