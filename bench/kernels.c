/* SPDX-License-Identifier: Apache-2.0 */
/* bench/kernels.c - how fast single kernels move and compute: GB/s of what they read and write.
 *
 *     bench_kernels [THREADS]
 *
 * 256 Ki elements (1 MiB in f32) lie in a second-level cache, 16 Mi do not. A kernel that falls far
 * behind Add does not vectorise.
 */
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/exec/exec.h"
#include "common/graph/emit.h"

#include <stdio.h>
#include <stdlib.h>

typedef wf_value *make_fn(wf_emit *e, wf_value *x, wf_value *row);

static wf_value *make_add(wf_emit *e, wf_value *x, wf_value *row)
{
    (void)row;
    return wf_emit_add(e, x, x);
}

static wf_value *make_add_row(wf_emit *e, wf_value *x, wf_value *row)
{
    return wf_emit_add(e, x, row);
}

static wf_value *make_where(wf_emit *e, wf_value *x, wf_value *row)
{
    return wf_emit_where(e, wf_emit_binary(e, "Greater", x, row), x, row);
}

static wf_value *make_sum_rows(wf_emit *e, wf_value *x, wf_value *row)
{
    (void)row;
    return wf_emit_reduce_sum(e, x, 1, (int64_t[]){0}, false);
}

static wf_value *make_sum_all(wf_emit *e, wf_value *x, wf_value *row)
{
    (void)row;
    return wf_emit_reduce_sum(e, x, 0, NULL, false);
}

static wf_value *make_sum_columns(wf_emit *e, wf_value *x, wf_value *row)
{
    (void)row;
    return wf_emit_reduce_sum(e, x, 1, (int64_t[]){1}, false);
}

static wf_value *make_max_columns(wf_emit *e, wf_value *x, wf_value *row)
{
    (void)row;
    return wf_emit_binary(e, "ReduceMax", x, wf_emit_ints(e, 1, (int64_t[]){1}));
}

static wf_value *make_gelu_grad(wf_emit *e, wf_value *x, wf_value *row)
{
    (void)row;
    return wf_emit_binary(e, "GeluGrad", x, x);
}

static wf_value *make_softmax_grad(wf_emit *e, wf_value *x, wf_value *row)
{
    (void)row;
    return wf_emit_binary(e, "SoftmaxGrad", x, x);
}

static wf_value *make_transpose(wf_emit *e, wf_value *x, wf_value *row)
{
    (void)row;
    return wf_emit_transpose(e, x, (int64_t[]){1, 0});
}

static wf_value *make_dropout(wf_emit *e, wf_value *x, wf_value *row)
{
    wf_tensor *t = NULL;

    (void)row;
    if (wf_tensor_new(WF_BOOL, 0, NULL, &t, e->err) != WF_OK)
        return NULL;
    *(uint8_t *)t->data = 1;
    return wf_emit_op(
        e, "Dropout", 3,
        (wf_value *[]){x, wf_emit_scalar(e, WF_F32, 0.5), wf_emit_constant(e, "on", &t)}, 0, NULL);
}

#define UNARY(op)                                                                                  \
    static wf_value *make_##op(wf_emit *e, wf_value *x, wf_value *row)                             \
    {                                                                                              \
        (void)row;                                                                                 \
        return wf_emit_unary(e, #op, x);                                                           \
    }
UNARY(Relu)
UNARY(Exp)
UNARY(Tanh)
UNARY(Sigmoid)
UNARY(Sqrt)
UNARY(Log)
UNARY(Erf)
UNARY(Gelu)
UNARY(Softplus)
UNARY(Elu)
UNARY(HardSwish)
UNARY(Sin)
UNARY(Softmax)
UNARY(LogSoftmax)

static const struct {
    const char *name;
    make_fn *make;
} rows[] = {
    {"Add", make_add},
    {"Add row", make_add_row},
    {"Relu", make_Relu},
    {"Exp", make_Exp},
    {"Tanh", make_Tanh},
    {"Sigmoid", make_Sigmoid},
    {"Sqrt", make_Sqrt},
    {"Log", make_Log},
    {"Erf", make_Erf},
    {"Gelu", make_Gelu},
    {"GeluGrad", make_gelu_grad},
    {"Softplus", make_Softplus},
    {"Elu", make_Elu},
    {"HardSwish", make_HardSwish},
    {"Sin", make_Sin},
    {"Softmax", make_Softmax},
    {"SoftmaxGrad", make_softmax_grad},
    {"LogSoftmax", make_LogSoftmax},
    {"Greater, Where", make_where},
    {"ReduceSum axis 0", make_sum_rows},
    {"ReduceSum axis 1", make_sum_columns},
    {"ReduceMax axis 1", make_max_columns},
    {"ReduceSum", make_sum_all},
    {"Transpose", make_transpose},
    {"Dropout", make_dropout},
};

static wf_status make_graph(make_fn *make, int64_t n_rows, int64_t n_cols, wf_graph **g,
                            wf_err *err)
{
    wf_value *x, *row, *y;
    wf_emit e;

    WF_TRY(wf_graph_new("kernel", g, err));
    WF_TRY(wf_graph_add_value(*g, "x", &x, err));
    WF_TRY(wf_graph_add_value(*g, "row", &row, err));
    wf_value_set_type(x, WF_F32, 2, (int64_t[]){n_rows, n_cols});
    wf_value_set_type(row, WF_F32, 1, &n_cols);
    WF_TRY(wf_graph_add_input(*g, x, err));
    WF_TRY(wf_graph_add_input(*g, row, err));
    e = wf_emit_begin(*g, "kernel", err);
    y = make(&e, x, row);
    WF_TRY(wf_emit_end(&e));
    return wf_graph_add_output(*g, y, err);
}

/* GB/s at the best of several runs: other programs only ever make it slower. */
static wf_status measure(make_fn *make, int64_t n_rows, int64_t n_cols, const float *data,
                         wf_pool *pool, double *rate, wf_err *err)
{
    wf_graph *g = NULL;
    wf_plan *p = NULL;
    wf_status rc = make_graph(make, n_rows, n_cols, &g, err);
    int64_t best = INT64_MAX;

    if (rc == WF_OK)
        rc = wf_plan_new(g, &(wf_plan_options){.pool = pool}, &p, err);
    for (int i = 0; rc == WF_OK && i < 20; i++) {
        int64_t from;

        wf_plan_bind_input(p, 0, data);
        wf_plan_bind_input(p, 1, data);
        from = wf_now_ns();
        rc = wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, err);
        if (wf_now_ns() - from < best)
            best = wf_now_ns() - from;
    }
    if (rc == WF_OK)
        *rate = (double)(wf_plan_input(p, 0)->bytes + wf_plan_output(p, 0)->bytes) / (double)best;
    wf_plan_free(&p);
    wf_graph_free(&g);
    return rc;
}

int main(int argc, char **argv)
{
    uint32_t threads = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    float *data = malloc(sizeof(float) << 24);
    wf_pool *pool = NULL;
    wf_err err;

    if (!data || wf_pool_new(threads, &pool, &err) != WF_OK)
        return 1;
    wf_rng_fill_f32((wf_rng_key){1, 1}, 0, data, (size_t)1 << 24);
    printf("GB/s on %u threads   256 Ki    16 Mi elements, 256 columns\n", threads);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double small = 0, large = 0;

        if (measure(rows[i].make, 1 << 10, 1 << 8, data, pool, &small, &err) != WF_OK ||
            measure(rows[i].make, 1 << 16, 1 << 8, data, pool, &large, &err) != WF_OK) {
            fprintf(stderr, "%s: %s\n", rows[i].name, err.what);
            return 1;
        }
        printf("%-18s %8.1f %8.1f\n", rows[i].name, small, large);
    }
    wf_pool_free(&pool);
    free(data);
    return 0;
}
