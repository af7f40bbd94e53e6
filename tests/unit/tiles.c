/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/tiles.c - products in bfloat16 against plain loops in double on the rounded factors.
 */
#include "common/kernels/cpu/product/tiles.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/kernels/cpu/product/product_tiles.h"
#include "common/tensor/dtype.h"
#include "tests/unit/graph_test.h"
#include "tests/unit/skip.h"

#include <math.h>
#include <stdlib.h>

enum { CASES = 120 };

typedef struct dice {
    wf_rng_key key;
    uint64_t at;
} dice;

typedef struct factors {
    wf_product p;
    uint32_t then;              /* of common/kernels/cpu/product/then.h */
    float *a, *b, *c, *row, *y; /* c: what beta adds to */
} factors;

static float *fresh(int64_t n)
{
    float *x = aligned_alloc(64, wf_align_up((size_t)(n + 1) * sizeof *x, 64));

    assert_non_null(x);
    return x;
}

static float *drawn(dice *d, int64_t n)
{
    float *x = fresh(n);

    for (int64_t i = 0; i < n; i++)
        x[i] = 2 * wf_rng_f32(d->key, d->at++) - 1;
    return x;
}

static int64_t extent(dice *d)
{
    static const int64_t edges[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 130, 513, 600};

    return edges[wf_rng_below(d->key, d->at++, WF_COUNT(edges))];
}

static factors draw(dice *d)
{
    factors f = {.p = {.dtype = WF_F32,
                       .m = extent(d),
                       .n = extent(d),
                       .k = extent(d),
                       .trans_a = wf_rng_below(d->key, d->at++, 2),
                       .trans_b = wf_rng_below(d->key, d->at++, 2),
                       .alpha = 1,
                       .beta = (double)wf_rng_below(d->key, d->at++, 2)}};

    if (wf_rng_below(d->key, d->at++, 8) == 0)
        f.p.k = 1600;
    f.then = (uint32_t)wf_rng_below(d->key, d->at++, 16);
    if (f.p.beta != 0)
        f.then &= ~(uint32_t)WF_PRODUCT_BIAS;
    if (f.p.trans_b)
        f.then &= ~(uint32_t)WF_PRODUCT_SUMS_B;
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

static double rounded(float x)
{
    return (double)wf_bf16_to_f32(wf_f32_to_bf16(x));
}

static double plain(const factors *f, int64_t i, int64_t k, double *size)
{
    const wf_product *p = &f->p;
    double sum = p->beta != 0                ? (double)f->c[i * p->n + k]
                 : f->then & WF_PRODUCT_BIAS ? (double)f->row[k]
                                             : 0;

    *size = fabs(sum);
    for (int64_t t = 0; t < p->k; t++) {
        double x = rounded(f->a[p->trans_a ? t * p->m + i : i * p->k + t]) *
                   rounded(f->b[p->trans_b ? k * p->k + t : t * p->n + k]);

        sum += x;
        *size += fabs(x);
    }
    if (f->then & WF_PRODUCT_RELU_GRAD && f->y[i * p->n + k] <= 0)
        return *size = 0;
    return f->then & WF_PRODUCT_RELU && sum < 0 ? 0 : sum;
}

/* Of B's rows, as they are before they are rounded. */
static void check_sums(const factors *f, const float *sums)
{
    const wf_product *p = &f->p;

    for (int64_t k = 0; k < p->n; k++) {
        double sum = 0, size = 0;

        for (int64_t t = 0; t < p->k; t++) {
            sum += (double)f->b[t * p->n + k];
            size += fabs((double)f->b[t * p->n + k]);
        }
        if (!(fabs((double)sums[k] - sum) <= 1e-6 * size))
            fail_msg("%d x %d x %d: sum %d is %g, not %g", (int)p->m, (int)p->n, (int)p->k, (int)k,
                     (double)sums[k], sum);
    }
}

static float *computed(const factors *f, uint32_t threads)
{
    wf_arena *arena = wf_arena_new(0);
    wf_prep prep = {.arena = arena, .threads = threads, .compute = WF_COMPUTE_BF16};
    wf_run run = {0};
    wf_product_tiles *v;
    float *c = fresh(f->p.m * f->p.n), *sums = fresh(f->p.n);
    wf_err err;

    memcpy(c, f->c, (size_t)(f->p.m * f->p.n) * sizeof *c);
    assert_ok(wf_pool_new(threads, &run.pool, &err), err);
    assert_ok(wf_product_tiles_prepare(&prep, &f->p, f->then, false, &v, &err), err);
    run.workspace = aligned_alloc(64, wf_align_up(prep.workspace_bytes, 64));
    assert_non_null(run.workspace);
    assert_true(
        wf_product_tiles_go(v, &run, &(wf_product_operands){f->a, f->b, f->row, f->y, c, sums}));
    if (f->then & WF_PRODUCT_SUMS_B)
        check_sums(f, sums);
    free(sums);
    free(run.workspace);
    wf_pool_free(&run.pool);
    wf_arena_free(&arena);
    return c;
}

static void check(const factors *f)
{
    float *c = computed(f, 1), *split = computed(f, 3);

    assert_memory_equal(c, split, (size_t)(f->p.m * f->p.n) * sizeof *c);
    for (int64_t i = 0; i < f->p.m * f->p.n; i++) {
        double size, want = plain(f, i / f->p.n, i % f->p.n, &size);

        if (!(fabs((double)c[i] - want) <= 1e-6 * size + 1e-30))
            fail_msg("%d x %d x %d, transposed %d %d: element %d is %g, not %g", (int)f->p.m,
                     (int)f->p.n, (int)f->p.k, f->p.trans_a, f->p.trans_b, (int)i, (double)c[i],
                     want);
    }
    free(c);
    free(split);
}

static void check_many(wf_tiles_unit unit)
{
    wf_tiles_unit before = wf_tiles_used();
    dice d = {.key = {.seed = 7}};

    if (!wf_tiles_use(unit))
        skip_file();
    for (int i = 0; i < CASES; i++) {
        factors f = draw(&d);

        check(&f);
        drop(&f);
    }
    assert_true(wf_tiles_use(before));
}

static void products_are_those_of_the_rounded_factors(void **state)
{
    (void)state;
    check_many(WF_TILES_PAIRS);
}

static void so_are_those_of_widened_factors(void **state)
{
    (void)state;
    check_many(WF_TILES_WIDENED);
}

static void so_are_those_of_matrices(void **state)
{
    (void)state;
    if (wf_tiles_used() == WF_TILES_AMX) /* the file is not skipped for them */
        check_many(WF_TILES_AMX);
}

/* As where no element of a filter meets a pixel. */
static void no_products_leave_the_start(void **state)
{
    static const wf_tiles_unit units[] = {WF_TILES_PAIRS, WF_TILES_WIDENED, WF_TILES_AMX};
    wf_tiles_unit before = wf_tiles_used();
    float start[2 * WF_TILE_BLOCK], c[WF_TILE_BLOCK * WF_TILE_BLOCK];

    (void)state;
    if (!wf_tiles_there())
        skip_file();
    for (int i = 0; i < 2 * WF_TILE_BLOCK; i++)
        start[i] = (float)i;
    for (size_t u = 0; u < WF_COUNT(units); u++)
        for (int tiles = 1; tiles <= 2; tiles++)
            for (int row = 0; row <= 2; row++) { /* 2: of zeros */
                wf_tiles t = {.steps = 1,
                              .rows = tiles,
                              .columns = tiles,
                              .start = row == 2 ? NULL : start,
                              .start_row = row,
                              .c = c,
                              .c_row = WF_TILE_BLOCK};

                if (!wf_tiles_use(units[u]))
                    continue;
                memset(c, 0xff, sizeof c);
                wf_tiles_begin();
                wf_tiles_multiply(&t);
                wf_tiles_end();
                for (int i = 0; i < tiles * WF_TILE; i++)
                    for (int k = 0; k < tiles * WF_TILE; k++)
                        assert_true(c[i * WF_TILE_BLOCK + k] ==
                                    (row == 2 ? 0 : start[i * row + k]));
            }
    assert_true(wf_tiles_use(before));
}

static void what_is_not_a_number_stays_so(void **state)
{
    float a[64], b[64], *c;
    factors f = {.p = {.dtype = WF_F32, .m = 2, .n = 2, .k = 32, .alpha = 1},
                 .then = WF_PRODUCT_RELU};

    (void)state;
    if (!wf_tiles_there())
        skip_file();
    for (int i = 0; i < 64; i++)
        a[i] = b[i] = 1;
    a[0] = NAN;
    a[32] = -INFINITY;
    f.a = a;
    f.b = b;
    f.c = fresh(4);
    memset(f.c, 0, 4 * sizeof *f.c);
    c = computed(&f, 1);
    assert_true(isnan(c[0]) && isnan(c[1]));
    assert_true(c[2] == 0 && c[3] == 0);
    free(c);
    free(f.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_the_rounded_factors),
        cmocka_unit_test(so_are_those_of_widened_factors),
        cmocka_unit_test(so_are_those_of_matrices),
        cmocka_unit_test(no_products_leave_the_start),
        cmocka_unit_test(what_is_not_a_number_stays_so),
    };

    return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
