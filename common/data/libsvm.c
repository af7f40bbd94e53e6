/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/libsvm.c - lines of a label and the features that are not 0 (LIBSVM, SVMlight). A
 * record has two columns: "label", a number, and "features", a row in which the features that a
 * line does not name are 0. */
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/data/format.h"
#include "common/data/libsvm_record.h"
#include "common/data/steps.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MOST_WHOLE = 9007199254740992.0; /* up to it doubles hold all whole numbers */

typedef struct field {
    wf_dtype dtype;
    bool is_label;
    bool signs; /* labels -1 and 1 count as 0 and 1 */
} field;

typedef struct plan {
    uint64_t features; /* 0: not known yet */
    bool zero_based;
    field fields[WF_DATA_MAX_FIELDS];
} plan;

/* ---- planning ---- */

static wf_status find_largest(void *opaque, const char *text, size_t n, wf_err *err)
{
    plan *p = opaque;
    wf_libsvm_record r;
    uint64_t feature;
    double value;
    bool any = true;

    WF_TRY(wf_libsvm_begin(&r, text, n, p->zero_based, &value, err));
    while (any) {
        WF_TRY(wf_libsvm_next(&r, &any, &feature, &value, err));
        if (any && feature >= p->features)
            p->features = feature + 1;
    }
    return WF_OK;
}

static wf_status plan_features(plan *p, const wf_dataset_spec *spec, wf_stock *stock, wf_err *err)
{
    p->features = spec->features;
    if (p->features == 0)
        WF_TRY(wf_stock_each(stock, find_largest, p, err));
    if (p->features > 0 && p->features <= WF_DATA_MOST_FEATURES)
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

static wf_status plan_field(const wf_field_spec *spec, field *f, wf_err *err)
{
    static const char *const names[] = {"features", "label"};
    const char *name = spec->columns[0];
    char hint[WF_NEAREST_HINT];

    if (spec->n_columns != 1 || (strcmp(name, names[0]) != 0 && strcmp(name, names[1]) != 0))
        return wf_fail(err, WF_USAGE, wf_nearest_hint(name, names, WF_COUNT(names), NULL, hint),
                       "field \"%.64s\": libsvm has the columns features and label, not \"%.64s\"",
                       spec->name, name);
    if (wf_steps_read_words(spec))
        return wf_fail(err, WF_USAGE, "leave it out, or give a csv file",
                       "map of \"%.64s\": vocabulary: libsvm files have no words", spec->name);
    f->is_label = strcmp(name, names[1]) == 0;
    f->signs = f->is_label && (spec->classes == 2 || spec->is_share);
    if ((spec->want != WF_NONE && !wf_dtype_is_float(spec->want)) || is_counted(spec))
        f->dtype = WF_I64;
    else
        f->dtype = spec->want == WF_F64 || (spec->want == WF_NONE && f->is_label) ? WF_F64 : WF_F32;
    return WF_OK;
}

static wf_status libsvm_plan(const wf_dataset_spec *spec, wf_stock *stock, void **out, wf_err *err)
{
    plan *p = calloc(1, sizeof *p);
    wf_status rc = p ? WF_OK : wf_fail_nomem(err, sizeof *p);

    if (rc == WF_OK)
        p->zero_based = spec->zero_based;
    for (size_t i = 0; rc == WF_OK && i < spec->n_fields; i++)
        rc = plan_field(&spec->fields[i], &p->fields[i], err);
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

    return (wf_text_shape){f->dtype, !f->is_label, f->is_label ? 1 : (int64_t)p->features};
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
            return wf_fail(err, WF_INVALID, "correct the file, data.features or the model's input",
                           "the index %" PRIu64 " is beyond the %" PRIu64 " features", at + r->base,
                           p->features);
        WF_TRY(put(f->dtype, out, at, value, err));
    }
}

static wf_status libsvm_parse(const void *opaque, uint32_t field_index, const char *text, size_t n,
                              void *out, wf_err *err)
{
    const plan *p = opaque;
    const field *f = &p->fields[field_index];
    wf_libsvm_record r;
    double label;

    WF_TRY(wf_libsvm_begin(&r, text, n, p->zero_based, &label, err));
    if (!f->is_label)
        return parse_row(p, f, &r, out, err);
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
    .parse = libsvm_parse,
};
const wf_format wf_format_libsvm = {
    .name = "libsvm", .text = &libsvm_text, .keys = {"columns", "features", "zero_based"}};
