/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/narrow_kernels.c - a device's kernels that take a narrow type as it is, against its
 * own of float32, for each type that it keeps: the same bits come out of operands that are exact in
 * the type, but for the rounding of results. On GPUs a convolution rounds its results once more, in
 * cuDNN, and norms of which some tensors are narrow are computed by other kernels than cuDNN's:
 * these may be off by a bit of the type, and on a real GPU all may, whose libraries add in other
 * orders. And in random shapes, against the cpu's of float32. */
#include "common/base/rng.h"
#include "common/exec/exec.h"
#include "common/graph/narrow.h"
#include "common/kernels/kernel.h"
#include "common/tensor/dtype.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"
#include "tests/unit/skip.h"

#include <math.h>
#include <stdlib.h>

enum { PORTS = 5, F32 = 0 };

/* One node; rank 0 ends its operands. */
typedef struct example {
    const char *op;
    uint32_t narrow_in, narrow_out; /* bit i: in the narrow type */
    uint32_t n_out;
    struct {
        uint32_t rank;
        int64_t dims[4];
        bool is_axes; /* a constant of int64, in dims */
    } in[PORTS];
    wf_attr attrs[4];
    uint32_t n_attrs;
    float scale; /* of operands; 0: of 1 */
} example;

static const wf_dtype types[] = {WF_BF16, WF_F16};

static uint16_t narrowed(wf_dtype type, float x)
{
    return type == WF_BF16 ? wf_f32_to_bf16(x) : wf_f32_to_f16(x);
}

static float widened(wf_dtype type, uint16_t h)
{
    return type == WF_BF16 ? wf_bf16_to_f32(h) : wf_f16_to_f32(h);
}

/* One bit of a number of size 1: they have 8 and 11. */
static float one_bit(wf_dtype type)
{
    return type == WF_BF16 ? 0x1p-7f : 0x1p-10f;
}

#define IN(...)                                                                                    \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}, false                   \
    }
#define AXES(...)                                                                                  \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}, true                    \
    }

static wf_value *axes(wf_graph *g, uint32_t n, const int64_t values[])
{
    wf_value *v = NULL;
    wf_tensor *t = NULL;
    wf_err err;

    assert_ok(wf_tensor_new(WF_I64, 1, (int64_t[]){n}, &t, &err), err);
    memcpy(t->data, values, n * sizeof *values);
    assert_ok(wf_graph_add_constant(g, "axes", &t, &v, &err), err);
    return v;
}

/* narrow: WF_NONE for float32. */
static wf_graph *graph_of(const example *x, wf_dtype narrow)
{
    wf_graph *g = new_graph();
    wf_emit e = wf_emit_begin(g, "node", NULL);
    wf_value *in[PORTS], *out[PORTS];
    uint32_t n = 0;
    wf_node *node;
    wf_err err;

    for (; n < PORTS && x->in[n].rank; n++) {
        char name[8];

        snprintf(name, sizeof name, "x%u", n);
        in[n] = x->in[n].is_axes ? axes(g, x->in[n].rank, x->in[n].dims)
                                 : input(g, name, x->in[n].rank, x->in[n].dims);
    }
    node = wf_emit_node(&e, x->op, n, in, x->n_attrs, x->attrs, x->n_out, out);
    assert_non_null(node);
    assert_ok(wf_emit_end(&e), err);
    for (uint32_t i = 0; i < n; i++)
        if (narrow != WF_NONE && (x->narrow_in >> i & 1))
            in[i]->dtype = narrow;
    if (narrow != WF_NONE) {
        assert_ok(wf_node_set_string(g, node, WF_NARROW, wf_dtype_name(narrow), &err), err);
        assert_ok(wf_node_set_int(g, node, WF_NARROW_OUT, x->narrow_out, &err), err);
    }
    assert_ok(wf_infer(g, &err), err);
    for (uint32_t i = 0; i < x->n_out; i++)
        assert_ok(wf_graph_add_output(g, out[i], &err), err);
    return g;
}

/* Numbers that the type says exactly, some of them 0; as its bits. */
static uint16_t number(const example *x, wf_dtype type, uint64_t seed, uint64_t i)
{
    float z = 2 * wf_rng_f32((wf_rng_key){seed, 7}, i) - 1;

    z *= x->scale == 0 ? 1 : x->scale;
    return narrowed(type, wf_rng_below((wf_rng_key){seed, 8}, i, 9) ? z : 0);
}

/* Over numbers of `type`, of which some are kept narrow if is_narrow. rounds: products may round
 * their factors to it. */
static wf_plan *plan_on(const wf_device *device, bool rounds, const example *x, wf_dtype type,
                        bool is_narrow, wf_pool *pool, void *fed[])
{
    wf_graph *g = graph_of(x, is_narrow ? type : WF_NONE);
    wf_plan_options o = {.pool = pool,
                         .device = device,
                         .compute = rounds ? wf_compute_of(wf_dtype_name(type)) : WF_COMPUTE_F32};
    wf_plan *p = NULL;
    wf_err err;

    assert_ok(wf_plan_new(g, &o, &p, &err), err);
    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++) {
        const wf_port *port = wf_plan_input(p, i);

        fed[i] = malloc(port->bytes + 1);
        assert_non_null(fed[i]);
        for (int64_t k = 0; k < port->elems; k++)
            if (port->dtype == type)
                ((uint16_t *)fed[i])[k] = number(x, type, i, (uint64_t)k);
            else
                ((float *)fed[i])[k] = widened(type, number(x, type, i, (uint64_t)k));
        wf_plan_bind_input(p, i, fed[i]);
    }
    assert_ok(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), err);
    wf_graph_free(&g);
    return p;
}

static wf_plan *plan_of(const example *x, wf_dtype type, bool is_narrow, wf_pool *pool, void *fed[])
{
    return plan_on(test_device(), true, x, type, is_narrow, pool, fed);
}

static void drop(wf_plan **p, void *fed[])
{
    for (uint32_t i = 0; i < wf_plan_n_inputs(*p); i++)
        free(fed[i]);
    wf_plan_free(p);
}

/* Whether x is computed in another way where its operands are narrow. */
static bool is_loose(const example *x)
{
    const wf_device *d = test_device();

    return strncmp(d->name, "cuda:", 5) == 0 ||
           (!d->is_host && (strncmp(x->op, "Conv", 4) == 0 || strncmp(x->op, "BatchNorm", 9) == 0));
}

/* Within one bit of the type, of a result of some size; beyond its range both are infinite. */
static bool are_near(wf_dtype type, float got, float want)
{
    if (got == want || got == widened(type, narrowed(type, want)) || (isnan(got) && isnan(want)))
        return true; /* also of quotients by 0 */
    return isfinite(want) && fabsf(got - want) <= one_bit(type) * (fabsf(want) + 1);
}

static float element(wf_dtype dtype, const void *of, int64_t k)
{
    return dtype == WF_F32 ? ((const float *)of)[k] : widened(dtype, ((const uint16_t *)of)[k]);
}

static bool is_right(bool loose, wf_dtype type, wf_dtype dtype, const void *got, int64_t k,
                     float want)
{
    if (loose)
        return are_near(type, element(dtype, got, k), want);
    return dtype == type ? ((const uint16_t *)got)[k] == narrowed(type, want)
                         : memcmp((const float *)got + k, &want, sizeof want) == 0;
}

static void compare(const example *x, wf_dtype type, wf_plan *narrow, wf_plan *wide)
{
    bool loose = is_loose(x);

    for (uint32_t i = 0; i < x->n_out; i++) {
        const wf_port *port = wf_plan_output(narrow, i);
        const void *got = wf_plan_output_data(narrow, i);
        const float *want = wf_plan_output_data(wide, i);

        assert_int_equal(port->dtype, x->narrow_out >> i & 1 ? type : WF_F32);
        for (int64_t k = 0; k < port->elems; k++)
            if (!is_right(loose, type, port->dtype, got, k, want[k]))
                fail_msg("%s in %s, in %x: element %ld of output %u", x->op, wf_dtype_name(type),
                         x->narrow_in, (long)k, i);
    }
}

/* In both forms, and with each operand wide as well. */
static void check_in(wf_dtype type, example x)
{
    uint32_t in = x.narrow_in, out = x.narrow_out;

    for (uint32_t threads = 1; threads <= 2; threads++)
        for (uint32_t some = 0; some < 1u << PORTS; some++) {
            void *fed[2][PORTS];
            wf_plan *narrow, *wide;
            wf_pool *pool = NULL;
            wf_err err;

            if ((some & ~in) || (some == 0 && !out))
                continue;
            /* Kernels of other devices have no threads of the host: one operand at a time is left.
             */
            if (threads == 2 && !test_device()->is_host && (some & (some - 1)))
                continue;
            x.narrow_in = some;
            x.narrow_out = some == in || threads == 1 ? out : 0;
            assert_ok(wf_pool_new(threads, &pool, &err), err);
            narrow = plan_of(&x, type, true, pool, fed[0]);
            wide = plan_of(&x, type, false, pool, fed[1]);
            compare(&x, type, narrow, wide);
            drop(&narrow, fed[0]);
            drop(&wide, fed[1]);
            wf_pool_free(&pool);
        }
}

/* In each type that the device keeps. */
static void check(example x)
{
    bool any = false;

    for (size_t i = 0; i < WF_COUNT(types); i++)
        if (wf_kernels_keep_narrow(test_device(), types[i])) {
            check_in(types[i], x);
            any = true;
        }
    if (!any)
        skip_file();
}

static wf_attr ints2(const char *name, int64_t a, int64_t b)
{
    static int64_t values[8][2];
    static int at;

    at = (at + 1) % 8;
    values[at][0] = a;
    values[at][1] = b;
    return wf_attr_ints(name, 2, values[at]);
}

static wf_attr pads(int64_t n)
{
    static int64_t values[4][4];

    for (int i = 0; i < 4; i++)
        values[n][i] = n;
    return wf_attr_ints("pads", 4, values[n]);
}

static void rows_that_a_concat_rounds(void **state)
{
    (void)state;
    check((example){"Concat", /* of rows that are longer than a tile, and of one */
                    2,
                    1,
                    1,
                    {IN(70, 5, 300), IN(70, 2, 300), IN(70, 1, 300)},
                    {wf_attr_int("axis", 1)},
                    1});
    check((example){
        "Concat", 5, 0, 1, {IN(700, 13), IN(700, 1), IN(700, 416)}, {wf_attr_int("axis", -1)}, 1});
}

static void products_with_the_gradient_of_relu(void **state)
{
    (void)state;
    for (uint32_t narrow = 0; narrow < 4; narrow++) /* of x and y */
        check((example){"Linear",
                        (narrow & 1) | (narrow & 2) << 2,
                        1,
                        1,
                        {IN(2, 70, 261), IN(261, 131), IN(131), IN(2, 70, 131)},
                        {wf_attr_string("activation", "ReluGrad")},
                        1});
    check((example){"Linear", /* small */
                    9,
                    0,
                    1,
                    {IN(6, 7), IN(7, 9), IN(9), IN(6, 9)},
                    {wf_attr_string("activation", "ReluGrad")},
                    1});
}

static void products(void **state)
{
    (void)state;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            example x = {"Gemm", 3, 1, 1, {IN(130, 700), IN(700, 70)}, .n_attrs = 2};

            if (a)
                x.in[0] = (__typeof__(x.in[0]))IN(700, 130);
            if (b)
                x.in[1] = (__typeof__(x.in[0]))IN(70, 700);
            x.attrs[0] = wf_attr_int("transA", a);
            x.attrs[1] = wf_attr_int("transB", b);
            check(x);
        }
    check((example){"Gemm", 1, 1, 1, {IN(130, 129), IN(129, 70), IN(70)}});
    for (int b = 0; b < 2; b++) {
        example x = {"Product", 3, 1, 2, {IN(700, 130), IN(700, 70)}, .n_attrs = 2};

        x.attrs[0] = wf_attr_int("transA", 1);
        x.attrs[1] = wf_attr_string("sums", b ? "b" : "a");
        check(x);
        x.narrow_out = 0;
        check(x);
        x.narrow_out = 3;
        check(x);
    }
}

/* Extents that tensor cores have no fast products for. */
static void products_of_odd_extents(void **state)
{
    (void)state;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            example x = {"Gemm", 3, 1, 1, {IN(131, 261), IN(261, 133)}, .n_attrs = 2};

            if (a)
                x.in[0] = (__typeof__(x.in[0]))IN(261, 131);
            if (b)
                x.in[1] = (__typeof__(x.in[0]))IN(133, 261);
            x.attrs[0] = wf_attr_int("transA", a);
            x.attrs[1] = wf_attr_int("transB", b);
            check(x);
            x.narrow_in = 1 + (uint32_t)b; /* the other factor is rounded as well */
            x.narrow_out = (uint32_t)a;
            check(x);
        }
    check((example){"Gemm", 3, 1, 1, {IN(130, 149), IN(149, 133)}}); /* k alone */
    check((example){"MatMul", 1, 1, 1, {IN(2, 70, 264), IN(264, 131)}});
    check((example){"MatMul", 3, 0, 1, {IN(2, 130, 150), IN(2, 150, 131)}});
    check((example){"Linear",
                    1,
                    1,
                    1,
                    {IN(2, 70, 261), IN(131, 261), IN(131)},
                    {wf_attr_int("transB", 1), wf_attr_string("activation", "Relu")},
                    2});
    for (int b = 0; b < 2; b++) {
        example x = {"Product", 3, 1, 2, {IN(257, 131), IN(257, 129)}, .n_attrs = 2};

        x.attrs[0] = wf_attr_int("transA", 1);
        x.attrs[1] = wf_attr_string("sums", b ? "b" : "a");
        check(x);
    }
    /* Neither is rounded: too small, and one for each of a batch. */
    check((example){"Gemm", 3, 1, 1, {IN(9, 5), IN(5, 7)}});
    check((example){"MatMul", 3, 1, 1, {IN(3, 40, 30), IN(3, 30, 50)}});
    check((example){"MatMul", 3, 1, 1, {IN(2, 1, 40, 30), IN(2, 3, 30, 50)}});
    check((example){"MatMul", 1, 1, 1, {IN(5, 40, 130), IN(130, 64)}});
    check((example){"Linear",
                    1,
                    1,
                    1,
                    {IN(6, 40, 130), IN(96, 130), IN(96)},
                    {wf_attr_int("transB", 1), wf_attr_string("activation", "Relu")},
                    2});
    /* More of the shared factor than the cpu packs at once, in several cuts. */
    if (test_device()->is_host)
        check((example){"Gemm", 3, 1, 1, {IN(600, 1500), IN(1500, 640)}});
}

/* Forward and both ways back, of x [n, c, h, w] and weights [m, c, k, k]. */
static void convolution(int64_t n, int64_t c, int64_t m, int64_t h, int64_t k, int64_t stride,
                        int64_t pad)
{
    int64_t o = (h + 2 * pad - k) / stride + 1;
    example x = {"Conv", 1, 1, 1, {IN(n, c, h, h), IN(m, c, k, k), IN(m)}};
    example data = {"ConvDataGrad", 5, 1, 1, {IN(n, m, o, o), IN(m, c, k, k), IN(n, c, h, h)}};
    example weights = {"ConvWeightGrad", 3, 0, 1, {IN(n, m, o, o), IN(n, c, h, h), IN(m, c, k, k)}};
    example *const all[] = {&x, &data, &weights};

    for (int i = 0; i < 3; i++) {
        all[i]->attrs[0] = pads(pad);
        all[i]->attrs[1] = ints2("strides", stride, stride);
        all[i]->n_attrs = 2;
        check(*all[i]);
    }
}

static void convolutions(void **state)
{
    (void)state;
    convolution(3, 20, 18, 19, 3, 1, 1); /* tiles */
    convolution(2, 16, 33, 37, 3, 2, 1); /* two phases of each row */
    convolution(2, 17, 16, 20, 5, 3, 2); /* three */
    convolution(3, 3, 16, 18, 3, 1, 1);  /* folded */
    convolution(66, 16, 20, 4, 3, 1, 1); /* stacks */
    convolution(2, 2, 3, 9, 3, 1, 0);    /* not rounded */
}

static void attention(void **state)
{
    (void)state;
    check(
        (example){"DotAttention", 7, 1, 1, {IN(2, 3, 70, 32), IN(2, 3, 80, 32), IN(2, 3, 80, 24)}});
    check((example){"DotAttention",
                    7,
                    1,
                    1,
                    {IN(2, 70, 32), IN(2, 32, 80), IN(2, 80, 24)},
                    {wf_attr_int("transK", 1)},
                    1});
    for (uint32_t out = 1; out < 4; out++)
        check((example){"DotAttention", 7, out, 2, {IN(2, 70, 32), IN(2, 80, 32), IN(2, 80, 24)}});
    for (uint32_t out = 0; out < 8; out++)
        check((example){"DotAttentionGrad",
                        out == 7 ? 15 : 1,
                        out,
                        3,
                        {IN(2, 70, 24), IN(2, 70, 32), IN(2, 80, 32), IN(2, 80, 24)}});
}

static void elementwise(void **state)
{
    static const char *const unary[] = {"Relu", "Sigmoid", "Tanh", "Gelu", "Elu", "Softplus"};
    static const char *const binary[] = {"Add",      "Sub",         "Mul",     "Div",
                                         "ReluGrad", "SigmoidGrad", "GeluGrad"};
    const char *steps[] = {"Add", "Relu", "Mul"};
    wf_attr chain[2] = {{.name = "steps", .kind = WF_ATTR_STRINGS, .n = 3, .strings = steps},
                        wf_attr_ints("args", 6, (int64_t[]){0, 1, 3, -1, 4, 2})};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(unary); i++)
        check((example){unary[i], 1, 1, 1, {IN(3, 2500)}});
    for (size_t i = 0; i < WF_COUNT(binary); i++)
        check((example){binary[i], 3, 1, 1, {IN(3, 2500), IN(3, 2500)}});
    check((example){"Add", 3, 1, 1, {IN(3, 1, 700), IN(4, 1)}});
    check((example){"Mul", 3, 1, 1, {IN(1, 1), IN(4, 1500)}});
    check(
        (example){"Chain", 7, 1, 1, {IN(5, 1700), IN(1, 1700), IN(1, 1)}, {chain[0], chain[1]}, 2});
    check((example){
        "Chain", 7, 1, 1, {IN(5, 9, 140), IN(5, 1, 140), IN(1, 1, 1)}, {chain[0], chain[1]}, 2});
    check((example){
        "Chain", 7, 1, 1, {IN(4, 9, 3, 33), IN(4, 1, 1, 33), IN(33)}, {chain[0], chain[1]}, 2});
}

/* Of float16 numbers above 65504 are infinite, and those below 2^-14 have fewer digits. */
static void numbers_of_all_sizes(void **state)
{
    static const float scales[] = {512, 0x1p-7f, 0x1p-13f};
    const char *steps[] = {"Mul", "Add"};
    const wf_attr chain[] = {{.name = "steps", .kind = WF_ATTR_STRINGS, .n = 2, .strings = steps},
                             wf_attr_ints("args", 4, (int64_t[]){0, 1, 2, 0})};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(scales); i++) {
        check((example){"Mul", 3, 1, 1, {IN(3, 700), IN(3, 700)}, .scale = scales[i]});
        check((example){"Add", 3, 1, 1, {IN(3, 700), IN(3, 700)}, .scale = scales[i]});
        check((example){"Chain",
                        3,
                        1,
                        1,
                        {IN(3, 700), IN(3, 700)},
                        {chain[0], chain[1]},
                        2,
                        .scale = scales[i]});
        check((example){"MatMul", 3, 1, 1, {IN(20, 60), IN(60, 30)}, .scale = scales[i]});
        check((example){"Conv", 3, 1, 1, {IN(2, 3, 9, 9), IN(4, 3, 3, 3)}, .scale = scales[i]});
    }
}

static void norms_and_sums(void **state)
{
    (void)state;
    check((example){"LayerNormalization", 3, 1, 1, {IN(9, 1500), IN(1500), IN(1500)}});
    check((example){"LayerNormalization", 0, 1, 1, {IN(9, 1500), IN(1500), IN(1500)}});
    check((example){"LayerNormalizationGrad", 1, 1, 3, {IN(9, 1500), IN(9, 1500), IN(1500)}});
    check((example){"BatchNormalizationTrain", 0, 1, 3, {IN(3, 5, 40, 40), IN(5), IN(5)}});
    check((example){"BatchNormalizationGrad",
                    1,
                    1,
                    3,
                    {IN(3, 5, 40, 40), IN(3, 5, 40, 40), IN(5), IN(5), IN(5)}});
    check((example){"BatchNormalizationTrain", 1, 1, 3, {IN(3, 8, 20, 20), IN(8), IN(8)}});
    check((example){"BatchNormalizationGrad",
                    3,
                    1,
                    3,
                    {IN(3, 8, 20, 20), IN(3, 8, 20, 20), IN(8)},
                    {wf_attr_int("training_mode", 1)},
                    1});
    check((example){"BatchNormalization",
                    1,
                    1,
                    1,
                    {IN(3, 5, 20, 20), IN(5), IN(5), IN(5), IN(5)},
                    {wf_attr_float("epsilon", 2)}, /* variances are above -1 */
                    1});
    check((example){"ReduceSum", 1, 1, 1, {IN(70, 3, 50), AXES(0)}});
    check((example){"ReduceSum", 1, 0, 1, {IN(70, 3, 50), AXES(2)}});
    check((example){"ReduceMean", 1, 0, 1, {IN(7, 30, 50), AXES(0, 2)}});
}

static void losses(void **state)
{
    const wf_attr each = wf_attr_string("reduction", "none");

    (void)state;
    check((example){"SoftmaxCrossEntropyGrad",
                    0,
                    1,
                    1,
                    {IN(4), IN(4, 2500), AXES(7, 1999, 0, 2499)},
                    {each},
                    1});
    check(
        (example){"SoftmaxCrossEntropyGrad", 3, 1, 1, {IN(3), IN(3, 9), AXES(7, 8, 0)}, {each}, 1});
}

static void poolings(void **state)
{
    (void)state;
    for (int64_t k = 2; k < 4; k++) {
        int64_t o = (17 - k) / 2 + 1;
        example x = {"MaxPool", 1, 1, 1, {IN(3, 4, 17, 17)}, .n_attrs = 2};
        example back = {"MaxPoolGrad", 7, 1, 1, {IN(3, 4, o, o), IN(3, 4, 17, 17), IN(3, 4, o, o)},
                        .n_attrs = 2};

        x.attrs[0] = back.attrs[0] = ints2("kernel_shape", k, k);
        x.attrs[1] = back.attrs[1] = ints2("strides", 2, 2);
        check(x);
        check(back);
        x.op = "AveragePool";
        back.op = "AveragePoolGrad";
        back.narrow_in = 3;
        back.in[2].rank = 0;
        check(x);
        check(back);
    }
    check((example){"GlobalMaxPool", 1, 1, 1, {IN(3, 4, 9, 9)}});
    check((example){"GlobalAveragePool", 1, 1, 1, {IN(3, 4, 9, 9)}});
    check((example){"AveragePoolGrad", 3, 1, 1, {IN(3, 4, 1, 1), IN(3, 4, 9, 9)}});
}

/* ---- random shapes, beside the cpu ---- */

enum { RANDOM_SHAPES = 20 };

/* From `least` to `most`, by the seed; each call of a shape with another i. */
static int64_t extent(uint64_t seed, uint64_t i, int64_t least, int64_t most)
{
    return least + (int64_t)wf_rng_below((wf_rng_key){seed, 9}, i, (uint64_t)(most - least + 1));
}

/* Of networks of convolutions. narrow_in: the operands that may be narrow. */
static example any_of_images(uint64_t seed, int which)
{
    const int64_t m = extent(seed, 0, 1, 70), c = extent(seed, 4, 1, 20), h = extent(seed, 5, 4, 9);
    const wf_attr trains = wf_attr_int("training_mode", 1);
    const wf_attr window[] = {ints2("kernel_shape", 3, 3), ints2("strides", 2, 2)};

    switch (which) {
    case 0:
        return (example){"Conv", 7, 1, 1, {IN(3, c, h, h), IN(m, c, 3, 3), IN(m)}};
    case 1:
        return (example){
            "ConvWeightGrad", 3, 1, 1, {IN(3, m, h - 2, h - 2), IN(3, c, h, h), IN(m, c, 3, 3)}};
    case 2:
        return (example){
            "ConvDataGrad", 7, 1, 1, {IN(3, m, h - 2, h - 2), IN(m, c, 3, 3), IN(3, c, h, h)}};
    case 3:
        return (example){"BatchNormalizationTrain", 7, 1, 1, {IN(m + 1, c, h, h), IN(c), IN(c)}};
    case 4:
        return (example){"BatchNormalizationGrad",
                         7,
                         1,
                         3,
                         {IN(m + 1, c, h, h), IN(m + 1, c, h, h), IN(c)},
                         {trains},
                         1};
    case 5:
        return (example){
            "BatchNormalization",          1, 1, 1, {IN(3, c, h, h), IN(c), IN(c), IN(c), IN(c)},
            {wf_attr_float("epsilon", 2)}, 1};
    case 6:
        return (example){"GlobalAveragePool", 1, 1, 1, {IN(m, c, h, h)}};
    case 7:
        return (example){"AveragePool", 1, 1, 1, {IN(3, c, h, h)}, {window[0], window[1]}, 2};
    case 8:
        return (example){
            "AveragePoolGrad",      3, 1, 1, {IN(3, c, (h - 1) / 2, (h - 1) / 2), IN(3, c, h, h)},
            {window[0], window[1]}, 2};
    default:
        return (example){"MaxPool",
                         1,
                         1,
                         1,
                         {IN(3, c, h, h)},
                         {ints2("kernel_shape", 2, 2), ints2("strides", 2, 2)},
                         2};
    }
}

enum { OF_IMAGES = 10, OTHERS = 9 };

static example any(uint64_t seed, int which)
{
    const int64_t m = extent(seed, 0, 1, 70), n = extent(seed, 1, 1, 70),
                  k = extent(seed, 2, 1, 90);
    const int64_t d = 8 * extent(seed, 3, 1, 4);
    const wf_attr turns = wf_attr_int("transB", extent(seed, 6, 0, 1));

    switch (which) {
    case 0:
        return turns.i ? (example){"Gemm", 7, 1, 1, {IN(m, k), IN(n, k), IN(n)}, {turns}, 1}
                       : (example){"Gemm", 7, 1, 1, {IN(m, k), IN(k, n), IN(n)}, {turns}, 1};
    case 1:
        return (example){"MatMul", 3, 1, 1, {IN(3, m, k), IN(3, k, n)}};
    case 2:
        return (example){"DotAttention", 7, 1, 1, {IN(2, m, d), IN(2, n, d), IN(2, n, d)}};
    case 3:
        return (example){
            "DotAttentionGrad", 15, 7, 3, {IN(2, m, d), IN(2, m, d), IN(2, n, d), IN(2, n, d)}};
    case 4:
        return (example){"Mul", 3, 1, 1, {IN(m, n, 1), IN(n, k)}};
    case 5:
        return (example){"GeluGrad", 3, 1, 1, {IN(m, n), IN(m, n)}};
    case 6:
        return (example){"LayerNormalization", 7, 1, 1, {IN(m, n + 1), IN(n + 1), IN(n + 1)}};
    case 7:
        return (example){
            "LayerNormalizationGrad", 7, 7, 3, {IN(m, n + 1), IN(m, n + 1), IN(n + 1)}};
    default:
        return (example){"ReduceSum", 1, 1, 1, {IN(m, n, k), AXES(0)}};
    }
}

/* Of float32 on the cpu; of some results the largest says what near is, since they are sums. */
static void compare_with_the_cpu(const example *x, wf_dtype type, wf_plan *narrow, wf_plan *wide)
{
    for (uint32_t i = 0; i < x->n_out; i++) {
        const wf_port *port = wf_plan_output(narrow, i);
        const void *got = wf_plan_output_data(narrow, i);
        const float *want = wf_plan_output_data(wide, i);
        float largest = 0;

        for (int64_t k = 0; k < port->elems; k++)
            largest = fmaxf(largest, fabsf(want[k]));
        for (int64_t k = 0; k < port->elems; k++) {
            float is = element(port->dtype, got, k);

            if (!(fabsf(is - want[k]) <= one_bit(type) * largest))
                fail_msg("%s in %s, in %x, out %x: element %ld of output %u is %g, not %g", x->op,
                         wf_dtype_name(type), x->narrow_in, x->narrow_out, (long)k, i, (double)is,
                         (double)want[k]);
        }
    }
}

static void random_shapes_in(wf_dtype type)
{
    for (uint64_t seed = 0; seed < RANDOM_SHAPES; seed++)
        for (int which = 0; which < OF_IMAGES + OTHERS; which++) {
            example x = which < OTHERS ? any(seed, which) : any_of_images(seed, which - OTHERS);
            void *fed[2][PORTS];
            wf_plan *narrow, *wide;

            x.narrow_in &= (uint32_t)extent(seed, 7, 0, 15);
            x.narrow_out &= (uint32_t)extent(seed, 8, 0, 7);
            narrow = plan_of(&x, type, true, NULL, fed[0]);
            wide = plan_on(&wf_cpu, false, &x, type, false, NULL, fed[1]);
            compare_with_the_cpu(&x, type, narrow, wide);
            drop(&narrow, fed[0]);
            drop(&wide, fed[1]);
        }
}

static void random_shapes_are_near_what_the_cpu_computes(void **state)
{
    bool any = false;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(types); i++)
        if (wf_kernels_keep_narrow(test_device(), types[i])) {
            random_shapes_in(types[i]);
            any = true;
        }
    if (!any)
        skip_file();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes_are_near_what_the_cpu_computes),
        cmocka_unit_test(products),
        cmocka_unit_test(products_of_odd_extents),
        cmocka_unit_test(products_with_the_gradient_of_relu),
        cmocka_unit_test(rows_that_a_concat_rounds),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(attention),
        cmocka_unit_test(elementwise),
        cmocka_unit_test(numbers_of_all_sizes),
        cmocka_unit_test(norms_and_sums),
        cmocka_unit_test(poolings),
        cmocka_unit_test(losses),
    };

    return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
