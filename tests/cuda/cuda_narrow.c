/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_narrow.c - operations over narrow types launch no kernel beside their own: what
 * cuBLASLt and cuDNN compute reads and writes tensors where they lie. The results are the matter of
 * tests/unit/narrow_kernels.c. */
#include "common/base/cc.h"
#include "common/exec/exec.h"
#include "common/graph/narrow.h"
#include "common/log/log.h"
#include "tests/cuda/host.h"
#include "tests/unit/graph_test.h"

#include <stdlib.h>

enum { MOST_IN = 4, MOST_OUT = 3, SEEDS = 24 };

typedef struct step {
    const char *op;
    uint32_t narrow_in, narrow_out; /* bit i: in the narrow type */
    uint32_t n_out;
    size_t launches;    /* of kernels, if cuDNN takes the case where it is asked */
    int64_t executions; /* by cuDNN */
    struct {
        uint32_t rank;
        int64_t dims[4];
    } in[MOST_IN];
    bool trains;            /* attr training_mode */
    const char *activation; /* attr, or NULL */
} step;

#define IN(...)                                                                                    \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                                        \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static wf_err err;
static const wf_dtype types[] = {WF_BF16, WF_F16};

static wf_graph *graph_of(const step *s, wf_dtype type)
{
    static const char *const names[MOST_IN] = {"a", "b", "c", "d"};
    const wf_attr attr =
        s->trains ? wf_attr_int("training_mode", 1) : wf_attr_string("activation", s->activation);
    wf_graph *g = new_graph();
    wf_emit e = wf_emit_begin(g, "node", NULL);
    wf_value *in[MOST_IN], *out[MOST_OUT];
    uint32_t n = 0;
    wf_node *node;

    for (; n < MOST_IN && s->in[n].rank; n++)
        in[n] = input(g, names[n], s->in[n].rank, s->in[n].dims);
    node = wf_emit_node(&e, s->op, n, in, s->trains || s->activation, &attr, s->n_out, out);
    assert_non_null(node);
    assert_ok(wf_emit_end(&e), err);
    for (uint32_t i = 0; i < n; i++)
        if (s->narrow_in >> i & 1)
            in[i]->dtype = type;
    assert_ok(wf_node_set_string(g, node, WF_NARROW, wf_dtype_name(type), &err), err);
    assert_ok(wf_node_set_int(g, node, WF_NARROW_OUT, s->narrow_out, &err), err);
    assert_ok(wf_infer(g, &err), err);
    for (uint32_t i = 0; i < s->n_out; i++)
        assert_ok(wf_graph_add_output(g, out[i], &err), err);
    return g;
}

/* What a run of it adds to the counts. */
static cuda_host_counts counts_of(const step *s, wf_dtype type)
{
    wf_graph *g = graph_of(s, type);
    wf_plan_options o = {.device = cuda_host_device(),
                         .compute = wf_compute_of(wf_dtype_name(type)),
                         .deterministic = true};
    cuda_host_counts before, after;
    wf_plan *p = NULL;
    void *fed[MOST_IN];

    assert_ok(wf_plan_new(g, &o, &p, &err), err);
    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++) {
        fed[i] = calloc(1, wf_plan_input(p, i)->bytes);
        assert_non_null(fed[i]);
        wf_plan_bind_input(p, i, fed[i]);
    }
    before = cuda_host_count();
    assert_ok(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), err);
    after = cuda_host_count();
    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++)
        free(fed[i]);
    wf_plan_free(&p);
    wf_graph_free(&g);
    after.launches -= before.launches;
    after.dnn_executed -= before.dnn_executed;
    return after;
}

static void launches(const step *s)
{
    for (size_t i = 0; i < WF_COUNT(types); i++) {
        const cuda_host_counts c = counts_of(s, types[i]);

        assert_int_equal(c.dnn_executed, 0);
        if (c.launches != s->launches)
            fail_msg("%s in %s, in %x, out %x: %d launches, not %d", s->op, wf_dtype_name(types[i]),
                     s->narrow_in, s->narrow_out, (int)c.launches, (int)s->launches);
    }
}

static void products_read_and_write_narrow_tensors(void **state)
{
    (void)state;
    launches(&(step){"Gemm", 3, 1, 1, .in = {IN(8, 16), IN(16, 24)}});
    launches(&(step){"MatMul", 3, 1, 1, .in = {IN(2, 8, 16), IN(2, 16, 24)}});
    launches(&(step){"Linear", 3, 0, 1, .in = {IN(2, 8, 16), IN(16, 24), IN(24)}});
    launches(&(step){"Linear", 15, 1, 1, 1, .in = {IN(8, 16), IN(16, 24), IN(24), IN(8, 24)},
                     .activation = "ReluGrad"});
    /* One of float32 is rounded, as is a row that is added to narrow results. */
    launches(&(step){"Linear", 1, 0, 1, 1, .in = {IN(2, 8, 16), IN(16, 24)}});
    launches(&(step){"Linear", 1, 1, 1, 2, .in = {IN(2, 8, 16), IN(16, 24), IN(24)}});
}

static void kernels_read_and_write_narrow_tensors(void **state)
{
    (void)state;
    launches(&(step){"Relu", 1, 1, 1, 1, .in = {IN(8, 16)}});
    launches(&(step){"Mul", 2, 1, 1, 1, .in = {IN(8, 16), IN(16)}});
    launches(&(step){"GeluGrad", 3, 1, 1, 1, .in = {IN(8, 16), IN(8, 16)}});
    launches(&(step){"LayerNormalization", 1, 1, 1, 1, .in = {IN(8, 16), IN(16), IN(16)}});
    launches(&(step){"ReduceSum", 1, 0, 1, 1, .in = {IN(8, 16)}});
    launches(&(step){"GlobalMaxPool", 1, 1, 1, 1, .in = {IN(2, 3, 4, 4)}});
    launches(&(step){"GlobalAveragePool", 1, 1, 1, 1, .in = {IN(2, 3, 4, 4)}});
    launches(&(step){"AveragePoolGrad", 2, 1, 1, 1, .in = {IN(2, 3, 1, 1), IN(2, 3, 4, 4)}});
    /* Sums, moments, lines and the result: cuDNN has no mixture of types. */
    launches(&(step){"BatchNormalizationTrain", 1, 0, 1, 4, .in = {IN(2, 3, 4, 4), IN(3), IN(3)}});
}

/* Of cuDNN's engines the host refuses some at random. batched: bits of operands
 * that have a batch. */
static void is_executed_alone_in(wf_dtype type, step s, uint32_t batched)
{
    bool seen = false;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        cuda_host_counts c;

        cuda_host_seed(seed);
        for (uint32_t i = 0; i < MOST_IN; i++)
            if (batched >> i & 1)
                s.in[i].dims[0] = 1 + (int64_t)seed; /* a case that was never asked for */
        c = counts_of(&s, type);
        if (c.dnn_executed == 0)
            continue;
        seen = true;
        assert_int_equal(c.dnn_executed, s.executions);
        if (c.launches != s.launches)
            fail_msg("%s, in %x, out %x: %d launches, not %d", s.op, s.narrow_in, s.narrow_out,
                     (int)c.launches, (int)s.launches);
    }
    assert_true(seen);
}

static void is_executed_alone(step s, uint32_t batched)
{
    for (size_t i = 0; i < WF_COUNT(types); i++)
        is_executed_alone_in(types[i], s, batched);
}

static void cudnn_reads_and_writes_bfloat16(void **state)
{
    const step attention = {
        "DotAttention", 7, 1, 1, 0, 1, .in = {IN(2, 5, 8), IN(2, 4, 8), IN(2, 4, 8)}};
    const step gradient = {"DotAttentionGrad",
                           15,
                           7,
                           3,
                           0,
                           2,
                           .in = {IN(2, 5, 8), IN(2, 5, 8), IN(2, 4, 8), IN(2, 4, 8)}};
    const step kept = {
        "DotAttention", 7, 1, 2, 0, 1, .in = {IN(2, 5, 8), IN(2, 4, 8), IN(2, 4, 8)}};
    const step narrow = {"Conv", 3, 1, 1, 0, 1, .in = {IN(2, 3, 6, 6), IN(4, 3, 3, 3)}};
    /* Weights are rounded, and the result is widened. */
    const step mixed = {"Conv", 1, 0, 1, 2, 1, .in = {IN(2, 3, 6, 6), IN(4, 3, 3, 3)}};
    const step back = {
        "ConvDataGrad", 7, 1, 1, 0, 1, .in = {IN(2, 4, 4, 4), IN(4, 3, 3, 3), IN(2, 3, 6, 6)}};
    /* Beside it a channel's moments: taken from it and given out, or summed and handed to it. */
    const step norm = {"BatchNormalizationTrain",           1, 1, 3, 2, 1,
                       .in = {IN(2, 3, 4, 4), IN(3), IN(3)}};
    const step norm_back = {"BatchNormalizationGrad",
                            3,
                            1,
                            3,
                            3,
                            1,
                            .in = {IN(2, 3, 4, 4), IN(2, 3, 4, 4), IN(3)},
                            .trains = true};

    (void)state;
    is_executed_alone(attention, 7);
    is_executed_alone(gradient, 15);
    is_executed_alone(kept, 7);
    is_executed_alone(narrow, 1);
    is_executed_alone(mixed, 1);
    is_executed_alone(back, 5);
    is_executed_alone(norm, 1);
    is_executed_alone(norm_back, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_read_and_write_narrow_tensors),
        cmocka_unit_test(kernels_read_and_write_narrow_tensors),
        cmocka_unit_test(cudnn_reads_and_writes_bfloat16),
    };

    wf_log_init("", WF_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
