/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/norm/layer_norm.cu - LayerNormalization, RMSNormalization and their
 * gradients; the cpu's file of that name has the formulas. A block computes row after row. The
 * gradients of scale and bias are sums over rows: threads add up columns of one part of the rows
 * each, and the parts are joined in their order. */
#include "common/kernels/cuda/norm/moments.h"
extern "C" {
#include "common/kernels/shape/norm.h"
}

namespace
{

/* Sums of columns: threads that add at a time, and rows that are worth one. */
enum { COLUMN_THREADS = 1 << 18, PART_ROWS = 32 };

struct plan {
    wf_layer_norm v;
    int64_t parts, part_rows;
    size_t moments, sums; /* in the workspace: wf_two of each row; of each part and column */
};

/* Mean (a) and 1 / deviation (b) of a row. */
template <class X> WF_CODE wf_two moments_of(const wf_layer_norm &v, X x)
{
    wf_two sums = {0, 0}, m;

    if (!v.rms) {
        m = wf_moments(x, v.n);
        return {m.a, 1 / std::sqrt(m.b + v.epsilon)};
    }
    for (int64_t i = threadIdx.x; i < v.n; i += blockDim.x)
        sums = wf_add_moment(sums, (double)x[i], 0);
    return {0, 1 / std::sqrt(wf_join_two(sums).b / (double)v.n + v.epsilon)};
}

template <class T>
__global__ void normalise(wf_layer_norm v, wf_from<T> x, wf_from<T> scale, wf_from<T> bias,
                          wf_to<T> y, float *means, float *invs)
{
    using N = wf_number<T>;

    for (int64_t r = blockIdx.x; r < v.rows; r += gridDim.x) {
        const wf_from<T> from = x + r * v.n;
        wf_two m = moments_of(v, from);
        N mean = (N)m.a, inv = (N)m.b;

        for (int64_t i = threadIdx.x; y && i < v.n; i += blockDim.x) {
            N z = (from[i] - mean) * inv * scale[i];

            y[r * v.n + i] = bias ? z + bias[i] : z;
        }
        if (threadIdx.x == 0 && means)
            means[r] = (float)m.a;
        if (threadIdx.x == 0 && invs)
            invs[r] = (float)m.b;
    }
}

/* dx, and the moments, which the columns want. */
template <class T>
__global__ void row_grads(wf_layer_norm v, wf_from<T> dy, wf_from<T> x, wf_from<T> scale,
                          wf_to<T> dx, wf_two *moments)
{
    using N = wf_number<T>;

    for (int64_t r = blockIdx.x; r < v.rows; r += gridDim.x) {
        const int64_t at = r * v.n;
        wf_two m = moments_of(v, x + at), sums = {0, 0};
        N mean = (N)m.a, inv = (N)m.b, first, second;

        if (threadIdx.x == 0)
            moments[r] = m;
        if (!dx)
            continue;
        for (int64_t i = threadIdx.x; i < v.n; i += blockDim.x) {
            N g = dy[at + i] * scale[i];

            sums.a += (double)g;
            sums.b += (double)(g * ((x[at + i] - mean) * inv));
        }
        sums = wf_join_two(sums);
        first = v.rms ? N(0) : (N)(sums.a / (double)v.n);
        second = (N)(sums.b / (double)v.n);
        for (int64_t i = threadIdx.x; i < v.n; i += blockDim.x)
            dx[at + i] = inv * (dy[at + i] * scale[i] - first - (x[at + i] - mean) * inv * second);
    }
}

/* sums [parts, n]: of dy times the normalised x, and of dy. */
template <class T>
__global__ void column_parts(plan p, wf_from<T> dy, wf_from<T> x, const wf_two *moments,
                             wf_two *sums)
{
    using N = wf_number<T>;
    const int64_t n = p.v.n;

    for (int64_t e = wf_first(); e < p.parts * n; e += wf_all()) {
        int64_t from = e / n * p.part_rows, to = from + p.part_rows;
        wf_two all = {0, 0};

        for (int64_t r = from; r < to && r < p.v.rows; r++) {
            N g = dy[r * n + e % n], mean = (N)moments[r].a, inv = (N)moments[r].b;

            all.a += (double)(g * ((x[r * n + e % n] - mean) * inv));
            all.b += (double)g;
        }
        sums[e] = all;
    }
}

template <class T>
__global__ void join_parts(plan p, const wf_two *sums, wf_to<T> dscale, wf_to<T> dbias)
{
    using N = wf_number<T>;

    for (int64_t i = wf_first(); i < p.v.n; i += wf_all()) {
        wf_two all = {0, 0};

        for (int64_t part = 0; part < p.parts; part++) {
            all.a += sums[part * p.v.n + i].a;
            all.b += sums[part * p.v.n + i].b;
        }
        if (dscale)
            dscale[i] = (N)all.a;
        if (dbias)
            dbias[i] = (N)all.b;
    }
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    plan *p;

    prep->widens = wf_is_narrow(out[1]) || wf_is_narrow(out[2]);
    WF_TRY(wf_new_plan(prep, &p, err));
    return wf_layer_norm_of(prep->node, in[0], in[1], in[2], &p->v, err);
}

wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    plan *p;

    (void)out;
    WF_TRY(wf_new_plan(prep, &p, err));
    WF_TRY(wf_layer_norm_of(prep->node, in[1], in[2], NULL, &p->v, err));
    p->parts = WF_MIN(wf_ceil_div(COLUMN_THREADS, WF_MAX(p->v.n, (int64_t)1)),
                      wf_ceil_div(p->v.rows, PART_ROWS));
    p->part_rows = wf_ceil_div(p->v.rows, WF_MAX(p->parts, (int64_t)1));
    WF_TRY(wf_take_room(prep, p->v.rows, sizeof(wf_two), &p->moments, err));
    return wf_take_room(prep, p->parts * p->v.n, sizeof(wf_two), &p->sums, err);
}

template <class T>
wf_status forward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);

    return wf_launch_meeting(run, run->node->op->name, normalise<T>,
                             wf_blocks(run, p->v.rows * WF_BLOCK), wf_threads(p->v.n), err, p->v,
                             wf_read<T>(in[0]), wf_read<T>(in[1]), wf_read<T>(in[2]),
                             wf_write<T>(out[0]), wf_out<float>(out[1]), wf_out<float>(out[2]));
}

template <class T>
wf_status backward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const wf_from<T> dy = wf_read<T>(in[0]), x = wf_read<T>(in[1]);
    wf_two *moments = wf_room<wf_two>(run, p->moments), *sums = wf_room<wf_two>(run, p->sums);

    WF_TRY(wf_launch_meeting(run, "rows", row_grads<T>, wf_blocks(run, p->v.rows * WF_BLOCK),
                             wf_threads(p->v.n), err, p->v, dy, x, wf_read<T>(in[2]),
                             wf_write<T>(out[0]), moments));
    if ((!out[1] && !out[2]) || p->v.n == 0)
        return WF_OK;
    WF_TRY(wf_launch(run, "parts", column_parts<T>, wf_blocks(run, p->parts * p->v.n), err, *p, dy,
                     x, static_cast<const wf_two *>(moments), sums));
    return wf_launch(run, "columns", join_parts<T>, wf_blocks(run, p->v.n), err, *p,
                     static_cast<const wf_two *>(sums), wf_write<T>(out[1]), wf_write<T>(out[2]));
}

} // namespace

#define FORWARD(name)                                                                              \
    {.op = name,                                                                                   \
     .dtypes = WF_TYPE(WF_F32),                                                                    \
     .is_narrow = true,                                                                            \
     .prepare = prepare,                                                                           \
     .run = wf_wide_or_narrow<forward<float>, forward<wf_narrow>>},                                \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(WF_F64), .prepare = prepare, .run = forward<double>          \
    }
#define GRAD(name)                                                                                 \
    {.op = name,                                                                                   \
     .domain = WF_DOMAIN_WEFT,                                                                     \
     .dtypes = WF_TYPE(WF_F32),                                                                    \
     .is_narrow = true,                                                                            \
     .prepare = prepare_grad,                                                                      \
     .run = wf_wide_or_narrow<backward<float>, backward<wf_narrow>>},                              \
    {                                                                                              \
        .op = name, .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(WF_F64), .prepare = prepare_grad,  \
        .run = backward<double>                                                                    \
    }

WF_CUDA_ROWS(layer_norm){
    FORWARD("LayerNormalization"),
    FORWARD("RMSNormalization"),
    GRAD("LayerNormalizationGrad"),
    GRAD("RMSNormalizationGrad"),
    {},
};
