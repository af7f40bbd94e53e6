/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/stochastic.c - one body without branches for every processor, as halves.c. No
 * number on the way is subnormal, so that it does not matter whether a thread flushes those. */
#include "common/tensor/stochastic.h"
#include "common/base/cc.h"

#include <string.h>

static WF_INLINE uint32_t bits_of(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static WF_INLINE float float_of(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

/* 32 random bits for element i: the finaliser "lowbias32" of Wellons 2018, "Prospecting for Hash
 * Functions", with one half of the draw before it and one in its midst. */
static WF_INLINE uint32_t random_bits(wf_draw draw, uint32_t i)
{
    uint32_t x = i * 0x9E3779B9u + draw.a;

    x = (x ^ x >> 16) * 0x7FEB352Du;
    x = ((x ^ x >> 15) + draw.b) * 0x846CA68Bu;
    return x ^ x >> 16;
}

/* Whether a fraction, from 0 to 1, goes up: above a number of (0, 1) that has 23 bits. */
static WF_INLINE uint32_t goes_up(float fraction, uint32_t random)
{
    return fraction > ((float)(int32_t)(random >> 9) + 0.5f) * 0x1p-23f;
}

/* Adding random bits below the last one that stays carries into it as often as it should. */
static WF_INLINE uint32_t bf16_of(float f, uint32_t random)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;
    uint32_t h = (magnitude + (random & 0xFFFFu)) >> 16;

    h = h > 0x7F7Fu ? 0x7F7Fu : h;
    h = magnitude > 0x7F800000u ? 0x7FC0u : h;
    return sign | h;
}

/* float16 below 2^-14 in magnitude, where it has equal steps of 2^-24; of a larger one something.
 */
static WF_INLINE uint32_t small_f16_of(float f, uint32_t random)
{
    uint32_t magnitude = bits_of(f) & 0x7FFFFFFFu;
    float steps = float_of(magnitude < 0x38800000u ? magnitude : 0x38800000u) * 0x1p24f;
    int32_t whole = (int32_t)steps;

    return (uint32_t)whole + goes_up(steps - (float)whole, random);
}

static WF_INLINE uint32_t f16_of(float f, uint32_t small, uint32_t random)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;
    uint32_t usual = (magnitude - (112u << 23) + (random & 0x1FFFu)) >> 13;
    uint32_t h = magnitude < 0x38800000u ? small : usual;

    h = h > 0x7BFFu ? 0x7BFFu : h;
    h = magnitude > 0x7F800000u ? 0x7E00u : h;
    return sign | h;
}

/* Loops go by so many at a time: left to itself the compiler takes as many as a vector has of the
 * smallest type, and a short row would go one by one. */
enum { TOGETHER = 16 };

static WF_INLINE void bf16_some(const float *from, size_t n, wf_draw draw, uint32_t first,
                                uint16_t *to)
{
    uint32_t h[TOGETHER];

    for (size_t i = 0; i < n; i++)
        h[i] = bf16_of(from[i], random_bits(draw, first + (uint32_t)i));
    for (size_t i = 0; i < n; i++)
        to[i] = (uint16_t)h[i];
}

static WF_INLINE void bf16_row(const float *from, size_t n, wf_draw draw, uint32_t first,
                               uint16_t *to)
{
    size_t i = 0;

    for (; i + TOGETHER <= n; i += TOGETHER)
        bf16_some(from + i, TOGETHER, draw, first + (uint32_t)i, to + i);
    if (i < n)
        bf16_some(from + i, n - i, draw, first + (uint32_t)i, to + i);
}

WF_MULTIVERSION
void wf_bf16_stochastic(const float *from, size_t n, wf_draw draw, uint32_t first, uint16_t *to)
{
    bf16_row(from, n, draw, first, to);
}

WF_MULTIVERSION
void wf_bf16_stochastic_rows(const float *from, size_t rows, size_t row, const wf_draw draws[],
                             uint16_t *to)
{
    for (size_t i = 0; i < rows; i++)
        bf16_row(from + i * row, row, draws[i], 0, to + i * row);
}

/* In several loops, since in one gcc jumps around the work for small numbers. */
static WF_INLINE void f16_some(const float *from, size_t n, wf_draw draw, uint32_t first,
                               uint16_t *to)
{
    uint32_t random[TOGETHER], small[TOGETHER];

    for (size_t i = 0; i < n; i++) {
        random[i] = random_bits(draw, first + (uint32_t)i);
        small[i] = small_f16_of(from[i], random[i]);
    }
    for (size_t i = 0; i < n; i++)
        small[i] = f16_of(from[i], small[i], random[i]);
    for (size_t i = 0; i < n; i++)
        to[i] = (uint16_t)small[i];
}

static WF_INLINE void f16_row(const float *from, size_t n, wf_draw draw, uint32_t first,
                              uint16_t *to)
{
    size_t i = 0;

    for (; i + TOGETHER <= n; i += TOGETHER)
        f16_some(from + i, TOGETHER, draw, first + (uint32_t)i, to + i);
    if (i < n)
        f16_some(from + i, n - i, draw, first + (uint32_t)i, to + i);
}

WF_MULTIVERSION
void wf_f16_stochastic(const float *from, size_t n, wf_draw draw, uint32_t first, uint16_t *to)
{
    f16_row(from, n, draw, first, to);
}

WF_MULTIVERSION
void wf_f16_stochastic_rows(const float *from, size_t rows, size_t row, const wf_draw draws[],
                            uint16_t *to)
{
    for (size_t i = 0; i < rows; i++)
        f16_row(from + i * row, row, draws[i], 0, to + i * row);
}

/* Magnitudes are ordered as their bits are, NaN above all. */
WF_MULTIVERSION
static uint32_t largest(const float *from, size_t n)
{
    uint32_t most = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = bits_of(from[i]) & 0x7FFFFFFFu;

        most = magnitude > most ? magnitude : most;
    }
    return most;
}

float wf_int8_scale(const float *from, size_t n)
{
    uint32_t most = largest(from, n);

    if (most == 0x7F800000u)
        most--;
    return most <= 0x0D800000u /* 2^-100 */ ? 0 : float_of(most) / 127;
}

/* x / scale, no further from 0 than 127. */
static WF_INLINE float steps_of(float x, float scale)
{
    float q = x / scale;

    q = q > 127 ? 127 : q;
    return q < -127 ? -127 : q;
}

/* To the nearest whole number, of two the even one: the sum has no bits for a fraction. */
static WF_INLINE float nearest(float q)
{
    return (q + 12582912.0f) - 12582912.0f; /* 1.5 * 2^23 */
}

static WF_INLINE void stochastic_some(const float *from, size_t n, wf_draw draw, uint32_t first,
                                      float scale, int8_t *to)
{
    int32_t steps[TOGETHER];

    for (size_t i = 0; i < n; i++) {
        float q = steps_of(from[i], scale), r = nearest(q);
        float floor = r > q ? r - 1 : r;

        steps[i] =
            (int32_t)floor + (int32_t)goes_up(q - floor, random_bits(draw, first + (uint32_t)i));
    }
    for (size_t i = 0; i < n; i++)
        to[i] = (int8_t)steps[i];
}

WF_MULTIVERSION
static void int8_stochastic(const float *from, size_t n, wf_draw draw, float scale, int8_t *to)
{
    size_t i = 0;

    for (; i + TOGETHER <= n; i += TOGETHER)
        stochastic_some(from + i, TOGETHER, draw, (uint32_t)i, scale, to + i);
    if (i < n)
        stochastic_some(from + i, n - i, draw, (uint32_t)i, scale, to + i);
}

void wf_int8_stochastic(const float *from, size_t n, wf_draw draw, float scale, int8_t *to)
{
    if (scale > 0)
        int8_stochastic(from, n, draw, scale, to);
    else
        memset(to, 0, n);
}

WF_MULTIVERSION
static void int8_nearest(const float *from, size_t n, float scale, int8_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (int8_t)(int32_t)nearest(steps_of(from[i], scale));
}

void wf_int8_of_f32s(const float *from, size_t n, float scale, int8_t *to)
{
    if (scale > 0)
        int8_nearest(from, n, scale, to);
    else
        memset(to, 0, n);
}

static WF_INLINE void read_some(const int8_t *from, size_t n, float scale, float *to)
{
    int8_t steps[TOGETHER]; /* bytes may be of anything: a copy is not what `to` writes */

    memcpy(steps, from, n);
    for (size_t i = 0; i < n; i++)
        to[i] = (float)steps[i] * scale;
}

WF_MULTIVERSION
void wf_f32_of_int8s(const int8_t *from, size_t n, float scale, float *to)
{
    size_t i = 0;

    for (; i + TOGETHER <= n; i += TOGETHER)
        read_some(from + i, TOGETHER, scale, to + i);
    if (i < n)
        read_some(from + i, n - i, scale, to + i);
}
