/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/numbers.h - elements of any dtype as exact numbers, the values at which arithmetic
 * goes wrong, and single operations computed on them.
 *
 * A long double holds every i64, f32 and f64 exactly, so that one plain reference serves all
 * dtypes. */
#ifndef WF_TESTS_NUMBERS_H
#define WF_TESTS_NUMBERS_H

#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/kernels/kernel.h"
#include "tests/unit/graph_test.h"

#include <float.h>
#include <math.h>

typedef long double number;
_Static_assert(LDBL_MANT_DIG >= 64, "a long double holds every i64");

static const wf_dtype all_dtypes[] = {WF_F32,  WF_U8,  WF_I32, WF_I64,
                                      WF_BOOL, WF_F16, WF_F64, WF_BF16};

/* ---- rounding, from the definition of a binary float ---- */

/* x to `bits` bits of mantissa, to nearest even; below 2^least the spacing stays. */
static inline number round_to(number x, int bits, int least, number most)
{
    int exponent;
    number rounded;

    if (x != x || isinf(x) || x == 0)
        return x;
    frexpl(x, &exponent); /* |x| is in [2^(exponent-1), 2^exponent) */
    exponent = WF_MAX(exponent - 1, least) - (bits - 1);
    rounded = ldexpl(rintl(ldexpl(x, -exponent)), exponent);
    return fabsl(rounded) > most ? copysignl((number)INFINITY, x) : rounded;
}

static inline number half_of(number x)
{
    return round_to(x, 11, -14, 65504.0L);
}

static inline number bfloat_of(number x)
{
    return round_to(x, 8, -126, (2 - 0x1p-7L) * 0x1p127L);
}

/* The number behind the bits of a half (5 bits of exponent) or bfloat16 (8 bits). */
static inline number decode16(uint16_t bits, int exponent_bits)
{
    int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    int mantissa = bits & ((1 << mantissa_bits) - 1);
    number sign = bits >> 15 ? -1 : 1;

    if (exponent == (1 << exponent_bits) - 1)
        return mantissa ? (number)NAN : sign * (number)INFINITY;
    if (exponent == 0)
        return sign * ldexpl(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexpl(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

/* ---- elements ---- */

static inline number get(wf_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case WF_F32:
        return ((const float *)data)[i];
    case WF_F64:
        return ((const double *)data)[i];
    case WF_I32:
        return ((const int32_t *)data)[i];
    case WF_I64:
        return ((const int64_t *)data)[i];
    case WF_F16:
        return decode16(((const uint16_t *)data)[i], 5);
    case WF_BF16:
        return decode16(((const uint16_t *)data)[i], 8);
    default:
        return ((const uint8_t *)data)[i];
    }
}

/* x must be a number of that dtype. */
static inline void put(wf_dtype dtype, void *data, int64_t i, number x)
{
    switch (dtype) {
    case WF_F32:
        ((float *)data)[i] = (float)x;
        break;
    case WF_F64:
        ((double *)data)[i] = (double)x;
        break;
    case WF_I32:
        ((int32_t *)data)[i] = (int32_t)x;
        break;
    case WF_I64:
        ((int64_t *)data)[i] = (int64_t)x;
        break;
    case WF_F16: /* kernel_values.c compares all halves with decode16 */
        ((uint16_t *)data)[i] = wf_f32_to_f16((float)x);
        break;
    case WF_BF16:
        ((uint16_t *)data)[i] = wf_f32_to_bf16((float)x);
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)x;
    }
}

/* Value k of those at which a dtype's arithmetic goes wrong; false behind the last. */
static inline bool edge(wf_dtype dtype, size_t k, number *out)
{
    static const number floats[] = {
        0.0L,          -0.0L,         1,           -1,       0.5L,       -0.5L,
        0.999L,        1.5L,          2.5L,        -2.5L,    254.9L,     255,
        255.5L,        256,           -0.001L,     65519.9L, 65520,      2147483520.0L,
        2147483648.0L, -2147483648.L, -2147483904, 1e18L,    0x1p63L,    -0x1p63L,
        -1.0e19L,      3e38L,         0x1p-24L,    0x1p-25L, 0x1.8p-25L, FLT_MIN,
        FLT_TRUE_MIN,  FLT_MAX,       INFINITY,    NAN,      -INFINITY,  0x1.006p0L,
        0x1.00Ap0L,    0x1.01p0L,     0x1.03p0L,   -3,       7,
    };
    static const number wholes[] = {
        0,    1,   -1,       2,          -2,          3,     7,           -7,        31,
        32,   33,  63,       64,         127,         128,   255,         256,       -128,
        -129, 300, 16777217, 2147483647, -2147483648, 65535, -2147483647, 0x7FFFFFF, 1000003,
    };
    static const number wide[] = {2147483648.0L,          -2147483649.0L,        4294967295.0L,
                                  9007199254740993.0L,    9223372036854775807.L, -0x1p63L,
                                  -9223372036854775807.L, 4294967301.0L};
    size_t n = WF_COUNT(wholes);

    if (dtype == WF_BOOL) {
        *out = (number)k;
        return k < 2;
    }
    if (wf_dtype_is_float(dtype)) {
        if (k >= WF_COUNT(floats))
            return false;
        *out = dtype == WF_F64   ? (number)(double)floats[k]
               : dtype == WF_F16 ? half_of((number)(float)floats[k])
               : dtype == WF_F32 ? (number)(float)floats[k]
                                 : bfloat_of((number)(float)floats[k]);
        return true;
    }
    if (dtype == WF_I64 && k >= n && k < n + WF_COUNT(wide))
        *out = wide[k - n];
    else if (k < n)
        *out = dtype == WF_U8 ? (number)((int64_t)wholes[k] & 255) : wholes[k];
    else
        return false;
    return true;
}

/* A seeded element: one of the edges, or (of every second) a number of middling size. */
static inline number any_element(wf_dtype dtype, uint64_t seed, uint64_t i)
{
    wf_rng_key key = {seed, (uint64_t)dtype};
    size_t n = 0;
    number x = 0;

    while (edge(dtype, n, &x))
        n++;
    if (wf_rng_below(key, 3 * i, 2) == 0) {
        edge(dtype, (size_t)wf_rng_below(key, 3 * i + 1, n), &x);
        return x;
    }
    if (dtype == WF_BOOL || dtype == WF_U8)
        return (number)wf_rng_below(key, 3 * i + 2, dtype == WF_BOOL ? 2 : 256);
    x = (number)(int64_t)wf_rng_below(key, 3 * i + 2, 20001) - 10000;
    if (!wf_dtype_is_float(dtype))
        return x;
    x = (number)(float)(x / 128);
    return dtype == WF_F16 ? half_of(x) : dtype == WF_BF16 ? bfloat_of(x) : x;
}

/* Integers wrap into narrower ones; the number of the low bits. */
static inline number wrap(wf_dtype dtype, uint64_t bits)
{
    return dtype == WF_I64   ? (number)(int64_t)bits
           : dtype == WF_I32 ? (number)(int32_t)(uint32_t)bits
                             : (number)(uint8_t)bits;
}

/* ---- tensors ---- */

static inline wf_tensor *new_tensor(wf_dtype dtype, uint32_t rank, const int64_t dims[])
{
    wf_tensor *t = NULL;
    wf_err err;

    assert_ok(wf_tensor_new(dtype, rank, dims, &t, &err), err);
    return t;
}

static inline wf_tensor *seeded(wf_dtype dtype, uint64_t seed, uint32_t rank, const int64_t dims[])
{
    wf_tensor *t = new_tensor(dtype, rank, dims);

    for (int64_t i = 0; i < wf_elems(t); i++)
        put(dtype, t->data, i, any_element(dtype, seed, (uint64_t)i));
    return t;
}

static inline wf_tensor *whole_numbers(uint32_t n, const int64_t values[])
{
    wf_tensor *t = new_tensor(WF_I64, 1, (int64_t[]){n});

    for (uint32_t i = 0; i < n; i++)
        ((int64_t *)t->data)[i] = values[i];
    return t;
}

/* Computes one operation of one output, which the caller frees; NULL with *err if it cannot be.
 * The last n_known inputs are constants of the graph too. */
static inline wf_tensor *try_op(const char *op, uint32_t n_attrs, const wf_attr attrs[],
                                uint32_t n_in, wf_tensor *const in[], uint32_t n_known, wf_err *err)
{
    wf_graph *g = new_graph();
    wf_emit e = wf_emit_begin(g, "t", err);
    wf_value *values[4] = {0}, *result[1];
    wf_tensor *out[1] = {NULL};
    const wf_tensor *given[4] = {0};
    wf_node *n;

    for (uint32_t i = 0; i < n_in; i++) {
        char name[8];
        wf_tensor *copy = NULL;

        given[i] = in[i];
        if (!in[i])
            continue;
        snprintf(name, sizeof name, "in%u", i);
        values[i] = input(g, name, in[i]->rank, in[i]->dims);
        values[i]->dtype = in[i]->dtype;
        if (i + n_known >= n_in) {
            assert_ok(wf_tensor_copy(in[i], &copy, err), *err);
            values[i] = wf_emit_constant(&e, name, &copy);
        }
    }
    n = wf_emit_node(&e, op, n_in, values, n_attrs, attrs, 1, result);
    if (n && wf_kernel_eval(n, n_in, given, 1, out, (size_t)1 << 30, err) != WF_OK)
        assert_null(out[0]);
    wf_graph_free(&g);
    return out[0];
}

static inline wf_tensor *run_op(const char *op, uint32_t n_attrs, const wf_attr attrs[],
                                uint32_t n_in, wf_tensor *const in[], uint32_t n_known)
{
    wf_err err = {0};
    wf_tensor *out = try_op(op, n_attrs, attrs, n_in, in, n_known, &err);

    if (!out)
        fail_msg("%s of %s: %s", op, wf_dtype_name(in[0]->dtype), err.what);
    return out;
}

/* The same number; a NaN equals a NaN. */
static inline bool same(number a, number b)
{
    return a == b || (a != a && b != b);
}

#endif
