/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/matmul.c - MatMul: products of the last two axes, the axes before them
 * broadcast; vectors are rows on the left and columns on the right. And Product, which reads them
 * transposed. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/product.h"
#include "common/kernels/cpu/walk.h"

typedef struct plan {
    wf_product product;
    wf_product_way *way; /* of a single product; NULL: there are several */
    wf_walk batch;       /* of matrices: operands A and B */
} plan;

typedef struct job {
    wf_product product;
    const wf_walk *batch;
} job;

static void release(void *state)
{
    wf_product_release(((plan *)state)->way);
}

static bool fits(const wf_product *p)
{
    return WF_MAX(WF_MAX(p->m, p->n), p->k) <= INT32_MAX;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    const wf_tensor *a = in[0], *b = in[1];
    plan *s = wf_arena_alloc(prep->arena, sizeof *s);
    wf_tensor heads[2] = {*a, *b}, head = *out[0];
    const wf_tensor *operands[2] = {&heads[0], &heads[1]};
    wf_product *p;

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    p = &s->product;
    *p = (wf_product){.dtype = a->dtype,
                      .trans_a = wf_node_int(prep->node, "transA", 0) != 0,
                      .trans_b = wf_node_int(prep->node, "transB", 0) != 0,
                      .alpha = 1};
    p->m = a->rank > 1 ? wf_dim(a, p->trans_a ? -1 : -2) : 1;
    p->n = b->rank > 1 ? wf_dim(b, p->trans_b ? -2 : -1) : 1;
    p->k = wf_dim(a, p->trans_a ? -2 : -1);
    heads[0].rank = a->rank > 2 ? a->rank - 2 : 0;
    heads[1].rank = b->rank > 2 ? b->rank - 2 : 0;
    head.rank = WF_MAX(heads[0].rank, heads[1].rank);
    wf_walk_broadcast(&s->batch, &head, 2, operands);
    if (heads[1].rank == 0 && heads[0].rank > 0 && !p->trans_a) {
        /* One right side for all: the matrices of A lie below each other and are one. */
        p->m *= s->batch.elems;
        head.rank = 0;
        heads[0].rank = 0;
        wf_walk_broadcast(&s->batch, &head, 2, operands);
    }
    if (!fits(p))
        return wf_fail(err, WF_UNSUPPORTED, NULL, "an axis is longer than 2^31 - 1");
    prep->state = s;
    prep->release = release;
    return s->batch.elems == 1 ? wf_product_prepare(prep, p, 0, &s->way, err) : WF_OK;
}

static void span(void *arg, const wf_span *s)
{
    const job *j = arg;
    size_t size = wf_dtype_size(j->product.dtype);
    int64_t m = j->product.m, n = j->product.n, k = j->product.k;

    for (int64_t i = 0; i < s->count; i++) {
        wf_product p = j->product;

        p.a = (const char *)p.a + (size_t)((s->at[0] + i * s->step[0]) * m * k) * size;
        p.b = (const char *)p.b + (size_t)((s->at[1] + i * s->step[1]) * k * n) * size;
        p.c = (char *)p.c + (size_t)((s->first + i) * m * n) * size;
        wf_product_run(&p, NULL);
    }
}

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    wf_walk_range(j->batch, begin, end, span, arg);
}

static wf_status matmul(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    const plan *s = run->state;
    job j = {s->product, &s->batch};

    (void)err;
    if (s->way) {
        wf_product_go(s->way, run, in[0]->data, in[1]->data, NULL, out[0]->data);
        return WF_OK;
    }
    j.product.a = in[0]->data;
    j.product.b = in[1]->data;
    j.product.c = out[0]->data;
    wf_pool_for(run->pool, s->batch.elems, 1, range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_matmul[] = {
    WF_ROW("MatMul", WF_TYPES_FLOAT, matmul, .prepare = prepare),
    WF_ROW("Product", WF_TYPES_FLOAT, matmul, .domain = WF_DOMAIN_WEFT, .prepare = prepare),
    {0},
};
