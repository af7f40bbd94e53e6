/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/coding.c - what a coding loses is bounded, is the sender's to keep, and is the same on
 * every processor; bytes that no sender writes are refused. */
#include "common/wire/coding.h"
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/tensor/dtype.h"
#include "common/tensor/halves.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

enum { N = 5 * WF_CODING_BLOCK + 37, KEPT = 40 };

static const wf_coding lossy[] = {WF_CODING_BF16, WF_CODING_F16, WF_CODING_INT8, WF_CODING_TOPK};

/* ---- halves ---- */

typedef struct half_kind {
    float (*read)(uint16_t h);
    void (*read_all)(const uint16_t *from, size_t n, float *to);
    void (*write_all)(const float *from, size_t n, uint16_t *to);
    uint16_t infinite;
} half_kind;

static const half_kind halves[] = {
    {wf_bf16_to_f32, wf_f32_of_bf16s, wf_bf16_of_f32s, 0x7F80},
    {wf_f16_to_f32, wf_f32_of_f16s, wf_f16_of_f32s, 0x7C00},
};

static uint16_t write_one(const half_kind *kind, float x)
{
    float many[64];
    uint16_t to[64];

    for (size_t i = 0; i < WF_COUNT(many); i++) /* the vector form, and not what is left over */
        many[i] = x;
    kind->write_all(many, WF_COUNT(many), to);
    assert_int_equal(to[0], to[63]);
    return to[0];
}

/* Every half comes back, and every float32 beside the middle of two goes to the nearer, the even
 * one of both at the middle itself. */
static void halves_are_the_nearest(void **state)
{
    (void)state;
    for (size_t k = 0; k < WF_COUNT(halves); k++) {
        const half_kind *kind = &halves[k];

        for (uint16_t h = 0; h + 1 < kind->infinite; h++) {
            float low = kind->read(h), high = kind->read(h + 1);
            float middle = (float)(((double)low + (double)high) / 2);

            assert_int_equal(write_one(kind, low), h);
            assert_int_equal(write_one(kind, -low), h | 0x8000);
            assert_int_equal(write_one(kind, middle), h % 2 ? h + 1 : h);
            assert_int_equal(write_one(kind, nextafterf(middle, low)), h);
            assert_int_equal(write_one(kind, nextafterf(middle, high)), h + 1);
        }
    }
}

static void arrays_of_halves_are_read_as_single_ones(void **state)
{
    static uint16_t all[1 << 16];
    static float out[1 << 16];

    (void)state;
    for (uint32_t i = 0; i < WF_COUNT(all); i++)
        all[i] = (uint16_t)i;
    for (size_t k = 0; k < WF_COUNT(halves); k++) {
        halves[k].read_all(all, WF_COUNT(all), out);
        for (uint32_t i = 0; i < WF_COUNT(all); i++) {
            float one = halves[k].read(all[i]);

            assert_memory_equal(&out[i], &one, sizeof one);
        }
    }
}

/* ---- codings ---- */

static void fill(float x[], uint64_t n, uint64_t seed, float scale)
{
    for (uint64_t i = 0; i < n; i++)
        x[i] = scale *
               ((float)(XXH3_64bits_withSeed(&i, sizeof i, seed) >> 40) / (float)(1 << 23) - 1);
}

typedef struct coded {
    wf_coded c;
    _Alignas(8) uint8_t data[N * sizeof(float) * 2];
} coded;

static bool write(coded *out, wf_coding coding, const float x[], float residual[], uint64_t n)
{
    out->c = (wf_coded){.coding = coding,
                        .data = out->data,
                        .bytes = wf_coding_bytes(coding, n, WF_MIN(n, (uint64_t)KEPT))};
    if (!wf_coding_write(coding, WF_MIN(n, (uint64_t)KEPT), x, residual, n, out->data))
        return false;
    assert_true(wf_coded_count(&out->c));
    assert_int_equal(out->c.n, n);
    assert_int_equal(wf_coded_check(&out->c, NULL), WF_OK);
    return true;
}

static void every_length_has_its_bytes(void **state)
{
    static coded to;
    float x[300] = {1}, back[300];

    (void)state;
    for (uint64_t n = 1; n <= WF_COUNT(x); n++)
        for (size_t k = 0; k < WF_COUNT(lossy); k++) {
            assert_true(write(&to, lossy[k], x, NULL, n));
            wf_coded_read(&to.c, 0, n, back);
            assert_true(back[0] == 1);
        }
}

static double bound(wf_coding coding, const float x[], uint64_t i)
{
    uint64_t first = i / WF_CODING_BLOCK * WF_CODING_BLOCK;
    double most = 0;

    if (coding == WF_CODING_BF16)
        return fabs((double)x[i]) * 0x1p-8;
    if (coding == WF_CODING_F16)
        return fabs((double)x[i]) * 0x1p-11 + 0x1p-25;
    for (uint64_t k = first; k < WF_MIN(first + WF_CODING_BLOCK, (uint64_t)N); k++)
        most = WF_MAX(most, fabs((double)x[k]));
    return most / 127 * 0.50001;
}

static void errors_are_bounded(void **state)
{
    static coded to;
    float x[N], back[N];

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        fill(x, N, seed, ldexpf(1, (int)seed - 10));
        for (size_t k = 0; k < 3; k++) {
            assert_true(write(&to, lossy[k], x, NULL, N));
            wf_coded_read(&to.c, 0, N, back);
            for (uint64_t i = 0; i < N; i++)
                assert_true(fabs((double)x[i] - (double)back[i]) <= bound(lossy[k], x, i));
        }
    }
}

static int by_magnitude(const void *a, const void *b)
{
    float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);

    return (x < y) - (x > y);
}

static void top_k_keeps_the_largest(void **state)
{
    static coded to;
    float x[N], back[N], sorted[N];

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint64_t kept = 0;

        fill(x, N, seed, 3);
        for (uint64_t i = 0; seed % 2 && i < N; i++) /* many are equal */
            x[i] = rintf(x[i]);
        memcpy(sorted, x, sizeof x);
        qsort(sorted, N, sizeof *sorted, by_magnitude);
        assert_true(write(&to, WF_CODING_TOPK, x, NULL, N));
        wf_coded_read(&to.c, 0, N, back);
        for (uint64_t i = 0; i < N; i++) {
            kept += back[i] != 0;
            assert_true(back[i] == 0 || back[i] == x[i]);
            if (fabsf(x[i]) > fabsf(sorted[KEPT - 1]))
                assert_true(back[i] == x[i]);
            if (fabsf(x[i]) < fabsf(sorted[KEPT - 1]))
                assert_true(back[i] == 0);
        }
        assert_int_equal(kept, KEPT);
    }
}

static void equal_magnitudes_are_kept_from_the_first_on(void **state)
{
    static coded to;
    float x[N], back[N];

    (void)state;
    for (uint64_t i = 0; i < N; i++)
        x[i] = i % 2 ? 1 : -1;
    assert_true(write(&to, WF_CODING_TOPK, x, NULL, N));
    wf_coded_read(&to.c, 0, N, back);
    for (uint64_t i = 0; i < N; i++)
        assert_true(back[i] == (i < KEPT ? x[i] : 0));
}

/* What was sent and the residual are what was to be sent, but for the rounding of each sum. */
static void what_is_lost_is_sent_later(void **state)
{
    static coded to;

    (void)state;
    for (size_t k = 0; k < WF_COUNT(lossy); k++) {
        double given[N] = {0}, sent[N] = {0};
        float x[N], residual[N] = {0}, back[N], most = 0;

        for (uint64_t step = 0; step < 200; step++) {
            fill(x, N, step, 1000);
            assert_true(write(&to, lossy[k], x, residual, N));
            wf_coded_read(&to.c, 0, N, back);
            for (uint64_t i = 0; i < N; i++) {
                given[i] += (double)x[i];
                sent[i] += (double)back[i];
            }
        }
        for (uint64_t i = 0; i < N; i++) {
            double lost = given[i] - sent[i] - (double)residual[i];

            assert_true(fabs(lost) <= 200 * 16000 * 0x1p-24);
            most = WF_MAX(most, fabsf(residual[i]));
        }
        /* It does not grow with the steps: top-k sends a number in about one of N / KEPT steps. */
        assert_true(most > 0 && most < (lossy[k] == WF_CODING_TOPK ? 60000 : 10));
    }
}

static void parts_are_read_as_the_whole(void **state)
{
    static coded to;
    float x[N], whole[N], part[N];

    (void)state;
    fill(x, N, 7, 1);
    for (size_t k = 0; k < WF_COUNT(lossy); k++) {
        assert_true(write(&to, lossy[k], x, NULL, N));
        wf_coded_read(&to.c, 0, N, whole);
        for (uint64_t begin = 0; begin < N; begin += 61)
            for (uint64_t n = 0; n <= N - begin; n += 97) {
                wf_coded_read(&to.c, begin, n, part);
                assert_memory_equal(part, whole + begin, n * sizeof *part);
            }
    }
}

static void what_a_coding_cannot_say_is_left(void **state)
{
    static const struct {
        wf_coding coding;
        float x;
        bool fits;
    } cases[] = {
        {WF_CODING_BF16, 0x1.FEp127f, true}, {WF_CODING_BF16, 0x1.FFp127f, false},
        {WF_CODING_F16, 65519, true},        {WF_CODING_F16, -65520, false},
        {WF_CODING_INT8, 0x1p125f, true},    {WF_CODING_INT8, -0x1p126f, false},
        {WF_CODING_TOPK, 0x1.FFp127f, true}, {WF_CODING_TOPK, -INFINITY, false},
        {WF_CODING_BF16, NAN, false},        {WF_CODING_F16, INFINITY, false},
        {WF_CODING_INT8, NAN, false},        {WF_CODING_TOPK, NAN, false},
        {WF_CODING_INT8, 0x1p-149f, true},   {WF_CODING_F16, 0x1p-149f, true},
    };
    static coded to;

    (void)state;
    for (size_t k = 0; k < WF_COUNT(cases); k++) {
        float x[N] = {0}, residual[N] = {0}, zeros[N] = {0};

        x[N - 1] = cases[k].x;
        assert_int_equal(write(&to, cases[k].coding, x, residual, N), cases[k].fits);
        if (!cases[k].fits)
            assert_memory_equal(residual, zeros, sizeof zeros);
    }
}

/* The sum counts, not the number. */
static void the_residual_may_make_it_too_large(void **state)
{
    static coded to;
    float x[N] = {40000}, residual[N] = {30000, 1}, back[N];

    (void)state;
    assert_false(write(&to, WF_CODING_F16, x, residual, N));
    assert_true(residual[0] == 30000 && residual[1] == 1);
    x[0] = -40000;
    assert_true(write(&to, WF_CODING_F16, x, residual, N));
    wf_coded_read(&to.c, 0, N, back);
    assert_true(back[0] == -10000 && back[1] == 1 && residual[1] == 0);
}

/* The same bits with vector extensions and without, as in a build with a sanitizer. */
static void bits_are_the_same_everywhere(void **state)
{
    static const uint64_t digests[] = {0xcb6082631bdd3b82, 0x597427d25edcffee, 0x3ce3c7585e7defce,
                                       0x9a4620bda5cd677a};
    static coded to;
    float x[N], residual[N];

    (void)state;
    for (size_t k = 0; k < WF_COUNT(lossy); k++) {
        uint64_t digest;

        fill(x, N, 1, 1);
        fill(residual, N, 2, 0x1p-6f);
        assert_true(write(&to, lossy[k], x, residual, N));
        digest =
            XXH3_64bits_withSeed(residual, sizeof residual, XXH3_64bits(to.c.data, to.c.bytes));
        assert_int_equal(digest, digests[k]);
    }
}

/* ---- what a peer may send ---- */

static void bytes_of_no_number_are_refused(void **state)
{
    _Alignas(8) static uint8_t zeros[1024];
    static const struct {
        wf_coding coding;
        uint64_t bytes;
    } bad[] = {
        {WF_CODING_BF16, 3},   {WF_CODING_F16, 1},    {WF_CODING_INT8, 1},   {WF_CODING_INT8, 4},
        {WF_CODING_INT8, 133}, {WF_CODING_INT8, 136}, {WF_CODING_INT8, 265}, {WF_CODING_TOPK, 0},
        {WF_CODING_TOPK, 3},   {WF_CODING_TOPK, 8},   {WF_CODING_TOPK, 12}, /* one of none */
    };

    (void)state;
    for (size_t k = 0; k < WF_COUNT(bad); k++)
        assert_false(wf_coded_count(
            &(wf_coded){.coding = bad[k].coding, .data = zeros, .bytes = bad[k].bytes}));
}

static void assert_refused(wf_coding coding, const void *data, uint64_t bytes)
{
    wf_coded c = {.coding = coding, .data = data, .bytes = bytes};

    assert_true(wf_coded_count(&c));
    assert_int_equal(wf_coded_check(&c, NULL), WF_PROTO);
}

static void numbers_of_no_sender_are_refused(void **state)
{
    static const float scales[] = {-1, NAN, INFINITY, 0x1p120f};
    static const uint32_t indices[][2] = {{3, 3}, {4, 3}, {0, 9}, {UINT32_MAX, 1}};
    struct {
        uint32_t n, at[2];
        float x[2];
    } top = {9, {0, 8}, {1, 1}};
    struct {
        float scale;
        int8_t steps[4];
    } block = {1, {1, -127, 127, -128}};
    wf_coded c = {.coding = WF_CODING_TOPK, .data = (uint8_t *)&top, .bytes = sizeof top};

    (void)state;
    for (uint16_t sign = 0; sign < 2; sign++)
        for (uint16_t low = 0; low < 2; low++) {
            uint16_t bf16[] = {0, (uint16_t)(sign << 15 | 0x7F80 | low)};
            uint16_t f16[] = {0, (uint16_t)(sign << 15 | 0x7C00 | low)};

            assert_refused(WF_CODING_BF16, bf16, sizeof bf16);
            assert_refused(WF_CODING_F16, f16, sizeof f16);
        }
    for (size_t k = 0; k < WF_COUNT(scales); k++) {
        block.scale = scales[k];
        assert_refused(WF_CODING_INT8, &block, sizeof block);
    }
    assert_true(wf_coded_count(&c));
    assert_int_equal(wf_coded_check(&c, NULL), WF_OK);
    for (size_t k = 0; k < WF_COUNT(indices); k++) {
        memcpy(top.at, indices[k], sizeof top.at);
        assert_refused(WF_CODING_TOPK, &top, sizeof top);
    }
    top.at[1] = 8;
    top.at[0] = 0;
    top.x[1] = NAN;
    assert_refused(WF_CODING_TOPK, &top, sizeof top);
}

static void codings_have_names(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WF_N_CODINGS; i++)
        assert_int_equal(wf_coding_find(wf_coding_name(i)), i);
    assert_int_equal(wf_coding_find("bfloat16"), WF_N_CODINGS);
    assert_string_equal(wf_coding_name(WF_N_CODINGS), "?");
    assert_int_equal(wf_coding_kept(1000, 0.0001), 1);
    assert_int_equal(wf_coding_kept(1000, 0.01), 10);
    assert_int_equal(wf_coding_kept(1000, 1), 1000);
    assert_int_equal(wf_coding_kept(0, 0.5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_are_the_nearest),
        cmocka_unit_test(arrays_of_halves_are_read_as_single_ones),
        cmocka_unit_test(every_length_has_its_bytes),
        cmocka_unit_test(errors_are_bounded),
        cmocka_unit_test(top_k_keeps_the_largest),
        cmocka_unit_test(equal_magnitudes_are_kept_from_the_first_on),
        cmocka_unit_test(what_is_lost_is_sent_later),
        cmocka_unit_test(parts_are_read_as_the_whole),
        cmocka_unit_test(what_a_coding_cannot_say_is_left),
        cmocka_unit_test(the_residual_may_make_it_too_large),
        cmocka_unit_test(bits_are_the_same_everywhere),
        cmocka_unit_test(bytes_of_no_number_are_refused),
        cmocka_unit_test(numbers_of_no_sender_are_refused),
        cmocka_unit_test(codings_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
