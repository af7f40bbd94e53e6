/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/matmul.cu - MatMul: products of the last two axes, the axes before them
 * broadcast; vectors are rows on the left and columns on the right. And Product, which reads them
 * transposed, and may sum the rows of one: in the product itself, or in a kernel behind it. */
#include "common/kernels/cuda/product/factors.h"
#include "common/kernels/cuda/reduce/reduce.h"

namespace
{

typedef struct plan {
    wf_cuda_gemm_way *way; /* of as many products as the inner axis of `batch` has; NULL: k is 0 */
    wf_walk batch;         /* of matrices: operands A and B */
    int64_t sizes[3];      /* elements of a matrix A, B, C */
    size_t bytes[3];       /* of an element of theirs, as they are multiplied */
    wf_factors factors;
    wf_cuda_sums sums; /* of whose rows */
    bool sums_apart;   /* the way gives none */
    wf_dtype summed;   /* the type of these rows */
    wf_reduction reduction;
} plan;

void release(void *state)
{
    wf_cuda_gemm_free(static_cast<plan *>(state)->way);
}

/* The product of one matrix of each, and the walk over those that are there. */
wf_cuda_gemm shape_of(const wf_node *node, const wf_tensor *a, const wf_tensor *b,
                      const wf_tensor *out, wf_walk *batch)
{
    wf_tensor heads[2] = {*a, *b}, head = *out;
    const wf_tensor *operands[2] = {&heads[0], &heads[1]};
    wf_cuda_gemm g = {};

    g.trans_a = wf_node_int(node, "transA", 0) != 0;
    g.trans_b = wf_node_int(node, "transB", 0) != 0;
    g.alpha = 1;
    g.m = a->rank > 1 ? wf_dim(a, g.trans_a ? -1 : -2) : 1;
    g.n = b->rank > 1 ? wf_dim(b, g.trans_b ? -2 : -1) : 1;
    g.k = wf_dim(a, g.trans_a ? -2 : -1);
    heads[0].rank = a->rank > 2 ? a->rank - 2 : 0;
    heads[1].rank = b->rank > 2 ? b->rank - 2 : 0;
    head.rank = WF_MAX(heads[0].rank, heads[1].rank);
    wf_walk_broadcast(batch, &head, 2, operands);
    if (heads[1].rank == 0 && heads[0].rank > 0 && !g.trans_a) {
        /* One right side for all: the matrices of A lie below each other and are one. */
        g.m *= batch->elems;
        head.rank = heads[0].rank = 0;
        wf_walk_broadcast(batch, &head, 2, operands);
    }
    return g;
}

/* Where products begin that are not the first of a tensor: to so many bytes all of them are
 * aligned. */
uint32_t alignment(const plan *s)
{
    uint64_t bits = WF_ALIGNED;

    for (int i = 0; i < 3 && s->batch.rank > 1; i++)
        bits |= (uint64_t)s->sizes[i] * s->bytes[i];
    return (uint32_t)(bits & -bits); /* the lowest one */
}

/* Sums of rows of T. */
template <class T>
wf_status sum_as(const plan *s, const wf_run *run, wf_from<T> x, void *sums, void *room,
                 wf_err *err)
{
    return wf_reduce_by<T, wf_number<T>, wf_sum<double>>(
        run, s->reduction, x, static_cast<wf_number<T> *>(sums), room, {}, err);
}

/* A wf_cuda_sum_fn. */
wf_status sum_rows(const void *arg, const wf_run *run, const void *x, void *sums, void *room,
                   wf_err *err)
{
    const plan *s = static_cast<const plan *>(arg);

    if (s->summed == WF_F64)
        return sum_as<double>(s, run, static_cast<const double *>(x), sums, room, err);
    if (s->summed == WF_F32)
        return sum_as<float>(s, run, static_cast<const float *>(x), sums, room, err);
    return sum_as<wf_narrow>(s, run, wf_narrow_from{x, s->summed}, sums, room, err);
}

/* Which rows are summed. A factor that is copied for the product is summed as it was before, and
 * sums are not rounded as the product may be: then, and where the result is copied, the product
 * gives none. */
void plan_sums(const wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
               plan *s, wf_cuda_gemm *g)
{
    const bool of_b = wf_node_string(prep->node, "sums", "")[0] == 'b';
    const wf_tensor *of = in[of_b];
    wf_reduce_plan p;

    wf_reduce_plan_of(of, 1, &p);
    s->reduction = wf_reduction_of(p);
    s->summed = of->dtype;
    s->sums = of_b ? WF_CUDA_SUMS_OF_B : WF_CUDA_SUMS_OF_A;
    s->sums_apart = s->factors.of[of_b ? WF_FACTOR_B : WF_FACTOR_A].copied ||
                    s->factors.result_copied || out[1]->dtype != out[0]->dtype;
    if (s->sums_apart)
        return;
    g->sums = s->sums;
    g->sum = {sum_rows, s, wf_reduce_bytes(s->reduction)};
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    plan *s = static_cast<plan *>(wf_arena_alloc(prep->arena, sizeof *s));
    const wf_tensor *read[WF_FACTORS] = {in[0], in[1], nullptr};
    unsigned inner;
    wf_cuda_gemm g;

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    *s = plan{};
    g = shape_of(prep->node, in[0], in[1], out[0], &s->batch);
    inner = s->batch.rank - 1;
    s->sizes[0] = g.m * g.k;
    s->sizes[1] = g.k * g.n;
    s->sizes[2] = g.m * g.n;
    g.batch = s->batch.dims[inner];
    g.strides[0] = s->batch.strides[0][inner] * s->sizes[0];
    g.strides[1] = s->batch.strides[1][inner] * s->sizes[1];
    g.strides[2] = s->sizes[2];
    if (g.batch > INT32_MAX)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "it has more than 2^31 - 1 products");
    wf_factors_of(read, out[0], s->batch.elems == 1, &g, &s->factors);
    s->bytes[0] = s->bytes[1] = wf_dtype_size(g.factors == WF_NONE ? g.dtype : g.factors);
    s->bytes[2] = wf_dtype_size(out[0]->dtype);
    g.aligned = alignment(s);
    prep->widens = wf_is_narrow(out[1]); /* of sums that nothing rounds */
    if (prep->widens)
        return WF_OK;
    if (out[1])
        plan_sums(prep, in, out, s, &g);
    prep->state = s;
    prep->release = release;
    prep->workspace_bytes = s->sums ? wf_reduce_bytes(s->reduction) : 0;
    if (!s->batch.elems || !g.m || !g.n || !g.k)
        return WF_OK;
    WF_TRY(wf_cuda_gemm_new(prep, &g, &s->way, err));
    if (s->sums_apart)
        prep->workspace_bytes = WF_MAX(prep->workspace_bytes, wf_reduce_bytes(s->reduction));
    return wf_factors_take_room(prep, &s->factors, err);
}

typedef struct job {
    const plan *s;
    const wf_run *run;
    const char *a, *b;
    char *c;
    wf_status rc;
    wf_err *err;
} job;

/* The products along the inner axis. */
void go_along(void *arg, const wf_span *at)
{
    job *j = static_cast<job *>(arg);
    const int64_t *sizes = j->s->sizes;
    const size_t *bytes = j->s->bytes;

    if (j->rc == WF_OK)
        j->rc = wf_cuda_gemm_go(j->s->way, j->run, j->a + (size_t)(at->at[0] * sizes[0]) * bytes[0],
                                j->b + (size_t)(at->at[1] * sizes[1]) * bytes[1], NULL,
                                j->c + (size_t)(at->first * sizes[2]) * bytes[2], j->err);
}

/* Of two matrices. */
wf_status single(const wf_run *run, const wf_tensor *out, const void *a, const void *b, wf_err *err)
{
    const plan *s = static_cast<const plan *>(run->state);

    WF_TRY(
        wf_cuda_gemm_go(s->way, run, a, b, nullptr, wf_factors_result(&s->factors, run, out), err));
    return wf_factors_finish(&s->factors, run, out, err);
}

/* The same with sums. */
wf_status with_sums(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                    const void *a, const void *b, wf_err *err)
{
    const plan *s = static_cast<const plan *>(run->state);
    const wf_tensor *of = in[s->sums == WF_CUDA_SUMS_OF_B];

    if (s->way && !s->sums_apart)
        return wf_cuda_gemm_go_sums(s->way, run, a, b, out[1]->data, out[0]->data, err);
    if (s->way)
        WF_TRY(single(run, out[0], a, b, err));
    return sum_rows(s, run, of->data, out[1]->data, run->workspace, err);
}

wf_status matmul(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    const plan *s = static_cast<const plan *>(run->state);
    const void *a, *b;
    job j = {s, run, nullptr, nullptr, static_cast<char *>(out[0]->data), WF_OK, err};

    if (!s->way) {
        WF_TRY(wf_stream_fill(run->stream, out[0]->data, 0, wf_tensor_bytes(out[0]), err));
        return s->sums ? with_sums(run, in, out, nullptr, nullptr, err) : WF_OK;
    }
    WF_TRY(wf_factor_ready(&s->factors, WF_FACTOR_A, run, in[0], &a, err));
    WF_TRY(wf_factor_ready(&s->factors, WF_FACTOR_B, run, in[1], &b, err));
    if (s->sums)
        return with_sums(run, in, out, a, b, err);
    if (s->batch.elems == 1)
        return single(run, out[0], a, b, err);
    j.a = static_cast<const char *>(a);
    j.b = static_cast<const char *>(b);
    wf_walk_range(&s->batch, 0, s->batch.elems, go_along, &j);
    return j.rc;
}

} // namespace

WF_CUDA_ROWS(matmul){
    {.op = "MatMul",
     .dtypes = WF_TYPES_FLOAT,
     .is_narrow = true,
     .prepare = prepare,
     .run = matmul},
    {.op = "Product",
     .domain = WF_DOMAIN_WEFT,
     .dtypes = WF_TYPES_FLOAT,
     .is_narrow = true,
     .prepare = prepare,
     .run = matmul},
    {},
};
