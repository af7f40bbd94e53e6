/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/csv.c - comma-separated values: a row is a record, fields are some of its columns. */
#include "common/base/arena.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/data/csv_bag.h"
#include "common/data/csv_value.h"
#include "common/data/format.h"
#include "common/data/number.h"
#include "common/data/steps.h"
#include "common/data/text.h"
#include "common/data/tokens.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 1 << 16 };

/* Where a column's value stands among the elements of a field. */
typedef struct use {
    uint32_t column, element;
    bool is_plain; /* a number of a float dtype, and the column's only use */
} use;

typedef struct field {
    const char *name;
    use *uses; /* [n_uses], by column */
    size_t n_uses;
    bool is_row;
    bool is_hashed; /* columns of words side by side, in their order, which are hashed */
    bool is_text;   /* the words of one column are tokens */
    wf_tokens tokens;
    wf_csv_values values;
    wf_bag bag;              /* of a field of bags, whose values are in one cell */
    const uint32_t *partner; /* of their weights: the column of the ids; else NULL */
} field;

typedef struct plan {
    wf_arena *arena;
    wf_csv_column *columns; /* [n_columns] of a row */
    uint32_t n_columns;
    field *fields; /* [n_fields] */
    uint32_t n_fields;
    char delimiter, separator;
    atomic_uint_fast64_t cut; /* bags */
} plan;

/* ---- columns ---- */

static wf_status count_cells(const plan *p, const char *text, size_t n, uint32_t *count,
                             wf_err *err)
{
    wf_csv_cell cell;

    *count = 0;
    for (size_t at = 0; at <= n; ++*count) {
        if (*count == MOST_COLUMNS)
            return wf_fail(err, WF_INVALID, NULL, "more than %d columns", MOST_COLUMNS);
        WF_TRY(wf_csv_next(text, n, p->delimiter, &at, &cell, err));
    }
    return WF_OK;
}

static wf_status name_columns(plan *p, const char *header, size_t n, wf_err *err)
{
    size_t at = 0;

    WF_TRY(count_cells(p, header, n, &p->n_columns, err));
    p->columns = wf_arena_array(p->arena, p->n_columns, sizeof *p->columns);
    if (!p->columns)
        return wf_fail_nomem(err, p->n_columns * sizeof *p->columns);
    for (uint32_t i = 0; i < p->n_columns; i++) {
        wf_csv_cell cell;
        char *name;

        WF_TRY(wf_csv_next(header, n, p->delimiter, &at, &cell, err));
        name = wf_arena_alloc(p->arena, cell.n + 1);
        if (!name)
            return wf_fail_nomem(err, cell.n + 1);
        wf_csv_copy(&cell, name);
        p->columns[i] = (wf_csv_column){.name = name};
    }
    return WF_OK;
}

static wf_status no_column(const plan *p, const char *name, wf_err *err)
{
    const char **names = malloc(p->n_columns * sizeof *names), *near;

    if (!names)
        return wf_fail_nomem(err, p->n_columns * sizeof *names);
    for (uint32_t i = 0; i < p->n_columns; i++)
        names[i] = p->columns[i].name;
    near = wf_nearest(name, names, p->n_columns);
    free(names);
    if (near)
        return wf_fail(err, WF_USAGE, NULL, "no column \"%.64s\"; did you mean \"%.64s\"?", name,
                       near);
    return wf_fail(err, WF_USAGE, "weft data peek FILE lists them", "no column \"%.64s\"", name);
}

/* The column of a name, of which there must be one. */
static wf_status find_column(const plan *p, const char *name, uint32_t *out, wf_err *err)
{
    bool found = false;

    for (uint32_t i = 0; i < p->n_columns; i++) {
        if (strcmp(p->columns[i].name, name) != 0)
            continue;
        if (found)
            return wf_fail(err, WF_USAGE, "give the columns different names",
                           "two columns have the name \"%.64s\"", name);
        found = true;
        *out = i;
    }
    return found ? WF_OK : no_column(p, name, err);
}

static wf_status learn_schema(plan *p, const wf_dataset_spec *spec, wf_err *err)
{
    if (!spec->header) {
        if (spec->n_schema == 0)
            return wf_fail(err, WF_USAGE, "name all columns, in order", "there are no columns");
        p->n_columns = (uint32_t)WF_MIN(spec->n_schema, (size_t)MOST_COLUMNS);
        p->columns = wf_arena_array(p->arena, p->n_columns, sizeof *p->columns);
        if (!p->columns)
            return wf_fail_nomem(err, p->n_columns * sizeof *p->columns);
        for (uint32_t i = 0; i < p->n_columns; i++) {
            p->columns[i].name = wf_arena_strdup(p->arena, spec->schema[i].name);
            if (!p->columns[i].name)
                return wf_fail_nomem(err, strlen(spec->schema[i].name));
        }
    }
    for (size_t i = 0; i < spec->n_schema; i++) {
        const wf_column_spec *from = &spec->schema[i];
        uint32_t at;

        WF_TRY(find_column(p, from->name, &at, err));
        p->columns[at].dtype = from->words ? WF_I64 : from->dtype;
        if (from->words)
            WF_TRY(wf_csv_words(from, p->arena, &p->columns[at], err));
    }
    return WF_OK;
}

/* ---- fields ---- */

/* One dtype holds all columns of a field: the schema's where it says one, else what is wanted. */
static wf_dtype dtype_of(const plan *p, const field *f, wf_dtype want)
{
    bool whole = true, wide = want == WF_F64, any = false;

    for (size_t i = 0; i < f->n_uses; i++) {
        wf_dtype said = p->columns[f->uses[i].column].dtype;

        whole &= said == WF_I64;
        wide |= said == WF_F64;
        any |= said != WF_NONE && said != WF_U8;
    }
    if (whole || f->is_text || f->values.words || (f->values.hashes && !any) ||
        (!any && want != WF_NONE && !wf_dtype_is_float(want)))
        return WF_I64;
    return wide || want == WF_NONE ? WF_F64 : WF_F32;
}

static int by_column(const void *a, const void *b)
{
    const use *x = a, *y = b;

    return x->column < y->column ? -1 : x->column > y->column;
}

/* The words of a field: those that its step is given, or that of its file has, or else those of the
 * records, when they are known. */
static wf_status plan_words(const plan *p, const wf_field_spec *spec, field *f, wf_err *err)
{
    const wf_map_step *step = &spec->steps[0];

    for (size_t i = 0; i < f->n_uses; i++) {
        const wf_csv_column *c = &p->columns[f->uses[i].column];

        if (c->words || (c->dtype != WF_NONE && c->dtype != WF_U8))
            return wf_fail(err, WF_USAGE, "leave it out of data.schema, or leave vocabulary out",
                           "column \"%.64s\" has a schema, and its words a vocabulary", c->name);
    }
    WF_TRY(wf_vocabulary_new(&f->values.words, err));
    if (step->n_words)
        return wf_vocabulary_add(f->values.words, step->words, step->n_words, err);
    f->values.learns = !step->text || !step->text[0];
    return f->values.learns ? WF_OK : wf_vocabulary_read(f->values.words, step->text, err);
}

/* A field of tokens is one column of text. */
static wf_status plan_tokens(const plan *p, const wf_field_spec *spec, field *f, wf_err *err)
{
    const wf_csv_column *c = &p->columns[f->uses[0].column];

    if (f->n_uses != 1)
        return wf_fail(err, WF_USAGE, "write columns: {FIELD: COLUMN}",
                       "text_vectorization: %zu columns, where one may be", f->n_uses);
    if (c->words || (c->dtype != WF_NONE && c->dtype != WF_U8))
        return wf_fail(err, WF_USAGE, "write string in data.schema",
                       "text_vectorization: column \"%.64s\" has a schema of no text", c->name);
    f->is_text = true;
    return wf_tokens_plan(spec, false, &f->tokens, err);
}

/* Columns of words are read by a step that knows words. */
static wf_status check_words(const plan *p, const field *f, wf_err *err)
{
    for (size_t i = 0; i < f->n_uses && !f->values.hashes; i++)
        if (p->columns[f->uses[i].column].dtype == WF_U8)
            return wf_fail(err, WF_USAGE,
                           "write map: {FIELD: [{hash: 1000}]}, vocabulary: 1000, or "
                           "text_vectorization",
                           "field \"%.64s\": column \"%.64s\" holds words, and the first step of "
                           "its map is neither hash nor vocabulary nor text_vectorization",
                           f->name, p->columns[f->uses[i].column].name);
    return WF_OK;
}

/* A delimiter that numbers have in them does not end one. */
static void find_plain(const plan *p, field *f)
{
    f->is_hashed = f->values.hashes && f->values.dtype == WF_I64;
    bool plain =
        f->values.dtype != WF_I64 && !f->values.words && !strchr("0123456789.eE+-", p->delimiter);

    for (size_t i = 0; i < f->n_uses; i++) {
        use *u = &f->uses[i];
        const wf_csv_column *c = &p->columns[u->column];

        f->is_hashed &= c->dtype == WF_U8 && u->element == i && u->column == f->uses[0].column + i;
        u->is_plain = plain && !c->words && c->dtype != WF_I64 &&
                      (i == 0 || u[-1].column != u->column) &&
                      (i + 1 == f->n_uses || u[1].column != u->column);
    }
}

static wf_status plan_field(plan *p, const wf_field_spec *spec, field *f, wf_err *err)
{
    for (size_t i = 0; i < spec->n_steps; i++)
        f->values.fills |= strcmp(spec->steps[i].type, "fill") == 0;
    f->values.hashes = spec->n_steps && strcmp(spec->steps[0].type, "hash") == 0;
    f->is_row = spec->is_row;
    f->name = wf_arena_strdup(p->arena, spec->name);
    f->uses = wf_arena_array(p->arena, spec->n_columns, sizeof *f->uses);
    if (!f->name || !f->uses)
        return wf_fail_nomem(err, spec->n_columns * sizeof *f->uses);
    for (; f->n_uses < spec->n_columns; f->n_uses++) {
        use *u = &f->uses[f->n_uses];

        u->element = (uint32_t)f->n_uses;
        WF_TRY(wf_err_wrap(err, find_column(p, spec->columns[f->n_uses], &u->column, err),
                           "field \"%.64s\"", spec->name));
    }
    qsort(f->uses, f->n_uses, sizeof *f->uses, by_column);
    if (wf_tokens_are_read(spec))
        WF_TRY(wf_err_wrap(err, plan_tokens(p, spec, f, err), "field \"%.64s\"", spec->name));
    else if (wf_steps_read_words(spec))
        WF_TRY(wf_err_wrap(err, plan_words(p, spec, f, err), "field \"%.64s\"", spec->name));
    else
        WF_TRY(check_words(p, f, err));
    f->values.dtype = dtype_of(p, f, spec->want);
    find_plain(p, f);
    return WF_OK;
}

/* The column of the field of ids that a bag of weights goes with. */
static wf_status find_partner(plan *p, const wf_dataset_spec *spec, const wf_field_spec *weights,
                              field *f, wf_err *err)
{
    uint32_t *column = wf_arena_alloc(p->arena, sizeof *column);

    if (!column)
        return wf_fail_nomem(err, sizeof *column);
    for (size_t i = 0; i < spec->n_fields; i++)
        if (strcmp(spec->fields[i].name, weights->bag_ids) == 0 && spec->fields[i].n_columns == 1) {
            f->partner = column;
            return find_column(p, spec->fields[i].columns[0], column, err);
        }
    return WF_OK; /* the model does not read the ids */
}

static wf_status plan_bag(plan *p, const wf_dataset_spec *spec, const wf_field_spec *from, field *f,
                          wf_err *err)
{
    if (!from->is_bag)
        return WF_OK;
    if (from->bag_most == 0 || from->bag_most > WF_DATA_MOST_OF_BAG || f->n_uses != 1)
        return wf_fail(
            err, WF_USAGE, "give the model's input the shape [most values of a bag]",
            "field \"%.64s\": bags of %zu columns, of up to %llu values; one column, and "
            "1 to %d values",
            f->name, f->n_uses, (unsigned long long)from->bag_most, WF_DATA_MOST_OF_BAG);
    f->is_row = true;
    f->is_hashed = false;
    f->bag = wf_bag_of(from, spec, f->values.dtype, &p->cut);
    return from->bag_ids ? find_partner(p, spec, from, f, err) : WF_OK;
}

static void csv_free(void *opaque)
{
    plan *p = opaque;

    for (uint32_t i = 0; i < p->n_fields; i++) {
        wf_vocabulary_free(&p->fields[i].values.words);
        wf_tokens_close(&p->fields[i].tokens);
    }
    wf_arena_free(&p->arena);
    free(p);
}

static wf_status make_plan(plan *p, const wf_dataset_spec *spec, const wf_stock_file *first,
                           wf_err *err)
{
    p->delimiter = spec->delimiter ? spec->delimiter : ',';
    p->separator = spec->separator ? spec->separator : '|';
    if (p->separator == p->delimiter)
        return wf_fail(err, WF_USAGE, "choose another for one of them",
                       "data.separator and data.delimiter are the same");
    p->arena = wf_arena_new(0);
    if (!p->arena)
        return wf_fail_nomem(err, sizeof *p);
    p->fields = wf_arena_array(p->arena, spec->n_fields, sizeof *p->fields);
    if (!p->fields)
        return wf_fail_nomem(err, spec->n_fields * sizeof *p->fields);
    if (spec->header)
        WF_TRY(wf_err_wrap(err, name_columns(p, first->header, first->header_bytes, err),
                           "%s: the header", spec->files[0]));
    WF_TRY(wf_err_wrap(err, learn_schema(p, spec, err), "%s: the schema", spec->files[0]));
    for (size_t i = 0; i < spec->n_fields; i++)
        WF_TRY(wf_err_wrap(err, plan_field(p, &spec->fields[i], &p->fields[p->n_fields++], err),
                           "%s", spec->files[0]));
    for (size_t i = 0; i < spec->n_fields; i++)
        WF_TRY(plan_bag(p, spec, &spec->fields[i], &p->fields[i], err));
    return WF_OK;
}

static wf_status csv_plan(const wf_dataset_spec *spec, wf_stock *stock, void **out, wf_err *err)
{
    plan *p = calloc(1, sizeof *p);
    wf_status rc;

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    rc = make_plan(p, spec, &stock->files[0], err);
    if (rc == WF_OK)
        *out = p;
    else
        csv_free(p);
    return rc;
}

static wf_text_shape csv_shape(const void *opaque, uint32_t field_index)
{
    const field *f = &((const plan *)opaque)->fields[field_index];

    if (f->bag.most)
        return (wf_text_shape){f->values.dtype, true, (int64_t)f->bag.most, true};
    if (f->is_text)
        return (wf_text_shape){WF_I64, true, (int64_t)f->tokens.form.length, false};
    return (wf_text_shape){f->values.dtype, f->is_row, (int64_t)f->n_uses, false};
}

static uint64_t csv_cut(const void *opaque)
{
    return atomic_load_explicit(&((const plan *)opaque)->cut, memory_order_relaxed);
}

static wf_vocabulary *csv_words(const void *opaque, uint32_t field_index, bool *learns)
{
    const field *f = &((const plan *)opaque)->fields[field_index];

    *learns = f->is_text ? f->tokens.learns : f->values.learns;
    return f->is_text ? f->tokens.words : f->values.words;
}

static void csv_learnt(void *opaque, uint32_t field_index)
{
    field *f = &((plan *)opaque)->fields[field_index];

    f->values.learns = f->tokens.learns = false;
}

/* ---- records ---- */

static wf_status wrong_count(const plan *p, uint32_t have, wf_err *err)
{
    return wf_fail(err, WF_INVALID, "check data.delimiter, and quote cells that hold it",
                   "a row of %u columns, where there are %u", have, p->n_columns);
}

/* Reads the cell at text[*at] as a number that is all of it: the usual cell is looked at once.
 * False: the cell is of another form, which wf_csv_next and wf_csv_value read or refuse. */
static bool read_number(const plan *p, wf_dtype dtype, const char *text, size_t n, size_t *at,
                        void *out, uint32_t element)
{
    double number;
    const char *after = wf_number_read(text + *at, text + n, &number);

    if (!after || (after < text + n && *after != p->delimiter))
        return false;
    *at = (size_t)(after - text) + 1;
    if (dtype == WF_F64)
        ((double *)out)[element] = number;
    else
        ((float *)out)[element] = (float)number;
    return true;
}

static wf_status parse_bag(const plan *p, const field *f, const char *text, size_t n, void *out,
                           wf_err *err)
{
    uint32_t column = f->uses[0].column, partner = f->partner ? *f->partner : column, i = 0;
    wf_csv_cell cell, own = {0}, other = {0};
    uint64_t values, ids;

    for (size_t at = 0; at <= n; i++) {
        WF_TRY(wf_csv_next(text, n, p->delimiter, &at, &cell, err));
        if (i == column)
            own = cell;
        if (i == partner)
            other = cell;
    }
    if (i != p->n_columns)
        return wrong_count(p, i, err);
    values = wf_csv_bag_count(&own, p->separator);
    ids = wf_csv_bag_count(&other, p->separator);
    if (values != ids)
        return wf_fail(err, WF_INVALID, "give each id one weight",
                       "column \"%.64s\" has %llu weights, and column \"%.64s\" %llu ids",
                       p->columns[column].name, (unsigned long long)values,
                       p->columns[partner].name, (unsigned long long)ids);
    return wf_csv_bag_put(&f->values, &p->columns[column], &f->bag, &own, p->separator, out, err);
}

static wf_status parse_text(const plan *p, const field *f, const char *text, size_t n, void *out,
                            wf_err *err)
{
    const wf_bag *bag = f->bag.most ? &f->bag : NULL;
    wf_csv_cell cell, own = {0};
    char *plain = NULL;
    uint32_t i = 0;
    wf_status rc;

    for (size_t at = 0; at <= n; i++) {
        WF_TRY(wf_csv_next(text, n, p->delimiter, &at, &cell, err));
        if (i == f->uses[0].column)
            own = cell;
    }
    if (i != p->n_columns)
        return wrong_count(p, i, err);
    if (own.quoted) {
        plain = malloc(own.n + 1);
        if (!plain)
            return wf_fail_nomem(err, own.n + 1);
        own.n = wf_csv_copy(&own, plain);
        own.text = plain;
    }
    rc = wf_tokens_put(&f->tokens, bag, own.text, own.n, out, err);
    free(plain);
    return wf_err_wrap(err, rc, "column \"%.64s\"", p->columns[f->uses[0].column].name);
}

static wf_status csv_parse(const void *opaque, uint32_t field_index, const char *text, size_t n,
                           void *out, wf_err *err)
{
    const plan *p = opaque;
    const field *f = &p->fields[field_index];
    /* Where most cells are read anyway, to count them first costs more than it spares. */
    bool few = f->is_hashed || f->n_uses <= p->n_columns / 2;
    bool regular = few && wf_csv_is_regular(text, n, p->delimiter, p->n_columns);
    size_t used = 0, at = 0;
    uint32_t i = 0;

    if (f->is_text)
        return parse_text(p, f, text, n, out, err);
    if (f->bag.most)
        return parse_bag(p, f, text, n, out, err);
    for (; regular && i < f->uses[0].column; at++)
        i += text[at] == p->delimiter;
    if (regular && f->is_hashed) {
        wf_csv_hash_words(text, n, p->delimiter, at, f->n_uses, out);
        return WF_OK;
    }
    for (; regular ? used < f->n_uses : at <= n && i < p->n_columns; i++) {
        const use *u = &f->uses[used];
        wf_csv_cell cell;

        if (used < f->n_uses && u->column == i && u->is_plain &&
            read_number(p, f->values.dtype, text, n, &at, out, u->element)) {
            used++;
            continue;
        }
        if (regular)
            cell = wf_csv_next_regular(text, n, p->delimiter, &at);
        else
            WF_TRY(wf_csv_next(text, n, p->delimiter, &at, &cell, err));
        for (; used < f->n_uses && f->uses[used].column == i; used++)
            WF_TRY(
                wf_csv_value(&f->values, &p->columns[i], &cell, out, f->uses[used].element, err));
    }
    if (regular || (i == p->n_columns && at > n))
        return WF_OK;
    WF_TRY(count_cells(p, text, n, &i, err));
    return wrong_count(p, i, err);
}

static const wf_text_format csv_text = {
    .form = {.end = wf_csv_record_end, .header = true, .count = wf_csv_count},
    .plan = csv_plan,
    .free = csv_free,
    .shape = csv_shape,
    .words = csv_words,
    .learnt = csv_learnt,
    .cut = csv_cut,
    .parse = csv_parse,
};
const wf_format wf_format_csv = {.name = "csv",
                                 .text = &csv_text,
                                 .keys = {"columns", "schema", "header", "delimiter", "on_bad_line",
                                          "bags", "separator", "on_long_bag"}};
