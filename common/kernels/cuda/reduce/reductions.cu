/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/reduce/reductions.cu - ReduceL1, L2, Max, Mean, Min, Prod, Sum and SumSquare
 * of floats: axes are input 1, all of them when there are none (unless noop_with_empty_axes). */
#include "common/kernels/cuda/reduce/reduce.h"

#include <cmath>

namespace
{

struct mean : wf_sum<double> {
    static WF_CODE double end(double all, int64_t n)
    {
        return all / (double)n;
    }
};

struct sum_of_squares : wf_sum<double> {
    template <class T> static WF_CODE double take(double all, T x)
    {
        return all + (double)x * (double)x;
    }
};

struct length : sum_of_squares {
    static WF_CODE double end(double all, int64_t)
    {
        return std::sqrt(all);
    }
};

struct sum_of_sizes : wf_sum<double> {
    template <class T> static WF_CODE double take(double all, T x)
    {
        return all + std::fabs((double)x);
    }
};

struct product {
    using A = double;
    static WF_CODE double first()
    {
        return 1;
    }
    template <class T> static WF_CODE double take(double all, T x)
    {
        return all * (double)x;
    }
    static WF_CODE double join(double x, double y)
    {
        return x * y;
    }
    static WF_CODE double end(double all, int64_t)
    {
        return all;
    }
};

/* A NaN stays one. */
struct greatest {
    using A = double;
    static WF_CODE double first()
    {
        return -(double)INFINITY;
    }
    static WF_CODE double join(double x, double y)
    {
        return x > y || x != x ? x : y;
    }
    template <class T> static WF_CODE double take(double all, T x)
    {
        return join(all, (double)x);
    }
    static WF_CODE double end(double all, int64_t)
    {
        return all;
    }
};

struct least : greatest {
    static WF_CODE double first()
    {
        return (double)INFINITY;
    }
    static WF_CODE double join(double x, double y)
    {
        return x < y || x != x ? x : y;
    }
    template <class T> static WF_CODE double take(double all, T x)
    {
        return join(all, (double)x);
    }
};

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    uint32_t mask;

    (void)out;
    WF_TRY(wf_reduce_mask(prep->node, in[0], in[1], &mask, err));
    return wf_reduce_over(prep, in[0], mask, err);
}

} // namespace

#define ROW(name, dtype, T, H)                                                                     \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .prepare = prepare, .run = wf_reduce<T, T, H>        \
    }
#define FLOATS(name, H) ROW(name, WF_F32, float, H), ROW(name, WF_F64, double, H)

WF_CUDA_ROWS(reductions){
    FLOATS("ReduceL1", sum_of_sizes),
    FLOATS("ReduceL2", length),
    FLOATS("ReduceMax", greatest),
    FLOATS("ReduceMean", mean),
    FLOATS("ReduceMin", least),
    FLOATS("ReduceProd", product),
    FLOATS("ReduceSum", wf_sum<double>),
    FLOATS("ReduceSumSquare", sum_of_squares),
    {},
};
