/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/norm/layer_norm.cu - LayerNormalization, RMSNormalization and their
 * gradients; the cpu's file of that name has the formulas. Rows of up to some thousands of float32
 * or narrow elements are held in registers (held.h); of others a block computes row after row.
 *
 * The gradients of scale and bias are sums over rows: of parts of them first, whose number follows
 * from the shape, and the parts are joined in their order. */
#include "common/kernels/cuda/norm/held.h"
extern "C" {
#include "common/kernels/shape/norm.h"
}

namespace
{

/* Sums of columns: threads that add at a time, and rows that are worth one; blocks that hold rows,
 * each of which makes a part. */
enum { COLUMN_THREADS = 1 << 18, PART_ROWS = 32, HELD_BLOCKS = 264 };

struct plan {
    wf_layer_norm v;
    wf_held_shape held; /* of 0 fours: rows are not held */
    int64_t held_parts, parts, part_rows;
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

/* Sums [parts, n] to sums [n]: warps of a block take parts in turn, and neighbouring threads
 * neighbouring columns. */
template <class T>
__global__ void join_parts(int64_t parts, int64_t n, const wf_two *sums, wf_to<T> dscale,
                           wf_to<T> dbias)
{
    using N = wf_number<T>;
    WF_SHARED(double, scales, WF_BLOCK);
    WF_SHARED(double, biases, WF_BLOCK);

    for (int64_t first = (int64_t)blockIdx.x * WF_WARP; first < n;
         first += (int64_t)gridDim.x * WF_WARP) {
        const int64_t column = first + threadIdx.x % WF_WARP;
        wf_two all = {0, 0};

        for (int64_t part = threadIdx.x / WF_WARP; part < parts && column < n; part += WF_WARPS) {
            const wf_two one = sums[part * n + column];

            all.a += one.a;
            all.b += one.b;
        }
        scales[threadIdx.x] = all.a;
        biases[threadIdx.x] = all.b;
        __syncthreads();
        if (threadIdx.x < WF_WARP && column < n) {
            for (unsigned warp = 1; warp < WF_WARPS; warp++) {
                all.a += scales[warp * WF_WARP + threadIdx.x];
                all.b += biases[warp * WF_WARP + threadIdx.x];
            }
            if (dscale)
                dscale[column] = (N)all.a;
            if (dbias)
                dbias[column] = (N)all.b;
        }
        __syncthreads(); /* before the next columns are written */
    }
}

/* ---- rows that are held ---- */

/* Mean (a) and 1 / deviation (b) of a row x[n], of which the mean is taken from `row`. */
template <int FOURS, int WARPS, class X>
WF_CODE wf_two center(const wf_layer_norm &v, const X &x, wf_held<FOURS, WARPS> &row)
{
    wf_two m;

    if (v.rms)
        m = {0, wf_held_squares(row, (int)(v.n / 4)) / (double)v.n};
    else
        m = wf_center_held(row, v.n, x[0]);
    return {m.a, 1 / std::sqrt((m.b < 0 ? 0 : m.b) + v.epsilon)};
}

template <class T, int FOURS, int WARPS>
__global__ void __launch_bounds__(WF_BLOCK)
    normalise_held(wf_layer_norm v, wf_from<T> x, wf_from<T> scale, wf_from<T> bias, wf_to<T> y,
                   float *means, float *invs)
{
    for (int64_t r = wf_held_first_row<WARPS>(); r < v.rows;
         r += (int64_t)gridDim.x * (WF_WARPS / WARPS)) {
        const wf_from<T> from = x + r * v.n;
        const int fours = (int)(v.n / 4);
        auto row = wf_widen_held<FOURS, WARPS>(from, wf_hold<FOURS, WARPS>(from, fours));
        const wf_two m = center(v, from, row);
        const float inv = (float)m.b;

        if (y)
            wf_held_each<FOURS, WARPS>(fours, [&](int k, int four) {
                const int64_t at = (int64_t)4 * four;
                const wf_four<float> s = wf_wide_four(scale, wf_load_four(scale, at));
                wf_four<float> b = wf_same_four(0.0f), made;

                if (bias)
                    b = wf_wide_four(bias, wf_load_four(bias, at));
                WF_UNROLL
                for (int j = 0; j < 4; j++)
                    made.v[j] = row.v[k].v[j] * inv * s.v[j] + b.v[j];
                wf_store_four(y, r * v.n + at, made);
            });
        if (wf_held_thread<WARPS>() == 0 && means)
            means[r] = (float)m.a;
        if (wf_held_thread<WARPS>() == 0 && invs)
            invs[r] = (float)m.b;
    }
}

/* Part blockIdx.x of the sums [parts, n], from those of the block's warps, which hold a row each:
 * threads of the same number have sums of the same columns, 4 for each of their fours. */
template <int FOURS>
WF_CODE void put_part(int64_t n, const wf_held<FOURS, 1> &scales, const wf_held<FOURS, 1> &biases,
                      wf_two *sums)
{
    const unsigned t = threadIdx.x, each = 8, warp_has = WF_WARP * each;
    WF_SHARED(float, shared, WF_BLOCK * 8);

    WF_UNROLL
    for (int k = 0; k < FOURS; k++) {
        const int64_t column = (int64_t)4 * k * WF_WARP + t;

        WF_UNROLL
        for (unsigned j = 0; j < 4; j++) {
            shared[t * each + 2 * j] = scales.v[k].v[j];
            shared[t * each + 2 * j + 1] = biases.v[k].v[j];
        }
        __syncthreads();
        if (t < 4 * WF_WARP && column < n) {
            wf_two all = {0, 0};

            for (unsigned warp = 0; warp < WF_WARPS; warp++) {
                all.a += (double)shared[warp * warp_has + 2 * t];
                all.b += (double)shared[warp * warp_has + 2 * t + 1];
            }
            sums[blockIdx.x * n + column] = all;
        }
        __syncthreads(); /* before the next fours are written */
    }
}

/* The same where the block holds one row. */
template <int FOURS>
WF_CODE void put_part(int64_t n, const wf_held<FOURS, WF_WARPS> &scales,
                      const wf_held<FOURS, WF_WARPS> &biases, wf_two *sums)
{
    wf_held_each<FOURS, WF_WARPS>((int)(n / 4), [&](int k, int four) {
        WF_UNROLL
        for (int j = 0; j < 4; j++)
            sums[blockIdx.x * n + (int64_t)4 * four + j] = {(double)scales.v[k].v[j],
                                                            (double)biases.v[k].v[j]};
    });
}

/* dx, and a part of the sums of each block. */
template <class T, int FOURS, int WARPS>
__global__ void __launch_bounds__(WF_BLOCK, FOURS <= 6 ? 2 : 1)
    grads_held(wf_layer_norm v, wf_from<T> dy, wf_from<T> x, wf_from<T> scale, wf_to<T> dx,
               wf_two *sums)
{
    wf_held<FOURS, WARPS> scales = {}, biases = {};

    for (int64_t r = wf_held_first_row<WARPS>(); r < v.rows;
         r += (int64_t)gridDim.x * (WF_WARPS / WARPS)) {
        const wf_from<T> from = x + r * v.n, slopes = dy + r * v.n;
        const int fours = (int)(v.n / 4);
        const auto raw_x = wf_hold<FOURS, WARPS>(from, fours);
        const auto raw_dy = wf_hold<FOURS, WARPS>(slopes, fours);
        auto row = wf_widen_held<FOURS, WARPS>(from, raw_x);
        const auto g = wf_widen_held<FOURS, WARPS>(slopes, raw_dy);
        const float inv = (float)center(v, from, row).b;
        float first = 0, second = 0;

        wf_held_each<FOURS, WARPS>(fours, [&](int k, int four) {
            const wf_four<float> s = wf_wide_four(scale, wf_load_four(scale, (int64_t)4 * four));

            WF_UNROLL
            for (int j = 0; j < 4; j++) {
                const float own = g.v[k].v[j], z = row.v[k].v[j] *= inv;

                first += own * s.v[j];
                second += own * s.v[j] * z;
                scales.v[k].v[j] += own * z;
                biases.v[k].v[j] += own;
            }
        });
        if (!dx)
            continue;
        first = v.rms ? 0 : (float)(wf_held_sum<WARPS>(first) / (double)v.n);
        second = (float)(wf_held_sum<WARPS>(second) / (double)v.n);
        wf_held_each<FOURS, WARPS>(fours, [&](int k, int four) {
            const wf_four<float> s = wf_wide_four(scale, wf_load_four(scale, (int64_t)4 * four));
            wf_four<float> made;

            WF_UNROLL
            for (int j = 0; j < 4; j++)
                made.v[j] = inv * (g.v[k].v[j] * s.v[j] - first - row.v[k].v[j] * second);
            wf_store_four(dx, r * v.n + (int64_t)4 * four, made);
        });
    }
    put_part(v.n, scales, biases, sums);
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    plan *p;

    prep->widens = wf_is_narrow(out[1]) || wf_is_narrow(out[2]);
    WF_TRY(wf_new_plan(prep, &p, err));
    WF_TRY(wf_layer_norm_of(prep->node, in[0], in[1], in[2], &p->v, err));
    p->held = wf_held_shape_of(p->v.n);
    return WF_OK;
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
    p->held = wf_held_shape_of(p->v.n);
    if (p->held.fours)
        p->held_parts = WF_MIN(wf_ceil_div(p->v.rows, wf_held_rows(p->held)), (int64_t)HELD_BLOCKS);
    WF_TRY(wf_take_room(prep, p->v.rows, sizeof(wf_two), &p->moments, err));
    return wf_take_room(prep, WF_MAX(p->parts, p->held_parts) * p->v.n, sizeof(wf_two), &p->sums,
                        err);
}

/* Whether the rows of these operands are held; of double they are not. */
template <class T> bool are_held(const plan *p, const wf_tensor *const in[], wf_tensor *const out[])
{
    bool all = p->held.fours && p->v.rows > 0 && !std::is_same_v<T, double>;

    for (int i = 0; i < 3; i++)
        all &= wf_has_fours(in[i]);
    return all && wf_has_fours(out[0]);
}

/* A block for each of the rows that it holds at a time: the first ones of the scheduler end soon.
 */
unsigned held_blocks(const plan *p)
{
    return (unsigned)WF_MIN(wf_ceil_div(p->v.rows, wf_held_rows(p->held)), (int64_t)INT32_MAX);
}

template <class T>
wf_status forward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const wf_from<T> x = wf_read<T>(in[0]), scale = wf_read<T>(in[1]), bias = wf_read<T>(in[2]);
    const wf_to<T> y = wf_write<T>(out[0]);
    float *means = wf_out<float>(out[1]), *invs = wf_out<float>(out[2]);

    if constexpr (!std::is_same_v<T, double>)
        if (are_held<T>(p, in, out))
            return wf_with_shape(p->held, [&]<int FOURS, int WARPS>() {
                return wf_launch_meeting(run, run->node->op->name, normalise_held<T, FOURS, WARPS>,
                                         held_blocks(p), WF_BLOCK, err, p->v, x, scale, bias, y,
                                         means, invs);
            });
    return wf_launch_meeting(run, run->node->op->name, normalise<T>,
                             wf_blocks(run, p->v.rows * WF_BLOCK), wf_threads(p->v.n), err, p->v, x,
                             scale, bias, y, means, invs);
}

template <class T>
wf_status join(const wf_run *run, int64_t parts, const wf_two *sums, wf_tensor *const out[],
               wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);

    return wf_launch_meeting(run, "columns", join_parts<T>, wf_blocks(run, p->v.n * WF_WARPS),
                             WF_BLOCK, err, parts, p->v.n, sums, wf_write<T>(out[1]),
                             wf_write<T>(out[2]));
}

template <class T>
wf_status backward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const wf_from<T> dy = wf_read<T>(in[0]), x = wf_read<T>(in[1]), scale = wf_read<T>(in[2]);
    const wf_to<T> dx = wf_write<T>(out[0]);
    wf_two *moments = wf_room<wf_two>(run, p->moments), *sums = wf_room<wf_two>(run, p->sums);
    const bool has_columns = (out[1] || out[2]) && p->v.n > 0;

    if constexpr (!std::is_same_v<T, double>)
        if (are_held<T>(p, in, out)) {
            WF_TRY(wf_with_shape(p->held, [&]<int FOURS, int WARPS>() {
                return wf_launch_meeting(run, "rows", grads_held<T, FOURS, WARPS>,
                                         (unsigned)p->held_parts, WF_BLOCK, err, p->v, dy, x, scale,
                                         dx, sums);
            }));
            return has_columns ? join<T>(run, p->held_parts, sums, out, err) : WF_OK;
        }
    WF_TRY(wf_launch_meeting(run, "rows", row_grads<T>, wf_blocks(run, p->v.rows * WF_BLOCK),
                             wf_threads(p->v.n), err, p->v, dy, x, scale, dx, moments));
    if (!has_columns)
        return WF_OK;
    WF_TRY(wf_launch(run, "parts", column_parts<T>, wf_blocks(run, p->parts * p->v.n), err, *p, dy,
                     x, static_cast<const wf_two *>(moments), sums));
    return join<T>(run, p->parts, sums, out, err);
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
