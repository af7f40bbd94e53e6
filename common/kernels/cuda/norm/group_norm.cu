/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/norm/group_norm.cu - GroupNormalization, InstanceNormalization and their
 * gradient; the cpu's file of that name has the formulas. A block computes one group of an image
 * after the other. Backwards the sums of each channel of an image come first, from which the others
 * are made. */
#include "common/kernels/cuda/norm/moments.h"
extern "C" {
#include "common/kernels/shape/norm.h"
}

namespace
{

struct plan {
    wf_group_norm v;
    size_t moments, sums; /* in the workspace: wf_two of each group; of each channel of an image */
};

/* Which scale channel c of group number `row` has. */
WF_CODE int64_t scale_at(const wf_group_norm &v, int64_t row, int64_t c)
{
    int64_t group = row % v.groups;

    return v.per_group ? group : group * v.each + c;
}

/* Mean (a) and 1 / deviation (b) of group number `row`. */
template <class T> WF_CODE wf_two moments_of(const wf_group_norm &v, const T *x, int64_t row)
{
    wf_two m = wf_moments(x + row * v.each * v.inner, v.each * v.inner);

    return {m.a, 1 / std::sqrt(m.b + v.epsilon)};
}

template <class T>
__global__ void normalise(wf_group_norm v, const T *x, const T *scale, const T *bias, T *y)
{
    const int64_t n = v.each * v.inner;

    for (int64_t r = blockIdx.x; r < v.images * v.groups; r += gridDim.x) {
        wf_two m = moments_of(v, x, r);

        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            int64_t s = scale_at(v, r, i / v.inner);
            double a = (double)scale[s] * m.b;

            y[r * n + i] = (T)a * x[r * n + i] + (T)((double)bias[s] - m.a * a);
        }
    }
}

template <class T> __global__ void find_moments(wf_group_norm v, const T *x, wf_two *moments)
{
    for (int64_t r = blockIdx.x; r < v.images * v.groups; r += gridDim.x) {
        wf_two m = moments_of(v, x, r);

        if (threadIdx.x == 0)
            moments[r] = m;
    }
}

/* Of each channel of an image: the sums of dy, and of dy times the normalised x. */
template <class T>
__global__ void sum_channels(wf_group_norm v, const T *dy, const T *x, const wf_two *moments,
                             wf_two *sums)
{
    for (int64_t c = blockIdx.x; c < v.images * v.groups * v.each; c += gridDim.x) {
        wf_two m = moments[c / v.each], all = {0, 0};

        for (int64_t i = threadIdx.x; i < v.inner; i += blockDim.x) {
            int64_t at = c * v.inner + i;

            all.a += (double)dy[at];
            all.b += (double)dy[at] * ((double)x[at] - m.a);
        }
        all = wf_join_two(all);
        if (threadIdx.x == 0)
            sums[c] = {all.a, all.b * m.b};
    }
}

template <class T>
__global__ void group_grads(wf_group_norm v, const T *dy, const T *x, const T *scale,
                            const wf_two *moments, const wf_two *sums, T *dx)
{
    const int64_t n = v.each * v.inner;

    for (int64_t r = blockIdx.x; r < v.images * v.groups; r += gridDim.x) {
        wf_two m = moments[r], all = {0, 0};
        double back, shift;

        for (int64_t c = threadIdx.x; c < v.each; c += blockDim.x) {
            all.a += (double)scale[scale_at(v, r, c)] * sums[r * v.each + c].a;
            all.b += (double)scale[scale_at(v, r, c)] * sums[r * v.each + c].b;
        }
        all = wf_join_two(all);
        back = -m.b * m.b * all.b / (double)n;
        shift = -m.b * all.a / (double)n - back * m.a;
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            dx[r * n + i] = (T)(m.b * (double)scale[scale_at(v, r, i / v.inner)]) * dy[r * n + i] +
                            (T)back * x[r * n + i] + (T)shift;
    }
}

/* A block for each scale: over the images, and the channels that have it. */
template <class T>
__global__ void parameters(wf_group_norm v, const wf_two *sums, T *dscale, T *dbias)
{
    const int64_t channels = v.groups * v.each, many = v.per_group ? v.each : 1;

    for (int64_t p = blockIdx.x; p < channels / many; p += gridDim.x) {
        wf_two all = {0, 0};

        for (int64_t i = threadIdx.x; i < v.images * many; i += blockDim.x) {
            wf_two one = sums[i / many * channels + p * many + i % many];

            all.a += one.a;
            all.b += one.b;
        }
        all = wf_join_two(all);
        if (threadIdx.x == 0 && dscale)
            dscale[p] = (T)all.b;
        if (threadIdx.x == 0 && dbias)
            dbias[p] = (T)all.a;
    }
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    plan *p;

    (void)out;
    WF_TRY(wf_new_plan(prep, &p, err));
    return wf_group_norm_of(prep->node, in[0], in[1], in[2], &p->v, err);
}

wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    plan *p;

    (void)out;
    WF_TRY(wf_new_plan(prep, &p, err));
    WF_TRY(wf_group_norm_of(prep->node, in[1], in[2], NULL, &p->v, err));
    WF_TRY(wf_take_room(prep, p->v.images * p->v.groups, sizeof(wf_two), &p->moments, err));
    return wf_take_room(prep, p->v.images * p->v.groups * p->v.each, sizeof(wf_two), &p->sums, err);
}

/* Blocks for the groups of all images. */
unsigned blocks_of(const wf_run *run, const wf_group_norm &v)
{
    return wf_blocks(run, v.images * v.groups * WF_BLOCK);
}

template <class T>
wf_status forward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    const wf_group_norm &v = static_cast<const plan *>(run->state)->v;

    return wf_launch_meeting(run, run->node->op->name, normalise<T>, blocks_of(run, v),
                             wf_threads(v.each * v.inner), err, v, wf_in<T>(in[0]), wf_in<T>(in[1]),
                             wf_in<T>(in[2]), wf_out<T>(out[0]));
}

template <class T>
wf_status backward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const wf_group_norm &v = p->v;
    const T *dy = wf_in<T>(in[0]), *x = wf_in<T>(in[1]);
    wf_two *moments = wf_room<wf_two>(run, p->moments), *sums = wf_room<wf_two>(run, p->sums);
    const int64_t n = v.each * v.inner;

    WF_TRY(wf_launch_meeting(run, "moments", find_moments<T>, blocks_of(run, v), wf_threads(n), err,
                             v, x, moments));
    WF_TRY(wf_launch_meeting(
        run, "channels", sum_channels<T>, wf_blocks(run, v.images * v.groups * v.each * WF_BLOCK),
        wf_threads(v.inner), err, v, dy, x, static_cast<const wf_two *>(moments), sums));
    if (out[0])
        WF_TRY(wf_launch_meeting(run, "groups", group_grads<T>, blocks_of(run, v), wf_threads(n),
                                 err, v, dy, x, wf_in<T>(in[2]),
                                 static_cast<const wf_two *>(moments),
                                 static_cast<const wf_two *>(sums), wf_out<T>(out[0])));
    return out[1] || out[2] ? wf_launch_meeting(run, "parameters", parameters<T>,
                                                wf_blocks(run, v.groups * v.each * WF_BLOCK),
                                                wf_threads(v.images * (v.per_group ? v.each : 1)),
                                                err, v, static_cast<const wf_two *>(sums),
                                                wf_out<T>(out[1]), wf_out<T>(out[2]))
                            : WF_OK;
}

} // namespace

#define FORWARD(name, dtype, T)                                                                    \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .prepare = prepare, .run = forward<T>                \
    }
#define GRAD(dtype, T)                                                                             \
    {                                                                                              \
        .op = "GroupNormalizationGrad", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype),        \
        .prepare = prepare_grad, .run = backward<T>                                                \
    }

WF_CUDA_ROWS(group_norm){
    FORWARD("GroupNormalization", WF_F32, float),
    FORWARD("GroupNormalization", WF_F64, double),
    FORWARD("InstanceNormalization", WF_F32, float),
    FORWARD("InstanceNormalization", WF_F64, double),
    GRAD(WF_F32, float),
    GRAD(WF_F64, double),
    {},
};
