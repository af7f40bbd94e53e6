/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/einsum.c */
#include "common/kernels/shape/einsum.h"
#include "common/base/size.h"
#include "common/graph/graph.h"

/* Where the labels occur: bit 0 and 1 in the operands, bit 2 in the result. */
enum { IN_0 = 1, IN_1 = 2, IN_OUT = 4 };

typedef struct labels {
    wf_einsum e;
    int64_t size[WF_EINSUM_LABELS];
    unsigned where[WF_EINSUM_LABELS];
} labels;

static wf_status read_labels(const wf_node *node, const wf_tensor *const in[], const wf_tensor *out,
                             labels *l, wf_err *err)
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
    for (uint32_t k = 0; k < out->rank; k++)
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

/* An operand's labels are at most its axes, so that a walk has room for them. */
static void plan_operand(const labels *l, uint32_t i, const wf_tensor *t, wf_einsum_plan *p)
{
    unsigned own = 1u << i, both = l->e.n_in > 1 ? IN_0 | IN_1 : 0;
    uint8_t list[WF_EINSUM_LABELS] = {0};
    uint32_t n = 0;
    wf_packing *to = &p->in[i];
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

wf_status wf_einsum_plan_of(const wf_node *node, const wf_tensor *const in[], const wf_tensor *out,
                            wf_einsum_plan *p, wf_err *err)
{
    uint8_t list[WF_EINSUM_LABELS] = {0};
    uint32_t n = 0;
    labels l;

    WF_TRY(read_labels(node, in, out, &l, err));
    *p = (wf_einsum_plan){.n_in = l.e.n_in, .n = 1};
    for (uint32_t i = 0; i < l.e.n_in; i++)
        plan_operand(&l, i, in[i], p);
    add_labels(&l, IN_0 | IN_1 | IN_OUT, list, &n);
    add_labels(&l, IN_0 | IN_OUT, list, &n);
    add_labels(&l, IN_1 | IN_OUT, list, &n);
    walk_labels(&l, list, n, out, &l.e.out, &p->result);
    return WF_MAX(WF_MAX(p->m, p->n), p->k) <= INT32_MAX
               ? WF_OK
               : wf_fail(err, WF_UNSUPPORTED, NULL, "its parts are larger than weft multiplies");
}
