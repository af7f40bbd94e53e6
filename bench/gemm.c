/* SPDX-License-Identifier: Apache-2.0 */
/* bench/gemm.c - matrix products of the shapes that models have: GFLOP/s of our own, of those that
 * split float32 for tiles where there is AMX, of OpenBLAS and of oneDNN, beside what multiply-adds
 * in registers alone reach at the same time.
 *
 *     bench_gemm [THREADS [NAME]]
 *
 * The ways take turns and each figure is the better third of many short rounds: on a machine that
 * is shared, only ratios within one line mean something. Every thread has its part of C, as the
 * kernels cut it.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/kernels/cpu/device.h"
#include "common/kernels/cpu/product/gemm_avx512.h"
#include "common/kernels/cpu/product/product_tiles.h"
#include "common/kernels/cpu/product/tiles.h"
#include "common/kernels/pool.h"

#include <cblas.h>
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, MOST_THREADS = 64, TILE = 16 };
#define ROUND_FLOPS 1e8

typedef struct shape {
    const char *name;
    int64_t m, n, k;
    bool trans_a, trans_b;
} shape;

static const shape shapes[] = {
    {"gpt forward", 4096, 1152, 384, false, true},
    {"gpt forward", 4096, 384, 384, false, true},
    {"gpt forward", 4096, 1536, 384, false, true},
    {"gpt forward", 4096, 384, 1536, false, true},
    {"gpt forward", 4096, 65, 384, false, true},
    {"gpt data", 4096, 384, 1152, false, false},
    {"gpt data", 4096, 384, 1536, false, false},
    {"gpt data", 4096, 1536, 384, false, false},
    {"gpt data", 4096, 384, 65, false, false},
    {"gpt weights", 1152, 384, 4096, true, false},
    {"gpt weights", 384, 384, 4096, true, false},
    {"gpt weights", 1536, 384, 4096, true, false},
    {"gpt weights", 384, 1536, 4096, true, false},
    {"gpt weights", 65, 384, 4096, true, false},
    {"deepfm forward", 512, 400, 429, false, true},
    {"deepfm forward", 512, 400, 400, false, true},
    {"deepfm data", 512, 400, 400, false, false},
    {"deepfm weights", 400, 429, 512, true, false},
    {"deepfm weights", 400, 400, 512, true, false},
    {"deepfm forward", 4096, 400, 429, false, true},
    {"deepfm data", 4096, 400, 400, false, false},
    {"deepfm weights", 429, 400, 4096, true, false},
    {"lstm step", 64, 512, 128, false, true},
    {"lstm step back", 64, 128, 512, false, false},
    {"lstm weights", 512, 128, 12800, true, false},
    {"mlp forward", 32, 128, 784, false, true},
    {"mlp forward", 512, 128, 784, false, true},
    {"mlp weights", 128, 784, 32, true, false},
    {"mlp weights", 128, 784, 512, true, false},
    {"attention scores", 64, 256, 64, false, true},
    {"attention use", 64, 64, 256, false, false},
    {"attention dv", 256, 64, 64, true, false},
    {"small", 64, 64, 64, false, true},
    {"small", 128, 128, 64, false, true},
    {"small", 64, 128, 256, false, true},
    {"small", 32, 256, 256, false, true},
    {"small", 16, 512, 512, false, true},
    {"small", 128, 128, 128, false, true},
    {"small", 256, 256, 32, false, true},
};

typedef enum way { PEAK, OWN, SPLIT, OPENBLAS, ONEDNN, WAYS } way;

/* A thread's part of a product. */
typedef struct part {
    wf_gemm g;
    const float *a, *b;
    float *c;
    void *room;
} part;

typedef struct bench {
    part parts[MOST_THREADS];
    way which;
    int64_t times;
    double peak[MOST_THREADS]; /* GFLOP/s */
    wf_arena *arena;           /* of the way that splits; NULL: not on this processor */
    wf_product_tiles *split;
    wf_run run;
} bench;

#if defined(__x86_64__)
/* 16 chains of multiply-adds, enough for two units of latency 4. */
__attribute__((target("avx512f"))) static double peak(void)
{
    typedef float vector __attribute__((vector_size(64)));
    enum { CHAINS = 16, TIMES = 20000 };
    vector x[CHAINS] = {{0}}, y = {0};
    int64_t start = wf_now_ns();

    for (int i = 0; i < TIMES; i++)
#pragma GCC unroll 16
        for (int k = 0; k < CHAINS; k++)
            __asm__ volatile("vfmadd231ps %1, %1, %0" : "+v"(x[k]) : "v"(y));
    return 2.0 * CHAINS * TIMES * 16 / (double)(wf_now_ns() - start);
}
#else
static double peak(void)
{
    return 0;
}
#endif

static void *new_memory(size_t bytes)
{
    void *p = aligned_alloc(64, wf_align_up(bytes + 1, 64));

    if (!p)
        abort();
    memset(p, 0, bytes);
    return p;
}

static float *new_floats(int64_t n)
{
    float *x = new_memory((size_t)n * sizeof *x);

    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i * 7919 % 1000) / 1000 - 0.5f;
    return x;
}

static void range(void *arg, int64_t begin, int64_t end)
{
    bench *b = arg;

    for (int64_t i = begin; i < end; i++) {
        const part *p = &b->parts[i];
        const wf_gemm *g = &p->g;

        (void)wf_onednn_stay();
        if (b->which == PEAK)
            b->peak[i] = peak();
        for (int64_t k = 0; k < b->times && g->m > 0; k++)
            if (b->which == OWN)
                wf_gemm_go(g, p->a, p->b, NULL, p->c, p->room);
            else if (b->which == OPENBLAS)
                cblas_sgemm(CblasRowMajor, g->trans_a ? CblasTrans : CblasNoTrans,
                            g->trans_b ? CblasTrans : CblasNoTrans, (blasint)g->m, (blasint)g->n,
                            (blasint)g->k, 1, p->a, (blasint)g->lda, p->b, (blasint)g->ldb, 0, p->c,
                            (blasint)g->ldc);
            else if (b->which == ONEDNN)
                dnnl_sgemm(g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', g->m, g->n, g->k, 1,
                           p->a, g->lda, p->b, g->ldb, 0, p->c, g->ldc);
    }
}

/* Rows of C for each thread, or columns when there are more of them. */
static void lay_parts(bench *b, const shape *s, int64_t threads, const float *x, const float *y,
                      float *c)
{
    bool by_columns = s->n > s->m;
    int64_t extent = by_columns ? s->n : s->m, tiles = (extent + TILE - 1) / TILE;
    int64_t share = (tiles + threads - 1) / threads * TILE;

    for (int64_t i = 0; i < threads; i++) {
        int64_t from = WF_MIN(i * share, extent), n = WF_MIN(share, extent - from);
        part *p = &b->parts[i];

        *p = (part){.g = {.trans_a = s->trans_a,
                          .trans_b = s->trans_b,
                          .m = by_columns ? s->m : n,
                          .n = by_columns ? n : s->n,
                          .k = s->k,
                          .lda = s->trans_a ? s->m : s->k,
                          .ldb = s->trans_b ? s->k : s->n,
                          .ldc = s->n},
                    .a = x,
                    .b = y,
                    .c = c + (by_columns ? from : from * s->n)};
        if (n == 0)
            p->g.m = 0;
        else if (by_columns)
            p->b += s->trans_b ? from * s->k : from;
        else
            p->a += s->trans_a ? from : from * s->k;
        if (p->g.m == 0)
            continue;
        p->room = new_memory(wf_gemm_room(&p->g));
    }
}

static void lay_split(bench *b, const shape *s, wf_pool *pool)
{
    const wf_product p = {.dtype = WF_F32,
                          .trans_a = s->trans_a,
                          .trans_b = s->trans_b,
                          .m = s->m,
                          .n = s->n,
                          .k = s->k,
                          .alpha = 1};
    wf_prep prep = {.threads = wf_pool_threads(pool)};
    wf_err err;

    if (wf_tiles_used() != WF_TILES_AMX)
        return;
    b->arena = prep.arena = wf_arena_new(0);
    if (!prep.arena || wf_product_tiles_prepare(&prep, &p, 0, true, &b->split, &err))
        abort();
    b->run = (wf_run){.pool = pool, .workspace = new_memory(prep.workspace_bytes)};
}

static void drop_split(bench *b)
{
    free(b->run.workspace);
    wf_arena_free(&b->arena);
    b->run = (wf_run){0};
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(bench *b, const shape *s, wf_pool *pool, double *log_sum)
{
    int64_t threads = wf_pool_threads(pool);
    double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k, rate[WAYS][ROUNDS], best;
    float *x = new_floats(s->m * s->k), *y = new_floats(s->k * s->n), *c = new_floats(s->m * s->n);

    lay_parts(b, s, threads, x, y, c);
    lay_split(b, s, pool);
    for (int round = -1; round < ROUNDS; round++)
        for (int i = 0; i < WAYS; i++) {
            int64_t start;

            b->which = (way)((i + round + 1) % WAYS); /* none always follows the same one */
            b->times = b->which == PEAK ? 0 : 1 + (int64_t)(ROUND_FLOPS * (double)threads / flops);
            start = wf_now_ns();
            if (b->which == SPLIT)
                for (int64_t k = 0; k < b->times && b->arena; k++)
                    (void)wf_product_tiles_go(b->split, &b->run,
                                              &(wf_product_operands){.a = x, .b = y, .c = c});
            else
                wf_pool_for(pool, threads, 1, range, b);
            if (round < 0)
                continue;
            rate[b->which][round] = flops * (double)b->times / (double)(wf_now_ns() - start);
            for (int64_t k = 0; b->which == PEAK && k < threads; k++)
                rate[PEAK][round] = k ? rate[PEAK][round] + b->peak[k] : b->peak[k];
        }
    for (int i = 0; i < WAYS; i++)
        qsort(rate[i], ROUNDS, sizeof rate[i][0], ascending);
    best = fmax(rate[OPENBLAS][ROUNDS * 2 / 3], rate[ONEDNN][ROUNDS * 2 / 3]);
    *log_sum += log(rate[OWN][ROUNDS * 2 / 3] / best);
    printf("%-17s%5ld x %4ld x %5ld %c%c", s->name, (long)s->m, (long)s->n, (long)s->k,
           s->trans_a ? 'T' : 'N', s->trans_b ? 'T' : 'N');
    for (int i = 0; i < WAYS; i++)
        printf("%9.0f", i == SPLIT && !b->arena ? 0 : rate[i][ROUNDS * 2 / 3]);
    drop_split(b);
    printf("%8.2f\n", rate[OWN][ROUNDS * 2 / 3] / best);
    fflush(stdout);
    for (int64_t i = 0; i < threads; i++)
        free(b->parts[i].room);
    free(x);
    free(y);
    free(c);
}

int main(int argc, char **argv)
{
    static bench b;
    uint32_t threads = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2;
    wf_pool *pool = NULL;
    double log_sum = 0;
    int lines = 0;
    wf_err err;

    if (!wf_gemm_is_here() || threads > MOST_THREADS ||
        wf_pool_new(threads, &pool, &err) != WF_OK) {
        fprintf(stderr, "it wants AVX-512, and from 1 to %d threads\n", MOST_THREADS);
        return 1;
    }
    openblas_set_num_threads(1);
    printf("GFLOP/s, %u threads%37s%9s%9s%9s%9s%8s\n", threads, "registers", "ours", "split",
           "OpenBLAS", "oneDNN", "ratio");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (argc < 3 || strstr(shapes[i].name, argv[2])) {
            measure(&b, &shapes[i], pool, &log_sum);
            lines++;
        }
    printf("geometric mean of ours by the better library: %.3f\n", exp(log_sum / lines));
    wf_pool_free(&pool);
    return 0;
}
