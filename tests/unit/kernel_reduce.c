/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/kernel_reduce.c - the Reduce operations over any axes, of all dtypes, against sums in
 * exact numbers. */
#include "tests/unit/numbers.h"

#include <stdlib.h>

enum { OPS = 10 };
typedef enum how { L1, L2, LOG_SUM, LOG_SUM_EXP, MAX, MEAN, MIN, PROD, SUM, SUM_SQUARE } how;
static const char *const names[OPS] = {
    "ReduceL1",   "ReduceL2",  "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd",   "ReduceSum",       "ReduceSumSquare"};

/* The elements of one output, in order. */
typedef struct group {
    number *x;
    int64_t n, room;
} group;

static number sum_of(const group *g, number (*of)(number))
{
    number s = 0;

    for (int64_t i = 0; i < g->n; i++)
        s += of(g->x[i]);
    return s;
}

static number itself(number x)
{
    return x;
}

static number square(number x)
{
    return x * x;
}

static number extreme(const group *g, bool least, number start)
{
    number best = start;

    for (int64_t i = 0; i < g->n; i++) {
        if (g->x[i] != g->x[i])
            return (number)NAN;
        best = least ? fminl(best, g->x[i]) : fmaxl(best, g->x[i]);
    }
    return best;
}

static number log_sum_exp(const group *g)
{
    number top = extreme(g, false, -(number)INFINITY), s = 0;

    if (top != top || isinf(top))
        return top;
    for (int64_t i = 0; i < g->n; i++)
        s += expl(g->x[i] - top);
    return top + logl(s);
}

/* The exact value, without the rounding to the dtype. */
static number reduced(how h, wf_dtype dtype, const group *g)
{
    bool is_float = wf_dtype_is_float(dtype);
    number s = 1;

    switch (h) {
    case L1:
        return sum_of(g, fabsl);
    case L2:
        return sqrtl(sum_of(g, square));
    case LOG_SUM:
        return logl(sum_of(g, itself));
    case LOG_SUM_EXP:
        return log_sum_exp(g);
    case MAX:
        return extreme(g, false,
                       is_float          ? -(number)INFINITY
                       : dtype == WF_I32 ? -0x1p31L
                       : dtype == WF_I64 ? -0x1p63L
                                         : 0);
    case MIN:
        return extreme(g, true,
                       is_float           ? (number)INFINITY
                       : dtype == WF_I32  ? 0x1p31L - 1
                       : dtype == WF_I64  ? 9223372036854775807.0L
                       : dtype == WF_BOOL ? 1
                                          : 255);
    case MEAN:
        return sum_of(g, itself) / (number)g->n;
    case PROD:
        for (int64_t i = 0; i < g->n; i++)
            s *= g->x[i];
        return s;
    case SUM:
        return sum_of(g, itself);
    case SUM_SQUARE:
        return sum_of(g, square);
    }
    return 0;
}

/* How far a result may be from the exact one: a few roundings to the dtype, of the largest number
 * that is added. Integers are exact, but for the functions that are computed in floats. */
static number slack(how h, wf_dtype dtype, const group *g)
{
    number largest = 1, epsilon = dtype == WF_F32 ? (number)FLT_EPSILON : (number)DBL_EPSILON;

    if (h == MAX || h == MIN)
        return 0;
    if (!wf_dtype_is_float(dtype))
        return h == L2 || h == LOG_SUM || h == LOG_SUM_EXP ? 1e-9L : 0;
    for (int64_t i = 0; i < g->n; i++)
        largest += h == SUM_SQUARE ? square(g->x[i]) : fabsl(g->x[i]);
    if (h == PROD || h == L2 || h == LOG_SUM_EXP || h == LOG_SUM)
        largest = 1 + fabsl(reduced(h, dtype, g));
    return 64 * largest * epsilon;
}

/* The elements of input that output o gathers. */
static void gather(const wf_tensor *in, uint32_t mask, int64_t o, group *g)
{
    int64_t kept[WF_MAX_RANK] = {0};

    for (uint32_t k = in->rank; k-- > 0;)
        if (!(mask >> k & 1u)) {
            kept[k] = o % in->dims[k];
            o /= in->dims[k];
        }
    g->n = 0;
    for (int64_t i = 0; i < wf_elems(in); i++) {
        int64_t at = i;
        bool mine = true;

        for (uint32_t k = in->rank; k-- > 0; at /= in->dims[k])
            mine = mine && (mask >> k & 1u || at % in->dims[k] == kept[k]);
        if (mine)
            g->x[g->n++] = get(in->dtype, in->data, i);
    }
}

static void check_one(how h, const wf_tensor *in, const wf_tensor *out, uint32_t mask, int64_t o,
                      group *g)
{
    number is = get(in->dtype, out->data, o), must, most;

    gather(in, mask, o, g);
    must = reduced(h, in->dtype, g);
    most = slack(h, in->dtype, g);
    if (!wf_dtype_is_float(in->dtype))
        must = g->n == 0 && h == MEAN ? 0 : truncl(must);
    if (!same(is, must) && !(fabsl(is - must) <= most))
        fail_msg("%s of %s over axes %x: output %lld is %.21Lg, not %.21Lg", names[h],
                 wf_dtype_name(in->dtype), mask, (long long)o, is, must);
}

static void check(how h, wf_tensor *in, uint32_t mask, bool keep, bool by_none)
{
    int64_t axes[WF_MAX_RANK], outputs = 1;
    wf_attr attrs[2] = {wf_attr_int("keepdims", keep), wf_attr_int("noop_with_empty_axes", 0)};
    group g = {.x = calloc((size_t)wf_elems(in) + 1, sizeof(number))};
    wf_tensor *both[2] = {in, NULL}, *out;
    uint32_t n = 0, rank = 0;

    for (uint32_t k = 0; k < in->rank; k++)
        if (mask >> k & 1u)
            axes[n++] = k % 2 ? (int64_t)k : (int64_t)k - in->rank; /* from both ends */
        else
            outputs *= in->dims[k];
    if (!by_none)
        both[1] = whole_numbers(n, axes);
    out = run_op(names[h], 2, attrs, by_none ? 1 : 2, both, by_none ? 0 : 1);
    for (uint32_t k = 0; k < in->rank; k++)
        if (keep || !(mask >> k & 1u))
            assert_int_equal(out->dims[rank++], mask >> k & 1u ? 1 : in->dims[k]);
    assert_int_equal(out->rank, rank);
    assert_int_equal(wf_elems(out), outputs);
    for (int64_t o = 0; o < outputs; o++)
        check_one(h, in, out, mask, o, &g);
    free(g.x);
    wf_tensor_free(&both[1]);
    wf_tensor_free(&out);
}

/* Numbers whose sums and products stay within the dtype. */
static wf_tensor *small_numbers(wf_dtype dtype, how h, uint32_t rank, const int64_t dims[])
{
    wf_tensor *t = new_tensor(dtype, rank, dims);

    for (int64_t i = 0; i < wf_elems(t); i++) {
        number x = (number)wf_rng_below((wf_rng_key){7, (uint64_t)h}, (uint64_t)i, 61) - 30;

        if (dtype == WF_BOOL || dtype == WF_U8)
            x = (number)((int64_t)(x + 30) % (dtype == WF_BOOL ? 2 : 256));
        else if (wf_dtype_is_float(dtype))
            x = h == PROD ? 1 + x / 128 : x / 8;
        else if (h == PROD)
            x = i % 43 ? (x < 0 ? -1 : 1) : 3;
        if (h == LOG_SUM)
            x = fabsl(x) + 1;
        put(dtype, t->data, i, x);
    }
    return t;
}

static bool knows(how h, wf_dtype dtype)
{
    return wf_dtype_is_float(dtype) || dtype == WF_I32 || dtype == WF_I64 || h == MAX || h == MIN;
}

static const wf_dtype dtypes[] = {WF_F32, WF_F64, WF_I32, WF_I64, WF_U8, WF_BOOL};

static void every_axis_of_every_dtype(void **state)
{
    static const struct shape {
        uint32_t rank;
        int64_t dims[4];
    } shapes[] = {{1, {1}}, {1, {67}}, {2, {5, 33}}, {3, {4, 3, 35}}, {4, {2, 3, 2, 5}}};

    (void)state;
    for (size_t d = 0; d < WF_COUNT(dtypes); d++)
        for (how h = L1; h <= SUM_SQUARE; h++)
            for (size_t s = 0; knows(h, dtypes[d]) && s < WF_COUNT(shapes); s++) {
                uint32_t all = (1u << shapes[s].rank) - 1;
                wf_tensor *in = small_numbers(dtypes[d], h, shapes[s].rank, shapes[s].dims);

                for (uint32_t mask = 1; mask <= all; mask++)
                    check(h, in, mask, mask % 2, false);
                check(h, in, all, true, true);
                wf_tensor_free(&in);
            }
}

/* So many that the elements of one output are cut into ranges, and joined. */
static void long_rows_are_cut_and_joined(void **state)
{
    (void)state;
    for (size_t d = 0; d < WF_COUNT(dtypes); d++)
        for (how h = L1; h <= SUM_SQUARE; h++) {
            wf_tensor *in;

            if (!knows(h, dtypes[d]) || h == PROD || h == LOG_SUM_EXP)
                continue;
            in = small_numbers(dtypes[d], h, DIMS((1 << 20) + 3));
            check(h, in, 1, false, false);
            wf_tensor_free(&in);
        }
}

static void nothing_reduces_to_the_start(void **state)
{
    (void)state;
    for (size_t d = 0; d < WF_COUNT(dtypes); d++)
        for (how h = L1; h <= SUM_SQUARE; h++) {
            wf_tensor *in = new_tensor(dtypes[d], DIMS(3, 0));

            if (knows(h, dtypes[d]) && (wf_dtype_is_float(dtypes[d]) || h == MAX || h == MIN ||
                                        h == SUM || h == PROD || h == MEAN))
                check(h, in, 2, false, false);
            wf_tensor_free(&in);
        }
}

static void nan_and_infinity_stay(void **state)
{
    static const double rows[][4] = {
        {1, NAN, 2, 3},
        {INFINITY, 1, 2, 3},
        {-INFINITY, 1, 2, 3},
        {NAN, INFINITY, 1, 1},
        {-INFINITY, -INFINITY, -INFINITY, -INFINITY},
        {INFINITY, INFINITY, 0, 1},
        {INFINITY, -INFINITY, 1, 2},
        {-1, -2, -3, -4},
        {700, 710, 720, 730},
        {-0.0, -0.0, -0.0, -0.0},
    };

    (void)state;
    for (size_t d = 0; d < 2; d++)
        for (how h = L1; h <= SUM_SQUARE; h++) {
            wf_tensor *in = new_tensor(dtypes[d], DIMS(WF_COUNT(rows), 4));

            for (size_t i = 0; i < WF_COUNT(rows) * 4; i++)
                put(dtypes[d], in->data, (int64_t)i, rows[i / 4][i % 4]);
            check(h, in, 2, false, false);
            wf_tensor_free(&in);
        }
}

static void integers_wrap(void **state)
{
    wf_tensor *in[2] = {new_tensor(WF_I32, DIMS(2)), whole_numbers(1, (int64_t[]){0})}, *out;

    (void)state;
    for (int i = 0; i < 2; i++)
        ((int32_t *)in[0]->data)[i] = INT32_MAX;
    out = run_op("ReduceSum", 0, NULL, 2, in, 1);
    assert_int_equal(((int32_t *)out->data)[0], -2);
    wf_tensor_free(&out);
    ((int32_t *)in[0]->data)[1] = INT32_MIN;
    out = run_op("ReduceL1", 0, NULL, 2, in, 1); /* 2^31 - 1 + 2^31 */
    assert_int_equal(((int32_t *)out->data)[0], -1);
    wf_tensor_free(&out);
    out = run_op("ReduceMean", 0, NULL, 2, in, 1); /* -1 / 2, towards 0 */
    assert_int_equal(((int32_t *)out->data)[0], 0);
    for (int i = 0; i < 2; i++)
        wf_tensor_free(&in[i]);
    wf_tensor_free(&out);
}

static void no_axes_may_mean_none(void **state)
{
    wf_attr attr = wf_attr_int("noop_with_empty_axes", 1);
    wf_tensor *in = small_numbers(WF_F32, SUM, DIMS(3, 4)), *out;

    (void)state;
    out = run_op("ReduceSum", 1, &attr, 1, &in, 0);
    assert_int_equal(out->rank, 2);
    assert_memory_equal(out->data, in->data, wf_tensor_bytes(in));
    wf_tensor_free(&in);
    wf_tensor_free(&out);
}

static void an_axis_that_is_not_there_is_refused(void **state)
{
    wf_tensor *in[2] = {small_numbers(WF_F32, SUM, DIMS(3, 4)), whole_numbers(1, (int64_t[]){2})};
    wf_err err = {0};

    (void)state;
    assert_null(try_op("ReduceSum", 0, NULL, 2, in, 1, &err));
    assert_says(err, "2");
    wf_tensor_free(&in[1]);
    in[1] = whole_numbers(2, (int64_t[]){1, -1});
    assert_null(try_op("ReduceSum", 0, NULL, 2, in, 1, &err)); /* the same axis twice */
    for (int i = 0; i < 2; i++)
        wf_tensor_free(&in[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_axis_of_every_dtype),
        cmocka_unit_test(long_rows_are_cut_and_joined),
        cmocka_unit_test(nothing_reduces_to_the_start),
        cmocka_unit_test(nan_and_infinity_stay),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(no_axes_may_mean_none),
        cmocka_unit_test(an_axis_that_is_not_there_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
