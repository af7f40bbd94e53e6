/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/embedding_bag.c - EmbeddingBag(table, ids, weights): the rows of a bag
 * become one while they are read; the list of them, which is `most` times as large, is never
 * written. EmbeddingBagGrad(dy, ids, table, weights) and EmbeddingBagWeightsGrad(dy, ids, table).
 */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <inttypes.h>
#include <string.h>

typedef struct bags {
    const wf_tensor *ids; /* [n, most] */
    const void *table;    /* [axis, dim] */
    const void *weights;  /* [n, most]; NULL: all are 1 */
    void *rows;           /* [n, dim]: of each bag its row, or the gradient of that */
    void *grad;           /* as the table, or as the weights */
    int64_t n, most, axis, dim;
} bags;

static WF_INLINE int64_t id_at(const bags *b, int64_t i)
{
    return b->ids->dtype == WF_I64 ? ((const int64_t *)b->ids->data)[i] : wf_int_at(b->ids, i);
}

#define T float
#define SUFFIX f32
#include "common/kernels/cpu/index/embedding_bag_template.h"
#define T double
#define SUFFIX f64
#include "common/kernels/cpu/index/embedding_bag_template.h"

/* One number to be held against the rows, in place of a branch for each id. */
WF_MULTIVERSION
static int64_t largest_id(const int64_t ids[], int64_t n)
{
    int64_t most = -1;

    for (int64_t i = 0; i < n; i++)
        most = ids[i] > most ? ids[i] : most;
    return most;
}

/* All ids are looked at before one is used. */
static wf_status bags_of(const wf_tensor *ids, const wf_tensor *table, bags *b, wf_err *err)
{
    int64_t most = wf_dim(ids, -1), total = wf_elems(ids);

    *b = (bags){.ids = ids,
                .table = table->data,
                .n = most ? total / most : 0,
                .most = most,
                .axis = table->dims[0],
                .dim = table->dims[1]};
    if (ids->dtype == WF_I64 && largest_id(ids->data, total) < b->axis)
        return WF_OK;
    for (int64_t i = 0; i < total; i++)
        if (WF_UNLIKELY(id_at(b, i) >= b->axis))
            return wf_fail(err, WF_INVALID, NULL,
                           "id %" PRId64 ", number %" PRId64
                           " of them, is not in a table of %" PRId64 " rows",
                           id_at(b, i), i, b->axis);
    return WF_OK;
}

/* Over bags, or over rows of the gradient, in pieces of about WF_GRAIN elements. */
static void for_bags(const wf_run *run, bags *b, void (*work)(void *, int64_t, int64_t))
{
    int64_t each = WF_MAX(b->most * b->dim, (int64_t)1);

    wf_pool_for(run->pool, b->n, WF_MAX(WF_GRAIN / each, (int64_t)1), work, b);
}

static void for_rows(const wf_run *run, bags *b, void (*work)(void *, int64_t, int64_t))
{
    int64_t threads = wf_pool_threads(run->pool);
    int64_t elems = WF_MAX(b->axis, b->n * b->most) * b->dim;

    /* One range for each thread at most, and none for little work. */
    wf_pool_for(run->pool, b->axis,
                WF_MAX(wf_ceil_div(b->axis, WF_MIN(threads, elems / WF_GRAIN + 1)), (int64_t)1),
                work, b);
}

static bool is_max(const wf_run *run)
{
    return strcmp(wf_node_string(run->node, "mode", "sum"), "max") == 0;
}

static wf_status embedding_bag(const wf_run *run, const wf_tensor *const in[],
                               wf_tensor *const out[], wf_err *err)
{
    bool f32 = out[0]->dtype == WF_F32;
    bags b;

    WF_TRY(bags_of(in[1], in[0], &b, err));
    b.weights = wf_data_of(in[2]);
    b.rows = out[0]->data;
    if (b.most == 0 && wf_elems(out[0]))
        memset(out[0]->data, 0, wf_tensor_bytes(out[0]));
    if (is_max(run))
        for_bags(run, &b, f32 ? max_bags_f32 : max_bags_f64);
    else
        for_bags(run, &b, f32 ? sum_bags_f32 : sum_bags_f64);
    return WF_OK;
}

static wf_status embedding_bag_grad(const wf_run *run, const wf_tensor *const in[],
                                    wf_tensor *const out[], wf_err *err)
{
    bool f32 = out[0]->dtype == WF_F32;
    bags b;

    WF_TRY(bags_of(in[1], in[2], &b, err));
    b.rows = in[0]->data;
    b.weights = wf_data_of(in[3]);
    b.grad = out[0]->data;
    if (is_max(run))
        for_rows(run, &b, f32 ? add_largest_f32 : add_largest_f64);
    else
        for_rows(run, &b, f32 ? add_rows_f32 : add_rows_f64);
    return WF_OK;
}

static wf_status embedding_bag_weights_grad(const wf_run *run, const wf_tensor *const in[],
                                            wf_tensor *const out[], wf_err *err)
{
    bags b;

    WF_TRY(bags_of(in[1], in[2], &b, err));
    b.rows = in[0]->data;
    b.grad = out[0]->data;
    for_bags(run, &b, out[0]->dtype == WF_F32 ? weights_grad_f32 : weights_grad_f64);
    return WF_OK;
}

const wf_kernel wf_kernels_embedding_bag[] = {
    WF_ROW("EmbeddingBag", WF_TYPES_FLOAT, embedding_bag, .domain = WF_DOMAIN_WEFT),
    WF_ROW("EmbeddingBagGrad", WF_TYPES_FLOAT, embedding_bag_grad, .domain = WF_DOMAIN_WEFT),
    WF_ROW("EmbeddingBagWeightsGrad", WF_TYPES_FLOAT, embedding_bag_weights_grad,
           .domain = WF_DOMAIN_WEFT),
    {0},
};
