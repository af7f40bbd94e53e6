/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/pow.cu - Pow: the result has the base's dtype, the exponent may
 * have another. Exponents 2, 3, 1/2 and -1 that are one number take short ways, as the cpu's kernel
 * has them: which one it is, only the device knows. */
#include "common/kernels/cuda/elementwise/each.h"
#include "common/kernels/cuda/elementwise/number.h"

#include <cmath>

namespace
{

/* The exponents of a kernel; single: one for all bases. */
struct exponents {
    wf_numbers of;
    bool single;
};

template <class T> WF_CODE T power(T x, double e, const exponents &how)
{
    if (how.single && e == 2)
        return x * x;
    if (how.single && e == 3)
        return x * x * x;
    if (how.single && e == 0.5)
        return std::sqrt(x);
    if (how.single && e == -1)
        return T(1) / x;
    if (sizeof(T) == sizeof(float) && how.of.dtype == WF_F32)
        return (T)std::pow((float)x, (float)e);
    return (T)std::pow((double)x, e);
}

/* Wraps like every integer product; x^-e is the quotient 1 / x^e. */
WF_CODE int64_t whole_power(int64_t x, int64_t e)
{
    uint64_t r = 1, base = (uint64_t)x;

    if (e < 0)
        return x == 1 ? 1 : x == -1 ? (e & 1 ? -1 : 1) : 0;
    for (; e; e >>= 1, base *= base)
        if (e & 1)
            r *= base;
    return (int64_t)r;
}

/* Cut and saturated, as Cast does it. */
WF_CODE int64_t int_of(double x)
{
    return x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x > -0x1p63 ? (int64_t)x : INT64_MIN;
}

WF_CODE int64_t power_of_int(int64_t x, double e)
{
    return e == std::floor(e) && std::fabs(e) < 1e9 ? whole_power(x, (int64_t)e)
                                                    : int_of(std::pow((double)x, e));
}

WF_CODE int32_t power(int32_t x, double e, const exponents &)
{
    return (int32_t)power_of_int(x, e);
}

WF_CODE int64_t power(int64_t x, double e, const exponents &)
{
    return power_of_int(x, e);
}

template <class T> __global__ void powers(const T *x, exponents e, T *out, wf_walk w)
{
    for (int64_t i = wf_first(); i < w.elems; i += wf_all())
        out[i] = power(x[wf_at(w, 0, i)], wf_number_of(e.of, wf_at(w, 1, i)), e);
}

template <class T>
wf_status run_pow(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    exponents e = {wf_numbers_of(in[1]),
                   wf_elems(in[1]) == 1 && wf_elems(in[0]) == wf_elems(out[0])};
    wf_walk w;

    if (wf_elems(out[0]) == 0)
        return WF_OK;
    wf_walk_broadcast(&w, out[0], 2, in);
    return wf_launch(run, "Pow", powers<T>, wf_blocks(run, w.elems), err,
                     static_cast<const T *>(in[0]->data), e, static_cast<T *>(out[0]->data), w);
}

} // namespace

#define ROW(dtype, T)                                                                              \
    {                                                                                              \
        .op = "Pow", .dtypes = WF_TYPE(dtype), .run = run_pow<T>                                   \
    }

WF_CUDA_ROWS(pow){
    ROW(WF_F32, float), ROW(WF_F64, double), ROW(WF_I32, int32_t), ROW(WF_I64, int64_t), {},
};
