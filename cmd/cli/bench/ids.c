/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/ids.c */
#include "cmd/cli/bench/ids.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/base/unique.h"

#include <math.h>
#include <stdlib.h>

const wf_bench_draw wf_bench_draws[] = {{"uniform", 0}, {"zipf", 1.05}, {0}};

/* Zipf's distribution by rejection-inversion (Hoermann and Derflinger 1996, "Rejection-inversion to
 * generate variates from monotone discrete distributions"): x is drawn by the inverse of the
 * integral of x^-exponent, and rounded. */
typedef struct zipf {
    double exponent, begin, end; /* of the integral, from 1.5 with one rank more, to n + 0.5 */
    double near;                 /* a rank that is not further from x is taken at once */
} zipf;

static double integral(const zipf *z, double x)
{
    return expm1((1 - z->exponent) * log(x)) / (1 - z->exponent);
}

static double inverse(const zipf *z, double y)
{
    return exp(log1p((1 - z->exponent) * y) / (1 - z->exponent));
}

static double weight(const zipf *z, double rank)
{
    return exp(-z->exponent * log(rank));
}

static zipf zipf_of(double exponent, uint64_t n)
{
    zipf z = {.exponent = exponent};

    z.begin = integral(&z, 1.5) - 1;
    z.end = integral(&z, (double)n + 0.5);
    z.near = 2 - inverse(&z, integral(&z, 2.5) - weight(&z, 2));
    return z;
}

/* A rank from 0 to n - 1; takes numbers of the key from *counter on. */
static uint64_t draw_rank(const zipf *z, uint64_t n, wf_rng_key key, uint64_t *counter)
{
    for (;;) {
        double y = z->begin + wf_rng_f64(key, (*counter)++) * (z->end - z->begin);
        double x = inverse(z, y), rank = fmin(fmax(floor(x + 0.5), 1), (double)n);

        if (rank - x <= z->near || y >= integral(z, rank + 0.5) - weight(z, rank))
            return (uint64_t)rank - 1;
    }
}

/* The ranks in another order: multiplied by a prime above their number, modulo it. */
static uint64_t row_of_rank(uint64_t rank, uint64_t rows)
{
    static const uint64_t prime = 2654435761;

    return rank * prime % rows;
}

static void draw_batch(const wf_bench_draw *draw, uint64_t rows, wf_rng_key key, uint64_t *counter,
                       uint64_t ids[], size_t n)
{
    zipf z = zipf_of(draw->exponent, rows);

    for (size_t i = 0; i < n; i++)
        ids[i] = draw->exponent == 0 ? wf_rng_below(key, (*counter)++, rows)
                                     : row_of_rank(draw_rank(&z, rows, key, counter), rows);
}

static wf_status make_all(const wf_bench_draw *draw, uint64_t rows, size_t drawn, uint64_t seed,
                          wf_bench_ids *out, int64_t places[], wf_unique *scratch, wf_err *err)
{
    wf_rng_key key = {seed, wf_rng_fold_str(0, "bench ids")};
    uint64_t counter = 0;

    for (size_t i = 0; i < out->n; i++) {
        uint64_t *ids = out->ids + out->first[i];
        size_t distinct;

        draw_batch(draw, rows, key, &counter, ids, drawn);
        WF_TRY(wf_unique_find(scratch, ids, drawn, ids, &distinct, places, err));
        out->first[i + 1] = out->first[i] + distinct;
    }
    return WF_OK;
}

wf_status wf_bench_ids_make(const wf_bench_draw *draw, uint64_t rows, size_t drawn, size_t n,
                            uint64_t seed, wf_bench_ids *out, wf_err *err)
{
    int64_t *places = calloc(drawn, sizeof *places);
    wf_unique scratch = {0};
    wf_status rc;

    *out = (wf_bench_ids){.ids = calloc(drawn, n * sizeof *out->ids),
                          .first = calloc(n + 1, sizeof *out->first),
                          .n = n};
    rc = places && out->ids && out->first
             ? make_all(draw, rows, drawn, seed, out, places, &scratch, err)
             : wf_fail_nomem(err, drawn * n * sizeof *out->ids);
    wf_unique_close(&scratch);
    free(places);
    return rc;
}

void wf_bench_ids_close(wf_bench_ids *b)
{
    free(b->ids);
    free(b->first);
    *b = (wf_bench_ids){0};
}

const uint64_t *wf_bench_ids_of(const wf_bench_ids *b, uint64_t at, size_t *n)
{
    size_t batch = (size_t)(at % b->n);

    *n = b->first[batch + 1] - b->first[batch];
    return b->ids + b->first[batch];
}
