/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/libsvm.c - lines of a label and the features that are not 0 (LIBSVM, SVMlight). A
 * record has the columns "label", a number, and either "features", a row in which the features that
 * a line does not name are 0, or two bags as the line has them: "indices", from 0, and "values". */
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/data/bag.h"
#include "common/data/format.h"
#include "common/data/libsvm_record.h"
#include "common/data/steps.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MOST_WHOLE = 9007199254740992.0; /* up to it doubles hold all whole numbers */

typedef enum column { LABEL, FEATURES, INDICES, VALUES } column;
static const char *const columns[] = {"label", "features", "indices", "values"};

typedef struct field {
    wf_dtype dtype;
    column column;
    bool signs; /* labels -1 and 1 count as 0 and 1 */
    wf_bag bag; /* of indices and values */
} field;

typedef struct plan {
    uint64_t features; /* 0: not known yet, or of bags not bounded */
    uint64_t longest;  /* pairs of a line, where it was asked for */
    bool zero_based;
    bool has_both; /* indices and values: each field reads its part, and not the other's */
    field fields[WF_DATA_MAX_FIELDS];
    size_t n_fields;
    atomic_uint_fast64_t cut; /* bags */
} plan;

/* ---- planning ---- */

static wf_status find_largest(void *opaque, const char *text, size_t n, wf_err *err)
{
    plan *p = opaque;
    wf_libsvm_record r;
    uint64_t feature;
    double value;
    uint64_t pairs = 0;
    bool any = true;

    WF_TRY(wf_libsvm_begin(&r, text, n, p->zero_based, &value, err));
    for (; any; pairs += any) {
        WF_TRY(wf_libsvm_next(&r, &any, &feature, &value, err));
        if (any && feature >= p->features)
            p->features = feature + 1;
    }
    p->longest = WF_MAX(p->longest, pairs);
    return WF_OK;
}

static bool has_column(const plan *p, column c)
{
    for (size_t i = 0; i < p->n_fields; i++)
        if (p->fields[i].column == c)
            return true;
    return false;
}

static wf_status plan_features(plan *p, const wf_dataset_spec *spec, wf_stock *stock, wf_err *err)
{
    bool row = has_column(p, FEATURES), open = false; /* a bag whose length is not known */

    p->has_both = has_column(p, INDICES) && has_column(p, VALUES);
    p->features = spec->features;
    for (size_t i = 0; i < p->n_fields; i++)
        open |= p->fields[i].column >= INDICES && p->fields[i].bag.most == 0;
    if ((row && p->features == 0) || open)
        WF_TRY(wf_stock_each(stock, find_largest, p, err));
    if (!row)
        p->features = spec->features;
    for (size_t i = 0; i < p->n_fields; i++)
        if (p->fields[i].column >= INDICES && p->fields[i].bag.most == 0)
            p->fields[i].bag.most =
                WF_MIN(WF_MAX(p->longest, UINT64_C(1)), (uint64_t)WF_DATA_MOST_OF_BAG);
    if (!row || (p->features > 0 && p->features <= WF_DATA_MOST_FEATURES))
        return WF_OK;
    return wf_fail(err, WF_INVALID, "a row of a record has a number for each",
                   "%s: %" PRIu64 " features; 1 to %d", spec->files[0], p->features,
                   WF_DATA_MOST_FEATURES);
}

/* Whether the first step takes whole numbers only. */
static bool is_counted(const wf_field_spec *spec)
{
    return spec->n_steps && (strcmp(spec->steps[0].type, "one_hot") == 0 ||
                             strcmp(spec->steps[0].type, "hash") == 0);
}

static wf_status find_column(const wf_field_spec *spec, column *out, wf_err *err)
{
    const char *name = spec->columns[0];
    char hint[WF_NEAREST_HINT];

    for (size_t i = 0; i < WF_COUNT(columns) && spec->n_columns == 1; i++)
        if (strcmp(name, columns[i]) == 0) {
            *out = (column)i;
            return WF_OK;
        }
    return wf_fail(err, WF_USAGE, wf_nearest_hint(name, columns, WF_COUNT(columns), NULL, hint),
                   "field \"%.64s\": libsvm has the columns label, features, indices and values, "
                   "not \"%.64s\"",
                   spec->name, name);
}

static wf_status plan_field(plan *p, const wf_dataset_spec *set, const wf_field_spec *spec,
                            field *f, wf_err *err)
{
    wf_field_spec bag = *spec;

    WF_TRY(find_column(spec, &f->column, err));
    if (wf_steps_read_words(spec))
        return wf_fail(err, WF_USAGE, "leave it out, or give a csv file",
                       "map of \"%.64s\": %s: libsvm files have no words", spec->name,
                       spec->steps[0].type);
    f->signs = f->column == LABEL && (spec->classes == 2 || spec->is_share);
    if (f->column >= INDICES) {
        bag.is_bag = true;
        f->dtype = f->column == INDICES ? WF_I64 : spec->want == WF_F64 ? WF_F64 : WF_F32;
        f->bag = wf_bag_of(&bag, set, f->dtype, &p->cut);
        return f->bag.most <= WF_DATA_MOST_OF_BAG
                   ? WF_OK
                   : wf_fail(err, WF_SHAPE, NULL,
                             "field \"%.64s\": bags of %" PRIu64 " values; at most %d", spec->name,
                             f->bag.most, WF_DATA_MOST_OF_BAG);
    }
    if ((spec->want != WF_NONE && !wf_dtype_is_float(spec->want)) || is_counted(spec))
        f->dtype = WF_I64;
    else
        f->dtype =
            spec->want == WF_F64 || (spec->want == WF_NONE && f->column == LABEL) ? WF_F64 : WF_F32;
    return WF_OK;
}

static wf_status libsvm_plan(const wf_dataset_spec *spec, wf_stock *stock, void **out, wf_err *err)
{
    plan *p = calloc(1, sizeof *p);
    wf_status rc = p ? WF_OK : wf_fail_nomem(err, sizeof *p);

    if (rc == WF_OK)
        p->zero_based = spec->zero_based;
    for (size_t i = 0; rc == WF_OK && i < spec->n_fields; i++)
        rc = plan_field(p, spec, &spec->fields[i], &p->fields[p->n_fields++], err);
    if (rc == WF_OK)
        rc = plan_features(p, spec, stock, err);
    if (rc == WF_OK)
        *out = p;
    else
        free(p);
    return rc;
}

static wf_text_shape libsvm_shape(const void *opaque, uint32_t field_index)
{
    const plan *p = opaque;
    const field *f = &p->fields[field_index];

    if (f->column >= INDICES)
        return (wf_text_shape){f->dtype, true, (int64_t)f->bag.most, true};
    return (wf_text_shape){f->dtype, f->column == FEATURES,
                           f->column == LABEL ? 1 : (int64_t)p->features};
}

static uint64_t libsvm_cut(const void *opaque)
{
    return atomic_load_explicit(&((const plan *)opaque)->cut, memory_order_relaxed);
}

/* ---- records ---- */

static wf_status put(wf_dtype dtype, void *out, uint64_t at, double value, wf_err *err)
{
    if (dtype == WF_F32)
        ((float *)out)[at] = (float)value;
    else if (dtype == WF_F64)
        ((double *)out)[at] = value;
    else if (value == trunc(value) && fabs(value) <= MOST_WHOLE)
        ((int64_t *)out)[at] = (int64_t)value;
    else
        return wf_fail(err, WF_INVALID, "correct the data, or give the model a float32 input",
                       "%g is no whole number", value);
    return WF_OK;
}

static wf_status beyond(const plan *p, const wf_libsvm_record *r, uint64_t at, wf_err *err)
{
    return wf_fail(err, WF_INVALID, "correct the file, data.features or the model's input",
                   "the index %" PRIu64 " is beyond the %" PRIu64 " features", at + r->base,
                   p->features);
}

static wf_status parse_row(const plan *p, const field *f, wf_libsvm_record *r, void *out,
                           wf_err *err)
{
    uint64_t at;
    double value;
    bool any;

    memset(out, 0, (size_t)p->features * wf_dtype_size(f->dtype));
    for (;;) {
        WF_TRY(wf_libsvm_next(r, &any, &at, &value, err));
        if (!any)
            return WF_OK;
        if (at >= p->features)
            return beyond(p, r, at, err);
        WF_TRY(put(f->dtype, out, at, value, err));
    }
}

static wf_status parse_bag(const plan *p, const field *f, wf_libsvm_record *r, void *out,
                           wf_err *err)
{
    wf_libsvm_part part = f->column == INDICES ? WF_LIBSVM_INDEX : WF_LIBSVM_VALUE;
    bool any = true, ends = false;
    uint64_t n = 0, at = 0;
    double value = 0;

    for (;; n++) {
        if (!p->has_both || !wf_libsvm_pass(r, part, &at, &value))
            WF_TRY(wf_libsvm_next(r, &any, &at, &value, err));
        if (any && p->features && at >= p->features)
            return beyond(p, r, at, err);
        if (any && n == f->bag.most)
            WF_TRY(wf_bag_is_full(&f->bag, &ends, err));
        if (!any || ends)
            break;
        if (f->column == INDICES)
            ((int64_t *)out)[n] = (int64_t)at;
        else
            WF_TRY(put(f->dtype, out, n, value, err));
    }
    wf_bag_fill(&f->bag, out, n);
    return WF_OK;
}

static wf_status libsvm_parse(const void *opaque, uint32_t field_index, const char *text, size_t n,
                              void *out, wf_err *err)
{
    const plan *p = opaque;
    const field *f = &p->fields[field_index];
    wf_libsvm_record r;
    double label;

    WF_TRY(wf_libsvm_begin(&r, text, n, p->zero_based, &label, err));
    if (f->column == FEATURES)
        return parse_row(p, f, &r, out, err);
    if (f->column >= INDICES)
        return parse_bag(p, f, &r, out, err);
    if (f->signs && label == -1)
        label = 0;
    return wf_err_wrap(err, put(f->dtype, out, 0, label, err), "the label");
}

static size_t line_end(const char *text, size_t n, bool *quoted, uint64_t *lines)
{
    const char *line = memchr(text, '\n', n);

    (void)quoted;
    *lines += line != NULL;
    return line ? (size_t)(line - text) + 1 : 0;
}

static const wf_text_format libsvm_text = {
    .form = {.end = line_end, .comment = '#'},
    .plan = libsvm_plan,
    .free = free,
    .shape = libsvm_shape,
    .cut = libsvm_cut,
    .parse = libsvm_parse,
};
const wf_format wf_format_libsvm = {.name = "libsvm",
                                    .text = &libsvm_text,
                                    .keys = {"columns", "features", "zero_based", "on_long_bag"}};
