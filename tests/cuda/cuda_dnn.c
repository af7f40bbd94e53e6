/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_dnn.c - convolutions by cuDNN, over the host's: which operations go through it,
 * what is asked once, what happens where it is missing, refuses or fails. */
#include "common/base/cc.h"
#include "common/base/file.h"
#include "common/exec/exec.h"
#include "common/kernels/cuda/dnn/attention.h"
#include "common/kernels/cuda/dnn/convolution.h"
#include "common/kernels/cuda/dnn/norm.h"
#include "common/kernels/cuda/dnn/way.h"
#include "common/log/log.h"
#include "tests/cuda/ending.h"
#include "tests/cuda/host.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <stdlib.h>

enum { N = 64, BYTES = N * sizeof(float), SEEDS = 64 };

static wf_err err;
static wf_cuda_gpu *gpu;
static size_t objects; /* before a test */
static char folder[] = "/tmp/weft-cuda-dnn-XXXXXX";

static int on_entry(void **state)
{
    (void)state;
    cuda_host_fail(NULL, 0, 0);
    cuda_host_dnn(CUDA_HOST_DNN_PRESENT);
    err = (wf_err){0};
    objects = cuda_host_count().objects;
    (void)!wf_remove_tree(folder, NULL);
    return wf_cuda_open(&wf_cuda_host, "cuda-dnn", 0, &gpu, &err) == WF_OK ? 0 : -1;
}

/* All is given back with the GPU. */
static int on_exit_of_test(void **state)
{
    (void)state;
    cuda_host_fail(NULL, 0, 0);
    wf_cuda_close(&gpu);
    return cuda_host_count().objects == objects ? 0 : -1;
}

/* One image of N points, each times the one weight. */
static wf_dnn_conv a_case(void)
{
    return (wf_dnn_conv){.pass = WF_CONV_FORWARD,
                         .dtype = WF_F32,
                         .batch = 1,
                         .groups = 1,
                         .c = 1,
                         .m = 1,
                         .axes = 2,
                         .in = {1, N},
                         .out = {1, N},
                         .kernel = {1, 1},
                         .stride = {1, 1},
                         .dilation = {1, 1}};
}

/* A way for it, or NULL; *workspace: what it wants. */
static wf_dnn_way *way_of(const wf_dnn_conv *c, size_t *workspace)
{
    wf_prep prep = {.device = &gpu->base};
    wf_dnn_way *w = NULL;
    const wf_dnn_asked asked = wf_dnn_ask_conv(c);

    assert_ok(wf_dnn_way_new(&prep, &asked, &w, &err), err);
    if (workspace)
        *workspace = prep.workspace_bytes;
    return w;
}

static size_t asked(void)
{
    return cuda_host_count().dnn_asked;
}

/* ---- what is chosen ---- */

static void equal_layers_ask_once(void **state)
{
    wf_dnn_conv c = a_case();
    wf_dnn_way *first = way_of(&c, NULL), *second;
    size_t before = asked();

    (void)state;
    assert_non_null(first);
    second = way_of(&c, NULL);
    assert_non_null(second);
    assert_int_equal(asked(), before);
    wf_dnn_way_free(first);
    wf_dnn_way_free(second);
    wf_dnn_way_free(way_of(&c, NULL));
    assert_int_equal(asked(), before);
    c.compute = WF_COMPUTE_BF16;
    wf_dnn_way_free(way_of(&c, NULL));
    assert_true(asked() > before);
    before = asked();
    c.batch = 2;
    wf_dnn_way_free(way_of(&c, NULL));
    assert_true(asked() > before);
}

/* A job whose shapes are ever new does not fill memory with choices; those in use are kept. */
static void choices_that_nothing_uses_are_dropped(void **state)
{
    wf_dnn_conv c = a_case(), kept = a_case();
    wf_dnn_way *w = way_of(&kept, NULL);
    size_t most = 0, before;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        c.batch = 2 + i;
        wf_dnn_way_free(way_of(&c, NULL));
        if (i == 500)
            most = cuda_host_count().objects;
    }
    assert_true(cuda_host_count().objects <= most + most / 8);
    before = asked();
    wf_dnn_way_free(way_of(&kept, NULL));
    assert_int_equal(asked(), before);
    wf_dnn_way_free(w);
}

static void give_back(const wf_dnn_asked *asked)
{
    wf_cuda_dnn *dnn = NULL;
    wf_dnn_graph g;

    assert_int_equal(wf_cuda_host.dnn_new(&dnn), 0);
    assert_int_equal(asked->build(&wf_cuda_host, dnn, asked->of, &g), 0);
    wf_dnn_graph_free(&g);
    assert_int_equal(wf_cuda_host.dnn_free(dnn), 0);
}

/* What another refers to must not be given back before it: the host ends the program. */
static void graphs_are_given_back_in_order(void **state)
{
    (void)state;
    for (int64_t which = 0; which < 2; which++) {
        wf_dnn_norm norm = {
            .is_grad = which, .batch = 2, .channels = 3, .inner = 4, .epsilon = 1e-3};
        wf_dnn_attention a = {.is_grad = which,
                              .dtype = WF_BF16,
                              .groups = 1,
                              .heads = 2,
                              .side = 1,
                              .t = 3,
                              .s = 4,
                              .d = 8,
                              .e = 8,
                              .scale = 1};
        wf_dnn_conv c = a_case();
        wf_dnn_asked asked[] = {wf_dnn_ask_norm(&norm), wf_dnn_ask_attention(&a),
                                wf_dnn_ask_conv(&c)};

        c.adds_bias = which;
        for (size_t i = 0; i < WF_COUNT(asked); i++)
            give_back(&asked[i]);
    }
}

/* The result of a way for inputs of 1.01 and a weight of 1. */
static float run_once(wf_dnn_way *w, size_t workspace)
{
    wf_run run = {.device = &gpu->base};
    float ones[N], *memory = wf_device_alloc(&gpu->base, 3 * BYTES);
    const void *tensors[WF_DNN_TENSORS] = {memory, memory + N, memory + 2 * (size_t)N, NULL};

    for (int i = 0; i < N; i++)
        ones[i] = 1.01f;
    run.workspace = wf_device_alloc(&gpu->base, workspace);
    assert_ok(wf_stream_new(&gpu->base, &run.stream, &err), err);
    assert_ok(wf_stream_copy(run.stream, WF_COPY_IN, memory, ones, BYTES, &err), err);
    ones[0] = 1;
    assert_ok(wf_stream_copy(run.stream, WF_COPY_IN, memory + N, ones, BYTES, &err), err);
    assert_ok(wf_dnn_way_go(w, &run, tensors, &err), err);
    assert_ok(wf_stream_copy(run.stream, WF_COPY_OUT, ones, tensors[WF_DNN_Y], BYTES, &err), err);
    assert_ok(wf_stream_wait(run.stream, &err), err);
    wf_stream_free(&run.stream);
    wf_device_free(&gpu->base, run.workspace);
    wf_device_free(&gpu->base, memory);
    return ones[N - 1];
}

/* The host's first engine may round, and may not be deterministic, which ends the program. */
static void engines_keep_what_weft_promises(void **state)
{
    int rounded[WF_COMPUTES] = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (int allowed = WF_COMPUTE_F32; allowed < WF_COMPUTES; allowed++) {
            wf_dnn_conv c = a_case();
            size_t workspace;
            wf_dnn_way *w;
            float got;

            cuda_host_seed(seed);
            c.compute = allowed;
            c.dilation[0] = (int64_t)seed; /* of one tap: another case, and nothing else */
            w = way_of(&c, &workspace);
            assert_non_null(w);
            assert_true(workspace <= (size_t)256 << 20);
            got = run_once(w, workspace);
            wf_dnn_way_free(w);
            if (allowed == WF_COMPUTE_F32)
                assert_true(got == 1.01f);
            if (allowed == WF_COMPUTE_TF32 || allowed == WF_COMPUTE_F16)
                assert_true(got > 1.01f - 0x1p-10f);
            rounded[allowed] += got != 1.01f;
        }
    for (int allowed = WF_COMPUTE_F32 + 1; allowed < WF_COMPUTES; allowed++)
        assert_in_range(rounded[allowed], 1, SEEDS - 1);
}

/* ---- by their times ---- */

/* What the chosen engine takes for the case, and in *measured whether engines were run to choose
 * it. Engines come by the seed, the same as long as they are asked for in the same order. */
static double time_of(uint64_t seed, bool untimed, bool *measured)
{
    wf_prep prep = {.device = &gpu->base, .untimed = untimed};
    const size_t before = cuda_host_count().dnn_executed;
    wf_dnn_conv c = a_case();
    wf_dnn_asked asked;
    wf_dnn_way *w = NULL;
    double ms;

    c.compute = WF_COMPUTE_BF16; /* more engines may be taken */
    asked = wf_dnn_ask_conv(&c);
    cuda_host_seed(seed);
    assert_ok(wf_dnn_way_new(&prep, &asked, &w, &err), err);
    assert_non_null(w);
    *measured = cuda_host_count().dnn_executed > before;
    ms = cuda_host_count().ms;
    assert_true(fabsf(run_once(w, prep.workspace_bytes) - 1.01f) < 0x1p-7f);
    wf_dnn_way_free(w);
    return cuda_host_count().ms - ms;
}

static void begin_process(void)
{
    wf_cuda_close(&gpu);
    assert_ok(wf_cuda_open(&wf_cuda_host, "cuda-dnn", 0, &gpu, &err), err);
}

/* And never one that is not deterministic, which ends the program. */
static void the_fastest_engine_is_taken_and_kept(void **state)
{
    unsigned raced = 0, faster = 0, kept = 0; /* mostly one engine alone is left */

    (void)state;
    for (uint64_t seed = 1; seed <= 2 * SEEDS; seed++) {
        double first, took, again;
        bool measured;

        (void)!wf_remove_tree(folder, NULL);
        begin_process();
        first = time_of(seed, true, &measured);
        assert_false(measured);
        took = time_of(seed, false, &measured);
        assert_true(took <= first && (measured || took == first));
        faster += took < first;
        if (!measured)
            continue;
        raced++;
        assert_true(time_of(seed + 1000, true, &measured) > 0 && !measured); /* of this process */
        begin_process();
        again = time_of(seed, false, &measured);
        assert_true(measured || again == took); /* unless it is not offered any more */
        kept += !measured;
    }
    assert_true(raced > 16 && faster > 8 && kept > raced / 2);
}

/* The workspace of a way for a plan that is made so, with the random numbers of a seed. */
static size_t workspace_by(const wf_dnn_conv *c, uint64_t seed, bool untimed, bool takes_any)
{
    wf_prep prep = {.device = &gpu->base, .untimed = untimed, .takes_any = takes_any};
    const wf_dnn_asked asked = wf_dnn_ask_conv(c);
    wf_dnn_way *w = NULL;

    cuda_host_seed(seed);
    assert_ok(wf_dnn_way_new(&prep, &asked, &w, &err), err);
    wf_dnn_way_free(w);
    return prep.workspace_bytes;
}

/* A plan that is measured says what it may take when it is run, whichever engine is the fastest. */
static void a_measured_plan_has_room_for_any(void **state)
{
    int more = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        wf_dnn_conv c = a_case();
        size_t first, any, timed;

        c.batch = 100 + (int64_t)seed;
        first = workspace_by(&c, seed, true, false);
        any = workspace_by(&c, seed, true, true);
        timed = workspace_by(&c, seed, false, false);
        assert_true(any >= first && any >= timed);
        more += any > first;
    }
    assert_true(more > 0);
}

/* ---- where it does not compute ---- */

static void a_host_may_have_none(void **state)
{
    wf_dnn_conv c = a_case();
    size_t before = asked();

    (void)state;
    cuda_host_dnn(CUDA_HOST_DNN_MISSING);
    assert_null(way_of(&c, NULL));
    cuda_host_dnn(CUDA_HOST_DNN_PRESENT); /* it is looked for once */
    assert_null(way_of(&c, NULL));
    assert_int_equal(asked(), before);
}

static void a_refusal_is_remembered(void **state)
{
    wf_dnn_conv c = a_case();
    size_t before = asked();

    (void)state;
    cuda_host_dnn(CUDA_HOST_DNN_REFUSES);
    assert_null(way_of(&c, NULL));
    assert_int_equal(asked(), before + 2); /* both modes */
    cuda_host_dnn(CUDA_HOST_DNN_PRESENT);
    assert_null(way_of(&c, NULL));
    assert_int_equal(asked(), before + 2);
}

/* Whichever call fails, and in whatever place: another engine computes, or weft does, and nothing
 * is left behind. */
static void a_failure_while_choosing_is_a_refusal(void **state)
{
    static const char *const calls[] = {"dnn_make", "dnn_set", "dnn_get", "dnn_finish"};
    static const int errors[] = {WF_CUDA_DNN_REFUSES + 5, WF_CUDA_OF_DNN + 4003};
    wf_dnn_conv c = a_case();
    int refused = 0, chosen = 0;

    (void)state;
    c.adds_bias = 1;
    for (size_t k = 0; k < WF_COUNT(calls) * WF_COUNT(errors); k++)
        for (int after = 0; after < 70; after++) {
            wf_dnn_way *w;

            c.batch++;
            cuda_host_fail(calls[k / 2], after, errors[k % 2]);
            w = way_of(&c, NULL);
            cuda_host_fail(NULL, 0, 0);
            refused += w == NULL;
            chosen += w != NULL;
            wf_dnn_way_free(w);
        }
    assert_true(refused > 0 && chosen > 0);
}

static void a_gpu_that_fails_is_said_so(void **state)
{
    wf_prep prep = {.device = &gpu->base};
    const wf_dnn_conv c = a_case();
    const wf_dnn_asked asked = wf_dnn_ask_conv(&c);
    wf_dnn_way *w = NULL;

    (void)state;
    cuda_host_fail("use", 0, 719);
    assert_int_equal(wf_dnn_way_new(&prep, &asked, &w, &err), WF_BROKEN);
    assert_says(err, "719");
    assert_null(w);
}

static void an_execution_that_fails_is_said_so(void **state)
{
    static const char *const calls[] = {"dnn_make",   "dnn_set",     "dnn_finish",
                                        "dnn_stream", "dnn_execute", "use"};
    const void *tensors[WF_DNN_TENSORS] = {NULL};
    wf_dnn_conv c = a_case();
    size_t workspace;
    wf_dnn_way *w = way_of(&c, &workspace);
    wf_run run = {.device = &gpu->base};

    (void)state;
    assert_ok(wf_stream_new(&gpu->base, &run.stream, &err), err);
    for (size_t k = 0; k < WF_COUNT(calls); k++) {
        tensors[WF_DNN_X] = calls[k]; /* other addresses than before */
        cuda_host_fail(calls[k], 0, WF_CUDA_OF_DNN + 5000);
        assert_int_equal(wf_dnn_way_go(w, &run, tensors, &err), WF_BROKEN);
        assert_says(err, "25000");
    }
    wf_stream_free(&run.stream);
    assert_true(run_once(w, workspace) == 1.01f); /* it computes all the same */
    wf_dnn_way_free(w);
}

/* ---- what the host finds ---- */

static wf_cuda_descriptor *made(int kind)
{
    wf_cuda_descriptor *d = NULL;

    (void)wf_cuda_host.dnn_make(kind, &d);
    return d;
}

static void lack_an_attribute(void)
{
    (void)wf_cuda_host.dnn_finish(made(WF_DNN_TENSOR));
}

static void give_another_type(void)
{
    const int64_t id = 1;

    (void)wf_cuda_host.dnn_set(made(WF_DNN_TENSOR), WF_DNN_TENSOR_ID, WF_DNN_IS_FLOAT, 1, &id);
}

static void give_too_many(void)
{
    const int64_t ids[] = {1, 2};

    (void)wf_cuda_host.dnn_set(made(WF_DNN_TENSOR), WF_DNN_TENSOR_ID, WF_DNN_IS_INT64, 2, ids);
}

static void refer_to_what_is_not_finished(void)
{
    wf_cuda_descriptor *graph = made(WF_DNN_GRAPH);

    (void)wf_cuda_host.dnn_set(made(WF_DNN_HEURISTIC), WF_DNN_HEURISTIC_GRAPH, WF_DNN_IS_DESCRIPTOR,
                               1, &graph);
}

static void miss_the_output(void)
{
    wf_dnn_conv c = a_case();

    c.out[1]--;
    (void)way_of(&c, NULL);
}

static void take_other_memory(void)
{
    _Alignas(64) float here[N];
    const void *tensors[WF_DNN_TENSORS] = {here, here, here, NULL};
    wf_dnn_conv c = a_case();
    size_t workspace;
    wf_dnn_way *w = way_of(&c, &workspace);
    wf_run run = {.device = &gpu->base};

    run.workspace = wf_device_alloc(&gpu->base, workspace);
    (void)!wf_stream_new(&gpu->base, &run.stream, &err);
    (void)!wf_dnn_way_go(w, &run, tensors, &err);
}

static void bring_no_workspace(void)
{
    const wf_dnn_conv c = a_case();
    const void *tensors[WF_DNN_TENSORS] = {NULL};
    wf_run run = {.device = &gpu->base};
    size_t workspace = 0;
    wf_dnn_way *w = NULL;

    (void)!wf_stream_new(&gpu->base, &run.stream, &err);
    for (wf_dnn_conv other = c; workspace == 0; other.batch++)
        w = way_of(&other, &workspace);
    run.workspace = wf_device_alloc(&gpu->base, workspace / 2);
    (void)!wf_dnn_way_go(w, &run, tensors, &err);
}

static void mistakes_are_found_and_named(void **state)
{
    static const struct {
        void (*act)(void);
        const char *said;
    } rows[] = {{lack_an_attribute, "a descriptor that lacks an attribute"},
                {give_another_type, "an attribute of another type"},
                {give_too_many, "another number of values than an attribute has"},
                {refer_to_what_is_not_finished, "a descriptor that is not finished"},
                {miss_the_output, "a window that does not lead from the input to the output"},
                {take_other_memory, "a tensor that is not in memory of the device"},
                {bring_no_workspace, "a workspace that is too small"}};
    char said[SAID];

    (void)state;
    for (size_t r = 0; r < WF_COUNT(rows); r++) {
        assert_int_equal(ends_by(rows[r].act, said), SIGABRT);
        if (!strstr(said, rows[r].said))
            fail_msg("\"%s\" is not \"%s\"", said, rows[r].said);
    }
}

/* ---- operations ---- */

typedef struct operation {
    const char *op;
    uint32_t rank, n_in;
    int64_t in[3][5];
    int64_t strides[3], pads[6], dilations[3], group;
} operation;

/* Gradients have what they are of as their last input. */
static const operation operations[] = {
    {"Conv", 4, 2, {{2, 4, 9, 8}, {6, 2, 3, 3}}, {2, 1}, {1, 0, 0, 1}, {1, 2}, 2},
    {"Conv", 4, 3, {{2, 3, 6, 6}, {4, 3, 3, 3}, {4}}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
    {"Conv", 3, 3, {{2, 3, 7}, {4, 3, 2}, {4}}, {3}, {0, 1}, {2}, 1},
    {"Conv", 5, 2, {{1, 2, 4, 5, 3}, {2, 1, 2, 2, 3}}, {1, 2, 1}, {1, 0, 1, 0, 1, 1}, {1, 1, 1}, 2},
    {"ConvDataGrad",
     4,
     3,
     {{1, 2, 5, 5}, {2, 3, 3, 3}, {1, 3, 5, 5}},
     {1, 1},
     {1, 1, 1, 1},
     {1, 1},
     1},
    {"ConvWeightGrad",
     4,
     3,
     {{1, 2, 3, 5}, {1, 3, 5, 5}, {2, 3, 3, 3}},
     {2, 1},
     {1, 1, 1, 1},
     {1, 1},
     1},
    {"ConvTranspose", 4, 3, {{1, 4, 3, 5}, {4, 2, 3, 2}, {2}}, {2, 1}, {1, 0, 0, 1}, {1, 1}, 1},
    {"ConvTransposeDataGrad",
     4,
     3,
     {{1, 2, 5, 6}, {4, 2, 3, 2}, {1, 4, 3, 5}},
     {2, 1},
     {1, 0, 1, 0},
     {1, 1},
     1},
    {"ConvTransposeWeightGrad",
     4,
     3,
     {{1, 2, 5, 6}, {1, 4, 3, 5}, {4, 2, 3, 2}},
     {2, 1},
     {1, 0, 1, 0},
     {1, 1},
     1},
};

static uint32_t rank_of(const operation *o, uint32_t i)
{
    return i == 2 && o->in[2][1] == 0 ? 1 : o->rank;
}

/* Computes the operation on a device; the caller frees the result, of *n elements. */
static float *compute(const operation *o, const wf_device *device, int64_t *n)
{
    const size_t axes = o->rank - 2;
    const wf_attr attrs[] = {
        wf_attr_ints("strides", axes, o->strides), wf_attr_ints("pads", 2 * axes, o->pads),
        wf_attr_ints("dilations", axes, o->dilations), wf_attr_int("group", o->group)};
    wf_graph *g = new_graph();
    wf_emit e = wf_emit_begin(g, "c", &err);
    wf_value *in[3];
    wf_plan *p = NULL;
    float *data, *result;
    wf_step_key key = {0};

    for (uint32_t i = 0; i < o->n_in; i++)
        in[i] = input(g, (const char *[]){"a", "b", "c"}[i], rank_of(o, i), o->in[i]);
    assert_ok(wf_graph_add_output(g, wf_emit_op(&e, o->op, o->n_in, in, 4, attrs), &err), err);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_plan_new(g, &(wf_plan_options){.device = device, .deterministic = true}, &p, &err),
              err);
    data = malloc(4096 * sizeof *data);
    assert_non_null(data);
    for (int i = 0; i < 4096; i++)
        data[i] = (float)(i * 37 % 64 - 31) * 0.0625f;
    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++)
        wf_plan_bind_input(p, i, data + 5 * (size_t)i);
    assert_ok(wf_plan_run(p, &key, NULL, NULL, &err), err);
    *n = wf_plan_output(p, 0)->elems;
    result = malloc((size_t)*n * sizeof *result);
    assert_non_null(result);
    memcpy(result, wf_plan_output_data(p, 0), (size_t)*n * sizeof *result);
    free(data);
    wf_plan_free(&p);
    wf_graph_free(&g);
    return result;
}

/* How often an operation was executed by cuDNN, computed as the cpu does. */
static size_t executed_by(const operation *o, const wf_device *device)
{
    const size_t before = cuda_host_count().dnn_executed;
    int64_t n, n_want;
    float *want = compute(o, &wf_cpu, &n_want), *got = compute(o, device, &n);

    assert_int_equal(n, n_want);
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i]))))
            fail_msg("%s: element %d is %g and not %g", o->op, (int)i, (double)got[i],
                     (double)want[i]);
    free(want);
    free(got);
    return cuda_host_count().dnn_executed - before;
}

/* The seeds decide about engines, refusals of a bias among them. */
static void every_convolution_goes_through_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        wf_cuda_gpu *g = NULL;
        char kind[32];

        snprintf(kind, sizeof kind, "cuda-dnn-%d", (int)seed);
        assert_ok(wf_cuda_open(&wf_cuda_host, kind, 0, &g, &err), err);
        assert_ok(wf_device_add(&g->rows, &err), err);
        cuda_host_seed(seed);
        for (size_t i = 0; i < WF_COUNT(operations); i++)
            assert_int_equal(executed_by(&operations[i], &g->base), 1);
        objects = cuda_host_count().objects - 1; /* devices stay; `gpu` goes */
    }
}

static void without_it_weft_computes(void **state)
{
    (void)state;
    cuda_host_dnn(CUDA_HOST_DNN_MISSING);
    for (size_t i = 0; i < WF_COUNT(operations); i++)
        assert_int_equal(executed_by(&operations[i], cuda_host_device()), 0);
    objects = cuda_host_count().objects - 1;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, on_entry, on_exit_of_test)
    const struct CMUnitTest tests[] = {
        TEST(equal_layers_ask_once),
        TEST(choices_that_nothing_uses_are_dropped),
        TEST(graphs_are_given_back_in_order),
        TEST(engines_keep_what_weft_promises),
        TEST(a_measured_plan_has_room_for_any),
        TEST(the_fastest_engine_is_taken_and_kept),
        TEST(a_host_may_have_none),
        TEST(a_refusal_is_remembered),
        TEST(a_failure_while_choosing_is_a_refusal),
        TEST(a_gpu_that_fails_is_said_so),
        TEST(an_execution_that_fails_is_said_so),
        TEST(mistakes_are_found_and_named),
        TEST(every_convolution_goes_through_it),
        TEST(without_it_weft_computes),
    };
    int failed;

    wf_log_init("", WF_ERROR); /* hundreds of failures are warned of */
    if (!mkdtemp(folder))
        return 2;
    setenv("WEFT_CACHE", folder, 1);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)!wf_remove_tree(folder, NULL);
    return failed;
}
