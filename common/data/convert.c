/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/convert.c - the pairs that training data meets have loops of their own; all others go
 * through f64 in tiles that stay in the first cache. */
#include "common/data/convert.h"
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/base/status.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { TILE = 256 };

#define LOOP(name, from, to)                                                                       \
    WF_MULTIVERSION static void name(const void *in, void *out, size_t n)                          \
    {                                                                                              \
        const from *restrict x = in;                                                               \
        to *restrict y = out;                                                                      \
                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = (to)x[i];                                                                       \
    }

LOOP(u8_to_f32, uint8_t, float)
LOOP(u8_to_f64, uint8_t, double)
LOOP(u8_to_i32, uint8_t, int32_t)
LOOP(u8_to_i64, uint8_t, int64_t)
LOOP(i32_to_f32, int32_t, float)
LOOP(i32_to_f64, int32_t, double)
LOOP(i32_to_i64, int32_t, int64_t)
LOOP(i64_to_f32, int64_t, float)
LOOP(i64_to_f64, int64_t, double)
LOOP(f32_to_f64, float, double)
LOOP(f64_to_f32, double, float)

static const struct pair {
    wf_dtype from, to;
    void (*run)(const void *in, void *out, size_t n);
} pairs[] = {
    {WF_U8, WF_F32, u8_to_f32},   {WF_U8, WF_F64, u8_to_f64},   {WF_U8, WF_I32, u8_to_i32},
    {WF_U8, WF_I64, u8_to_i64},   {WF_BOOL, WF_F32, u8_to_f32}, {WF_BOOL, WF_F64, u8_to_f64},
    {WF_BOOL, WF_I32, u8_to_i32}, {WF_BOOL, WF_I64, u8_to_i64}, {WF_I32, WF_F32, i32_to_f32},
    {WF_I32, WF_F64, i32_to_f64}, {WF_I32, WF_I64, i32_to_i64}, {WF_I64, WF_F32, i64_to_f32},
    {WF_I64, WF_F64, i64_to_f64}, {WF_F32, WF_F64, f32_to_f64}, {WF_F64, WF_F32, f64_to_f32},
};

static bool by_pair(wf_dtype from, const void *in, wf_dtype to, void *out, size_t n)
{
    for (size_t i = 0; i < WF_COUNT(pairs); i++)
        if (pairs[i].from == from && pairs[i].to == to) {
            pairs[i].run(in, out, n);
            return true;
        }
    return false;
}

/* f16 and bf16 to f64; the rest has a pair. */
static void half_to_f64(wf_dtype from, const uint16_t *x, double y[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = from == WF_F16 ? wf_f16_to_f32(x[i]) : wf_bf16_to_f32(x[i]);
}

/* The nearest integer value within least..most, which are exact in f64, towards 0. */
static double fit(double x, double least, double most)
{
    if (isnan(x))
        return 0;
    return x < least ? least : x > most ? most : trunc(x);
}

static int64_t fit_i64(double x)
{
    /* 2^63 is exact in f64, and one too many. */
    return x >= 0x1p63 ? INT64_MAX : (int64_t)fit(x, -0x1p63, 0x1p63);
}

static void from_f64(wf_dtype to, const double x[], void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        switch (to) {
        case WF_U8:
            ((uint8_t *)out)[i] = (uint8_t)fit(x[i], 0, 255);
            break;
        case WF_BOOL:
            ((uint8_t *)out)[i] = x[i] != 0;
            break;
        case WF_I32:
            ((int32_t *)out)[i] = (int32_t)fit(x[i], INT32_MIN, INT32_MAX);
            break;
        case WF_I64:
            ((int64_t *)out)[i] = fit_i64(x[i]);
            break;
        case WF_F16:
            ((uint16_t *)out)[i] = wf_f32_to_f16((float)x[i]);
            break;
        case WF_BF16:
            ((uint16_t *)out)[i] = wf_f32_to_bf16((float)x[i]);
            break;
        case WF_F32:
            ((float *)out)[i] = (float)x[i];
            break;
        default:
            ((double *)out)[i] = x[i];
        }
}

void wf_convert(wf_dtype from, const void *in, wf_dtype to, void *out, size_t n)
{
    size_t in_size = wf_dtype_size(from), out_size = wf_dtype_size(to);
    double tile[TILE];

    wf_assert(in_size && out_size);
    if (from == to) {
        memcpy(out, in, n * in_size);
        return;
    }
    if (by_pair(from, in, to, out, n))
        return;
    while (n) {
        size_t now = WF_MIN(n, (size_t)TILE);

        if (from == WF_F64)
            memcpy(tile, in, now * sizeof tile[0]);
        else if (!by_pair(from, in, WF_F64, tile, now))
            half_to_f64(from, in, tile, now);
        from_f64(to, tile, out, now);
        in = (const uint8_t *)in + now * in_size;
        out = (uint8_t *)out + now * out_size;
        n -= now;
    }
}

WF_MULTIVERSION
static void scale_u8(const uint8_t *restrict x, float factor, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)x[i] * factor;
}

WF_MULTIVERSION
static void scale_f32(const float *restrict x, float factor, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * factor;
}

WF_MULTIVERSION
static void scale_f64(const double *restrict x, double factor, double *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * factor;
}

void wf_scale(wf_dtype from, const void *in, double factor, void *out, size_t n)
{
    size_t in_size = wf_dtype_size(from);
    float tile[TILE], *to = out;

    if (from == WF_U8) {
        scale_u8(in, (float)factor, out, n);
        return;
    }
    if (from == WF_F32) {
        scale_f32(in, (float)factor, out, n);
        return;
    }
    if (from == WF_F64) {
        scale_f64(in, factor, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += TILE) {
        size_t now = WF_MIN(n - at, (size_t)TILE);

        wf_convert(from, (const uint8_t *)in + at * in_size, WF_F32, tile, now);
        scale_f32(tile, (float)factor, to + at, now);
    }
}
