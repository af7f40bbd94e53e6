/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/lines.c - plain text: the format `text`. A record has the column "text", tokens, and
 *
 *   of lines: each is a record, also an empty one. Where lines begin with a number and a tab, that
 *   is the column "label".
 *
 *   of windows (sequence_length): the column "next" is the same tokens moved by one.
 */
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/data/format.h"
#include "common/data/number.h"
#include "common/data/steps.h"
#include "common/data/tokens.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef enum column { TEXT, LABEL, NEXT } column;
static const char *const columns[] = {"text", "label", "next"};

typedef struct field {
    column column;
    wf_dtype dtype; /* of labels */
    wf_tokens tokens;
    wf_bag bag;
} field;

typedef struct plan {
    bool labelled;
    uint64_t length, stride; /* of windows; length 0: records are lines */
    field fields[WF_DATA_MAX_FIELDS];
    size_t n_fields;
    atomic_uint_fast64_t cut; /* bags */
} plan;

/* ---- planning ---- */

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
                   "field \"%.64s\": text has the columns text, label and next, not \"%.64s\"",
                   spec->name, name);
}

static wf_status plan_label(const plan *p, const wf_field_spec *spec, field *f, wf_err *err)
{
    bool counted = spec->n_steps && strcmp(spec->steps[0].type, "one_hot") == 0;

    if (p->length)
        return wf_fail(err, WF_USAGE, "name the column next, or leave sequence_length out",
                       "field \"%.64s\": windows have no label", spec->name);
    if (wf_steps_read_words(spec))
        return wf_fail(err, WF_USAGE, "leave it out", "map of \"%.64s\": %s: a label is a number",
                       spec->name, spec->steps[0].type);
    if ((spec->want != WF_NONE && !wf_dtype_is_float(spec->want)) || counted)
        f->dtype = WF_I64;
    else
        f->dtype = spec->want == WF_F32 ? WF_F32 : WF_F64;
    return WF_OK;
}

static wf_status plan_tokens(plan *p, const wf_dataset_spec *set, const wf_field_spec *spec,
                             field *f, wf_err *err)
{
    if (!wf_tokens_are_read(spec))
        return wf_fail(err, WF_USAGE, "write map: {FIELD: [text_vectorization]}",
                       "field \"%.64s\" is text, and the first step of its map is not "
                       "text_vectorization",
                       spec->name);
    if (f->column == NEXT && !p->length)
        return wf_fail(err, WF_USAGE, "write sequence_length, or name the column label",
                       "field \"%.64s\": lines have no \"next\"", spec->name);
    if (p->length && spec->is_bag)
        return wf_fail(err, WF_USAGE, "leave it out of data.bags",
                       "field \"%.64s\": windows are no bags", spec->name);
    WF_TRY(wf_tokens_plan(spec, p->length > 0, &f->tokens, err));
    if (p->length) {
        f->tokens.form.length = p->length;
        f->tokens.counts = WF_MIN(p->stride, p->length + 1);
    }
    if (spec->is_bag && (spec->bag_most == 0 || spec->bag_most > WF_DATA_MOST_OF_BAG))
        return wf_fail(err, WF_USAGE, "give the model's input the shape [most values of a bag]",
                       "field \"%.64s\": bags of up to %" PRIu64 " tokens; 1 to %d", spec->name,
                       spec->bag_most, WF_DATA_MOST_OF_BAG);
    f->bag = wf_bag_of(spec, set, WF_I64, &p->cut);
    return WF_OK;
}

static wf_status make_plan(plan *p, const wf_dataset_spec *spec, wf_err *err)
{
    p->labelled = spec->labelled;
    p->length = spec->sequence_length;
    p->stride = spec->sequence_stride;
    for (size_t i = 0; i < spec->n_fields; i++) {
        field *f = &p->fields[p->n_fields++];

        WF_TRY(find_column(&spec->fields[i], &f->column, err));
        if (f->column == LABEL)
            WF_TRY(plan_label(p, &spec->fields[i], f, err));
        else
            WF_TRY(plan_tokens(p, spec, &spec->fields[i], f, err));
    }
    return WF_OK;
}

static void lines_free(void *opaque)
{
    plan *p = opaque;

    for (size_t i = 0; i < p->n_fields; i++)
        wf_tokens_close(&p->fields[i].tokens);
    free(p);
}

static wf_status lines_plan(const wf_dataset_spec *spec, wf_stock *stock, void **out, wf_err *err)
{
    plan *p = calloc(1, sizeof *p);
    wf_status rc;

    (void)stock;
    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    rc = make_plan(p, spec, err);
    if (rc == WF_OK)
        *out = p;
    else
        lines_free(p);
    return rc;
}

/* All fields of text have the same tokens: those of the first are where windows begin. */
static wf_status lines_window(const wf_dataset_spec *spec, wf_window_form *out, wf_err *err)
{
    if (spec->sequence_length == 0)
        return WF_OK;
    if (spec->sequence_length > WF_DATA_MOST_OF_BAG || spec->sequence_stride == 0 ||
        spec->sequence_stride > WF_DATA_MOST_STRIDE)
        return wf_fail(err, WF_USAGE, NULL,
                       "windows of %" PRIu64 " tokens, %" PRIu64 " apart; 1 to %d, and 1 to %d",
                       spec->sequence_length, spec->sequence_stride, WF_DATA_MOST_OF_BAG,
                       WF_DATA_MOST_STRIDE);
    *out = (wf_window_form){.length = spec->sequence_length, .stride = spec->sequence_stride};
    for (size_t i = 0; i < spec->n_fields; i++)
        if (wf_tokens_are_read(&spec->fields[i])) {
            out->tokens = spec->fields[i].steps[0].tokens;
            return WF_OK;
        }
    return wf_fail(err, WF_USAGE, "write map: {x: [text_vectorization]}",
                   "windows of tokens, and no field has the step text_vectorization");
}

static wf_text_shape lines_shape(const void *opaque, uint32_t field_index)
{
    const field *f = &((const plan *)opaque)->fields[field_index];

    if (f->column == LABEL)
        return (wf_text_shape){f->dtype, false, 1, false};
    if (f->bag.most)
        return (wf_text_shape){WF_I64, true, (int64_t)f->bag.most, true};
    return (wf_text_shape){WF_I64, true, (int64_t)f->tokens.form.length, false};
}

static wf_vocabulary *lines_words(const void *opaque, uint32_t field_index, bool *learns)
{
    const field *f = &((const plan *)opaque)->fields[field_index];

    *learns = f->tokens.learns;
    return f->tokens.words;
}

static void lines_learnt(void *opaque, uint32_t field_index)
{
    ((plan *)opaque)->fields[field_index].tokens.learns = false;
}

static uint64_t lines_cut(const void *opaque)
{
    return atomic_load_explicit(&((const plan *)opaque)->cut, memory_order_relaxed);
}

/* ---- records ---- */

static wf_status parse_label(const field *f, const char *text, size_t n, bool any, void *out,
                             wf_err *err)
{
    double number;
    int64_t whole;

    if (!any)
        return wf_fail(err, WF_INVALID,
                       "write LABEL<TAB>TEXT, or columns: {x: text} for lines without labels",
                       "a line without a tab, and so without a label");
    if (f->dtype == WF_I64 ? !wf_number_i64(text, n, &whole) : !wf_number_f64(text, n, &number))
        return wf_fail(err, WF_INVALID,
                       "correct the line; csv with a schema reads labels that are words",
                       "the label \"%.*s\" is no %snumber", (int)WF_MIN(n, (size_t)64), text,
                       f->dtype == WF_I64 ? "whole " : "");
    if (f->dtype == WF_I64)
        *(int64_t *)out = whole;
    else if (f->dtype == WF_F64)
        *(double *)out = number;
    else
        *(float *)out = (float)number;
    return WF_OK;
}

static wf_status lines_parse(const void *opaque, uint32_t field_index, const char *text, size_t n,
                             void *out, wf_err *err)
{
    const plan *p = opaque;
    const field *f = &p->fields[field_index];
    const char *tab;
    size_t label;
    double number;

    if (p->length)
        return wf_tokens_put_window(&f->tokens, text, n, f->column == NEXT, out, err);
    tab = p->labelled ? memchr(text, '\t', n) : NULL;
    label = tab ? (size_t)(tab - text) : 0;
    if (f->column == LABEL)
        return parse_label(f, text, label, tab != NULL, out, err);
    /* A model reads new lines, which have no label: what is no number is text. */
    label = tab && wf_number_f64(text, label, &number) ? label + 1 : 0;
    return wf_tokens_put(&f->tokens, f->bag.most ? &f->bag : NULL, text + label, n - label, out,
                         err);
}

static size_t line_end(const char *text, size_t n, bool *quoted, uint64_t *lines)
{
    const char *line = memchr(text, '\n', n);

    (void)quoted;
    *lines += line != NULL;
    return line ? (size_t)(line - text) + 1 : 0;
}

static const wf_text_format lines_text = {
    .form = {.end = line_end, .keeps_empty = true},
    .window = lines_window,
    .plan = lines_plan,
    .free = lines_free,
    .shape = lines_shape,
    .words = lines_words,
    .learnt = lines_learnt,
    .cut = lines_cut,
    .parse = lines_parse,
};
const wf_format wf_format_text = {
    .name = "text",
    .text = &lines_text,
    .keys = {"columns", "bags", "on_long_bag", "sequence_length", "sequence_stride"}};
