/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/vmath.h - exp, tanh, sigmoid, log, erf and their kin of f32 without branches,
 * so that loops over them vectorise, and with the same bits in every run.
 *
 * Measured against libm in double over a lattice of all f32 (tests/unit/vmath.c): exp within 1 ulp
 * where the result is normal, and correct to 0, infinity, NaN and the subnormals; tanh within 1.3
 * ulp; sigmoid within 2.2 ulp. Polynomials are minimax fits (Remez) of (e^r - 1 - r) / r^2 on |r|
 * <= ln(2)/2 and (tanh(x) - x) / x^3 in x^2 on |x| <= 0.63.
 *
 * log is within 0.6 ulp, erf within 2.2, the normal distribution within 5, Gelu within 6.
 *
 * Functions called _wide work inside in double: where a result is a difference (e^x - 1) f32 would
 * lose its digits. Their relative error is below 1e-9, so that what is rounded to f32 once, at the
 * end, is within 0.6 ulp.
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

/* 2^e e^r for |r| <= ln(2)/2; 2^e in two factors, so that subnormal results and the step to
 * infinity come out by rounding. */
static inline float wf_exp_of_parts(float r, int32_t e)
{
    int32_t half = e >> 1;
    float p = 0.00138131448f;

    p = p * r + 0.00836941879f;
    p = p * r + 0.041668456f;
    p = p * r + 0.166665152f;
    p = p * r + 0.49999994f;
    p = p * (r * r) + r + 1.0f;
    return p * wf_float_of((uint32_t)(half + 127) << 23) *
           wf_float_of((uint32_t)(e - half + 127) << 23);
}

/* e^x = 2^n e^r with n = round(x / ln 2). Outside the clamp the result is 0 or infinite anyway. */
static inline float wf_exp_f32(float x)
{
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float c, z, n, r;

    c = x > 89.0f ? 89.0f : x;
    c = c < -104.0f ? -104.0f : c;
    z = c * 1.44269504f + shift;
    n = z - shift;
    r = c - n * 0.693145752f; /* ln 2, upper bits: n times it is exact */
    r = r - n * 1.42860677e-6f;
    return wf_exp_of_parts(r, (int32_t)(wf_bits_of(z) - wf_bits_of(shift)));
}

/* e^(-scale a^2) for a >= 0 and scale 1 or 1/2. The square of the upper half of a is exact, and
 * what is missing is taken off after the reduction: rounded, a^2 alone would cost as many ulp as it
 * is large. */
static inline float wf_exp_minus_square(float a, float scale)
{
    const float shift = 12582912.0f, most = scale == 1.0f ? 10.19f : 14.41f;
    float c = a > most ? most : a, upper = wf_float_of(wf_bits_of(c) & 0xFFFFF000u);
    float square = upper * upper * scale, rest = (c - upper) * (c + upper) * scale;
    float z = (square + rest) * -1.44269504f + shift, n = z - shift, r;

    r = -square - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;
    return wf_exp_of_parts(r - rest, (int32_t)(wf_bits_of(z) - wf_bits_of(shift)));
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

static inline double wf_double_of(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

static inline uint64_t wf_bits_of_double(double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* e^x = scale (1 + *rest), scale a power of 2; the Taylor series of degree 8 on |r| <= ln(2)/2. */
static inline double wf_exp_parts(double x, double *rest)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
    double c, z, r, p;

    c = x > 700.0 ? 700.0 : x;
    c = c < -700.0 ? -700.0 : c;
    z = c * 1.4426950408889634 + shift;
    r = c - (z - shift) * 0.6931471805599453;
    p = 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 1.0 / 2;
    *rest = p * (r * r) + r;
    /* The low bits of z are the integer; those of 1.0 are its exponent alone. */
    return wf_double_of((wf_bits_of_double(z) << 52) + 0x3FF0000000000000u);
}

/* Of arguments past 700 either way it is e^700 or e^-700: infinite or 0 as f32. */
static inline double wf_exp_wide(double x)
{
    double rest, scale = wf_exp_parts(x, &rest);

    return scale + scale * rest;
}

/* e^x - 1, also of x next to 0. */
static inline double wf_expm1_wide(double x)
{
    double rest, scale = wf_exp_parts(x, &rest);

    return (scale - 1.0) + scale * rest;
}

/* 2 atanh(s) = ln((1 + s) / (1 - s)) for |s| <= 1/3, by its series. */
static inline double wf_two_atanh(double s)
{
    double u = s * s, p = 1.0 / 17;

    p = p * u + 1.0 / 15;
    p = p * u + 1.0 / 13;
    p = p * u + 1.0 / 11;
    p = p * u + 1.0 / 9;
    p = p * u + 1.0 / 7;
    p = p * u + 1.0 / 5;
    p = p * u + 1.0 / 3;
    return 2.0 * (s + s * (u * p));
}

/* ln(1 + e) for 0 <= e <= 1. */
static inline double wf_log1p_wide(double e)
{
    return wf_two_atanh(e / (2.0 + e));
}

/* x = 2^e m with m from sqrt(1/2) to sqrt(2): ln x = e ln 2 + 2 atanh((m - 1) / (m + 1)). */
static inline float wf_log_f32(float x)
{
    float y;
    uint32_t bits = wf_bits_of(x < 1.17549435e-38f ? x * 16777216.0f : x);
    int32_t e = (int32_t)(bits - 0x3F3504F3u) >> 23;
    double m = (double)wf_float_of(bits - ((uint32_t)e << 23));
    double shift = x < 1.17549435e-38f ? 24.0 : 0.0;

    y = (float)(((double)e - shift) * 0.6931471805599453 + wf_two_atanh((m - 1.0) / (m + 1.0)));
    y = x > 0.0f ? y : x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
    return x == __builtin_inff() ? x : y;
}

/* ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|). */
static inline double wf_softplus_wide(double x)
{
    double a = x < 0 ? x : -x;

    return (x < 0 ? 0 : x) + wf_log1p_wide(wf_exp_wide(a));
}

/* 1 - erf(a) for a >= 0, given bell = e^(-a^2): that times 1 / (1 + 2 a) and a polynomial in
 * (a - 3) / (a + 3), fitted at Chebyshev's points for a up to 10.6, where the result leaves f32. */
static inline float wf_erfc_f32(float a, float bell)
{
    float c = a > 12.0f ? 12.0f : a, t = (c - 3.0f) / (c + 3.0f), p = -0.000267635177f;

    p = p * t - 0.000774623838f;
    p = p * t + 0.00200662183f;
    p = p * t + 0.00256904545f;
    p = p * t - 0.0237994842f;
    p = p * t + 0.0682944586f;
    p = p * t - 0.11927081f;
    p = p * t + 0.129646619f;
    p = p * t - 0.0475623969f;
    p = p * t - 0.135621147f;
    p = p * t + 1.25300806f;
    return bell * p / (1.0f + 2.0f * c);
}

/* erf for |a| < 1/2: a times a polynomial in a^2, fitted likewise. Its first coefficient
 * is 1.128...: without the 1 it keeps three bits more. */
static inline float wf_erf_near(float a)
{
    float u = a * a, p = -0.000769505631f;

    p = p * u + 0.00520044638f;
    p = p * u - 0.0268631502f;
    p = p * u + 0.112837741f;
    p = p * u - 0.376126385f;
    p = p * u + 0.128379167f;
    return a + a * p;
}

static inline float wf_erf_f32(float x)
{
    float a = wf_float_of(wf_bits_of(x) & 0x7FFFFFFFu);
    float far = 1.0f - wf_erfc_f32(a, wf_exp_minus_square(a, 1.0f));

    a = a < 0.5f ? wf_erf_near(a) : far;
    return wf_float_of(wf_bits_of(a) | (wf_bits_of(x) & 0x80000000u));
}

/* The share of a standard normal distribution below x, exact to its ends; *bell is e^(-x^2 / 2). */
static inline float wf_normal_f32(float x, float *bell)
{
    float a = wf_float_of(wf_bits_of(x) & 0x7FFFFFFFu), scaled = x * 0.707106781f, half, far;

    *bell = wf_exp_minus_square(a, 0.5f);
    half = 0.5f * wf_erfc_f32(a * 0.707106781f, *bell);
    far = x < 0 ? half : 1.0f - half;
    return a < 0.7f ? 0.5f + 0.5f * wf_erf_near(scaled) : far;
}

#endif
