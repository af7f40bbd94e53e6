/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/standard.c - mean and deviation of the records, for the step `standardise`.
 *
 * Welford's sums (1962, "Note on a method for calculating corrected sums of squares and products"),
 * in f64 and in the order of the records: every worker, and every run, comes to the same bits.
 */
#include "common/base/size.h"
#include "common/data/convert.h"
#include "common/data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { CHUNK = 1 << 20 /* bytes of records that are read at a time */ };

typedef struct sums {
    double *mean, *squares; /* [period] */
    int64_t period;
    uint64_t n; /* of each */
} sums;

/* Elements of whole records; those `period` apart belong together. */
static void add(sums *s, const double x[], size_t n)
{
    for (size_t i = 0; i < n; i += (size_t)s->period) {
        s->n++;
        for (int64_t k = 0; k < s->period; k++) {
            double gap = x[i + (size_t)k] - s->mean[k];

            s->mean[k] += gap / (double)s->n;
            s->squares[k] += gap * (x[i + (size_t)k] - s->mean[k]);
        }
    }
}

/* All records as they are before the step. */
static wf_status add_records(const wf_dataset *d, uint32_t field, const wf_steps *before, sums *s,
                             wf_err *err)
{
    size_t elems = (size_t)before->elems, size = wf_dtype_size(before->dtype);
    size_t each = WF_MAX(CHUNK / (elems * 8 + 1), (size_t)1);
    void *raw = malloc(each * elems * size);
    double *x = malloc(each * elems * sizeof *x);
    wf_status rc = raw && x ? WF_OK : wf_fail_nomem(err, each * elems * 8);

    for (uint64_t at = 0; rc == WF_OK && at < d->n_records; at += each) {
        size_t now = (size_t)WF_MIN(d->n_records - at, (uint64_t)each);

        rc = wf_dataset_read(d, field, before, at, now, raw, err);
        if (rc == WF_OK) {
            wf_convert(before->dtype, raw, WF_F64, x, now * elems);
            add(s, x, now * elems);
        }
    }
    free(raw);
    free(x);
    return rc;
}

/* The deviations, from the squares. A column of one value stays 0 apart from its mean. */
static wf_status conclude(const wf_field *f, sums *s, wf_err *err)
{
    for (int64_t k = 0; k < s->period; k++) {
        double deviation = sqrt(s->squares[k] / (double)s->n);

        if (!isfinite(s->mean[k]) || !isfinite(deviation))
            return wf_fail(err, WF_INVALID, "put fill in front of it, or mend the data",
                           "%s: standardise: column %" PRId64 " of \"%s\" holds NaN or infinity",
                           f->info.path, k, f->info.name);
        s->squares[k] = deviation > 0 ? deviation : 1;
    }
    return WF_OK;
}

static wf_status work_out(wf_dataset *d, uint32_t field, wf_stage *stage, wf_err *err)
{
    wf_steps before = wf_steps_before(&d->fields[field].steps, stage);
    size_t bytes = stage->n_numbers * sizeof(double);
    double *numbers = wf_arena_alloc(d->arena, bytes);
    sums s = {.mean = numbers, .period = stage->period};

    if (!numbers)
        return wf_fail_nomem(err, bytes);
    memset(numbers, 0, bytes);
    s.squares = numbers + stage->period;
    WF_TRY(add_records(d, field, &before, &s, err));
    WF_TRY(conclude(&d->fields[field], &s, err));
    stage->numbers = numbers;
    return WF_OK;
}

/* Copies what was given, by the spec or by the same stage of another data set. */
static wf_status take_over(wf_dataset *d, const double *from, wf_stage *to, wf_err *err)
{
    size_t bytes = to->n_numbers * sizeof(double);

    to->numbers = wf_arena_memdup(d->arena, from, bytes);
    return to->numbers ? WF_OK : wf_fail_nomem(err, bytes);
}

static wf_status settle(wf_dataset *d, uint32_t field, uint32_t i, const wf_dataset *from,
                        wf_err *err)
{
    wf_stage *stage = &d->fields[field].steps.stages[i];
    int at = from ? wf_dataset_find(from, d->fields[field].info.name) : -1;
    const wf_stage *other = at < 0 ? NULL : &from->fields[at].steps.stages[i];

    if (stage->numbers)
        return take_over(d, stage->numbers, stage, err);
    if (!other)
        return work_out(d, field, stage, err);
    if (other->kind != stage->kind || other->period != stage->period)
        return wf_fail(err, WF_SHAPE, "evaluate on records of the shape that is trained on",
                       "standardise: %" PRId64 " columns, and %" PRId64 " in the training data",
                       stage->period, other->period);
    return take_over(d, other->numbers, stage, err);
}

wf_status wf_dataset_settle(wf_dataset *d, const wf_dataset *from, wf_err *err)
{
    for (uint32_t f = 0; f < d->n_fields; f++)
        for (uint32_t i = 0; i < d->fields[f].steps.n; i++) {
            const wf_stage *stage = &d->fields[f].steps.stages[i];

            if (!stage->n_numbers)
                continue;
            WF_TRY(settle(d, f, i, from, err));
            d->digest =
                XXH3_64bits_withSeed(stage->numbers, stage->n_numbers * sizeof(double), d->digest);
        }
    return WF_OK;
}
