/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/vmath.h - exp, tanh and sigmoid of f32 without branches, so that loops over
 * them vectorise, and with the same bits in every run.
 *
 * Measured against libm in double over a lattice of all f32 (tests/unit/vmath.c): exp within 1 ulp
 * where the result is normal, and correct to 0, infinity, NaN and the subnormals; tanh within 1.3
 * ulp; sigmoid within 2.2 ulp. Polynomials are minimax fits (Remez) of (e^r - 1 - r) / r^2 on |r|
 * <= ln(2)/2 and (tanh(x) - x) / x^3 in x^2 on |x| <= 0.63.
 */
#ifndef WF_KERNELS_CPU_VMATH_H
#define WF_KERNELS_CPU_VMATH_H

#include <stdint.h>
#include <string.h>

static inline float wf_float_of(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t wf_bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* e^x = 2^n e^r with n = round(x / ln 2); 2^n in two factors, so that subnormal results and the
 * step to infinity come out by rounding. Outside the clamp the result is 0 or infinite anyway. */
static inline float wf_exp_f32(float x)
{
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float c, z, n, r, p;
    int32_t e, half;

    c = x > 89.0f ? 89.0f : x;
    c = c < -104.0f ? -104.0f : c;
    z = c * 1.44269504f + shift;
    n = z - shift;
    e = (int32_t)(wf_bits_of(z) - wf_bits_of(shift));
    r = c - n * 0.693145752f; /* ln 2, upper bits: n times it is exact */
    r = r - n * 1.42860677e-6f;
    p = 0.00138131448f;
    p = p * r + 0.00836941879f;
    p = p * r + 0.041668456f;
    p = p * r + 0.166665152f;
    p = p * r + 0.49999994f;
    p = p * (r * r) + r + 1.0f;
    half = e >> 1;
    return p * wf_float_of((uint32_t)(half + 127) << 23) *
           wf_float_of((uint32_t)(e - half + 127) << 23);
}

/* Near 0 a polynomial; else 1 - 2 / (e^2|x| + 1), which there loses no digits. */
static inline float wf_tanh_f32(float x)
{
    float a = wf_float_of(wf_bits_of(x) & 0x7FFFFFFFu), u = a * a;
    float p = -0.00567011628f, far;

    p = p * u + 0.0206101425f;
    p = p * u - 0.0537316427f;
    p = p * u + 0.133313566f;
    p = p * u - 0.333332807f;
    p = a + a * (u * p);
    far = 1.0f - 2.0f / (wf_exp_f32(2.0f * a) + 1.0f);
    a = a < 0.625f ? p : far;
    return wf_float_of(wf_bits_of(a) | (wf_bits_of(x) & 0x80000000u));
}

static inline float wf_sigmoid_f32(float x)
{
    return 1.0f / (1.0f + wf_exp_f32(-x));
}

#endif
