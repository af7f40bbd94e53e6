/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/matmul.c - MatMul: products of the last two axes, the axes before them
 * broadcast; vectors are rows on the left and columns on the right. And Product, which reads them
 * transposed, and may sum the rows of one: as ReduceSum does, with its bits. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/product/gemm_avx512.h"
#include "common/kernels/cpu/product/product.h"
#include "common/kernels/cpu/reduce/reduce.h"
#include "common/kernels/shape/walk.h"

typedef struct plan {
    wf_product product;
    wf_product_way *way; /* of a single product; NULL: there are several */
    wf_walk batch;       /* of matrices: operands A and B */
    bool own;            /* several in f32, on AVX-512; or OpenBLAS */
    wf_gemm gemm;
    int64_t parts;
    size_t room; /* workspace of a part */
    void *sums;  /* how rows are summed; NULL: they are not, or the product does it */
    int summed;  /* the operand whose rows are */
} plan;

typedef struct job {
    const plan *s;
    wf_product product;
    char *workspace;
} job;

/* What a thread works with. */
typedef struct part {
    const job *j;
    char *room;
} part;

static bool fits(const wf_product *p)
{
    return WF_MAX(WF_MAX(p->m, p->n), p->k) <= INT32_MAX;
}

static void prepare_several(wf_prep *prep, plan *s)
{
    const wf_product *p = &s->product;

    s->parts = WF_MAX(WF_MIN((int64_t)prep->threads, s->batch.elems), INT64_C(1));
    s->own = p->dtype == WF_F32 && wf_gemm_is_here();
    if (!s->own)
        return;
    s->gemm = (wf_gemm){.trans_a = p->trans_a,
                        .trans_b = p->trans_b,
                        .m = p->m,
                        .n = p->n,
                        .k = p->k,
                        .lda = p->trans_a ? p->m : p->k,
                        .ldb = p->trans_b ? p->k : p->n,
                        .ldc = p->n};
    s->room = wf_align_up(wf_gemm_room(&s->gemm), 128);
    prep->workspace_bytes = (size_t)s->parts * s->room;
}

static bool sums_b(const wf_prep *prep)
{
    return wf_node_string(prep->node, "sums", "")[0] == 'b';
}

/* The product is done before rows are summed, in the same workspace. */
static wf_status prepare_sums(wf_prep *prep, plan *s, const wf_tensor *const in[], wf_err *err)
{
    const size_t before = prep->workspace_bytes;

    s->summed = sums_b(prep);
    prep->workspace_bytes = 0;
    WF_TRY(wf_reduce_prepare(prep, in[s->summed], 1, err));
    s->sums = prep->state;
    prep->state = s;
    prep->workspace_bytes = WF_MAX(prep->workspace_bytes, before);
    return WF_OK;
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
    *p = (wf_product){.trans_a = wf_node_int(prep->node, "transA", 0) != 0,
                      .trans_b = wf_node_int(prep->node, "transB", 0) != 0,
                      .alpha = 1};
    wf_product_types(p, a, b, out[0]);
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
    if (s->batch.elems == 1) {
        WF_TRY(wf_product_prepare(prep, p, out[1] && sums_b(prep) ? WF_PRODUCT_SUMS_B : 0, &s->way,
                                  err));
        prep->widens = prep->widens || (out[1] && out[1]->dtype == WF_BF16);
        return out[1] && !wf_product_sums_b(s->way) ? prepare_sums(prep, s, in, err) : WF_OK;
    }
    prep->widens = p->a_is_bf16 || p->b_is_bf16 || p->c_is_bf16;
    prepare_several(prep, s);
    return WF_OK;
}

static void span(void *arg, const wf_span *s)
{
    const part *l = arg;
    const job *j = l->j;
    size_t size = wf_dtype_size(j->product.dtype);
    int64_t m = j->product.m, n = j->product.n, k = j->product.k;

    for (int64_t i = 0; i < s->count; i++) {
        wf_product p = j->product;

        p.a = (const char *)p.a + (size_t)((s->at[0] + i * s->step[0]) * m * k) * size;
        p.b = (const char *)p.b + (size_t)((s->at[1] + i * s->step[1]) * k * n) * size;
        p.c = (char *)p.c + (size_t)((s->first + i) * m * n) * size;
        if (j->s->own)
            wf_gemm_go(&j->s->gemm, p.a, p.b, NULL, p.c, l->room);
        else
            wf_product_run(&p, NULL);
    }
}

/* Parts [begin, end) of the matrices. */
static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const plan *s = j->s;

    for (int64_t i = begin; i < end; i++) {
        part l = {j, j->workspace + (size_t)i * s->room};

        wf_walk_range(&s->batch, i * s->batch.elems / s->parts, (i + 1) * s->batch.elems / s->parts,
                      span, &l);
    }
}

static void sum_rows(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[])
{
    const plan *s = run->state;
    wf_run sums = *run;

    sums.state = s->sums;
    wf_reduce_run(&sums, WF_REDUCE_SUM, in[s->summed], out[1]);
}

static wf_status matmul(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    const plan *s = run->state;
    job j = {s, s->product, run->workspace};

    (void)err;
    if (s->way) {
        wf_product_go(s->way, run,
                      &(wf_product_operands){.a = in[0]->data,
                                             .b = in[1]->data,
                                             .c = out[0]->data,
                                             .sums = out[1] ? out[1]->data : NULL});
        if (s->sums)
            sum_rows(run, in, out);
        return WF_OK;
    }
    j.product.a = in[0]->data;
    j.product.b = in[1]->data;
    j.product.c = out[0]->data;
    wf_pool_for(run->pool, s->parts, 1, range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_matmul[] = {
    WF_ROW("MatMul", WF_TYPES_FLOAT, matmul, .prepare = prepare, .is_narrow = true),
    WF_ROW("Product", WF_TYPES_FLOAT, matmul, .domain = WF_DOMAIN_WEFT, .prepare = prepare,
           .is_narrow = true),
    {0},
};
