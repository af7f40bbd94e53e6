/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/gemm.c - products of all forms against a plain sum in double, over random shapes and
 * those around the edges of tiles and blocks; and the same bits from any number of threads.
 */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/kernels/cpu/product/gemm_avx512.h"
#include "common/kernels/cpu/product/product.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct shape {
    int64_t m, n, k;
} shape;

typedef struct arrays {
    wf_gemm g;
    float *a, *b, *c, *bias, *y, *old; /* old: C before */
    size_t c_floats;
} arrays;

static float *new_floats(size_t n, uint64_t stream)
{
    float *x = malloc((n + 1) * sizeof *x);

    assert_non_null(x);
    wf_rng_fill_f32((wf_rng_key){5, stream}, 0, x, n);
    for (size_t i = 0; i < n; i++)
        x[i] -= 0.5f;
    return x;
}

/* The last row ends where it ends: what reads past it is found by the sanitizers. */
static size_t stored(int64_t rows, int64_t columns, int64_t ld)
{
    return rows > 0 && columns > 0 ? (size_t)((rows - 1) * ld + columns) : 0;
}

static arrays make(wf_gemm g)
{
    arrays x = {.g = g};

    x.a = new_floats(g.trans_a ? stored(g.k, g.m, g.lda) : stored(g.m, g.k, g.lda), 1);
    x.b = new_floats(g.trans_b ? stored(g.n, g.k, g.ldb) : stored(g.k, g.n, g.ldb), 2);
    x.c_floats = stored(g.m, g.n, g.ldc);
    x.c = new_floats(x.c_floats, 3);
    x.old = new_floats(x.c_floats, 3);
    x.bias = new_floats((size_t)g.n, 4);
    x.y = new_floats(x.c_floats, 5);
    return x;
}

static void drop(arrays *x)
{
    free(x->a);
    free(x->b);
    free(x->c);
    free(x->old);
    free(x->bias);
    free(x->y);
}

/* y: of a ReluGrad, or NULL. */
static void check(const arrays *x, const float *bias, const float *y)
{
    const wf_gemm *g = &x->g;

    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = g->add ? (double)x->old[i * g->ldc + j] : 0, size = fabs(sum), off;

            sum += bias ? (double)bias[j] : 0;
            size += bias ? fabs((double)bias[j]) : 0;
            for (int64_t p = 0; p < g->k; p++) {
                double product = (double)x->a[g->trans_a ? p * g->lda + i : i * g->lda + p] *
                                 (double)x->b[g->trans_b ? j * g->ldb + p : p * g->ldb + j];

                sum += product;
                size += fabs(product);
            }
            if ((g->relu && sum < 0) || (y && y[i * g->ldc + j] <= 0))
                sum = size = 0;
            off = fabs((double)x->c[i * g->ldc + j] - sum);
            if (!(off <= (double)(g->k + 2) * (double)FLT_EPSILON * size))
                fail_msg("m %ld n %ld k %ld trans %d %d at [%ld, %ld]: off by %g", (long)g->m,
                         (long)g->n, (long)g->k, g->trans_a, g->trans_b, (long)i, (long)j, off);
        }
    /* What lies between the rows of C is nobody's. */
    for (int64_t i = 0; g->n > 0 && i + 1 < g->m; i++)
        assert_memory_equal(x->c + i * g->ldc + g->n, x->old + i * g->ldc + g->n,
                            (size_t)(g->ldc - g->n) * sizeof *x->c);
}

static void *new_room(size_t bytes)
{
    void *p = aligned_alloc(64, wf_align_up(bytes + 1, 64));

    assert_non_null(p);
    return p;
}

static void multiply(wf_gemm g, bool with_bias, bool packed)
{
    arrays x = make(g);
    const float *bias = with_bias ? x.bias : NULL;
    void *room = new_room(packed ? wf_gemm_packed_room(&g) : wf_gemm_room(&g));

    if (packed) {
        float *b = new_room(wf_gemm_packed_floats(g.n, g.k) * sizeof *b);

        wf_gemm_pack(&g, x.b, b);
        wf_gemm_go_packed(&g, x.a, b, bias, x.c, room);
        free(b);
    } else {
        wf_gemm_go(&g, x.a, x.b, bias, x.c, room);
    }
    check(&x, bias, NULL);
    free(room);
    drop(&x);
}

/* Form `bits` of a shape, in rows that lie `more` apart. */
static void one_form(shape s, uint32_t bits, int64_t more)
{
    wf_gemm g = {.trans_a = bits & 1,
                 .trans_b = bits & 2,
                 .add = bits & 4,
                 .relu = bits & 8,
                 .m = s.m,
                 .n = s.n,
                 .k = s.k};

    g.lda = (g.trans_a ? s.m : s.k) + more;
    g.ldb = (g.trans_b ? s.k : s.n) + more;
    g.ldc = s.n + more;
    multiply(g, bits & 16, bits & 32);
}

static void edges_of_tiles_and_blocks(void **state)
{
    static const int64_t m[] = {0, 1, 2, 13, 14, 15, 29, 141},
                         n[] = {0, 1, 15, 16, 17, 31, 33, 130}, k[] = {0, 1, 15, 17, 100};
    uint32_t bits = 0;

    (void)state;
    if (!wf_gemm_is_here())
        return;
    for (size_t a = 0; a < sizeof m / sizeof *m; a++)
        for (size_t b = 0; b < sizeof n / sizeof *n; b++)
            for (size_t c = 0; c < sizeof k / sizeof *k; c++)
                for (uint32_t i = 0; i < 8; i++, bits = (bits + 11) % 64)
                    one_form((shape){m[a], n[b], k[c]}, bits, i % 3);
    for (uint32_t i = 0; i < 64; i++) {
        one_form((shape){20, 18, 1030}, i, 1);   /* blocks of k */
        one_form((shape){150, 130, 40}, i, 984); /* rows that meet in few sets: 1024 apart */
    }
    for (uint32_t i = 0; i < 64; i += 3)
        one_form((shape){16, 1300, 20}, i, 0); /* blocks of columns */
}

static void random_shapes(void **state)
{
    wf_rng_key key = {17, 1};

    (void)state;
    if (!wf_gemm_is_here())
        return;
    for (uint64_t i = 0; i < 3000; i += 6)
        one_form((shape){(int64_t)wf_rng_below(key, i, 100), (int64_t)wf_rng_below(key, i + 1, 100),
                         (int64_t)wf_rng_below(key, i + 2, 100)},
                 (uint32_t)wf_rng_below(key, i + 3, 64), (int64_t)wf_rng_below(key, i + 4, 20));
}

/* As kernels call it. */
static void product(wf_product p, uint32_t then, uint32_t threads, const arrays *x, float *c)
{
    wf_arena *arena = wf_arena_new(0);
    wf_pool *pool = NULL;
    wf_product_way *way = NULL;
    wf_err err;
    wf_prep prep = {.threads = threads};
    wf_run run = {0};

    assert_non_null(arena);
    assert_int_equal(wf_pool_new(threads, &pool, &err), WF_OK);
    prep.arena = arena;
    assert_int_equal(wf_product_prepare(&prep, &p, then, &way, &err), WF_OK);
    run.pool = pool;
    run.workspace = new_room(prep.workspace_bytes);
    memcpy(c, x->old, x->c_floats * sizeof *c);
    wf_product_go(way, &run,
                  &(wf_product_operands){.a = x->a,
                                         .b = x->b,
                                         .bias = then & WF_PRODUCT_BIAS ? x->bias : NULL,
                                         .y = then & WF_PRODUCT_RELU_GRAD ? x->y : NULL,
                                         .c = c});
    free(run.workspace);
    wf_pool_free(&pool);
    wf_arena_free(&arena);
}

static void threads_do_not_change_bits(void **state)
{
    static const shape shapes[] = {{200, 100, 300}, {70, 400, 600}, {1000, 33, 40},  {5, 900, 700},
                                   {300, 2, 500},   {31, 64, 8},    {128, 128, 128}, {1500, 1, 403},
                                   {7, 1, 20},      {900, 301, 1},  {1, 1, 50},      {40, 1, 1},
                                   {128, 128, 784}, {20, 30, 1600}, {16, 40, 5000}};

    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (uint32_t bits = 0; bits < 32; bits++) {
            shape z = shapes[s];
            bool bias = bits & 16 && !(bits & 4), grad = bits % 5 == 0;
            wf_product p = {.dtype = WF_F32,
                            .trans_a = bits & 1,
                            .trans_b = bits & 2,
                            .m = z.m,
                            .n = z.n,
                            .k = z.k,
                            .alpha = 1,
                            .beta = bits & 4 ? 1 : 0};
            uint32_t then = (bias ? WF_PRODUCT_BIAS : 0) | (bits & 8 ? WF_PRODUCT_RELU : 0) |
                            (grad ? WF_PRODUCT_RELU_GRAD : 0);
            arrays x = make((wf_gemm){.trans_a = p.trans_a,
                                      .trans_b = p.trans_b,
                                      .m = z.m,
                                      .n = z.n,
                                      .k = z.k,
                                      .lda = p.trans_a ? z.m : z.k,
                                      .ldb = p.trans_b ? z.k : z.n,
                                      .ldc = z.n,
                                      .add = p.beta == 1,
                                      .relu = bits & 8});
            float *other = new_floats(x.c_floats, 9);

            product(p, then, 1, &x, x.c);
            check(&x, bias ? x.bias : NULL, grad ? x.y : NULL);
            for (uint32_t threads = 2; wf_gemm_is_here() && threads <= 5; threads++) {
                product(p, then, threads, &x, other);
                if (WF_MIN(z.m, z.n) >= 4 || z.n == 1 ||
                    z.k == 1) /* of a few vectors OpenBLAS does it */
                    assert_memory_equal(other, x.c, x.c_floats * sizeof *other);
            }
            free(other);
            drop(&x);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_of_tiles_and_blocks),
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(threads_do_not_change_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
