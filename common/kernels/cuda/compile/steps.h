/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/compile/steps.h - the steps of a Chain, and what its kernel is given.
 *
 * elementwise/chain.cu includes this file; the source that is generated for a chain begins with its
 * text (steps.inc, which Meson makes). So it includes nothing, and takes from its surroundings
 * WF_CODE and CUDA's mathematical functions.
 *
 * Products and sums are rounded each: a compiler that joined a product with the sum of the next
 * step would give a compiled chain other bits than the interpreter, whose steps do not see each
 * other.
 */
#ifndef WF_KERNELS_CUDA_STEPS_H
#define WF_KERNELS_CUDA_STEPS_H

/* The argument of a compiled chain. Input i is read at index % periods[i], and behind what is
 * repeated over earlier spans where spans[i] is not 0. */
struct wf_chain_operands {
    const void *in[8];
    void *out;
    long long n, periods[8], spans[8]; /* elements */
};

/* Elements that a thread loads at once; loads and stores are of 16 bytes, or of 8 where that is
 * all. */
template <class T> struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) wf_chain_four {
    T v[4];
};

/* Elements of bfloat16 and of float16 in memory. Their bits are those of common/tensor/half.h. */
struct wf_chain_bf16 {
    unsigned short bits;
};

struct wf_chain_f16 {
    unsigned short bits;
};

WF_CODE float wf_chain_wide(wf_chain_bf16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}

/* The argument `like` selects the type. */
WF_CODE wf_chain_bf16 wf_chain_rounded(float x, wf_chain_bf16 like)
{
    unsigned u = __float_as_uint(x);

    (void)like;
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) /* NaN stays one, and stays quiet */
        return {(unsigned short)(u >> 16 | 0x40u)};
    return {(unsigned short)((u + 0x7FFFu + (u >> 16 & 1u)) >> 16)};
}

WF_CODE float wf_chain_wide(wf_chain_f16 x)
{
    unsigned sign = (unsigned)(x.bits & 0x8000u) << 16, exponent = x.bits >> 10 & 0x1Fu;
    unsigned fraction = x.bits & 0x3FFu;

    if (exponent == 0x1Fu)
        return __uint_as_float(sign | 0x7F800000u | fraction << 13);
    if (exponent == 0) /* zero, or a subnormal of value fraction * 2^-24 */
        return __uint_as_float(sign | __float_as_uint((float)fraction * 5.9604644775390625e-8f));
    return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
}

WF_CODE wf_chain_f16 wf_chain_rounded(float x, wf_chain_f16 like)
{
    unsigned u = __float_as_uint(x), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;

    (void)like;
    if (magnitude > 0x7F800000u) /* NaN stays one, and stays quiet */
        return {(unsigned short)(sign | 0x7E00u)};
    if (magnitude >= 0x477FF000u) /* at least 65520 rounds to infinity */
        return {(unsigned short)(sign | 0x7C00u)};
    if (magnitude < 0x38800000u) /* below 2^-14: let the addition align and round the fraction */
        return {(unsigned short)(sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) -
                                         __float_as_uint(0.5f)))};
    magnitude += 0xFFFu + (magnitude >> 13 & 1u);
    return {(unsigned short)(sign | (magnitude - (112u << 23)) >> 13)};
}

WF_CODE float wf_step_add(float x, float y)
{
    return __fadd_rn(x, y);
}

WF_CODE double wf_step_add(double x, double y)
{
    return __dadd_rn(x, y);
}

WF_CODE float wf_step_mul(float x, float y)
{
    return __fmul_rn(x, y);
}

WF_CODE double wf_step_mul(double x, double y)
{
    return __dmul_rn(x, y);
}

WF_CODE float wf_step_sub(float x, float y)
{
    return __fsub_rn(x, y);
}

WF_CODE double wf_step_sub(double x, double y)
{
    return __dsub_rn(x, y);
}

WF_CODE float wf_step_exp(float x)
{
    return expf(x);
}

WF_CODE double wf_step_exp(double x)
{
    return exp(x);
}

WF_CODE float wf_step_abs(float x)
{
    return fabsf(x);
}

WF_CODE double wf_step_abs(double x)
{
    return fabs(x);
}

WF_CODE float wf_step_sqrt(float x)
{
    return sqrtf(x);
}

WF_CODE double wf_step_sqrt(double x)
{
    return sqrt(x);
}

WF_CODE float wf_step_tanh(float x)
{
    return tanhf(x);
}

WF_CODE double wf_step_tanh(double x)
{
    return tanh(x);
}

template <class T> WF_CODE T wf_step_div(T x, T y)
{
    return x / y;
}

template <class T> WF_CODE T wf_step_neg(T x)
{
    return -x;
}

template <class T> WF_CODE T wf_step_reciprocal(T x)
{
    return T(1) / x;
}

template <class T> WF_CODE T wf_step_relu(T x)
{
    return x < T(0) ? T(0) : x;
}

template <class T> WF_CODE T wf_step_relu_grad(T x, T y)
{
    return y > T(0) ? x : T(0);
}

template <class T> WF_CODE T wf_step_sigmoid(T x)
{
    return T(1) / wf_step_add(T(1), wf_step_exp(-x));
}

template <class T> WF_CODE T wf_step_sigmoid_grad(T x, T y)
{
    return wf_step_mul(wf_step_mul(x, y), wf_step_sub(T(1), y));
}

template <class T> WF_CODE T wf_step_tanh_grad(T x, T y)
{
    return wf_step_mul(x, wf_step_sub(T(1), wf_step_mul(y, y)));
}

#endif
