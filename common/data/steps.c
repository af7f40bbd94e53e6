/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/steps.c - the map steps: a table row each. They are run in steps_run.c. */
#include "common/data/steps.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/data/bag.h"
#include "common/data/resize.h"
#include "common/data/vocabulary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { CLASSES_MAX = 1 << 24, BOUNDARIES_MAX = 4096 };

static wf_stage *add_stage(wf_steps *s, wf_stage_kind kind, wf_dtype to)
{
    wf_stage *stage = &s->stages[s->n++]; /* wf_steps_plan has counted them */

    *stage = (wf_stage){.kind = kind, .from = s->dtype, .to = to};
    s->dtype = to;
    return stage;
}

/* After one_hot the elements are 0 and 1, written as any dtype at once; nothing else follows it. */
static wf_status cast_to(wf_steps *s, wf_dtype to)
{
    if (s->dtype == to)
        return WF_OK;
    if (wf_steps_classes(s)) {
        s->stages[s->n - 1].to = to;
        s->dtype = to;
    } else {
        add_stage(s, WF_STAGE_CAST, to);
    }
    return WF_OK;
}

static wf_status plan_cast(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    wf_dtype to = step->text ? wf_dtype_of(step->text) : WF_NONE;

    if (!wf_dtype_computes(to))
        return wf_fail(err, WF_USAGE, "such as float32 or int64", "cast: unknown dtype \"%s\"",
                       step->text ? step->text : "");
    return cast_to(s, to);
}

static wf_status plan_scale(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    if (!isfinite(step->number))
        return wf_fail(err, WF_USAGE, NULL, "scale: the factor %g is not finite", step->number);
    if (wf_steps_classes(s))
        return wf_fail(err, WF_USAGE, "scale before it, or leave it out", "scale: after one_hot");
    add_stage(s, WF_STAGE_SCALE, s->dtype == WF_F64 ? WF_F64 : WF_F32)->factor = step->number;
    return WF_OK;
}

static wf_status plan_reshape(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    char from[128], to[128];
    int64_t dims[WF_MAX_RANK], product = 1, have = 1;
    int free_axis = -1;

    if (step->n_ints >= WF_MAX_RANK)
        return wf_fail(err, WF_SHAPE, NULL, "reshape: %zu dimensions; a record has up to %d",
                       step->n_ints, WF_MAX_RANK - 1);
    for (size_t i = 0; i < step->n_ints; i++) {
        dims[i] = step->ints[i];
        if (dims[i] == -1 && free_axis < 0)
            free_axis = (int)i;
        else if (dims[i] < 1 || !wf_mul_i64(product, dims[i], &product))
            return wf_fail(err, WF_SHAPE, NULL, "reshape: %" PRId64 " cannot be a dimension",
                           step->ints[i]);
    }
    for (uint32_t i = 0; i < s->rank; i++)
        have *= s->dims[i]; /* bounded by the planning of what came before */
    if (free_axis >= 0 && have % product == 0)
        product *= dims[free_axis] = have / product;
    if (product != have)
        return wf_fail(err, WF_SHAPE, NULL,
                       "reshape: a record is %s, %" PRId64 " elements, and does not fit %s",
                       wf_dims_str(s->rank, s->dims, from, sizeof from), have,
                       wf_dims_str((uint32_t)step->n_ints, step->ints, to, sizeof to));
    memcpy(s->dims, dims, step->n_ints * sizeof dims[0]);
    s->rank = (uint32_t)step->n_ints;
    return WF_OK;
}

/* Images are resized while they are read: this holds them against the step. */
static wf_status plan_resize(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    char have[128];
    int64_t size[2];

    WF_TRY(wf_resize_size(step, size, err));
    if (s->rank < 2 || s->rank > 3 || s->dims[0] != size[0] || s->dims[1] != size[1])
        return wf_fail(err, WF_SHAPE, "leave it out",
                       "resize: a record is %s, which is no image [height, width, channels]",
                       wf_dims_str(s->rank, s->dims, have, sizeof have));
    return WF_OK;
}

static wf_status plan_one_hot(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    int64_t elems;

    if (!(step->number >= 1 && step->number <= CLASSES_MAX) || step->number != trunc(step->number))
        return wf_fail(err, WF_USAGE, NULL, "one_hot: %g classes; a whole number from 1 to %d",
                       step->number, CLASSES_MAX);
    if (!wf_dtype_is_int(s->dtype) && s->dtype != WF_BOOL)
        return wf_fail(err, WF_SHAPE, "cast it to int64 before",
                       "one_hot: takes integers, the field holds %s", wf_dtype_name(s->dtype));
    if (wf_steps_classes(s))
        return wf_fail(err, WF_USAGE, "leave one out", "one_hot: after one_hot");
    if (s->rank + 1 >= WF_MAX_RANK)
        return wf_fail(err, WF_SHAPE, NULL, "one_hot: the record would have %u dimensions",
                       s->rank + 1);
    add_stage(s, WF_STAGE_ONE_HOT, WF_F32)->classes = (int64_t)step->number;
    s->dims[s->rank++] = (int64_t)step->number;
    if (!wf_dims_elems(s->rank, s->dims, &elems) || elems > INT64_MAX / 8)
        return wf_fail(err, WF_SHAPE, NULL, "one_hot: the record would be too large");
    return WF_OK;
}

static wf_status add_plain(const char *name, wf_stage_kind kind, wf_dtype to, wf_steps *s,
                           wf_stage **out, wf_err *err)
{
    if (wf_steps_classes(s))
        return wf_fail(err, WF_USAGE, "put it before", "%s: after one_hot", name);
    *out = add_stage(s, kind, to);
    return WF_OK;
}

static wf_dtype float_of(wf_dtype dtype)
{
    return dtype == WF_F64 ? WF_F64 : WF_F32;
}

static wf_status plan_log1p(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    wf_stage *stage;

    (void)step;
    return add_plain("log1p", WF_STAGE_LOG1P, float_of(s->dtype), s, &stage, err);
}

static wf_status plan_fill(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    wf_stage *stage = NULL;

    if (!wf_dtype_is_float(s->dtype))
        return wf_fail(err, WF_SHAPE, "leave it out", "fill: %s has no missing numbers",
                       wf_dtype_name(s->dtype));
    WF_TRY(add_plain("fill", WF_STAGE_FILL, float_of(s->dtype), s, &stage, err));
    stage->factor = step->number;
    return WF_OK;
}

static wf_status plan_clip(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    wf_stage *stage = NULL;

    if (step->n_numbers < 1 || step->n_numbers > 2 ||
        !(step->numbers[0] <= step->numbers[step->n_numbers - 1]))
        return wf_fail(err, WF_USAGE, "write clip: 0, or clip: [0, 100]",
                       "clip: takes the least number, or the least and the most");
    WF_TRY(add_plain("clip", WF_STAGE_CLIP, float_of(s->dtype), s, &stage, err));
    stage->numbers = step->numbers;
    stage->n_numbers = step->n_numbers;
    return WF_OK;
}

static wf_status plan_hash(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    wf_stage *stage = NULL;

    bool separate = step->text && strcmp(step->text, "separate") == 0;

    if (!(step->number >= 0 && step->number <= CLASSES_MAX) || step->number != trunc(step->number))
        return wf_fail(err, WF_USAGE, NULL, "hash: %g bins; a whole number from 1 to %d, or none",
                       step->number, CLASSES_MAX);
    if (!wf_dtype_is_int(s->dtype) && s->dtype != WF_BOOL)
        return wf_fail(err, WF_SHAPE, "cast it to int64 before",
                       "hash: takes integers, the field holds %s", wf_dtype_name(s->dtype));
    WF_TRY(add_plain("hash", WF_STAGE_HASH, WF_I64, s, &stage, err));
    stage->classes = (int64_t)step->number;
    stage->shift = !separate ? 0 : stage->classes ? stage->classes : 1;
    if (stage->classes && stage->shift && s->elems > INT64_MAX / stage->classes)
        return wf_fail(err, WF_SHAPE, NULL, "hash: the record is too large for separate bins");
    return WF_OK;
}

/* Words are numbered as they are read: this holds their places against the step. */
static wf_status plan_vocabulary(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    bool counts = !step->text || !step->text[0];

    if (counts && (!(step->number >= 1 && step->number <= WF_LEARNT_WORDS) ||
                   step->number != trunc(step->number)))
        return wf_fail(err, WF_USAGE, NULL, "vocabulary: %g words; a whole number from 1 to %d",
                       step->number, WF_LEARNT_WORDS);
    if (s->dtype != WF_I64)
        return wf_fail(err, WF_SHAPE, "leave it out", "vocabulary: takes words, the field holds %s",
                       wf_dtype_name(s->dtype));
    s->words = "vocabulary";
    return WF_OK;
}

/* Tokens are numbered as they are read, too. */
static wf_status plan_text_vectorization(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    (void)step;
    if (s->dtype != WF_I64)
        return wf_fail(err, WF_SHAPE, "leave it out",
                       "text_vectorization: takes text, the field holds %s",
                       wf_dtype_name(s->dtype));
    s->words = "text_vectorization";
    return WF_OK;
}

static wf_status plan_bucketise(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    wf_stage *stage = NULL;

    if (step->n_numbers < 1 || step->n_numbers > BOUNDARIES_MAX)
        return wf_fail(err, WF_USAGE, NULL, "bucketise: %zu boundaries; 1 to %d", step->n_numbers,
                       BOUNDARIES_MAX);
    for (size_t i = 0; i < step->n_numbers; i++)
        if (!isfinite(step->numbers[i]) || (i && step->numbers[i] <= step->numbers[i - 1]))
            return wf_fail(err, WF_USAGE, "write them in ascending order",
                           "bucketise: boundary %zu is %g", i + 1, step->numbers[i]);
    WF_TRY(add_plain("bucketise", WF_STAGE_BUCKETISE, WF_I64, s, &stage, err));
    stage->numbers = step->numbers;
    stage->n_numbers = step->n_numbers;
    return WF_OK;
}

/* The columns of a row each by itself, and all numbers of a record of more axes together. */
static wf_status plan_standardise(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    int64_t period = s->rank == 1 ? s->dims[0] : 1;
    wf_stage *stage = NULL;

    if (period > WF_LEARNT_NUMBERS / 2)
        return wf_fail(err, WF_SHAPE, "write a reshape to two axes before it: one mean for all",
                       "standardise: a row of %" PRId64 " columns; at most %d have a mean each",
                       period, WF_LEARNT_NUMBERS / 2);
    if (step->n_numbers && step->n_numbers != 2 * (size_t)period)
        return wf_fail(err, WF_SHAPE, "give records of the shape that was trained on",
                       "standardise: %" PRId64 " columns, and %zu in the training data", period,
                       step->n_numbers / 2);
    WF_TRY(add_plain("standardise", WF_STAGE_STANDARDISE, float_of(s->dtype), s, &stage, err));
    stage->period = period;
    stage->n_numbers = 2 * (size_t)period;
    stage->numbers = step->n_numbers ? step->numbers : NULL;
    return WF_OK;
}

static wf_status plan_view(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    uint32_t same = 0;

    for (uint32_t i = 0; i < s->n; i++)
        if (s->stages[i].kind == WF_STAGE_STANDARDISE || s->stages[i].kind == WF_STAGE_ONE_HOT)
            return wf_fail(err, WF_USAGE, "put it before", "%s: after %s", step->type,
                           s->stages[i].kind == WF_STAGE_ONE_HOT ? "one_hot" : "standardise");
    for (uint32_t i = 0; i < s->n_views; i++)
        same += (s->views[i].kind == WF_VIEW_CROP) == (strcmp(step->type, "crop") == 0);
    WF_TRY(wf_view_plan(step, same, s->rank, s->dims, &s->views[s->n_views], err));
    s->n_views++;
    if (!wf_dims_elems(s->rank, s->dims, &s->elems) || s->elems > INT64_MAX / 32)
        return wf_fail(err, WF_SHAPE, NULL, "%s: the record would be too large", step->type);
    s->most_elems = WF_MAX(s->most_elems, s->elems);
    return WF_OK;
}

static const struct step_row {
    const char *type;
    wf_status (*plan)(const wf_map_step *step, wf_steps *s, wf_err *err);
} rows[] = {
    {"bucketise", plan_bucketise},
    {"cast", plan_cast},
    {"clip", plan_clip},
    {"crop", plan_view},
    {"fill", plan_fill},
    {"flip", plan_view},
    {"hash", plan_hash},
    {"log1p", plan_log1p},
    {"one_hot", plan_one_hot},
    {"reshape", plan_reshape},
    {"resize", plan_resize},
    {"scale", plan_scale},
    {"standardise", plan_standardise},
    {"text_vectorization", plan_text_vectorization},
    {"vocabulary", plan_vocabulary},
};

static const struct step_row *find_step(const char *type, const char **near)
{
    const char *names[WF_COUNT(rows)];

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        names[i] = rows[i].type;
        if (strcmp(names[i], type) == 0)
            return &rows[i];
    }
    *near = wf_nearest(type, names, WF_COUNT(rows));
    return NULL;
}

static wf_status plan_step(const wf_map_step *step, wf_steps *s, wf_err *err)
{
    const char *near = NULL;
    const struct step_row *row = find_step(step->type, &near);

    if (!row && near)
        return wf_fail(err, WF_USAGE, NULL, "unknown map step \"%s\"; did you mean \"%s\"?",
                       step->type, near);
    if (!row)
        return wf_fail(err, WF_USAGE, "docs/data.md lists them", "unknown map step \"%s\"",
                       step->type);
    return row->plan(step, s, err);
}

static bool reads_words(const wf_map_step *step)
{
    return strcmp(step->type, "vocabulary") == 0 || strcmp(step->type, "text_vectorization") == 0;
}

/* What fills up a bag of ids must come out as -1: steps that do arithmetic would change it. Weights
 * may go through any, as nobody reads those beside -1. */
static wf_status check_bag(const wf_field_spec *field, uint32_t i, wf_dtype dtype, wf_err *err)
{
    const wf_map_step *step = &field->steps[i];
    bool places = strcmp(step->type, "hash") == 0 || reads_words(step);

    if (!field->is_bag || !wf_dtype_is_int(dtype) || strcmp(step->type, "cast") == 0)
        return WF_OK;
    if (!places || i > 0)
        return wf_fail(
            err, WF_USAGE, "leave it out",
            "map of \"%s\": %s: a bag of ids takes hash, vocabulary or text_vectorization, as its "
            "first step",
            field->name, step->type);
    if (step->text && strcmp(step->text, "separate") == 0)
        return wf_fail(err, WF_USAGE, "leave out columns: separate",
                       "map of \"%s\": hash: the ids of a bag are no columns", field->name);
    return WF_OK;
}

wf_status wf_steps_plan(const wf_field_spec *field, wf_dtype dtype, uint32_t rank,
                        const int64_t dims[], wf_steps *out, wf_err *err)
{
    wf_steps s = {.in = dtype, .dtype = dtype, .rank = rank};

    if (field->n_steps > WF_DATA_MAX_STEPS)
        return wf_fail(err, WF_USAGE, NULL, "map of \"%s\" has %zu steps; at most %d", field->name,
                       field->n_steps, WF_DATA_MAX_STEPS);
    if (rank >= WF_MAX_RANK || !wf_dims_elems(rank, dims, &s.elems))
        return wf_fail(err, WF_SHAPE, NULL, "a record of \"%s\" has too many dimensions",
                       field->name);
    memcpy(s.dims, dims, rank * sizeof dims[0]);
    for (size_t i = 0; i < field->n_steps; i++) {
        uint32_t before = s.n;

        WF_TRY(check_bag(field, (uint32_t)i, s.dtype, err));
        if (i > 0 && strcmp(field->steps[i].type, "resize") == 0)
            return wf_fail(err, WF_USAGE, "put it first",
                           "map of \"%s\": resize: images are resized as they are read",
                           field->name);
        if (i > 0 && reads_words(&field->steps[i]))
            return wf_fail(err, WF_USAGE, "put it first",
                           "map of \"%s\": %s: words are numbered as they are read", field->name,
                           field->steps[i].type);
        WF_TRY(
            wf_err_wrap(err, plan_step(&field->steps[i], &s, err), "map of \"%s\"", field->name));
        if (s.n > before) {
            s.stages[before].step = (uint32_t)i;
            s.stages[before].keeps_none = field->is_bag;
        }
    }
    if (field->want != WF_NONE)
        WF_TRY(cast_to(&s, field->want));
    *out = s;
    return WF_OK;
}

bool wf_steps_read_words(const wf_field_spec *field)
{
    return field->n_steps && reads_words(&field->steps[0]);
}

int64_t wf_steps_classes(const wf_steps *s)
{
    const wf_stage *last = s->n ? &s->stages[s->n - 1] : NULL;

    return last && last->kind == WF_STAGE_ONE_HOT ? last->classes : 0;
}

int64_t wf_steps_made(const wf_steps *s)
{
    for (uint32_t i = s->n; i-- > 0;)
        if (s->stages[i].kind == WF_STAGE_HASH)
            return s->stages[i].classes && s->stages[i].shift ? s->stages[i].classes * s->elems
                                                              : s->stages[i].classes;
        else if (s->stages[i].kind == WF_STAGE_BUCKETISE)
            return (int64_t)s->stages[i].n_numbers + 1;
    return 0;
}

wf_steps wf_steps_before(const wf_steps *s, const wf_stage *stage)
{
    wf_steps before = *s;

    before.n = (uint32_t)(stage - s->stages);
    before.dtype = stage->from;
    return before;
}
