/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/reduce/arg_max.cu - ArgMax and ArgMin along one axis: the first of equals, or
 * the last with select_last_index. A NaN is more extreme than any number, as numpy has it. */
#include "common/kernels/cuda/reduce/reduce.h"
extern "C" {
#include "common/kernels/shape/axes.h"
}

namespace
{

/* Gathers the index of the most extreme element; -1: none was looked at. */
template <class T, bool MAX> struct most {
    using A = int64_t;
    const T *x;
    wf_around a;
    bool last;
    int64_t base; /* of the output's elements */
    T best;       /* that the thread has found */

    WF_CODE void begin(int64_t out)
    {
        base = out / a.inner * a.axis * a.inner + out % a.inner;
    }
    static WF_CODE int64_t first()
    {
        return -1;
    }
    /* Whether v, element i, goes before w, element k. */
    WF_CODE bool beats(T v, int64_t i, T w, int64_t k) const
    {
        if (v == w || (v != v && w != w))
            return last ? i > k : i < k;
        if (v != v || w != w)
            return v != v;
        return MAX ? v > w : v < w;
    }
    WF_CODE int64_t take(int64_t all, T v, int64_t i)
    {
        if (all >= 0 && !beats(v, i, best, all))
            return all;
        best = v;
        return i;
    }
    WF_CODE int64_t join(int64_t i, int64_t k) const
    {
        if (i < 0 || k < 0)
            return i < 0 ? k : i;
        return beats(x[base + i * a.inner], i, x[base + k * a.inner], k) ? i : k;
    }
    static WF_CODE int64_t end(int64_t all, int64_t)
    {
        return all;
    }
};

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    (void)out;
    return wf_reduce_over(prep, in[0],
                          1u << wf_axis_at(wf_node_int(prep->node, "axis", 0), in[0]->rank), err);
}

template <class T, bool MAX>
wf_status arg(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    most<T, MAX> h = {};

    h.x = static_cast<const T *>(in[0]->data);
    h.a = wf_around_axis(in[0], wf_node_int(run->node, "axis", 0));
    h.last = wf_node_int(run->node, "select_last_index", 0) != 0;
    if (h.a.axis == 0 && wf_elems(out[0]))
        return wf_fail(err, WF_INVALID, NULL, "there is no element to choose from");
    return wf_reduce_by<T, int64_t, most<T, MAX>>(
        run, *static_cast<const wf_reduction *>(run->state), h.x,
        static_cast<int64_t *>(out[0]->data), run->workspace, h, err);
}

} // namespace

#define ROW(name, dtype, T, MAX)                                                                   \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .prepare = prepare, .run = arg<T, MAX>               \
    }
#define ROWS(name, MAX)                                                                            \
    ROW(name, WF_F32, float, MAX), ROW(name, WF_F64, double, MAX),                                 \
        ROW(name, WF_I32, int32_t, MAX), ROW(name, WF_I64, int64_t, MAX),                          \
        ROW(name, WF_U8, uint8_t, MAX)

WF_CUDA_ROWS(arg_max){ROWS("ArgMax", true), ROWS("ArgMin", false), {}};
