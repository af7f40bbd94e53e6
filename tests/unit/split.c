/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/split.c - products of float32 whose factors are split for tiles: against sums in
 * double, and no less exact than multiply-adds in float32. */
#include "common/kernels/cpu/product/split.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/kernels/cpu/product/product.h"
#include "common/kernels/cpu/product/product_tiles.h"
#include "tests/unit/graph_test.h"
#include "tests/unit/skip.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 80, ELEMENTS = 1000 /* of each case */, LONG = 200 };

typedef struct dice {
    wf_rng_key key;
    uint64_t at;
} dice;

typedef struct factors {
    wf_product p;
    uint32_t then;              /* of common/kernels/cpu/product/then.h */
    float *a, *b, *c, *row, *y; /* c: what beta adds to */
} factors;

static void need_tiles(void)
{
    if (wf_tiles_used() != WF_TILES_AMX)
        skip_file();
}

static uint64_t below(dice *d, uint64_t n)
{
    return wf_rng_below(d->key, d->at++, n);
}

static float *fresh(int64_t n)
{
    float *x = aligned_alloc(64, wf_align_up((size_t)(n + 1) * sizeof *x, 64));

    assert_non_null(x);
    return x;
}

/* Of both signs, and sizes from 2^-8 to 2^8. */
static float *drawn(dice *d, int64_t n)
{
    float *x = fresh(n);

    for (int64_t i = 0; i < n; i++)
        x[i] = ldexpf(2 * wf_rng_f32(d->key, d->at++) - 1, (int)below(d, 17) - 8);
    return x;
}

static int64_t extent(dice *d)
{
    static const int64_t edges[] = {1, 15, 16, 17, 31, 32, 33, 48, 65, 130, 513, 600};

    return edges[below(d, WF_COUNT(edges))];
}

static factors draw(dice *d)
{
    factors f = {.p = {.dtype = WF_F32,
                       .m = extent(d),
                       .n = extent(d),
                       .k = below(d, 8) ? extent(d) : 1600,
                       .trans_a = below(d, 2),
                       .trans_b = below(d, 2),
                       .alpha = 1,
                       .beta = (double)below(d, 2)}};

    f.then = (uint32_t)below(d, 8);
    if (f.p.beta != 0)
        f.then &= ~(uint32_t)WF_PRODUCT_BIAS;
    f.a = drawn(d, f.p.m * f.p.k);
    f.b = drawn(d, f.p.k * f.p.n);
    f.c = drawn(d, f.p.m * f.p.n);
    f.row = drawn(d, f.p.n);
    f.y = drawn(d, f.p.m * f.p.n);
    return f;
}

static void drop(factors *f)
{
    free(f->a);
    free(f->b);
    free(f->c);
    free(f->row);
    free(f->y);
}

static float *split(const factors *f, uint32_t threads)
{
    wf_arena *arena = wf_arena_new(0);
    wf_prep prep = {.arena = arena, .threads = threads};
    float *c = fresh(f->p.m * f->p.n);
    wf_product_tiles *v;
    wf_run run = {0};
    wf_err err;

    memcpy(c, f->c, (size_t)(f->p.m * f->p.n) * sizeof *c);
    assert_ok(wf_pool_new(threads, &run.pool, &err), err);
    assert_ok(wf_product_tiles_prepare(&prep, &f->p, f->then, true, &v, &err), err);
    run.workspace = aligned_alloc(64, wf_align_up(prep.workspace_bytes, 64));
    assert_non_null(run.workspace);
    assert_true(wf_product_tiles_go(v, &run, &(wf_product_operands){f->a, f->b, f->row, f->y, c}));
    free(run.workspace);
    wf_pool_free(&run.pool);
    wf_arena_free(&arena);
    return c;
}

/* Errors of both ways by the size of their terms, squared and summed. */
typedef struct errors {
    double split, added;
} errors;

static void compare(const factors *f, int64_t i, int64_t k, double got, errors *sum)
{
    const wf_product *p = &f->p;
    double want = p->beta != 0                ? (double)f->c[i * p->n + k]
                  : f->then & WF_PRODUCT_BIAS ? (double)f->row[k]
                                              : 0;
    double size = fabs(want);
    float added = (float)want;

    for (int64_t t = 0; t < p->k; t++) {
        float x = f->a[p->trans_a ? t * p->m + i : i * p->k + t];
        float y = f->b[p->trans_b ? k * p->k + t : t * p->n + k];

        added = fmaf(x, y, added);
        want += (double)x * (double)y;
        size += fabs((double)x * (double)y);
    }
    if (f->then & WF_PRODUCT_RELU && want < 0)
        want = added = 0;
    if (f->then & WF_PRODUCT_RELU_GRAD && f->y[i * p->n + k] <= 0)
        want = size = added = 0;
    /* 16 values are added in each of two chains, and these to the sum, for each pair of pieces */
    if (!(fabs(got - want) <= 0x1p-24 * (double)(16 + 6 * ((p->k + 31) / 32)) * size))
        fail_msg("%d x %d x %d, transposed %d %d: element %d %d is %.9g, not %.9g", (int)p->m,
                 (int)p->n, (int)p->k, p->trans_a, p->trans_b, (int)i, (int)k, got, want);
    if (p->k >= LONG && size > 0) {
        sum->split += pow((got - want) / size, 2);
        sum->added += pow(((double)added - want) / size, 2);
    }
}

static void products_are_as_exact_as_those_of_float32(void **state)
{
    dice d = {.key = {.seed = 11}};
    errors sum = {0};

    (void)state;
    need_tiles();
    for (int i = 0; i < CASES; i++) {
        factors f = draw(&d);
        float *c = split(&f, 1), *apart = split(&f, 3);

        assert_memory_equal(c, apart, (size_t)(f.p.m * f.p.n) * sizeof *c);
        compare(&f, f.p.m - 1, f.p.n - 1, (double)c[f.p.m * f.p.n - 1], &sum);
        for (int k = 0; k < ELEMENTS; k++) {
            int64_t at = (int64_t)below(&d, (uint64_t)(f.p.m * f.p.n));

            compare(&f, at / f.p.n, at % f.p.n, (double)c[at], &sum);
        }
        free(c);
        free(apart);
        drop(&f);
    }
    print_message("the root of all squared errors is %g, of multiply-adds in float32 %g\n",
                  sqrt(sum.split), sqrt(sum.added));
    assert_true(sum.added > 0);
    if (sum.split > sum.added)
        fail_msg("the root of all squared errors is %g, of multiply-adds in float32 %g",
                 sqrt(sum.split), sqrt(sum.added));
}

/* Values of 24 bits, from 2^-100 to 2^127, times 1: pieces lose nothing. */
static void pieces_hold_all_bits(void **state)
{
    enum { N = 48 };
    dice d = {.key = {.seed = 12}};
    factors f = {.p = {.dtype = WF_F32, .m = N, .n = N, .k = N, .alpha = 1}};
    float *c;

    (void)state;
    need_tiles();
    f.a = drawn(&d, N * N);
    f.b = drawn(&d, N * N);
    f.c = drawn(&d, N * N);
    f.row = drawn(&d, N);
    for (int i = 0; i < N * N; i++) {
        float x = ldexpf((float)((1 << 23) + (int)below(&d, 1 << 23)), (int)below(&d, 226) - 123);

        f.a[i] = below(&d, 2) ? x : -x;
        f.b[i] = i / N == i % N;
    }
    f.a[0] = 0x1.fffffep126f;
    c = split(&f, 1);
    assert_memory_equal(c, f.a, N * N * sizeof *c);
    free(c);
    drop(&f);
}

static float *product(const factors *f, wf_tiles_unit unit)
{
    wf_arena *arena = wf_arena_new(0);
    wf_prep prep = {.arena = arena, .threads = 2};
    float *c = fresh(f->p.m * f->p.n);
    wf_product_way *way;
    wf_run run = {0};
    wf_err err;

    assert_true(wf_tiles_use(unit));
    assert_ok(wf_pool_new(2, &run.pool, &err), err);
    assert_ok(wf_product_prepare(&prep, &f->p, WF_PRODUCT_BIAS | WF_PRODUCT_RELU, &way, &err), err);
    run.workspace = aligned_alloc(64, wf_align_up(prep.workspace_bytes, 64));
    assert_non_null(run.workspace);
    wf_product_go(way, &run, &(wf_product_operands){f->a, f->b, f->row, NULL, c});
    free(run.workspace);
    wf_pool_free(&run.pool);
    wf_arena_free(&arena);
    assert_true(wf_tiles_use(WF_TILES_AMX));
    return c;
}

/* What has no pieces is multiplied in float32: infinities and NaN come out as they would. */
static void values_without_pieces_are_not_split(void **state)
{
    static const float beyond[] = {0x1p127f, -INFINITY, NAN};
    dice d = {.key = {.seed = 13}};
    factors f = {.p = {.dtype = WF_F32, .m = 300, .n = 280, .k = 600, .alpha = 1}};
    float *finite[2];

    (void)state;
    need_tiles();
    f.a = drawn(&d, f.p.m * f.p.k);
    f.b = drawn(&d, f.p.k * f.p.n);
    f.row = drawn(&d, f.p.n);
    finite[0] = product(&f, WF_TILES_AMX);
    finite[1] = product(&f, WF_TILES_PAIRS);
    assert_memory_not_equal(finite[0], finite[1], (size_t)(f.p.m * f.p.n) * sizeof(float));
    for (int i = 0; i < 2 * (int)WF_COUNT(beyond); i++) {
        int64_t n = i % 2 ? f.p.k * f.p.n : f.p.m * f.p.k;
        float *at = (i % 2 ? f.b : f.a) + below(&d, (uint64_t)n), before = *at, *c, *want;

        *at = beyond[i / 2];
        c = product(&f, WF_TILES_AMX);
        want = product(&f, WF_TILES_PAIRS);
        assert_memory_equal(c, want, (size_t)(f.p.m * f.p.n) * sizeof *c);
        *at = before;
        free(c);
        free(want);
    }
    free(finite[0]);
    free(finite[1]);
    drop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_as_exact_as_those_of_float32),
        cmocka_unit_test(pieces_hold_all_bits),
        cmocka_unit_test(values_without_pieces_are_not_split),
    };

    return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
