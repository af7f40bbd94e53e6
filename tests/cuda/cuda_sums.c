/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_sums.c - products that sum the rows of a factor, over the host's cuBLASLt: they
 * compute what the CPU does whichever way is taken, a step has fewer kernels for it, and what
 * cuBLASLt has not, or a mistake, is found. */
#include "common/base/cc.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/compile/compile.h"
#include "common/exec/exec.h"
#include "common/graph/narrow.h"
#include "common/kernels/cuda/product/product.h"
#include "common/log/log.h"
#include "tests/cuda/ending.h"
#include "tests/cuda/host.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <stdlib.h>

enum { SEEDS = 60, LAYERS = 3, BATCH = 9 };

static wf_err err;
static char folder[] = "/tmp/weft-cuda-sums-XXXXXX";

/* One Product with sums. */
typedef struct product {
    bool of_b, other_turned; /* whose rows are summed; the other's attribute is set */
    int64_t m, n, k;
    wf_dtype narrow; /* WF_NONE: dtype of all */
    wf_dtype dtype;
    uint32_t narrow_in, narrow_out; /* bit i: in the narrow type */
} product;

static uint64_t draw(uint64_t seed, uint64_t i, uint64_t below)
{
    return wf_rng_below((wf_rng_key){seed, 5}, i, below);
}

static wf_graph *graph_of(const product *p, bool is_narrow)
{
    const bool trans_a = p->of_b ? p->other_turned : true,
               trans_b = p->of_b ? false : p->other_turned;
    const int64_t a[] = {trans_a ? p->k : p->m, trans_a ? p->m : p->k};
    const int64_t b[] = {trans_b ? p->n : p->k, trans_b ? p->k : p->n};
    const wf_attr attrs[] = {wf_attr_string("sums", p->of_b ? "b" : "a"),
                             wf_attr_int("transA", trans_a), wf_attr_int("transB", trans_b)};
    wf_graph *g = new_graph();
    wf_emit e = wf_emit_begin(g, "n", &err);
    wf_value *in[] = {input(g, "a", 2, a), input(g, "b", 2, b)}, *out[2];
    wf_node *node;

    in[0]->dtype = in[1]->dtype = p->dtype;
    node = wf_emit_node(&e, "Product", 2, in, 3, attrs, 2, out);
    assert_ok(wf_emit_end(&e), err);
    for (uint32_t i = 0; is_narrow && i < 2; i++)
        if (p->narrow_in >> i & 1)
            in[i]->dtype = p->narrow;
    if (is_narrow) {
        assert_ok(wf_node_set_string(g, node, WF_NARROW, wf_dtype_name(p->narrow), &err), err);
        assert_ok(wf_node_set_int(g, node, WF_NARROW_OUT, p->narrow_out, &err), err);
        assert_ok(wf_infer(g, &err), err);
    }
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(wf_graph_add_output(g, out[i], &err), err);
    return g;
}

/* Numbers that bfloat16 says exactly. */
static float number_at(uint64_t seed, int64_t i)
{
    return ((float)draw(seed, (uint64_t)i, 255) - 127) / 64;
}

static void fill_port(const wf_port *port, uint64_t seed, void *to)
{
    for (int64_t i = 0; i < port->elems; i++) {
        const float x = number_at(seed, i);

        if (port->dtype == WF_F64)
            ((double *)to)[i] = (double)x;
        else if (port->dtype == WF_F32)
            ((float *)to)[i] = x;
        else
            ((uint16_t *)to)[i] = port->dtype == WF_BF16 ? wf_f32_to_bf16(x) : wf_f32_to_f16(x);
    }
}

static double number_of(wf_dtype dtype, const void *of, int64_t i)
{
    switch (dtype) {
    case WF_F64:
        return ((const double *)of)[i];
    case WF_F32:
        return (double)((const float *)of)[i];
    case WF_BF16:
        return (double)wf_bf16_to_f32(((const uint16_t *)of)[i]);
    default:
        return (double)wf_f16_to_f32(((const uint16_t *)of)[i]);
    }
}

typedef struct computed {
    double *out[2];
    int64_t n[2];
    cuda_host_counts counts; /* of a run */
} computed;

static computed compute(const product *p, const wf_device *device, bool deterministic)
{
    const bool is_narrow = p->narrow != WF_NONE && !device->is_host;
    wf_graph *g = graph_of(p, is_narrow);
    const wf_plan_options o = {.device = device,
                               .compute = is_narrow ? wf_compute_of(wf_dtype_name(p->narrow))
                                                    : WF_COMPUTE_F32,
                               .deterministic = deterministic};
    cuda_host_counts before;
    wf_plan *plan = NULL;
    void *in[2];
    computed c;

    assert_ok(wf_plan_new(g, &o, &plan, &err), err);
    for (uint32_t i = 0; i < 2; i++) {
        in[i] = malloc(wf_plan_input(plan, i)->bytes + 1);
        assert_non_null(in[i]);
        fill_port(wf_plan_input(plan, i), i, in[i]);
        wf_plan_bind_input(plan, i, in[i]);
    }
    before = cuda_host_count();
    assert_ok(wf_plan_run(plan, &(wf_step_key){0}, NULL, NULL, &err), err);
    c.counts = cuda_host_count();
    c.counts.launches -= before.launches;
    for (uint32_t i = 0; i < 2; i++) {
        const wf_port *port = wf_plan_output(plan, i);

        c.n[i] = port->elems;
        c.out[i] = calloc((size_t)port->elems + 1, sizeof *c.out[i]);
        assert_non_null(c.out[i]);
        for (int64_t k = 0; k < port->elems; k++)
            c.out[i][k] = number_of(port->dtype, wf_plan_output_data(plan, i), k);
        free(in[i]);
    }
    wf_plan_free(&plan);
    wf_graph_free(&g);
    return c;
}

static void drop(computed *c)
{
    free(c->out[0]);
    free(c->out[1]);
}

/* Computed on the GPU as on the CPU; what the GPU launched. Sums are of numbers with few digits, so
 * that float32 has all of them exactly; a narrow result is off by its rounding, and of a size that
 * float16 has. */
static size_t check(const product *p, bool deterministic)
{
    computed want = compute(p, &wf_cpu, true), got = compute(p, cuda_host_device(), deterministic);
    const double close[] = {p->narrow_out & 1    ? 1e-2
                            : p->dtype == WF_F64 ? 1e-12
                                                 : 1e-5,
                            p->narrow_out & 2 ? 1e-2 : 0};
    const size_t launches = got.counts.launches;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(got.n[i], want.n[i]);
        for (int64_t k = 0; k < want.n[i]; k++)
            if (!(fabs(got.out[i][k] - want.out[i][k]) <= close[i] * (1 + fabs(want.out[i][k]))))
                fail_msg("%s of %s, m %d, n %d, k %d, output %d: element %d is %.9g and not %.9g",
                         wf_dtype_name(p->dtype), p->of_b ? "b" : "a", (int)p->m, (int)p->n,
                         (int)p->k, i, (int)k, got.out[i][k], want.out[i][k]);
    }
    drop(&want);
    drop(&got);
    return launches;
}

static product random_product(uint64_t seed)
{
    static const wf_dtype narrow[] = {WF_NONE, WF_BF16, WF_F16};
    product p = {.of_b = draw(seed, 0, 2),
                 .other_turned = draw(seed, 1, 2),
                 .m = 1 + (int64_t)draw(seed, 2, 70),
                 .n = 1 + (int64_t)draw(seed, 3, 70),
                 .k = 1 + (int64_t)draw(seed, 4, draw(seed, 5, 4) ? 90 : 3000),
                 .dtype = WF_F32,
                 .narrow = narrow[draw(seed, 6, WF_COUNT(narrow))]};

    if (p.narrow == WF_NONE && draw(seed, 7, 2))
        p.dtype = WF_F64;
    p.narrow_in = p.narrow == WF_NONE ? 0 : 1 + (uint32_t)draw(seed, 8, 3);
    p.narrow_out = p.narrow == WF_NONE ? 0 : (uint32_t)draw(seed, 9, 4);
    return p;
}

/* ---- results ---- */

static void sums_are_those_of_the_cpu(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const product p = random_product(seed);

        cuda_host_seed(seed);
        (void)check(&p, seed % 2);
        cuda_host_refuse_sums(true);
        (void)check(&p, seed % 2);
        cuda_host_refuse_sums(false);
    }
}

static void nothing_to_add_up_gives_zeros(void **state)
{
    static const int64_t extents[][3] = {{3, 4, 0}, {0, 4, 5}, {3, 0, 5}, {0, 0, 0}};

    (void)state;
    for (size_t i = 0; i < 2 * WF_COUNT(extents); i++) {
        const int64_t *e = extents[i / 2];

        (void)check(&(product){.of_b = i % 2, .m = e[0], .n = e[1], .k = e[2], .dtype = WF_F32},
                    true);
    }
}

/* ---- what is launched ---- */

/* Numbers that have to be rounded for the product are summed as they are. */
static void a_product_that_has_the_sums_launches_no_kernel(void **state)
{
    const product narrow = {
        .of_b = true, .m = 5, .n = 6, .k = 40, .dtype = WF_F32, .narrow = WF_BF16, .narrow_in = 3};
    product p = narrow;

    (void)state;
    assert_int_equal(check(&p, true), 0);
    p.of_b = false;
    assert_int_equal(check(&p, true), 0);
    p.narrow_in = 1; /* b is rounded, and a summed */
    assert_int_equal(check(&p, true), 1);
    p.narrow_in = 2; /* a is rounded, and summed apart */
    assert_int_equal(check(&p, true), 2);
    p = narrow;
    p.narrow_out = 1; /* not so the sums */
    assert_int_equal(check(&p, true), 1);
    p = narrow;
    p.narrow = WF_NONE;
    assert_int_equal(check(&p, true), 0);
    p.dtype = WF_F64;
    assert_int_equal(check(&p, true), 0);
    cuda_host_refuse_sums(true);
    assert_int_equal(check(&p, true), 1);
    cuda_host_refuse_sums(false);
}

/* Loss and gradients of dense layers with Relu, as the compiler has them. */
static wf_compiled *a_network(void)
{
    static const int64_t widths[LAYERS + 1] = {7, 6, 5, 4};
    wf_compile_spec spec = {.mode = WF_COMPILE_GRAD, .loss = "loss"};
    wf_graph *g = new_graph();
    wf_value *v = input(g, "x", 2, (const int64_t[]){BATCH, widths[0]});
    wf_emit e = wf_emit_begin(g, "n", &err);
    wf_compiled *c = NULL;

    for (int i = 0; i < LAYERS; i++) {
        char w[8], b[8];

        snprintf(w, sizeof w, "w%d", i);
        snprintf(b, sizeof b, "b%d", i);
        v = wf_emit_gemm(&e, v, variable(g, w, 2, (const int64_t[]){widths[i + 1], widths[i]}),
                         variable(g, b, 1, &widths[i + 1]), 1, 1, false, true);
        v = i + 1 < LAYERS ? wf_emit_unary(&e, "Relu", v) : wf_emit_unary(&e, "Sigmoid", v);
    }
    v = wf_emit_reduce_mean(&e, v, 0, NULL, false);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_rename_value(g, v, "loss", &err), err);
    assert_ok(wf_graph_add_output(g, v, &err), err);
    spec.graph = g;
    assert_ok(wf_compile(&spec, &c, &err), err);
    wf_graph_free(&g);
    return c;
}

/* A run of it; outputs one behind the other. Gives what was launched. */
static size_t step(const wf_graph *g, const wf_device *device, float out[512], size_t *n)
{
    const wf_plan_options o = {.device = device, .deterministic = true};
    float in[2 * LAYERS + 1][BATCH * 7];
    wf_plan *p = NULL;
    size_t launches;

    assert_ok(wf_plan_new(g, &o, &p, &err), err);
    assert_int_equal(wf_plan_n_inputs(p), WF_COUNT(in));
    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++) {
        assert_true(wf_plan_input(p, i)->bytes <= sizeof in[i]);
        fill_port(wf_plan_input(p, i), i, in[i]);
        wf_plan_bind_input(p, i, in[i]);
    }
    launches = cuda_host_count().launches;
    assert_ok(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), err);
    launches = cuda_host_count().launches - launches;
    *n = 0;
    for (uint32_t i = 0; i < wf_plan_n_outputs(p); i++) {
        const size_t elems = (size_t)wf_plan_output(p, i)->elems;

        assert_true(*n + elems <= 512);
        memcpy(out + *n, wf_plan_output_data(p, i), elems * sizeof *out);
        *n += elems;
    }
    wf_plan_free(&p);
    return launches;
}

static void a_step_has_a_kernel_less_for_each_layer(void **state)
{
    static float want[512], got[512];
    wf_compiled *c = a_network();
    size_t n, n_got, with_sums, apart;

    (void)state;
    (void)step(c->graph, &wf_cpu, want, &n);
    with_sums = step(c->graph, cuda_host_device(), got, &n_got);
    cuda_host_refuse_sums(true);
    apart = step(c->graph, cuda_host_device(), got, &n_got);
    cuda_host_refuse_sums(false);
    assert_int_equal(apart - with_sums, LAYERS);
    print_message(
        "a step of %d layers: %zu kernels of weft's own, %zu where a product has no sums\n", LAYERS,
        with_sums, apart);
    for (int refused = 0; refused < 2; refused++) {
        cuda_host_refuse_sums(refused);
        (void)step(c->graph, cuda_host_device(), got, &n_got);
        assert_int_equal(n_got, n);
        for (size_t i = 0; i < n; i++)
            if (!(fabsf(got[i] - want[i]) <= 1e-6f + 1e-4f * fabsf(want[i])))
                fail_msg("number %zu is %g and not %g", i, (double)got[i], (double)want[i]);
    }
    cuda_host_refuse_sums(false);
    wf_compiled_free(&c);
}

/* ---- which way is taken ---- */

/* The faster way is measured, and the next plan takes it from the file. */
static void the_faster_way_is_taken(void **state)
{
    size_t ways[2] = {0, 0};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const product p = {.of_b = seed % 2, .m = 3, .n = 4, .k = 5, .dtype = WF_F32};
        size_t launches;

        cuda_host_seed(seed);
        (void)!wf_remove_tree(folder, NULL);
        launches = check(&p, false);
        ways[launches]++;
        cuda_host_seed(seed + 1000); /* whatever they take now */
        assert_int_equal(check(&p, false), launches);
    }
    assert_true(ways[0] >= SEEDS / 4 && ways[1] >= SEEDS / 4); /* of three algorithms each */
}

static wf_status sum_nothing(const void *arg, const wf_run *run, const void *x, void *sums,
                             void *room, wf_err *e)
{
    (void)arg, (void)run, (void)x, (void)sums, (void)room, (void)e;
    return WF_OK;
}

static wf_cuda_gemm a_gemm(void)
{
    return (wf_cuda_gemm){.dtype = WF_F32,
                          .trans_a = true,
                          .sums = WF_CUDA_SUMS_OF_B,
                          .sum = {sum_nothing, NULL, (size_t)1 << 20},
                          .m = 3,
                          .n = 4,
                          .k = 5,
                          .alpha = 1,
                          .batch = 1,
                          .aligned = 64};
}

/* Plans it; whether that took time on a GPU. */
static bool is_measured(wf_cuda_sums sums)
{
    const double before = cuda_host_count().ms;
    wf_cuda_gemm g = a_gemm();
    wf_prep prep = {.device = cuda_host_device()};
    wf_cuda_gemm_way *w = NULL;

    g.sums = sums;
    assert_ok(wf_cuda_gemm_new(&prep, &g, &w, &err), err);
    wf_cuda_gemm_free(w);
    return cuda_host_count().ms > before;
}

/* A product with sums is another case than one without, or with those of the other factor: files
 * of the former say nothing of the latter. */
static void what_is_kept_is_of_these_sums(void **state)
{
    static const wf_cuda_sums each[] = {WF_CUDA_NO_SUMS, WF_CUDA_SUMS_OF_A, WF_CUDA_SUMS_OF_B};

    (void)state;
    (void)!wf_remove_tree(folder, NULL);
    for (size_t i = 0; i < WF_COUNT(each); i++)
        assert_true(is_measured(each[i]));
    for (size_t i = 0; i < WF_COUNT(each); i++)
        assert_false(is_measured(each[i]));
}

/* A plan that is measured without a GPU has room for each way. */
static size_t workspace_of(bool takes_any)
{
    const wf_cuda_gemm g = a_gemm();
    wf_prep prep = {.device = cuda_host_device(), .untimed = true, .takes_any = takes_any};
    wf_cuda_gemm_way *w = NULL;

    assert_ok(wf_cuda_gemm_new(&prep, &g, &w, &err), err);
    wf_cuda_gemm_free(w);
    return prep.workspace_bytes;
}

static void a_plan_has_room_for_the_way_that_is_taken(void **state)
{
    (void)state;
    assert_true(workspace_of(false) < (size_t)1 << 20);
    assert_true(workspace_of(true) >= (size_t)1 << 20);
    cuda_host_refuse_sums(true);
    assert_true(workspace_of(false) >= (size_t)1 << 20);
    cuda_host_refuse_sums(false);
}

/* ---- mistakes and failures ---- */

static bool has_place;

static void run_sums(void)
{
    const wf_cuda_gemm g = a_gemm();
    wf_prep prep = {.device = cuda_host_device(), .untimed = true};
    wf_run run = {.device = prep.device};
    uint8_t *a = wf_device_alloc(prep.device, 4096);
    wf_cuda_gemm_way *w = NULL;

    assert_ok(wf_cuda_gemm_new(&prep, &g, &w, &err), err);
    run.workspace = wf_device_alloc(prep.device, prep.workspace_bytes);
    assert_ok(wf_stream_new(prep.device, &run.stream, &err), err);
    assert_ok(
        wf_cuda_gemm_go_sums(w, &run, a, a + 1024, has_place ? a + 3072 : NULL, a + 2048, &err),
        err);
    assert_ok(wf_stream_wait(run.stream, &err), err);
    wf_cuda_gemm_free(w);
    wf_stream_free(&run.stream);
    wf_device_free(prep.device, run.workspace);
    wf_device_free(prep.device, a);
}

static void sums_without_a_place_are_found(void **state)
{
    char said[SAID];

    (void)state;
    has_place = true;
    run_sums();
    has_place = false;
    assert_int_equal(ends_by(run_sums, said), SIGABRT);
    assert_non_null(strstr(said, "no place for its sums"));
}

/* Rows of a factor along which a product does not add up: cuBLASLt has nothing for them. */
static void the_other_layout_is_summed_apart(void **state)
{
    wf_cuda_gemm g = a_gemm();
    wf_prep prep = {.device = cuda_host_device(), .untimed = true};
    wf_cuda_gemm_way *w = NULL;

    (void)state;
    g.trans_b = true;
    assert_ok(wf_cuda_gemm_new(&prep, &g, &w, &err), err);
    assert_true(prep.workspace_bytes >= (size_t)1 << 20);
    wf_cuda_gemm_free(w);
}

/* Each call in turn gives an error: what was made before it is given back. An error that says there
 * is no such algorithm is one only where there is no other. */
static void a_failure_leaves_nothing(void **state)
{
    static const struct {
        const char *call;
        int after;
    } calls[] = {{"product_new", 0}, {"product_new", 1}, {"product_set", 0}, {"product_set", 1},
                 {"product_set", 2}, {"layout_new", 0},  {"choose", 1}};
    const wf_cuda_gemm g = a_gemm();

    (void)state;
    for (size_t i = 0; i < WF_COUNT(calls); i++) {
        wf_prep prep = {.device = cuda_host_device(), .untimed = true, .takes_any = true};
        wf_cuda_gemm_way *w = NULL;

        cuda_host_fail(calls[i].call, calls[i].after, WF_CUDA_NO_ALGORITHM);
        assert_int_equal(wf_cuda_gemm_new(&prep, &g, &w, &err), WF_BROKEN);
        assert_null(w);
        cuda_host_fail(NULL, 0, 0);
    }
    cuda_host_fail("choose", 0, WF_CUDA_OF_BLAS + 7); /* another error is one */
    assert_int_equal(wf_cuda_gemm_new(&(wf_prep){.device = cuda_host_device(), .untimed = true}, &g,
                                      &(wf_cuda_gemm_way *){NULL}, &err),
                     WF_BROKEN);
    cuda_host_fail(NULL, 0, 0);
    assert_true(cuda_host_is_left_as_it_was());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_cpu),
        cmocka_unit_test(nothing_to_add_up_gives_zeros),
        cmocka_unit_test(a_product_that_has_the_sums_launches_no_kernel),
        cmocka_unit_test(a_step_has_a_kernel_less_for_each_layer),
        cmocka_unit_test(the_faster_way_is_taken),
        cmocka_unit_test(what_is_kept_is_of_these_sums),
        cmocka_unit_test(a_plan_has_room_for_the_way_that_is_taken),
        cmocka_unit_test(sums_without_a_place_are_found),
        cmocka_unit_test(the_other_layout_is_summed_apart),
        cmocka_unit_test(a_failure_leaves_nothing),
    };
    int failed;

    wf_log_init("", WF_ERROR);
    if (!mkdtemp(folder))
        return 2;
    setenv("WEFT_CACHE", folder, 1);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)!wf_remove_tree(folder, NULL);
    return failed;
}
