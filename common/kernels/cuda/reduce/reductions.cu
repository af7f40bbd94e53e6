/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/reduce/reductions.cu - the Reduce operations of ONNX: axes are input 1, all
 * of them when there are none (unless noop_with_empty_axes). Floats are gathered in double,
 * integers in 64 bits, which wrap. */
#include "common/kernels/cuda/reduce/reduce.h"

#include <cmath>
#include <limits>

namespace
{

/* ---- floats ---- */

struct mean : wf_sum<double> {
    static WF_CODE double end(double all, int64_t n)
    {
        return all / (double)n;
    }
};

struct logarithm : wf_sum<double> {
    static WF_CODE double end(double all, int64_t)
    {
        return std::log(all);
    }
};

struct sum_of_sizes : wf_sum<double> {
    template <class T> static WF_CODE double take(double all, T x, int64_t)
    {
        return all + std::fabs((double)x);
    }
};

/* A NaN stays one. */
struct greatest : wf_alike {
    using A = double;
    static WF_CODE double first()
    {
        return -(double)INFINITY;
    }
    static WF_CODE double join(double x, double y)
    {
        return x > y || x != x ? x : y;
    }
    template <class T> static WF_CODE double take(double all, T x, int64_t)
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
    template <class T> static WF_CODE double take(double all, T x, int64_t)
    {
        return join(all, (double)x);
    }
};

/* ---- of an A: double, or uint64_t ---- */

template <class Of> struct sum_of_squares : wf_sum<Of> {
    template <class T> static WF_CODE Of take(Of all, T x, int64_t)
    {
        return all + (Of)x * (Of)x;
    }
};

struct length : sum_of_squares<double> {
    static WF_CODE double end(double all, int64_t)
    {
        return std::sqrt(all);
    }
};

template <class Of> struct product : wf_sum<Of> {
    static WF_CODE Of first()
    {
        return 1;
    }
    template <class T> static WF_CODE Of take(Of all, T x, int64_t)
    {
        return all * (Of)x;
    }
    static WF_CODE Of join(Of x, Of y)
    {
        return x * y;
    }
};

/* ---- integers ---- */

WF_CODE int64_t int_of(double x)
{
    return x >= 0x1p63 ? INT64_MAX : x > -0x1p63 ? (int64_t)x : INT64_MIN;
}

struct int_mean : wf_sum<uint64_t> {
    static WF_CODE int64_t end(uint64_t all, int64_t n)
    {
        return n ? (int64_t)all / n : 0;
    }
};

struct int_logarithm : wf_sum<uint64_t> {
    static WF_CODE int64_t end(uint64_t all, int64_t)
    {
        return int_of(std::log((double)(int64_t)all));
    }
};

struct int_sum_of_sizes : wf_sum<uint64_t> {
    template <class T> static WF_CODE uint64_t take(uint64_t all, T x, int64_t)
    {
        return all + (x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
    }
};

struct int_length : sum_of_squares<uint64_t> {
    static WF_CODE int64_t end(uint64_t all, int64_t)
    {
        return int_of(std::sqrt((double)(int64_t)all));
    }
};

/* What no element of T is below, and above; a bool is of bytes 0 and 1. */
template <class T> constexpr T lowest = std::numeric_limits<T>::lowest();
template <class T> constexpr T highest = std::numeric_limits<T>::max();

template <class T> struct int_greatest : wf_alike {
    using A = T;
    static WF_CODE T first()
    {
        return lowest<T>;
    }
    static WF_CODE T join(T x, T y)
    {
        return x > y ? x : y;
    }
    static WF_CODE T take(T all, T x, int64_t)
    {
        return join(all, x);
    }
    static WF_CODE T end(T all, int64_t)
    {
        return all;
    }
};

template <class T, bool IS_BOOL = false> struct int_least : int_greatest<T> {
    static WF_CODE T first()
    {
        return IS_BOOL ? T(1) : highest<T>;
    }
    static WF_CODE T join(T x, T y)
    {
        return x < y ? x : y;
    }
    static WF_CODE T take(T all, T x, int64_t)
    {
        return join(all, x);
    }
};

/* ---- ReduceLogSumExp ---- */

/* ln(sum e^x) = top + ln(sum e^(x - top)), where top is the largest x; when that is infinite or NaN
 * it is the result. */
struct sum_of_exponentials : wf_sum<double> {
    const double *tops;
    double top;

    WF_CODE void begin(int64_t out)
    {
        top = tops[out];
    }
    template <class T> WF_CODE double take(double all, T x, int64_t) const
    {
        return all + std::exp((double)x - (std::isfinite(top) ? top : 0));
    }
    WF_CODE double end(double all, int64_t) const
    {
        return std::isfinite(top) ? top + std::log(all) : top;
    }
};

struct int_sum_of_exponentials : sum_of_exponentials {
    WF_CODE int64_t end(double all, int64_t n) const
    {
        return int_of(sum_of_exponentials::end(all, n));
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

/* The tops come behind the reduction's own workspace. */
size_t tops_at(const wf_reduction *r)
{
    return wf_align_up(wf_reduce_bytes(*r), WF_ALIGNED);
}

wf_status prepare_exponentials(wf_prep *prep, const wf_tensor *const in[],
                               const wf_tensor *const out[], wf_err *err)
{
    WF_TRY(prepare(prep, in, out, err));
    prep->workspace_bytes = tops_at(static_cast<const wf_reduction *>(prep->state)) +
                            (size_t)wf_elems(out[0]) * sizeof(double);
    return WF_OK;
}

template <class T, class H>
wf_status log_sum_exp(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    const wf_reduction *r = static_cast<const wf_reduction *>(run->state);
    const T *x = static_cast<const T *>(in[0]->data);
    double *tops = reinterpret_cast<double *>(static_cast<char *>(run->workspace) + tops_at(r));
    H h = {};

    h.tops = tops;
    WF_TRY((wf_reduce_by<T, double, greatest>(run, *r, x, tops, run->workspace, {}, err)));
    return wf_reduce_by<T, T, H>(run, *r, x, static_cast<T *>(out[0]->data), run->workspace, h,
                                 err);
}

} // namespace

#define ROW(name, dtype, T, ...)                                                                   \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .prepare = prepare,                                  \
        .run = wf_reduce<T, T, __VA_ARGS__>                                                        \
    }
#define FLOATS(name, H) ROW(name, WF_F32, float, H), ROW(name, WF_F64, double, H)
#define NARROW(name, H)                                                                            \
    {.op = name,                                                                                   \
     .dtypes = WF_TYPE(WF_F32),                                                                    \
     .is_narrow = true,                                                                            \
     .prepare = prepare,                                                                           \
     .run = wf_wide_or_narrow<wf_reduce<float, float, H>, wf_reduce<wf_narrow, wf_narrow, H>>},    \
        ROW(name, WF_F64, double, H)
#define INTS(name, H) ROW(name, WF_I32, int32_t, H), ROW(name, WF_I64, int64_t, H)
#define EXPONENTIALS(dtype, T, H)                                                                  \
    {                                                                                              \
        .op = "ReduceLogSumExp", .dtypes = WF_TYPE(dtype), .prepare = prepare_exponentials,        \
        .run = log_sum_exp<T, H>                                                                   \
    }

WF_CUDA_ROWS(reductions){
    FLOATS("ReduceL1", sum_of_sizes),
    INTS("ReduceL1", int_sum_of_sizes),
    FLOATS("ReduceL2", length),
    INTS("ReduceL2", int_length),
    FLOATS("ReduceLogSum", logarithm),
    INTS("ReduceLogSum", int_logarithm),
    EXPONENTIALS(WF_F32, float, sum_of_exponentials),
    EXPONENTIALS(WF_F64, double, sum_of_exponentials),
    EXPONENTIALS(WF_I32, int32_t, int_sum_of_exponentials),
    EXPONENTIALS(WF_I64, int64_t, int_sum_of_exponentials),
    FLOATS("ReduceMax", greatest),
    ROW("ReduceMax", WF_I32, int32_t, int_greatest<int32_t>),
    ROW("ReduceMax", WF_I64, int64_t, int_greatest<int64_t>),
    ROW("ReduceMax", WF_U8, uint8_t, int_greatest<uint8_t>),
    ROW("ReduceMax", WF_BOOL, uint8_t, int_greatest<uint8_t>),
    NARROW("ReduceMean", mean),
    INTS("ReduceMean", int_mean),
    FLOATS("ReduceMin", least),
    ROW("ReduceMin", WF_I32, int32_t, int_least<int32_t>),
    ROW("ReduceMin", WF_I64, int64_t, int_least<int64_t>),
    ROW("ReduceMin", WF_U8, uint8_t, int_least<uint8_t>),
    ROW("ReduceMin", WF_BOOL, uint8_t, int_least<uint8_t, true>),
    FLOATS("ReduceProd", product<double>),
    INTS("ReduceProd", product<uint64_t>),
    NARROW("ReduceSum", wf_sum<double>),
    INTS("ReduceSum", wf_sum<uint64_t>),
    FLOATS("ReduceSumSquare", sum_of_squares<double>),
    INTS("ReduceSumSquare", sum_of_squares<uint64_t>),
    {},
};
