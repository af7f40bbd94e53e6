/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/kernel_values.c - elementwise kernels of all dtypes at the edges of their ranges, over
 * shapes that broadcast, against the definition in exact numbers. */
#include "tests/unit/numbers.h"

static const struct pair {
    uint32_t rank_a, rank_b;
    int64_t a[5], b[5];
} pairs[] = {
    {1, 1, {7}, {7}},          {0, 1, {0}, {5}},
    {1, 0, {67}, {0}},         {2, 2, {3, 1}, {1, 4}},
    {3, 2, {2, 3, 4}, {3, 1}}, {1, 1, {1}, {130}},
    {2, 1, {0, 3}, {3}},       {5, 4, {2, 1, 2, 1, 3}, {2, 1, 2, 3}},
    {2, 1, {70, 33}, {33}},    {2, 2, {33, 70}, {33, 1}},
    {1, 1, {40000}, {40000}}, /* more than one piece of a pool's work */
};

/* Where element i of the result finds its element of an operand. */
static int64_t operand_at(const wf_tensor *out, const wf_tensor *in, int64_t i)
{
    int64_t at = 0, stride = 1;

    for (uint32_t k = 0; k < out->rank; k++) {
        int64_t dim = out->dims[out->rank - 1 - k], index = i % dim;

        i /= dim;
        if (k >= in->rank)
            continue;
        if (in->dims[in->rank - 1 - k] > 1)
            at += index * stride;
        stride *= in->dims[in->rank - 1 - k];
    }
    return at;
}

typedef number binary_fn(wf_dtype dtype, number x, number y);

static void check_binary(const char *op, const wf_attr *attr, wf_dtype dtype, wf_dtype result,
                         binary_fn *want)
{
    for (size_t p = 0; p < WF_COUNT(pairs); p++) {
        wf_tensor *in[2] = {seeded(dtype, 2 * p + 1, pairs[p].rank_a, pairs[p].a),
                            seeded(dtype, 2 * p + 2, pairs[p].rank_b, pairs[p].b)};
        wf_tensor *out = run_op(op, attr != NULL, attr, 2, in, 0);

        assert_int_equal(out->dtype, result);
        for (int64_t i = 0; i < wf_elems(out); i++) {
            number x = get(dtype, in[0]->data, operand_at(out, in[0], i));
            number y = get(dtype, in[1]->data, operand_at(out, in[1], i));
            number is = get(result, out->data, i), must = want(dtype, x, y);

            if (!same(is, must))
                fail_msg("%s of %s, shapes %zu: %.21Lg and %.21Lg give %.21Lg, not %.21Lg", op,
                         wf_dtype_name(dtype), p, x, y, is, must);
        }
        wf_tensor_free(&in[0]);
        wf_tensor_free(&in[1]);
        wf_tensor_free(&out);
    }
}

/* ---- comparisons and logic ---- */

#define COMPARISON(name, sign)                                                                     \
    static number name(wf_dtype dtype, number x, number y)                                         \
    {                                                                                              \
        (void)dtype;                                                                               \
        return x sign y;                                                                           \
    }
COMPARISON(equal, ==)
COMPARISON(greater, >)
COMPARISON(greater_or_equal, >=)
COMPARISON(less, <)
COMPARISON(less_or_equal, <=)
COMPARISON(both, &&)
COMPARISON(either, ||)
COMPARISON(differ, !=)

static void comparisons_are_those_of_numbers(void **state)
{
    static const wf_dtype ordered[] = {WF_F32, WF_F64, WF_I32, WF_I64, WF_U8};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(ordered); i++) {
        check_binary("Equal", NULL, ordered[i], WF_BOOL, equal);
        check_binary("Greater", NULL, ordered[i], WF_BOOL, greater);
        check_binary("GreaterOrEqual", NULL, ordered[i], WF_BOOL, greater_or_equal);
        check_binary("Less", NULL, ordered[i], WF_BOOL, less);
        check_binary("LessOrEqual", NULL, ordered[i], WF_BOOL, less_or_equal);
    }
    check_binary("Equal", NULL, WF_BOOL, WF_BOOL, equal);
}

static void logic_is_that_of_truth_tables(void **state)
{
    (void)state;
    check_binary("And", NULL, WF_BOOL, WF_BOOL, both);
    check_binary("Or", NULL, WF_BOOL, WF_BOOL, either);
    check_binary("Xor", NULL, WF_BOOL, WF_BOOL, differ);
}

/* ---- bits ---- */

static uint64_t bits_of(number x)
{
    return (uint64_t)(int64_t)x;
}

static number bits_and(wf_dtype dtype, number x, number y)
{
    return wrap(dtype, bits_of(x) & bits_of(y));
}

static number bits_or(wf_dtype dtype, number x, number y)
{
    return wrap(dtype, bits_of(x) | bits_of(y));
}

static number bits_xor(wf_dtype dtype, number x, number y)
{
    return wrap(dtype, bits_of(x) ^ bits_of(y));
}

/* One place after the other, so that a shift by the width or more needs no rule of its own. A
 * negative number of places counts as more than the width. */
static number shift_left(wf_dtype dtype, number x, number y)
{
    uint64_t bits = bits_of(x);

    for (int i = 0; i < (y < 0 || y > 64 ? 64 : (int)y); i++)
        bits <<= 1;
    return wrap(dtype, bits);
}

static number shift_right(wf_dtype dtype, number x, number y)
{
    (void)dtype;
    for (int i = 0; i < (y < 0 || y > 64 ? 64 : (int)y); i++)
        x = floorl(x / 2);
    return x;
}

static void bits_are_those_of_twos_complement(void **state)
{
    static const wf_dtype integers[] = {WF_I32, WF_I64, WF_U8};
    wf_attr left = wf_attr_string("direction", "LEFT");
    wf_attr right = wf_attr_string("direction", "RIGHT");

    (void)state;
    for (size_t i = 0; i < WF_COUNT(integers); i++) {
        check_binary("BitwiseAnd", NULL, integers[i], integers[i], bits_and);
        check_binary("BitwiseOr", NULL, integers[i], integers[i], bits_or);
        check_binary("BitwiseXor", NULL, integers[i], integers[i], bits_xor);
        check_binary("BitShift", &left, integers[i], integers[i], shift_left);
        check_binary("BitShift", &right, integers[i], integers[i], shift_right);
    }
}

static void bits_of_a_float_are_refused(void **state)
{
    wf_tensor *in[2] = {seeded(WF_F32, 1, DIMS(3)), seeded(WF_F32, 2, DIMS(3))};
    wf_attr up = wf_attr_string("direction", "UP");
    wf_err err = {0};

    (void)state;
    assert_null(try_op("BitwiseAnd", 0, NULL, 2, in, 0, &err));
    assert_says(err, "A is float32, and must be an integer");
    wf_tensor_free(&in[0]);
    wf_tensor_free(&in[1]);
    in[0] = seeded(WF_I32, 1, DIMS(3));
    in[1] = seeded(WF_I32, 2, DIMS(3));
    assert_null(try_op("BitShift", 1, &up, 2, in, 0, &err));
    assert_says(err, "direction");
    wf_tensor_free(&in[0]);
    wf_tensor_free(&in[1]);
}

/* ---- arithmetic ---- */

#define ARITHMETIC(name, sign)                                                                     \
    static number name(wf_dtype dtype, number x, number y)                                         \
    {                                                                                              \
        if (dtype == WF_F32)                                                                       \
            return (float)((double)x sign(double) y); /* rounding twice is innocuous */            \
        if (dtype == WF_F64)                                                                       \
            return (double)x sign(double) y;                                                       \
        return wrap(dtype, bits_of(x) sign bits_of(y));                                            \
    }
ARITHMETIC(plus, +)
ARITHMETIC(minus, -)
ARITHMETIC(times, *)

static number quotient(wf_dtype dtype, number x, number y)
{
    if (dtype == WF_F32)
        return (float)((double)x / (double)y);
    if (dtype == WF_F64)
        return (double)x / (double)y;
    if (y == 0)
        return 0;
    return wrap(dtype, x == -0x1p63L && y == -1 ? bits_of(x) : bits_of(truncl(x / y)));
}

/* By multiplication, so that i64 needs no more than 64 bits of mantissa: x - y * trunc(x / y). */
static number rest(wf_dtype dtype, number x, number y)
{
    if (wf_dtype_is_float(dtype))
        return dtype == WF_F32 ? (number)fmodf((float)x, (float)y)
                               : (number)fmod((double)x, (double)y);
    return y == 0 ? 0 : fmodl(x, y);
}

static number floored(wf_dtype dtype, number x, number y)
{
    number r = rest(dtype, x, y);

    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static number larger(wf_dtype dtype, number x, number y)
{
    (void)dtype;
    return x != x || y != y ? (number)NAN : x > y ? x : y;
}

static number smaller(wf_dtype dtype, number x, number y)
{
    return -larger(dtype, -x, -y);
}

static void arithmetic_wraps_and_divides_by_zero(void **state)
{
    static const wf_dtype numbers[] = {WF_F32, WF_F64, WF_I32, WF_I64, WF_U8};
    wf_attr fmod_on = wf_attr_int("fmod", 1);

    (void)state;
    for (size_t i = 0; i < WF_COUNT(numbers); i++) {
        check_binary("Add", NULL, numbers[i], numbers[i], plus);
        check_binary("Sub", NULL, numbers[i], numbers[i], minus);
        check_binary("Mul", NULL, numbers[i], numbers[i], times);
        check_binary("Div", NULL, numbers[i], numbers[i], quotient);
        check_binary("Mod", &fmod_on, numbers[i], numbers[i], rest);
        check_binary("Max", NULL, numbers[i], numbers[i], larger);
        check_binary("Min", NULL, numbers[i], numbers[i], smaller);
        if (!wf_dtype_is_float(numbers[i]))
            check_binary("Mod", NULL, numbers[i], numbers[i], floored);
    }
}

/* ---- one operand ---- */

typedef number unary_fn(wf_dtype dtype, number x);

static void check_unary(const char *op, wf_dtype dtype, wf_dtype result, unary_fn *want)
{
    static const int64_t sizes[] = {0, 1, 31, 1025, 40000};

    for (size_t s = 0; s < WF_COUNT(sizes); s++) {
        wf_tensor *in = seeded(dtype, s + 1, 1, &sizes[s]), *out = run_op(op, 0, NULL, 1, &in, 0);

        assert_int_equal(out->dtype, result);
        assert_int_equal(wf_elems(out), sizes[s]);
        for (int64_t i = 0; i < sizes[s]; i++) {
            number x = get(dtype, in->data, i), is = get(result, out->data, i);

            if (!same(is, want(dtype, x)))
                fail_msg("%s of %s: %.21Lg gives %.21Lg, not %.21Lg", op, wf_dtype_name(dtype), x,
                         is, want(dtype, x));
        }
        wf_tensor_free(&in);
        wf_tensor_free(&out);
    }
}

static number opposite(wf_dtype dtype, number x)
{
    (void)dtype;
    return x == 0;
}

static number inverted(wf_dtype dtype, number x)
{
    return wrap(dtype, ~bits_of(x));
}

static number negated(wf_dtype dtype, number x)
{
    return wf_dtype_is_float(dtype) ? -x : wrap(dtype, 0 - bits_of(x));
}

static number magnitude(wf_dtype dtype, number x)
{
    return wf_dtype_is_float(dtype) ? fabsl(x) : x < 0 ? negated(dtype, x) : x;
}

static number sign_of(wf_dtype dtype, number x)
{
    (void)dtype;
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static number is_nan(wf_dtype dtype, number x)
{
    (void)dtype;
    return x != x;
}

static number is_inf(wf_dtype dtype, number x)
{
    (void)dtype;
    return x == (number)INFINITY || x == -(number)INFINITY;
}

static number round_even(wf_dtype dtype, number x)
{
    (void)dtype;
    return rintl(x);
}

static void one_operand_at_its_edges(void **state)
{
    static const wf_dtype numbers[] = {WF_F32, WF_F64, WF_I32, WF_I64, WF_U8};

    (void)state;
    check_unary("Not", WF_BOOL, WF_BOOL, opposite);
    for (size_t i = 0; i < WF_COUNT(numbers); i++) {
        wf_dtype d = numbers[i];

        check_unary("Abs", d, d, magnitude);
        check_unary("Sign", d, d, sign_of);
        if (d != WF_U8)
            check_unary("Neg", d, d, negated);
        if (!wf_dtype_is_float(d)) {
            check_unary("BitwiseNot", d, d, inverted);
            continue;
        }
        check_unary("IsNaN", d, WF_BOOL, is_nan);
        check_unary("IsInf", d, WF_BOOL, is_inf);
        check_unary("Round", d, d, round_even);
    }
}

/* ---- casts ---- */

static number fitted(number x, number least, number most)
{
    return x != x ? 0 : x < least ? least : x > most ? most : truncl(x);
}

static number cast_of(wf_dtype from, wf_dtype to, number x)
{
    switch (to) {
    case WF_BOOL:
        return x != 0;
    case WF_F32:
        return (number)(float)x;
    case WF_F64:
        return (number)(double)x;
    case WF_F16: /* by way of f32 */
        return half_of((number)(float)x);
    case WF_BF16:
        return bfloat_of((number)(float)x);
    default:
        break;
    }
    if (!wf_dtype_is_float(from))
        return wrap(to, bits_of(x));
    if (to == WF_U8)
        return fitted(x, 0, 255);
    return to == WF_I32 ? fitted(x, -0x1p31L, 0x1p31L - 1)
                        : fitted(x, -0x1p63L, 9223372036854775807.0L);
}

static void casts_saturate_wrap_and_round(void **state)
{
    (void)state;
    for (size_t f = 0; f < WF_COUNT(all_dtypes); f++) {
        wf_tensor *in = seeded(all_dtypes[f], f, DIMS(1500));

        for (size_t t = 0; t < WF_COUNT(all_dtypes); t++) {
            wf_dtype from = all_dtypes[f], to = all_dtypes[t];
            wf_attr attr = wf_attr_int("to", (int64_t)to);
            wf_tensor *out = run_op("Cast", 1, &attr, 1, &in, 0);

            assert_int_equal(out->dtype, to);
            for (int64_t i = 0; i < 1500; i++) {
                number x = get(from, in->data, i), is = get(to, out->data, i);

                if (!same(is, cast_of(from, to, x)))
                    fail_msg("Cast of %s to %s: %.21Lg gives %.21Lg, not %.21Lg",
                             wf_dtype_name(from), wf_dtype_name(to), x, is, cast_of(from, to, x));
            }
            wf_tensor_free(&out);
        }
        wf_tensor_free(&in);
    }
}

/* Every half there is comes back from f32, and lies between its neighbours. */
static void halves_go_to_f32_and_back(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint16_t h = (uint16_t)bits;
        number half = decode16(h, 5), brain = decode16(h, 8);

        assert_true(same(wf_f16_to_f32(h), half));
        assert_true(same(wf_bf16_to_f32(h), brain));
        if (half == half)
            assert_int_equal(wf_f32_to_f16((float)half), h);
        else
            assert_true(isnan(wf_f16_to_f32(wf_f32_to_f16(wf_f16_to_f32(h)))));
        if (brain == brain)
            assert_int_equal(wf_f32_to_bf16((float)brain), h);
        else
            assert_true(isnan(wf_bf16_to_f32(wf_f32_to_bf16(wf_bf16_to_f32(h)))));
    }
}

static void clip_holds_to_its_bounds(void **state)
{
    static const wf_dtype numbers[] = {WF_F32, WF_F64, WF_I32, WF_I64, WF_U8};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(numbers); i++)
        for (int bounds = 0; bounds < 4; bounds++) {
            wf_dtype d = numbers[i];
            wf_tensor *in[3] = {seeded(d, i, DIMS(333)), NULL, NULL}, *out;

            for (int k = 0; k < 2; k++)
                if (bounds >> k & 1) {
                    in[k + 1] = new_tensor(d, 0, NULL);
                    put(d, in[k + 1]->data, 0, k ? 100 : 3);
                }
            out = run_op("Clip", 0, NULL, 3, in, 0);
            for (int64_t e = 0; e < 333; e++) {
                number x = get(d, in[0]->data, e), want = x;

                want = bounds & 1 && want < 3 ? 3 : want;
                want = bounds & 2 && want > 100 ? 100 : want;
                assert_true(same(get(d, out->data, e), want));
            }
            for (int k = 0; k < 3; k++)
                wf_tensor_free(&in[k]);
            wf_tensor_free(&out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons_are_those_of_numbers),
        cmocka_unit_test(logic_is_that_of_truth_tables),
        cmocka_unit_test(bits_are_those_of_twos_complement),
        cmocka_unit_test(bits_of_a_float_are_refused),
        cmocka_unit_test(arithmetic_wraps_and_divides_by_zero),
        cmocka_unit_test(one_operand_at_its_edges),
        cmocka_unit_test(casts_saturate_wrap_and_round),
        cmocka_unit_test(halves_go_to_f32_and_back),
        cmocka_unit_test(clip_holds_to_its_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
