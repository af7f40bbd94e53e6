/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/einsum.c - Einsum. Each operand is packed, by one walk, into [batch, rows,
 * inner, alone]: labels that both and the result have, that it and the result have, that both have,
 * and that it has alone; the last are summed. Then one matrix product per batch, and a walk that
 * puts the axes of the result into its order. A repeated label is a walk along a diagonal, and a
 * broadcast axis one that does not move, so neither needs code of its own.
 */
#include "common/graph/einsum.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/product/blas.h"
#include "common/kernels/cpu/shape/move.h"

#include <string.h>

/* How an operand is packed: dims of the walk are those groups of labels, in this order. */
typedef struct packing {
    wf_walk walk;
    int64_t elems, alone; /* after the sum; what is summed into each */
} packing;

typedef struct plan {
    packing in[WF_EINSUM_OPERANDS];
    wf_walk result; /* over [batch, rows of 0, rows of 1]; operand 0 is the result */
    int64_t batch, m, n, k;
    size_t packed[WF_EINSUM_OPERANDS], product; /* byte offsets in the workspace */
} plan;

/* Where the labels occur: bit 0 and 1 in the operands, bit 2 in the result. */
enum { IN_0 = 1, IN_1 = 2, IN_OUT = 4 };

typedef struct labels {
    wf_einsum e;
    int64_t size[WF_EINSUM_LABELS];
    unsigned where[WF_EINSUM_LABELS];
} labels;

static wf_status read_labels(const wf_node *node, const wf_tensor *const in[],
                             const wf_tensor *const out[], labels *l, wf_err *err)
{
    uint32_t ranks[WF_EINSUM_OPERANDS] = {0};
    int64_t all = 1;

    *l = (labels){.size = {0}};
    for (uint32_t i = 0; i < node->n_in && i < WF_EINSUM_OPERANDS; i++)
        ranks[i] = in[i]->rank;
    WF_TRY(wf_einsum_parse(wf_node_string(node, "equation", ""), node->n_in, ranks, &l->e, err));
    for (uint32_t i = 0; i < WF_EINSUM_LABELS; i++)
        l->size[i] = 1;
    for (uint32_t i = 0; i < l->e.n_in; i++)
        for (uint32_t k = 0; k < ranks[i]; k++) {
            uint8_t label = l->e.in[i].label[k];

            l->where[label] |= 1u << i;
            if (in[i]->dims[k] != 1)
                l->size[label] = in[i]->dims[k];
        }
    for (uint32_t k = 0; k < out[0]->rank; k++)
        l->where[l->e.out.label[k]] |= IN_OUT;
    /* No product of sizes below can overflow, whatever an axis without elements lets others be. */
    for (uint32_t i = 0; i < l->e.n_labels; i++)
        if (!wf_mul_i64(all, WF_MAX(l->size[i], (int64_t)1), &all))
            return wf_fail(err, WF_UNSUPPORTED, NULL, "its parts are larger than weft multiplies");
    return WF_OK;
}

/* Adds the labels that occur just there to a list of dims. Returns the product of their sizes. */
static int64_t add_labels(const labels *l, unsigned where, uint8_t list[], uint32_t *n)
{
    int64_t product = 1;

    for (uint32_t i = 0; i < l->e.n_labels; i++)
        if (l->where[i] == where) {
            list[(*n)++] = (uint8_t)i;
            product *= l->size[i];
        }
    return product;
}

/* A walk over the labels in `list`, which moves through t. */
static void walk_labels(const labels *l, const uint8_t list[], uint32_t n, const wf_tensor *t,
                        const wf_einsum_term *term, wf_walk *walk)
{
    int64_t own[WF_MAX_RANK], dims[WF_MAX_RANK], strides[1][WF_MAX_RANK] = {{0}};

    wf_strides(t->rank, t->dims, own);
    for (uint32_t i = 0; i < n; i++) {
        dims[i] = l->size[list[i]];
        for (uint32_t k = 0; k < term->rank; k++)
            if (term->label[k] == list[i] && t->dims[k] != 1)
                strides[0][i] += own[k];
    }
    wf_walk_strided(walk, n, dims, 1, (const int64_t(*)[WF_MAX_RANK])strides);
}

/* Takes `elems` elements of the workspace; false when that is more than there can be. */
static bool take_room(wf_prep *prep, int64_t elems, size_t size, size_t *at)
{
    size_t bytes;

    *at = wf_align_up(prep->workspace_bytes, WF_BUF_ALIGN);
    return wf_mul_size((size_t)elems, size, &bytes) &&
           wf_add_size(*at, bytes, &prep->workspace_bytes);
}

/* An operand's labels are at most its axes, so that a walk has room for them. */
static void plan_operand(const labels *l, uint32_t i, const wf_tensor *t, plan *p)
{
    unsigned own = 1u << i, both = l->e.n_in > 1 ? IN_0 | IN_1 : 0;
    uint8_t list[WF_EINSUM_LABELS] = {0};
    uint32_t n = 0;
    packing *to = &p->in[i];
    int64_t batch, rows, inner;

    batch = both ? add_labels(l, both | IN_OUT, list, &n) : 1;
    /* Of the right operand the inner labels come before its own: [k, n]. */
    rows = i == 0 ? add_labels(l, own | IN_OUT, list, &n) : 1;
    inner = both ? add_labels(l, both, list, &n) : 1;
    if (i == 1)
        rows = add_labels(l, own | IN_OUT, list, &n);
    to->elems = batch * rows * inner;
    to->alone = add_labels(l, own, list, &n);
    walk_labels(l, list, n, t, &l->e.in[i], &to->walk);
    p->batch = batch;
    p->k = inner;
    if (i == 0)
        p->m = rows;
    else
        p->n = rows;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    plan *p = wf_arena_alloc(prep->arena, sizeof *p);
    size_t size = wf_dtype_size(out[0]->dtype);
    uint8_t list[WF_EINSUM_LABELS] = {0};
    uint32_t n = 0;
    labels l;
    bool fits = true;

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    WF_TRY(read_labels(prep->node, in, out, &l, err));
    p->n = 1;
    for (uint32_t i = 0; i < l.e.n_in; i++) {
        plan_operand(&l, i, in[i], p);
        fits = fits &&
               take_room(prep, WF_MAX(p->in[i].walk.elems, p->in[i].elems), size, &p->packed[i]);
    }
    add_labels(&l, IN_0 | IN_1 | IN_OUT, list, &n);
    add_labels(&l, IN_0 | IN_OUT, list, &n);
    add_labels(&l, IN_1 | IN_OUT, list, &n);
    walk_labels(&l, list, n, out[0], &l.e.out, &p->result);
    fits = fits && take_room(prep, p->result.elems, size, &p->product);
    if (!fits || WF_MAX(WF_MAX(p->m, p->n), p->k) > INT32_MAX)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "its parts are larger than weft multiplies");
    prep->state = p;
    return WF_OK;
}

#define SUM(T)                                                                                     \
    WF_MULTIVERSION static void sum_##T(T *x, int64_t elems, int64_t alone)                        \
    {                                                                                              \
        for (int64_t i = 0; i < elems; i++) {                                                      \
            double sum = 0;                                                                        \
                                                                                                   \
            for (int64_t k = 0; k < alone; k++)                                                    \
                sum += (double)x[i * alone + k];                                                   \
            x[i] = (T)sum;                                                                         \
        }                                                                                          \
    }
SUM(float)
SUM(double)

static void pack(const packing *p, const wf_tensor *t, void *to)
{
    wf_gather_walk(&p->walk, wf_dtype_size(t->dtype), t->data, to);
    if (p->alone == 1)
        return;
    if (t->dtype == WF_F32)
        sum_float(to, p->elems, p->alone);
    else
        sum_double(to, p->elems, p->alone);
}

static wf_status einsum(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    const plan *p = run->state;
    size_t size = wf_dtype_size(out[0]->dtype);
    char *room[WF_EINSUM_OPERANDS], *product = (char *)run->workspace + p->product;

    (void)err;
    if (p->result.elems == 0)
        return WF_OK;
    for (uint32_t i = 0; i < run->node->n_in; i++) {
        room[i] = (char *)run->workspace + p->packed[i];
        pack(&p->in[i], in[i], room[i]);
    }
    if (run->node->n_in == 1)
        product = room[0];
    for (int64_t b = 0; run->node->n_in == 2 && b < p->batch; b++) {
        wf_product one = {.dtype = out[0]->dtype,
                          .m = p->m,
                          .n = p->n,
                          .k = p->k,
                          .alpha = 1,
                          .a = room[0] + (size_t)(b * p->m * p->k) * size,
                          .b = room[1] + (size_t)(b * p->k * p->n) * size,
                          .c = product + (size_t)(b * p->m * p->n) * size};

        wf_product_run(&one, run->pool);
    }
    wf_scatter_walk(&p->result, size, product, out[0]->data);
    return WF_OK;
}

const wf_kernel wf_kernels_einsum[] = {
    WF_ROW("Einsum", WF_TYPES_FLOAT, einsum, .prepare = prepare),
    {0},
};
