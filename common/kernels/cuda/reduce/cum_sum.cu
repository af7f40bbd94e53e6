/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/reduce/cum_sum.cu - CumSum: element k is the sum of the first k + 1 along the
 * axis, of the first k with attr exclusive, from the other end with attr reverse. f32 is added in
 * double. The axis is known to the device alone, so each launch finds its lanes there. */
#include "common/kernels/cuda/index/ids.h"
extern "C" {
#include "common/kernels/shape/axes.h"
}

namespace
{

struct setting {
    wf_ids axis; /* one */
    int64_t rank, dims[WF_MAX_RANK];
    bool exclusive, reverse;
};

/* False: there is no such axis. */
WF_CODE bool find_axis(const setting &s, wf_around *a)
{
    const int64_t given = wf_id_at(s.axis, 0), axis = given < 0 ? given + s.rank : given;

    *a = {1, 1, 1};
    for (int64_t i = 0; i < s.rank; i++)
        (i < axis ? a->outer : i == axis ? a->axis : a->inner) *= s.dims[i];
    return axis >= 0 && axis < s.rank;
}

/* Where element k of a lane lies, as it is added. */
WF_CODE int64_t place(const setting &s, const wf_around &a, int64_t lane, int64_t k)
{
    return (lane / a.inner * a.axis + (s.reverse ? a.axis - 1 - k : k)) * a.inner + lane % a.inner;
}

/* A thread has a lane: its neighbours' elements are neighbours, or lanes are short. */
template <class T, class A>
WF_CODE void sum_alone(const T *x, T *y, const setting &s, const wf_around &a)
{
    for (int64_t lane = wf_first(); lane < a.outer * a.inner; lane += wf_all()) {
        A sum = 0;

        for (int64_t k = 0; k < a.axis; k++) {
            const int64_t at = place(s, a, lane, k);
            const A before = sum;

            sum += (A)x[at];
            y[at] = (T)(s.exclusive ? before : sum);
        }
    }
}

/* A block has a lane, and goes along it as fast as it has threads. */
template <class T, class A>
WF_CODE void sum_together(const T *x, T *y, const setting &s, const wf_around &a)
{
    for (int64_t lane = blockIdx.x; lane < a.outer * a.inner; lane += gridDim.x) {
        A base = 0, all;

        for (int64_t from = 0; from < a.axis; from += blockDim.x, base += all) {
            const int64_t k = from + threadIdx.x;
            const int64_t at = k < a.axis ? place(s, a, lane, k) : -1;
            const A own = at < 0 ? A(0) : (A)x[at], before = base + wf_sum_before(own, &all);

            if (at >= 0)
                y[at] = (T)(s.exclusive ? before : before + own);
        }
    }
}

template <class T, class A> __global__ void sum_lanes(const T *x, T *y, setting s, wf_complaints c)
{
    wf_around a;

    if (!find_axis(s, &a)) {
        if (wf_first() == 0)
            wf_complain(c, WF_CUDA_BAD_AXIS, wf_id_at(s.axis, 0), 0, s.rank);
        return;
    }
    if (a.inner >= WF_WARP || a.axis <= WF_WARP)
        sum_alone<T, A>(x, y, s, a);
    else
        sum_together<T, A>(x, y, s, a);
}

template <class T, class A>
wf_status cum_sum(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    int64_t elems = wf_elems(in[0]);
    setting s = {};

    s.axis = wf_ids_of(in[1]);
    s.rank = in[0]->rank;
    for (uint32_t i = 0; i < in[0]->rank; i++)
        s.dims[i] = in[0]->dims[i];
    s.exclusive = wf_node_int(run->node, "exclusive", 0) != 0;
    s.reverse = wf_node_int(run->node, "reverse", 0) != 0;
    return wf_launch_meeting(run, "CumSum", sum_lanes<T, A>, wf_blocks(run, elems), WF_BLOCK, err,
                             static_cast<const T *>(in[0]->data), static_cast<T *>(out[0]->data), s,
                             wf_complaints_of(run));
}

} // namespace

#define ROW(dtype, T, A)                                                                           \
    {                                                                                              \
        .op = "CumSum", .dtypes = WF_TYPE(dtype), .in_place = 1, .run = cum_sum<T, A>              \
    }

WF_CUDA_ROWS(cum_sum){
    ROW(WF_F32, float, double),
    ROW(WF_F64, double, double),
    ROW(WF_I32, uint32_t, uint32_t),
    ROW(WF_I64, uint64_t, uint64_t),
    {},
};
