/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/convert.c - training data from every dtype to every other, and scaled, against the
 * rule in exact numbers. */
#include "common/data/convert.h"
#include "tests/unit/numbers.h"

enum { N = 700 /* more than two tiles */ };

static number nearest(number x, number least, number most)
{
    return x != x ? 0 : x < least ? least : x > most ? most : truncl(x);
}

static number converted(wf_dtype to, number x)
{
    switch (to) {
    case WF_BOOL:
        return x != 0;
    case WF_U8:
        return nearest(x, 0, 255);
    case WF_I32:
        return nearest(x, -0x1p31L, 0x1p31L - 1);
    case WF_I64:
        return nearest(x, -0x1p63L, 9223372036854775807.0L);
    case WF_F32:
        return (number)(float)x;
    case WF_F64:
        return (number)(double)x;
    case WF_F16:
        return half_of((number)(float)(double)x);
    default:
        return bfloat_of((number)(float)(double)x);
    }
}

static void fill(wf_dtype dtype, void *data, uint64_t seed)
{
    for (int64_t i = 0; i < N; i++)
        put(dtype, data, i, any_element(dtype, seed, (uint64_t)i));
}

static void every_pair_of_dtypes(void **state)
{
    static double in[N], out[N + 1];

    (void)state;
    for (size_t f = 0; f < WF_COUNT(all_dtypes); f++)
        for (size_t t = 0; t < WF_COUNT(all_dtypes); t++) {
            wf_dtype from = all_dtypes[f], to = all_dtypes[t];
            size_t size = wf_dtype_size(to);

            fill(from, in, 10 + f);
            memset(out, 0xA5, sizeof out);
            wf_convert(from, in, to, out, N);
            for (int64_t i = 0; i < N; i++) {
                number x = get(from, in, i), is = get(to, out, i), must = converted(to, x);

                if (!same(is, must))
                    fail_msg("%s to %s: %.21Lg became %.21Lg, not %.21Lg", wf_dtype_name(from),
                             wf_dtype_name(to), x, is, must);
            }
            for (size_t i = 0; i < size; i++) /* not a byte further */
                assert_int_equal(((uint8_t *)out)[N * size + i], 0xA5);
        }
}

static void scaling_gives_f32_and_f64_from_f64(void **state)
{
    static const double factors[] = {1.0 / 255, -3, 0, 1e-30};
    static double in[N], out[N];

    (void)state;
    for (size_t f = 0; f < WF_COUNT(all_dtypes); f++)
        for (size_t k = 0; k < WF_COUNT(factors); k++) {
            wf_dtype from = all_dtypes[f], to = from == WF_F64 ? WF_F64 : WF_F32;

            fill(from, in, 50 + f);
            wf_scale(from, in, factors[k], out, N);
            for (int64_t i = 0; i < N; i++) {
                number x = get(from, in, i), is = get(to, out, i), must;

                must = to == WF_F64 ? (number)((double)x * factors[k])
                                    : (number)(float)((double)(float)x * (double)(float)factors[k]);
                if (!same(is, must))
                    fail_msg("%s times %g: %.21Lg became %.21Lg, not %.21Lg", wf_dtype_name(from),
                             factors[k], x, is, must);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_dtypes),
        cmocka_unit_test(scaling_gives_f32_and_f64_from_f64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
