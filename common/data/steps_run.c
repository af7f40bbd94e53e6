/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/steps_run.c - planned steps, run.
 *
 * A single stage runs straight from the record to the batch (MNIST's scale is one vectorised loop);
 * several go through tiles that stay in the first cache.
 */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/data/bag.h"
#include "common/data/convert.h"
#include "common/data/steps.h"

#include <math.h>
#include <string.h>

enum { TILE = 256 };

/* Of one of the two buffers between views. */
static size_t half_of(const wf_steps *s)
{
    return ((size_t)s->most_elems * wf_dtype_size(s->in) + 63) / 64 * 64;
}

size_t wf_steps_scratch(const wf_steps *s)
{
    return s->n_views ? 2 * half_of(s) : 0;
}

const void *wf_steps_view(const wf_steps *s, const wf_view_draw *draw, const void *in,
                          void *scratch)
{
    for (uint32_t i = 0; i < s->n_views; i++) {
        uint8_t *out = (uint8_t *)scratch + (i % 2) * half_of(s);

        wf_view_run(&s->views[i], draw, in, out, wf_dtype_size(s->in));
        in = out;
    }
    return in;
}

/* One element to `classes`; a label beyond them was refused at opening, and gives zeroes here. */
static void one_hot(const wf_stage *stage, const void *in, void *out, size_t n)
{
    size_t size = wf_dtype_size(stage->to), classes = (size_t)stage->classes;
    uint8_t *to = out;

    memset(to, 0, n * classes * size);
    for (size_t i = 0; i < n; i++, to += classes * size) {
        const uint8_t yes = 1;
        int64_t label;

        wf_convert(stage->from, (const uint8_t *)in + i * wf_dtype_size(stage->from), WF_I64,
                   &label, 1);
        if (label >= 0 && label < stage->classes)
            wf_convert(WF_U8, &yes, stage->to, to + (size_t)label * size, 1);
    }
}

static double clipped(const wf_stage *stage, double x)
{
    if (x < stage->numbers[0])
        return stage->numbers[0];
    return stage->n_numbers > 1 && x > stage->numbers[1] ? stage->numbers[1] : x;
}

static double changed(const wf_stage *stage, double x, size_t at)
{
    size_t k = stage->period ? at % (size_t)stage->period : 0;

    if (stage->kind == WF_STAGE_LOG1P)
        return log1p(x);
    if (stage->kind == WF_STAGE_FILL)
        return isnan(x) ? stage->factor : x;
    if (stage->kind == WF_STAGE_CLIP)
        return clipped(stage, x);
    return (x - stage->numbers[k]) / stage->numbers[(size_t)stage->period + k];
}

/* Elements from number `at` of their record on, one by one in f64. */
static void change(const wf_stage *stage, const void *in, void *out, size_t n, size_t at)
{
    size_t in_size = wf_dtype_size(stage->from), out_size = wf_dtype_size(stage->to);
    double x[TILE];

    for (size_t done = 0; done < n; done += TILE) {
        size_t now = WF_MIN(n - done, (size_t)TILE);

        wf_convert(stage->from, (const uint8_t *)in + done * in_size, WF_F64, x, now);
        for (size_t i = 0; i < now; i++)
            x[i] = changed(stage, x[i], at + done + i);
        wf_convert(WF_F64, x, stage->to, (uint8_t *)out + done * out_size, now);
    }
}

/* Ids in place; what is none of them becomes -1. */
static void hash_bag(const wf_stage *stage, int64_t ids[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t hash = wf_rng_fold(0, (uint64_t)ids[i]);

        if (ids[i] == WF_BAG_NO_WORD)
            ids[i] = -1;
        else
            ids[i] = (int64_t)(stage->classes ? hash % (uint64_t)stage->classes : hash >> 1);
    }
}

/* Elements from number `at` of their record on. */
static void hash(const wf_stage *stage, const void *in, int64_t *out, size_t n, size_t at)
{
    wf_convert(stage->from, in, WF_I64, out, n);
    if (stage->keeps_none) {
        hash_bag(stage, out, n);
        return;
    }
    for (size_t i = 0; stage->classes == 0 && i < n; i++) {
        uint64_t column = (uint64_t)stage->shift * (at + i);

        out[i] = (int64_t)(wf_rng_fold(column, (uint64_t)out[i]) >> 1);
    }
    for (size_t i = 0; stage->classes && i < n; i++)
        out[i] = (int64_t)(wf_rng_fold(0, (uint64_t)out[i]) % (uint64_t)stage->classes) +
                 stage->shift * (int64_t)(at + i);
}

/* How many boundaries are not above x: NaN is above all, as numpy.digitize has it. A boundary is
 * what the dtype of x makes of it: 0.7 of float32 is not below 0.7. */
static int64_t bucket_of(const wf_stage *stage, double x)
{
    size_t low = 0, high = stage->n_numbers;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        double b = stage->numbers[middle];

        if (stage->from != WF_F64 && wf_dtype_is_float(stage->from))
            b = (double)(float)b;
        if (x < b)
            high = middle;
        else
            low = middle + 1;
    }
    return (int64_t)low;
}

static void bucketise(const wf_stage *stage, const void *in, int64_t *out, size_t n)
{
    size_t size = wf_dtype_size(stage->from);
    double x[TILE];

    for (size_t done = 0; done < n; done += TILE) {
        size_t now = WF_MIN(n - done, (size_t)TILE);

        wf_convert(stage->from, (const uint8_t *)in + done * size, WF_F64, x, now);
        for (size_t i = 0; i < now; i++)
            out[done + i] = bucket_of(stage, x[i]);
    }
}

static void run_stage(const wf_stage *stage, const void *in, void *out, size_t n, size_t at)
{
    if (stage->kind == WF_STAGE_CAST)
        wf_convert(stage->from, in, stage->to, out, n);
    else if (stage->kind == WF_STAGE_SCALE)
        wf_scale(stage->from, in, stage->factor, out, n);
    else if (stage->kind == WF_STAGE_ONE_HOT)
        one_hot(stage, in, out, n);
    else if (stage->kind == WF_STAGE_HASH)
        hash(stage, in, out, n, at);
    else if (stage->kind == WF_STAGE_BUCKETISE)
        bucketise(stage, in, out, n);
    else
        change(stage, in, out, n, at);
}

void wf_steps_run(const wf_steps *s, const void *in, void *out)
{
    double tiles[2][TILE]; /* the widest dtype */
    size_t in_size = wf_dtype_size(s->in), out_size = wf_dtype_size(s->dtype);
    size_t n = (size_t)s->elems, widen = (size_t)WF_MAX(wf_steps_classes(s), 1);

    if (s->n == 0)
        memcpy(out, in, n * in_size);
    else if (s->n == 1)
        run_stage(&s->stages[0], in, out, n, 0);
    else
        for (size_t at = 0; at < n; at += TILE) {
            size_t now = WF_MIN(n - at, (size_t)TILE);
            const void *from = (const uint8_t *)in + at * in_size;

            for (uint32_t i = 0; i + 1 < s->n; i++) {
                run_stage(&s->stages[i], from, tiles[i % 2], now, at);
                from = tiles[i % 2];
            }
            run_stage(&s->stages[s->n - 1], from, (uint8_t *)out + at * widen * out_size, now, at);
        }
}
