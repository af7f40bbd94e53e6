/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/gemm.cu - Gemm: Y = alpha A' B' + beta C; and Linear. A row vector C is
 * added by the product itself; another is spread over Y first, and the product adds to it. Where
 * there is nothing to add up (k is 0), C is spread alone: both in float32 and float64 only. A
 * ReluGrad is a pass over the result: cuBLASLt has one, of bits that the product before the Relu
 * would have to write. */
#include "common/kernels/cuda/elementwise/each.h"
#include "common/kernels/cuda/product/factors.h"

namespace
{

typedef struct plan {
    wf_cuda_gemm_way *way; /* NULL: k is 0 */
    bool is_row, spreads;  /* C */
    bool cuts;
    double beta;
    wf_factors factors;
} plan;

struct relu_grad {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return y > T(0) ? x : T(0);
    }
};

template <class T> __global__ void spread(const T *c, T *y, wf_walk w, T beta, bool cuts)
{
    for (int64_t i = wf_first(); i < w.elems; i += wf_all()) {
        T value = c ? beta * c[wf_at(w, 0, i)] : T(0);

        y[i] = cuts && value < T(0) ? T(0) : value;
    }
}

void release(void *state)
{
    wf_cuda_gemm_free(static_cast<plan *>(state)->way);
}

bool is_row(const wf_tensor *c, int64_t n)
{
    return c && c->rank > 0 && wf_dim(c, -1) == n && wf_elems(c) == n;
}

wf_status prepare_as(wf_prep *prep, wf_cuda_gemm g, const wf_tensor *const in[],
                     const wf_tensor *out, wf_err *err)
{
    const wf_tensor *c = in[2], *read[WF_FACTORS] = {in[0], in[1], nullptr};
    plan *s = static_cast<plan *>(wf_arena_alloc(prep->arena, sizeof *s));

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    *s = plan{};
    s->is_row = is_row(c, g.n) && g.beta == 1 && g.k > 0;
    s->spreads = c && g.beta != 0 && !s->is_row;
    s->cuts = g.cuts;
    s->beta = g.beta;
    g.adds_row = s->is_row;
    g.beta = s->spreads ? 1 : 0; /* of what was spread */
    g.batch = 1;
    g.aligned = WF_ALIGNED;
    prep->state = s;
    prep->release = release;
    read[WF_FACTOR_ROW] = s->is_row ? c : nullptr;
    wf_factors_of(read, out, true, &g, &s->factors);
    prep->widens = (s->spreads || g.k == 0) && wf_narrow_of(prep->node, in, &out) != WF_NONE;
    if (prep->widens || !g.m || !g.n || !g.k)
        return WF_OK;
    WF_TRY(wf_cuda_gemm_new(prep, &g, &s->way, err));
    return wf_factors_take_room(prep, &s->factors, err);
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    wf_cuda_gemm g = {};

    g.trans_a = wf_node_int(prep->node, "transA", 0) != 0;
    g.trans_b = wf_node_int(prep->node, "transB", 0) != 0;
    g.m = out[0]->dims[0];
    g.n = out[0]->dims[1];
    g.k = in[0]->dims[g.trans_a ? 0 : 1];
    g.alpha = (double)wf_node_float(prep->node, "alpha", 1);
    g.beta = (double)wf_node_float(prep->node, "beta", 1);
    return prepare_as(prep, g, in, out[0], err);
}

/* All rows of x, whatever its rank, are one matrix. */
wf_status prepare_linear(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    wf_cuda_gemm g = {};

    g.trans_b = wf_node_int(prep->node, "transB", 0) != 0;
    g.n = wf_dim(out[0], -1);
    g.k = wf_dim(in[0], -1);
    g.m = g.n ? wf_elems(out[0]) / g.n : 0;
    g.alpha = g.beta = 1;
    g.cuts = strcmp(wf_node_string(prep->node, "activation", ""), "Relu") == 0;
    return prepare_as(prep, g, in, out[0], err);
}

template <class T>
wf_status spread_over(const wf_run *run, const plan *s, const wf_tensor *c, wf_tensor *y,
                      wf_err *err)
{
    wf_walk w;

    wf_walk_broadcast(&w, y, c ? 1 : 0, &c);
    return wf_launch(run, "spread", spread<T>, wf_blocks(run, w.elems), err,
                     c ? static_cast<const T *>(c->data) : nullptr, static_cast<T *>(y->data), w,
                     (T)s->beta, s->cuts && !s->way);
}

wf_status multiply(const wf_run *run, const plan *s, const wf_tensor *const in[], wf_tensor *out,
                   wf_err *err)
{
    const void *a, *b, *row;

    WF_TRY(wf_factor_ready(&s->factors, WF_FACTOR_A, run, in[0], &a, err));
    WF_TRY(wf_factor_ready(&s->factors, WF_FACTOR_B, run, in[1], &b, err));
    WF_TRY(
        wf_factor_ready(&s->factors, WF_FACTOR_ROW, run, s->is_row ? in[2] : nullptr, &row, err));
    WF_TRY(wf_cuda_gemm_go(s->way, run, a, b, row, wf_factors_result(&s->factors, run, out), err));
    return wf_factors_finish(&s->factors, run, out, err);
}

/* In place. */
wf_status cut_by(const wf_run *run, const wf_tensor *y, wf_tensor *const out[], wf_err *err)
{
    const wf_tensor *const in[] = {out[0], y};

    if (y->dtype == WF_F64)
        return wf_both<double, double, relu_grad>(run, in, out, err);
    if (y->dtype == WF_F32 && out[0]->dtype == WF_F32)
        return wf_both<float, float, relu_grad>(run, in, out, err);
    return wf_both<wf_narrow, wf_narrow, relu_grad>(run, in, out, err);
}

wf_status gemm(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    const plan *s = static_cast<const plan *>(run->state);
    const wf_tensor *c = s->spreads ? in[2] : nullptr;

    if (wf_elems(out[0]) == 0)
        return WF_OK;
    if (s->spreads || !s->way)
        WF_TRY(out[0]->dtype == WF_F32 ? spread_over<float>(run, s, c, out[0], err)
                                       : spread_over<double>(run, s, c, out[0], err));
    if (s->way)
        WF_TRY(multiply(run, s, in, out[0], err));
    return in[3] ? cut_by(run, in[3], out, err) : WF_OK;
}

} // namespace

WF_CUDA_ROWS(gemm){
    {.op = "Gemm", .dtypes = WF_TYPES_FLOAT, .is_narrow = true, .prepare = prepare, .run = gemm},
    {.op = "Linear",
     .domain = WF_DOMAIN_WEFT,
     .dtypes = WF_TYPES_FLOAT,
     .is_narrow = true,
     .prepare = prepare_linear,
     .run = gemm},
    {},
};
