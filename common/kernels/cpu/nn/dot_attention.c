/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/dot_attention.c - DotAttention and its gradient: a block of rows of one
 * head's scores at a time, which stays in the second cache from the first product to the last.
 * Heads are dealt to the threads; all that is summed over rows belongs to one head, so that no
 * result depends on how many threads there are.
 *
 * Causal attention, and a mask that is known while planning and leaves whole blocks out, save the
 * work of these.
 */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/narrow.h"
#include "common/kernels/cpu/product/blas.h"
#include "common/kernels/cpu/product/gemm_avx512.h"
#include "common/kernels/cpu/product/product_tiles.h"
#include "common/kernels/cpu/product/tiles.h"
#include "common/kernels/cpu/vmath.h"
#include "common/kernels/shape/attention.h"
#include "common/kernels/shape/walk.h"

#include <math.h>
#include <string.h>

enum { ROWS = 64, LANES = 16 };

/* The products of a block: scores q k', their use p v, and the four of the way back. */
typedef enum stage { SCORES, USE, DV, DP, DQ, DK, STAGES } stage;

typedef struct plan {
    wf_attention a;
    bool sums;      /* the mask is added; else it says where `fill` goes */
    wf_walk mask;   /* over [heads..., t, s]; n 0: there is none */
    int64_t *until; /* [blocks]: columns past it are masked in all rows; NULL: s */
    uint32_t jobs;
    size_t scratch;         /* bytes of a thread */
    bool own;               /* f32 on AVX-512; or OpenBLAS */
    bool bf16;              /* products round their factors; scores and softmax stay f32 */
    size_t product_scratch; /* bytes of a thread, behind the others' */
    size_t results;         /* bytes of a thread for results of a head that are made apart first,
                             * since they are of bfloat16 or their rows lie apart, behind its
                             * product_scratch; or 0 */
} plan;

typedef struct job {
    const plan *p;
    const wf_tensor *const *in; /* q, k, v, (mask) */
    const wf_tensor *dy;        /* or NULL */
    const wf_tensor *sums;      /* of each row's exponentials, their logarithms; or NULL */
    wf_tensor *const *out;
    char *scratch;
    size_t size;
    wf_dtype dtype;
} job;

/* What one thread works with. */
typedef struct share {
    const job *j;
    char *scratch, *product_scratch, *results;
} share;

/* A block of rows of a head. */
typedef struct block {
    int64_t head, row, rows, columns;
    wf_factors q, k, v;
    void *scores; /* [rows, columns] */
} block;

/* Where a row of the mask lies. */
typedef struct place {
    int64_t at, step;
} place;

static place mask_row(const plan *p, int64_t head, int64_t row)
{
    const wf_walk *w = &p->mask;
    place m = {.at = row * w->strides[0][w->rank - 2], .step = w->strides[0][w->rank - 1]};

    for (uint32_t i = w->rank - 2; i-- > 0; head /= w->dims[i])
        m.at += head % w->dims[i] * w->strides[0][i];
    return m;
}

#define T float
#define SUFFIX f32
#define EXP wf_exp_f32
#define LOG logf
#include "common/kernels/cpu/nn/dot_attention_template.h"

#define T double
#define SUFFIX f64
#define EXP exp
#define LOG log
#include "common/kernels/cpu/nn/dot_attention_template.h"

/* The product of a stage for `rows` rows of q and `columns` of their scores: c = a' b' (+ c). */
static wf_strided_product shape_of(const plan *p, stage which, int64_t rows, int64_t columns)
{
    const int64_t ldq = p->a.side * p->a.d, ldv = p->a.side * p->a.e; /* of y too */
    const int64_t ldk = p->a.trans_k ? p->a.s : ldq;

    switch (which) {
    case SCORES:
        return (wf_strided_product){.trans_b = !p->a.trans_k,
                                    .m = rows,
                                    .n = columns,
                                    .k = p->a.d,
                                    .lda = ldq,
                                    .ldb = ldk,
                                    .ldc = columns};
    case USE:
        return (wf_strided_product){
            .m = rows, .n = p->a.e, .k = columns, .lda = columns, .ldb = ldv, .ldc = p->a.e};
    case DV:
        return (wf_strided_product){.trans_a = true,
                                    .m = columns,
                                    .n = p->a.e,
                                    .k = rows,
                                    .lda = columns,
                                    .ldb = ldv,
                                    .ldc = p->a.e,
                                    .beta = 1};
    case DP:
        return (wf_strided_product){.trans_b = true,
                                    .m = rows,
                                    .n = columns,
                                    .k = p->a.e,
                                    .lda = ldv,
                                    .ldb = ldv,
                                    .ldc = columns};
    case DQ:
        return (wf_strided_product){.trans_b = p->a.trans_k,
                                    .m = rows,
                                    .n = p->a.d,
                                    .k = columns,
                                    .lda = columns,
                                    .ldb = ldk,
                                    .ldc = p->a.d};
    default:
        if (p->a.trans_k)
            return (wf_strided_product){.trans_a = true,
                                        .m = p->a.d,
                                        .n = columns,
                                        .k = rows,
                                        .lda = ldq,
                                        .ldb = columns,
                                        .ldc = p->a.s,
                                        .beta = 1};
        return (wf_strided_product){.trans_a = true,
                                    .m = columns,
                                    .n = p->a.d,
                                    .k = rows,
                                    .lda = columns,
                                    .ldb = ldq,
                                    .ldc = p->a.d,
                                    .beta = 1};
    }
}

static wf_gemm gemm_of(const wf_strided_product *s)
{
    return (wf_gemm){s->trans_a, s->trans_b, s->m,   s->n,           s->k,
                     s->lda,     s->ldb,     s->ldc, s->beta != 0.0, false};
}

static void multiply(const share *l, stage which, const block *b, wf_factors x, wf_factors y,
                     void *c)
{
    const plan *p = l->j->p;
    wf_strided_product s = shape_of(p, which, b->rows, b->columns);

    if (p->own) {
        wf_gemm g = gemm_of(&s);

        wf_gemm_go(&g, x.x, y.x, NULL, c, l->product_scratch);
        return;
    }
    s.dtype = l->j->dtype;
    s.a = x.x;
    s.b = y.x;
    s.a_is_bf16 = x.is_bf16;
    s.b_is_bf16 = y.is_bf16;
    s.c = c;
    if (p->bf16)
        wf_product_tiles_strided(&s, l->product_scratch);
    else
        wf_product_strided(&s);
}

/* The block's probabilities, from the first product to the softmax. */
static void score(const share *l, const block *b)
{
    multiply(l, SCORES, b, b->q, b->k, b->scores);
    if (l->j->dtype == WF_F32)
        probabilities_f32(l->j, b);
    else
        probabilities_f64(l->j, b);
}

static wf_factors factors_at(const wf_tensor *t, int64_t i)
{
    return (wf_factors){(const char *)t->data + (size_t)i * wf_dtype_size(t->dtype),
                        t->dtype == WF_BF16};
}

/* Scores, and what has their shape: as the kernel computes them. */
static wf_factors own(const void *x)
{
    return (wf_factors){x, false};
}

/* Rows of a head in a tensor that has `all` of each. */
typedef struct place_of_rows {
    const wf_tensor *in;
    int64_t head, row, rows, all, width;
} place_of_rows;

static int64_t first_of(const plan *p, const place_of_rows *w)
{
    return wf_attention_row(&p->a, w->head, w->row, w->all, w->width);
}

static wf_factors factors_of(const plan *p, place_of_rows w)
{
    return factors_at(w.in, first_of(p, &w));
}

/* Where rows of a result are made: in their place, or at `room`. */
static void *made_at(const plan *p, const place_of_rows *w, void *room)
{
    if (wf_is_bf16(w->in) || p->a.side > 1)
        return room;
    return (char *)w->in->data + (size_t)first_of(p, w) * wf_dtype_size(w->in->dtype);
}

/* Brings them from there to their place. */
static void put(const plan *p, const void *made, const place_of_rows *w)
{
    const bool apart = p->a.side > 1;
    const int64_t n = apart ? w->width : w->rows * w->width, step = p->a.side * w->width;
    const size_t size = w->in->dtype == WF_F64 ? sizeof(double) : sizeof(float);

    for (int64_t i = 0, to = first_of(p, w); i < (apart ? w->rows : 1); i++, to += step) {
        const char *from = (const char *)made + (size_t)(i * n) * size;

        if (wf_is_bf16(w->in))
            wf_narrow(w->in->data, true, to, n, (const float *)(const void *)from);
        else if (apart)
            memcpy((char *)w->in->data + (size_t)to * size, from, (size_t)n * size);
    }
}

/* The columns that some row of a block reads. */
static int64_t columns_of(const plan *p, int64_t row, int64_t rows)
{
    if (p->a.causal)
        return WF_MIN(p->a.s, row + rows);
    return p->until ? p->until[row / ROWS] : p->a.s;
}

static block block_at(const job *j, int64_t head, int64_t row, void *scores)
{
    const plan *p = j->p;
    const int64_t rows = WF_MIN(p->a.t - row, (int64_t)ROWS);

    return (block){.head = head,
                   .row = row,
                   .rows = rows,
                   .columns = columns_of(p, row, rows),
                   .q = factors_of(p, (place_of_rows){j->in[0], head, row, 0, p->a.t, p->a.d}),
                   .k = factors_of(p, (place_of_rows){j->in[1], head, 0, 0, p->a.s, p->a.d}),
                   .v = factors_of(p, (place_of_rows){j->in[2], head, 0, 0, p->a.s, p->a.e}),
                   .scores = scores};
}

static void forward(const share *l, int64_t head)
{
    const job *j = l->j;
    const plan *p = j->p;

    for (int64_t row = 0; row < p->a.t; row += ROWS) {
        block b = block_at(j, head, row, l->scratch);
        place_of_rows to = {j->out[0], head, row, b.rows, p->a.t, p->a.e};
        void *y = made_at(p, &to, l->results);

        score(l, &b);
        multiply(l, USE, &b, own(b.scores), b.v, y);
        put(p, y, &to);
    }
}

static void backward(const share *l, int64_t head)
{
    const job *j = l->j;
    const plan *p = j->p;
    const size_t keys = (size_t)(p->a.s * p->a.d) * j->size,
                 queries = ROWS * (size_t)p->a.d * j->size;
    const place_of_rows to_k = {j->out[1], head, 0, p->a.s, p->a.s, p->a.d},
                        to_v = {j->out[2], head, 0, p->a.s, p->a.s, p->a.e};
    char *room = l->results; /* of dq, dk and dv */
    void *dk = made_at(p, &to_k, room + queries);
    void *dv = made_at(p, &to_v, room + queries + keys);
    char *dp = l->scratch + p->scratch / 2;

    memset(dk, 0, keys);
    memset(dv, 0, (size_t)(p->a.s * p->a.e) * j->size);
    for (int64_t row = 0; row < p->a.t; row += ROWS) {
        block b = block_at(j, head, row, l->scratch);
        place_of_rows to = {j->out[0], head, row, b.rows, p->a.t, p->a.d};
        wf_factors dy = factors_of(p, (place_of_rows){j->dy, head, row, 0, p->a.t, p->a.e});
        void *dq = made_at(p, &to, room);

        score(l, &b);
        multiply(l, DV, &b, own(b.scores), dy, dv);
        multiply(l, DP, &b, dy, b.v, dp);
        if (j->dtype == WF_F32)
            slopes_f32(j, &b, dp);
        else
            slopes_f64(j, &b, dp);
        multiply(l, DQ, &b, own(dp), b.k, dq);
        put(p, dq, &to);
        if (p->a.trans_k)
            multiply(l, DK, &b, b.q, own(dp), dk);
        else
            multiply(l, DK, &b, own(dp), b.q, dk);
    }
    put(p, dk, &to_k);
    put(p, dv, &to_v);
}

/* Job i of as many as there are threads: its heads, in its own scratch memory. */
static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const plan *p = j->p;

    if (p->bf16)
        wf_tiles_begin();
    for (int64_t i = begin; i < end; i++) {
        share l = {j, j->scratch + (size_t)i * p->scratch,
                   j->scratch + p->jobs * p->scratch + (size_t)i * p->product_scratch,
                   j->scratch + p->jobs * (p->scratch + p->product_scratch) +
                       (size_t)i * p->results};

        for (int64_t h = i * p->a.heads / p->jobs; h < (i + 1) * p->a.heads / p->jobs; h++)
            (j->dy ? backward : forward)(&l, h);
    }
    if (p->bf16)
        wf_tiles_end();
}

/* Strides of the mask under [heads..., t, s], axis by axis: a merged walk would hide the rows. */
static void lay_mask(plan *p, const wf_tensor *q, const wf_tensor *mask)
{
    const wf_tensor scores = wf_attention_scores(&p->a, q);
    int64_t strides[WF_MAX_RANK];
    wf_walk *w = &p->mask;

    *w = (wf_walk){.rank = q->rank, .n = 1};
    wf_strides(mask->rank, mask->dims, strides);
    for (uint32_t i = 0; i < q->rank; i++) {
        int64_t at = (int64_t)i - ((int64_t)q->rank - (int64_t)mask->rank);

        w->dims[i] = scores.dims[i];
        w->strides[0][i] = at < 0 || mask->dims[at] == 1 ? 0 : strides[at];
    }
}

/* Whether element i of a known mask leaves a score out altogether. */
static bool leaves_out(const plan *p, const wf_tensor *mask, int64_t i)
{
    if (!p->sums)
        return ((const uint8_t *)mask->data)[i] && p->a.fill < -1e30;
    return wf_number_at(mask, i) < -1e30;
}

/* The columns that some row of each block reads, when all heads have one known mask and no row is
 * left without any (its probabilities would be equal, or NaN, over all columns). */
static wf_status find_until(plan *p, const wf_tensor *mask, wf_arena *arena, wf_err *err)
{
    int64_t blocks = (p->a.t + ROWS - 1) / ROWS;

    for (uint32_t i = 0; i + 2 < p->mask.rank; i++)
        if (p->mask.strides[0][i])
            return WF_OK;
    p->until = wf_arena_array(arena, (size_t)blocks, sizeof *p->until);
    if (!p->until)
        return wf_fail_nomem(err, (size_t)blocks * sizeof *p->until);
    for (int64_t r = 0; r < p->a.t; r++) {
        place m = mask_row(p, 0, r);
        int64_t last = p->a.s;

        while (last > 0 && leaves_out(p, mask, m.at + (last - 1) * m.step))
            last--;
        if (last == 0) {
            p->until = NULL;
            return WF_OK;
        }
        p->until[r / ROWS] = WF_MAX(p->until[r / ROWS], last);
    }
    return WF_OK;
}

/* The most that a product of a block wants. */
static size_t most_room(const plan *p, bool is_grad)
{
    size_t most = 0;

    for (int which = 0; which < (is_grad ? STAGES : DV); which++) {
        wf_strided_product s = shape_of(p, which, WF_MIN(p->a.t, (int64_t)ROWS), p->a.s);
        wf_gemm g = gemm_of(&s);

        most = WF_MAX(most, p->bf16 ? wf_product_tiles_room(s.m, s.n, s.k) : wf_gemm_room(&g));
    }
    return wf_align_up(most, 128);
}

/* Whether the kernel takes what is of bfloat16: factors and results of products that round. */
static bool takes(const plan *p, const wf_tensor *const in[], const wf_tensor *dy, bool rounds)
{
    bool any = rounds || wf_is_bf16(dy);

    for (int i = 0; i < 3; i++)
        any = any || wf_is_bf16(in[i]);
    return !wf_is_bf16(in[3]) && (p->bf16 || !any);
}

/* in: of the forward pass; dy NULL there. */
static wf_status prepare_for(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *dy,
                             const wf_tensor *const out[], wf_err *err)
{
    bool is_grad = dy != NULL, rounds;
    const wf_tensor *q = in[0], *mask = in[3];
    plan *p = wf_arena_alloc(prep->arena, sizeof *p);
    size_t rows, size = q->dtype == WF_F64 ? sizeof(double) : sizeof(float);

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    prep->state = p;
    WF_TRY(wf_attention_of(prep->node, in, &p->a, err));
    if (mask) {
        p->sums = mask->dtype != WF_BOOL;
        lay_mask(p, q, mask);
        if (mask->data)
            WF_TRY(find_until(p, mask, prep->arena, err));
    }
    p->jobs = (uint32_t)WF_MAX(WF_MIN((int64_t)prep->threads, p->a.heads), (int64_t)1);
    p->bf16 = prep->compute == WF_COMPUTE_BF16 && q->dtype != WF_F64 && wf_tiles_there();
    rounds = wf_is_bf16(out[0]) || (is_grad && (wf_is_bf16(out[1]) || wf_is_bf16(out[2])));
    prep->widens = !takes(p, in, dy, rounds) || (!is_grad && wf_is_bf16(out[1]));
    p->own = !p->bf16 && q->dtype == WF_F32 && wf_gemm_is_here();
    if (p->bf16 || p->own)
        p->product_scratch = most_room(p, is_grad);
    if (rounds || p->a.side > 1)
        p->results = wf_align_up(
            size * (size_t)(is_grad ? ROWS * p->a.d + p->a.s * (p->a.d + p->a.e) : ROWS * p->a.e),
            128);
    if (!wf_mul_size(ROWS * size * (is_grad ? 2 : 1), (size_t)p->a.s, &rows) ||
        !wf_mul_size(wf_align_up(rows, 128) + p->product_scratch + p->results, p->jobs,
                     &prep->workspace_bytes))
        return wf_fail_nomem(err, SIZE_MAX);
    p->scratch = wf_align_up(rows, 128);
    return WF_OK;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    return prepare_for(prep, in, NULL, out, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    return prepare_for(prep, in + 1, in[0], out, err);
}

static wf_status go(const wf_run *run, const wf_tensor *const in[], const wf_tensor *dy,
                    wf_tensor *const out[])
{
    const plan *p = run->state;
    bool is_f64 = in[0]->dtype == WF_F64;
    job j = {.p = p,
             .in = in,
             .dy = dy,
             .sums = dy ? NULL : out[1],
             .out = out,
             .scratch = run->workspace,
             .size = is_f64 ? sizeof(double) : sizeof(float),
             .dtype = is_f64 ? WF_F64 : WF_F32};

    wf_pool_for(run->pool, p->jobs, 1, range, &j);
    return WF_OK;
}

static wf_status attend(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    (void)err;
    return go(run, in, NULL, out);
}

static wf_status attend_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    (void)err;
    return go(run, in + 1, in[0], out);
}

const wf_kernel wf_kernels_dot_attention[] = {
    WF_ROW("DotAttention", WF_TYPES_FLOAT, attend, .domain = WF_DOMAIN_WEFT, .prepare = prepare,
           .is_narrow = true),
    WF_ROW("DotAttentionGrad", WF_TYPES_FLOAT, attend_grad, .domain = WF_DOMAIN_WEFT,
           .prepare = prepare_grad, .is_narrow = true),
    {0},
};
