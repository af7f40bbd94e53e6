/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/grid_sample.cu - GridSample(x, grid), and GridSampleGrad(dy, x, grid);
 * shape/grid_sample.h has the taps. A thread computes one place of the grid for all channels.
 *
 * The gradient of x adds at elements that the grid names, in the order of places: a block walks
 * through an image's places, as many at a time as it has threads. Of threads that name one element
 * the first adds for all, in their order. */
#include "common/kernels/cuda/memory.h"
extern "C" {
#include "common/kernels/shape/grid_sample.h"
}

namespace
{

/* Channels that a block of dx adds for: finding out who adds is shared by them. */
enum { SLICE = 8 };

/* What a place reads along each axis. */
struct place {
    wf_sampling_taps axis[WF_SAMPLE_AXES];
};

/* One tap of each axis. */
struct element {
    int64_t at; /* -1: outside */
    double weight;
    double slope[WF_SAMPLE_AXES]; /* of the weight by each axis */
};

/* Place number p of all images. The grid has the last axis first. */
template <class T> WF_CODE place place_of(const wf_sampling &s, const T *grid, int64_t p)
{
    place to;

    for (uint32_t i = 0; i < s.rank; i++)
        wf_sampling_find(&s, (double)grid[p * s.rank + s.rank - 1 - i], s.size[i], &to.axis[i]);
    return to;
}

WF_CODE element element_of(const wf_sampling &s, const place &p, uint32_t k)
{
    element e = {0, 1, {1, 1, 1}};

    for (uint32_t i = 0; i < s.rank; k /= p.axis[i].n, i++) {
        const wf_sampling_taps &taps = p.axis[i];
        uint32_t tap = k % taps.n;

        e.at = e.at < 0 || taps.at[tap] < 0 ? -1 : e.at + taps.at[tap] * s.stride[i];
        e.weight *= taps.weight[tap];
        for (uint32_t j = 0; j < s.rank; j++)
            e.slope[j] *= j == i ? taps.slope[tap] : taps.weight[tap];
    }
    return e;
}

template <class T> __global__ void sample(wf_sampling s, const T *x, const T *grid, T *y)
{
    const int64_t each = s.channels * s.points;

    for (int64_t i = wf_first(); i < s.images * each; i += wf_all()) {
        const T *image = x + i / s.points * s.image;
        place p = place_of(s, grid, i / each * s.points + i % s.points);
        double sum = 0;

        for (uint32_t k = 0; k < s.elements; k++) {
            element e = element_of(s, p, k);

            if (e.at >= 0)
                sum += e.weight * (double)image[e.at];
        }
        y[i] = (T)sum;
    }
}

template <class T>
__global__ void grid_grads(wf_sampling s, const T *dy, const T *x, const T *grid, T *dgrid)
{
    for (int64_t i = wf_first(); i < s.images * s.points; i += wf_all()) {
        const int64_t first = i / s.points * s.channels;
        place p = place_of(s, grid, i);
        double sums[WF_SAMPLE_AXES] = {0, 0, 0};

        for (uint32_t k = 0; k < s.elements; k++) {
            element e = element_of(s, p, k);
            double all = 0;

            for (int64_t c = first; e.at >= 0 && c < first + s.channels; c++)
                all += (double)dy[c * s.points + i % s.points] * (double)x[c * s.image + e.at];
            for (uint32_t j = 0; e.at >= 0 && j < s.rank; j++)
                sums[j] += all * e.slope[j];
        }
        for (uint32_t j = 0; j < s.rank; j++)
            dgrid[i * s.rank + j] = (T)sums[s.rank - 1 - j];
    }
}

/* dx holds zeros. */
template <class T> __global__ void add_to_images(wf_sampling s, const T *dy, const T *grid, T *dx)
{
    /* Of each thread's place: the element, its weight, and the next thread with this element. */
    WF_SHARED(int64_t, named, WF_BLOCK);
    WF_SHARED(double, weights, WF_BLOCK);
    WF_SHARED(int, next, WF_BLOCK);
    const int64_t slices = (s.channels + SLICE - 1) / SLICE;
    const int me = (int)threadIdx.x, threads = (int)blockDim.x;

    for (int64_t b = blockIdx.x; b < s.images * slices; b += gridDim.x) {
        const int64_t image = b / slices, from = b % slices * SLICE;
        const int64_t to = from + SLICE < s.channels ? from + SLICE : s.channels;

        for (int64_t first = 0; first < s.points; first += threads) {
            const bool has = first + me < s.points;
            place p = {};

            if (has)
                p = place_of(s, grid, image * s.points + first + me);
            for (uint32_t k = 0; k < s.elements; k++) {
                element e = has ? element_of(s, p, k) : element{-1, 0, {0, 0, 0}};
                bool adds = e.at >= 0;
                int other = me + 1;

                named[me] = e.at;
                weights[me] = e.weight;
                __syncthreads();
                for (int i = 0; adds && i < me; i++)
                    adds = named[i] != e.at;
                while (other < threads && named[other] != e.at)
                    other++;
                next[me] = other;
                __syncthreads();
                for (int64_t c = image * s.channels + from; adds && c < image * s.channels + to;
                     c++) {
                    T sum = dx[c * s.image + e.at];

                    for (int i = me; i < threads; i = next[i])
                        sum += (T)((double)dy[c * s.points + first + i] * weights[i]);
                    dx[c * s.image + e.at] = sum;
                }
                __syncthreads(); /* before others are named */
            }
        }
    }
}

template <class T>
wf_status grid_sample(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    wf_sampling s = wf_sampling_of(run->node, in[0], in[1]);

    return wf_launch(run, "GridSample", sample<T>, wf_blocks(run, wf_elems(out[0])), err, s,
                     wf_in<T>(in[0]), wf_in<T>(in[1]), wf_out<T>(out[0]));
}

/* From dy, x and grid. */
template <class T>
wf_status grid_sample_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                           wf_err *err)
{
    wf_sampling s = wf_sampling_of(run->node, in[1], in[2]);
    const T *dy = wf_in<T>(in[0]), *x = wf_in<T>(in[1]), *grid = wf_in<T>(in[2]);

    if (out[1])
        WF_TRY(wf_launch(run, "grid", grid_grads<T>, wf_blocks(run, s.images * s.points), err, s,
                         dy, x, grid, wf_out<T>(out[1])));
    if (!out[0] || wf_elems(out[0]) == 0)
        return WF_OK;
    WF_TRY(wf_stream_fill(run->stream, out[0]->data, 0, wf_tensor_bytes(out[0]), err));
    return wf_launch_meeting(run, "images", add_to_images<T>,
                             wf_blocks(run, s.images * wf_ceil_div(s.channels, SLICE) * WF_BLOCK),
                             wf_threads(s.points), err, s, dy, grid, wf_out<T>(out[0]));
}

} // namespace

#define ROW(name, domain_, dtype, fn)                                                              \
    {                                                                                              \
        .op = name, .domain = domain_, .dtypes = WF_TYPE(dtype), .run = fn                         \
    }

WF_CUDA_ROWS(grid_sample){
    ROW("GridSample", NULL, WF_F32, grid_sample<float>),
    ROW("GridSample", NULL, WF_F64, grid_sample<double>),
    ROW("GridSampleGrad", WF_DOMAIN_WEFT, WF_F32, grid_sample_grad<float>),
    ROW("GridSampleGrad", WF_DOMAIN_WEFT, WF_F64, grid_sample_grad<double>),
    {},
};
