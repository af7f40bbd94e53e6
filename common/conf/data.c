/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/data.c - what is read for training and evaluation, and how. */
#include "common/conf/data.h"
#include "common/conf/bags.h"
#include "common/conf/hosts.h"
#include "common/conf/item.h"
#include "common/conf/new_files.h"
#include "common/conf/presets.h"
#include "common/conf/sequences.h"
#include "common/data/formats.h"

#include <string.h>

/* ---- fields ---- */

/* FILE, or [FILE, FILE]. */
static wf_status read_paths(wf_conf_reader *r, const wf_tree *node, const char *const **out,
                            size_t *n, wf_err *err)
{
    const wf_tree *t = node->kind == WF_TREE_LIST ? node->first : node;
    const char **files;

    *n = node->kind == WF_TREE_LIST ? node->n : 1;
    if (*n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "write [FILE, FILE]", "\"%.64s\" names no file",
                            wf_read_name(node));
    files = wf_arena_array(r->arena, *n, sizeof *files);
    if (!files)
        return wf_fail_nomem(err, *n * sizeof *files);
    for (size_t i = 0; i < *n; i++, t = t->next)
        WF_TRY(wf_read_path(r, t, &files[i], err));
    *out = files;
    return WF_OK;
}

static wf_status read_files_of(wf_conf_reader *r, const wf_tree *t, wf_conf_field *f, wf_err *err)
{
    const char *const *files = NULL;
    size_t n = 0;

    WF_TRY(read_paths(r, t, &files, &n, err));
    f->path = files[0];
    f->more = files + 1;
    f->n_more = n - 1;
    return WF_OK;
}

static wf_status read_columns_of(wf_conf_reader *r, const wf_tree *t, wf_conf_field *f, wf_err *err)
{
    f->is_row = t->kind == WF_TREE_LIST;
    WF_TRY(wf_read_words(r, t, &f->columns, &f->n_columns, err));
    if (f->n_columns == 0)
        return wf_read_fail(r, t, err, WF_USAGE, "name columns, or leave the field out",
                            "field \"%.64s\" has no columns", f->name);
    return WF_OK;
}

static wf_status read_steps_of(wf_conf_reader *r, const wf_tree *t, wf_conf_field *f, wf_err *err)
{
    return wf_read_items(r, t, "step", wf_step_rows, &f->steps, &f->n_steps, err);
}

/* A map of fields; `form` says how it is written. */
static wf_status read_fields(wf_conf_reader *r, const wf_tree *node, const char *form,
                             wf_status (*read)(wf_conf_reader *r, const wf_tree *t,
                                               wf_conf_field *f, wf_err *err),
                             const wf_conf_field **out, size_t *n, wf_err *err)
{
    wf_conf_field *fields;

    if (node->kind != WF_TREE_MAP || node->n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, form, "\"%s\" is a map of fields",
                            wf_read_name(node));
    fields = wf_arena_array(r->arena, node->n, sizeof *fields);
    if (!fields)
        return wf_fail_nomem(err, node->n * sizeof *fields);
    *n = 0;
    for (const wf_tree *t = node->first; t; t = t->next) {
        wf_conf_field *f = &fields[(*n)++];

        f->name = t->key->text;
        f->line = t->line;
        WF_TRY(read(r, t, f, err));
    }
    *out = fields;
    return WF_OK;
}

static wf_status read_columns(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    return read_fields(r, node, "write it as {x: [COLUMN, COLUMN], y: COLUMN}", read_columns_of,
                       &j->columns, &j->n_columns, err);
}

static wf_status read_map(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    return read_fields(r, node, "write it as {x: [steps]}", read_steps_of, &j->map, &j->n_map, err);
}

/* ---- files ---- */

/* {x: FILE, y: FILE}, or FILE, or [FILE, FILE]: the format says which it must be. */
static wf_status read_records(wf_conf_reader *r, const wf_tree *node, wf_conf_records *out,
                              wf_err *err)
{
    out->line = node->line;
    if (node->kind != WF_TREE_MAP)
        return read_paths(r, node, &out->files, &out->n_files, err);
    return read_fields(r, node, "write it as {x: FILE, y: FILE}", read_files_of, &out->fields,
                       &out->n, err);
}

static wf_status read_train(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return read_records(r, node, &((wf_job_conf *)into)->train, err);
}

static wf_status read_eval(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return read_records(r, node, &((wf_job_conf *)into)->eval, err);
}

static wf_status read_validation_split(wf_conf_reader *r, const wf_tree *node, void *into,
                                       wf_err *err)
{
    double *share = &((wf_job_conf *)into)->validation_split;

    WF_TRY(wf_read_number(r, node, share, err));
    if (*share > 0 && *share < 1)
        return WF_OK;
    return wf_read_fail(r, node, err, WF_USAGE, "write 0.1 to hold out a tenth of the records",
                        "\"validation_split\" must be between 0 and 1, not %.64s", node->text);
}

/* ---- text ---- */

static wf_status read_column(wf_conf_reader *r, const wf_tree *t, wf_column_spec *c, wf_err *err)
{
    static const char *const dtypes[] = {"float32", "float64", "int64", "string"};
    static const wf_dtype as[] = {WF_F32, WF_F64, WF_I64, WF_U8};
    const char *said;

    if (t->kind == WF_TREE_LIST) {
        WF_TRY(wf_read_words(r, t, &c->words, &c->n_words, err));
        if (c->n_words == 0)
            return wf_read_fail(r, t, err, WF_USAGE, "name the words that it may hold",
                                "column \"%.64s\" has no words", c->name);
        return WF_OK;
    }
    WF_TRY(wf_read_text(r, t, &said, err));
    for (size_t i = 0; i < WF_COUNT(dtypes); i++)
        if (strcmp(dtypes[i], said) == 0) {
            c->dtype = as[i];
            return WF_OK;
        }
    return wf_read_unknown(r, t, "dtype of a column", said, dtypes, WF_COUNT(dtypes), err);
}

static wf_status read_schema(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    wf_column_spec *columns;

    if (node->kind == WF_TREE_TEXT)
        return WF_OK; /* a preset, which wf_preset_take reads when the other keys are known */
    if (node->kind != WF_TREE_MAP || node->n == 0)
        return wf_read_fail(r, node, err, WF_USAGE,
                            "write it as {age: float32, sex: [f, m]}, or name a preset: criteo",
                            "\"schema\" is a map of columns");
    columns = wf_arena_array(r->arena, node->n, sizeof *columns);
    if (!columns)
        return wf_fail_nomem(err, node->n * sizeof *columns);
    for (const wf_tree *t = node->first; t; t = t->next) {
        wf_column_spec *c = &columns[j->n_schema++];

        c->name = t->key->text;
        WF_TRY(read_column(r, t, c, err));
    }
    j->schema = columns;
    return WF_OK;
}

static wf_status read_delimiter(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    const char *text;

    WF_TRY(wf_read_text(r, node, &text, err));
    if (strlen(text) != 1 || strchr("\"\r\n", text[0]))
        return wf_read_fail(r, node, err, WF_USAGE, "write it as \";\" or \"\\t\"",
                            "the delimiter is one character, and no quote or line end");
    j->delimiter = text[0];
    return WF_OK;
}

static wf_status read_on_bad_line(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    static const char *const known[] = {"fail", "skip"};
    wf_job_conf *j = into;
    const char *text;

    WF_TRY(wf_read_text(r, node, &text, err));
    j->skips_bad_lines = strcmp(text, known[1]) == 0;
    if (j->skips_bad_lines || strcmp(text, known[0]) == 0)
        return WF_OK;
    return wf_read_unknown(r, node, "on_bad_line", text, known, WF_COUNT(known), err);
}

static const char *const shards[WF_SHARDS] = {"data", "file", "auto"};

const char *wf_shard_word(wf_shard_policy p)
{
    return shards[p];
}

static wf_status read_shard(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    const char *text;

    WF_TRY(wf_read_text(r, node, &text, err));
    for (int i = 0; i < WF_SHARDS; i++)
        if (strcmp(text, shards[i]) == 0) {
            j->shard = (wf_shard_policy)i;
            return WF_OK;
        }
    return wf_read_unknown(r, node, "shard", text, shards, WF_SHARDS, err);
}

/* ---- what must hold ---- */

/* Where there are no files, or not all of them yet, no worker can be given whole ones. */
static wf_status check_shard(wf_conf_reader *r, const wf_tree *node, const wf_job_conf *j,
                             wf_err *err)
{
    static const char *const no_files[] = {"synthetic", "memory"};

    if (j->shard != WF_SHARD_FILE)
        return WF_OK;
    if (j->grows)
        return wf_read_fail(r, node, err, WF_UNSUPPORTED, "leave \"shard\" out",
                            "\"shard: file\" is for data whose files are all there at the start");
    for (size_t i = 0; i < WF_COUNT(no_files); i++)
        if (strcmp(j->format, no_files[i]) == 0)
            return wf_read_fail(r, node, err, WF_USAGE, "leave \"shard\" out, or write auto",
                                "data of the format \"%s\" has no files for \"shard: file\"",
                                j->format);
    return WF_OK;
}

static wf_status check_keys(wf_conf_reader *r, const wf_tree *node, const wf_job_conf *j,
                            wf_err *err)
{
    static const char *const some[] = {
        "columns",    "schema", "header",    "delimiter",   "on_bad_line",     "features",
        "zero_based", "bags",   "separator", "on_long_bag", "sequence_length", "sequence_stride"};

    for (size_t i = 0; i < WF_COUNT(some); i++) {
        const wf_tree *t = wf_tree_get(node, some[i]);

        if (t && !wf_format_has_key(j->format, some[i]))
            return wf_read_fail(r, t, err, WF_USAGE, "leave it out, or write another format",
                                "data of the format \"%s\" has no \"%s\"", j->format, some[i]);
    }
    return WF_OK;
}

static wf_status check_arrays(wf_conf_reader *r, const wf_tree *node, const wf_job_conf *j,
                              wf_err *err)
{
    for (int k = 0; k < 2; k++) {
        const wf_conf_records *of = k ? &j->eval : &j->train;

        if (of->n_files)
            return wf_fail(err, WF_USAGE,
                           k ? "write eval: {x: FILE, y: FILE}" : "write train: {x: FILE, y: FILE}",
                           "%s:%d: data of the format \"%s\" has a file for each field", r->path,
                           of->line, j->format);
    }
    if (j->train.n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "write train: {x: FILE, y: FILE}",
                            "the data has no \"train\"");
    for (size_t i = 0; i < j->eval.n; i++) {
        const wf_conf_field *f = &j->eval.fields[i];
        bool found = false;

        for (size_t k = 0; k < j->train.n; k++)
            found = found || strcmp(j->train.fields[k].name, f->name) == 0;
        if (!found)
            return wf_fail(err, WF_USAGE, "name the fields of both alike",
                           "%s:%d: \"eval\" has a field \"%.64s\" that \"train\" has not", r->path,
                           f->line, f->name);
    }
    return WF_OK;
}

/* The fields of libsvm and text where the job file names none: what a model reads, and the label.
 */
static wf_status name_columns(wf_conf_reader *r, int line, wf_job_conf *j, wf_err *err)
{
    static const char *const names[] = {"x", "y"}, *const of_libsvm[] = {"features", "label"},
                             *const of_lines[] = {"text", "label"},
                             *const of_windows[] = {"text", "next"};
    const char *const *columns = !wf_format_has_key(j->format, "sequence_length") ? of_libsvm
                                 : j->sequence_length                             ? of_windows
                                                                                  : of_lines;
    wf_conf_field *fields = wf_arena_array(r->arena, WF_COUNT(names), sizeof *fields);

    if (!fields)
        return wf_fail_nomem(err, sizeof *fields);
    for (size_t i = 0; i < WF_COUNT(names); i++)
        fields[i] =
            (wf_conf_field){.name = names[i], .columns = &columns[i], .n_columns = 1, .line = line};
    j->columns = fields;
    j->n_columns = WF_COUNT(names);
    return WF_OK;
}

/* The fields of `train` and `eval` are the columns that are named once for both. */
static wf_status check_text(wf_conf_reader *r, const wf_tree *node, wf_job_conf *j, wf_err *err)
{
    bool has_schema = wf_format_has_key(j->format, "schema");

    if (j->n_columns == 0 && !has_schema)
        WF_TRY(name_columns(r, node->line, j, err));
    WF_TRY(wf_preset_take(r, node, j, err));
    for (int k = 0; k < 2; k++) {
        wf_conf_records *of = k ? &j->eval : &j->train;

        if (of->n)
            return wf_fail(err, WF_USAGE, "write FILE or [FILE, FILE], and name columns",
                           "%s:%d: data of the format \"%s\" has all fields in each file", r->path,
                           of->line, j->format);
        of->fields = j->columns;
        of->n = of->n_files ? j->n_columns : 0;
    }
    if (j->train.n_files == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "write train: FILE",
                            "the data has no \"train\"");
    if (j->n_columns == 0)
        return wf_read_fail(r, node, err, WF_USAGE,
                            "write columns: {x: [COLUMN, COLUMN], y: COLUMN}",
                            "the data has no \"columns\"");
    if (has_schema && !j->header && j->n_schema == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "write schema: {age: float32, sex: [f, m]}",
                            "without a header the schema names all columns, in order");
    return WF_OK;
}

/* What is held out of `train` is read as `eval`. */
static wf_status hold_out(wf_conf_reader *r, const wf_tree *node, wf_job_conf *j, wf_err *err)
{
    const wf_tree *t = wf_tree_get(node, "validation_split");

    if (!t)
        return WF_OK;
    if (wf_tree_get(node, "eval"))
        return wf_read_fail(r, t, err, WF_USAGE, "leave one of them out",
                            "the data has both \"eval\" and \"validation_split\"");
    j->eval = j->train;
    j->eval.is_held_out = true;
    return WF_OK;
}

static wf_status no_records(wf_conf_reader *r, const wf_tree *node, wf_err *err)
{
    return wf_read_fail(r, node, err, WF_USAGE, "give \"records\"",
                        "synthetic data wants its number of records");
}

static wf_status check_kind(wf_conf_reader *r, const wf_tree *node, wf_job_conf *j, wf_err *err)
{
    wf_format_kind kind;

    WF_TRY(hold_out(r, node, j, err));
    WF_TRY(wf_format_kind_of(j->format, &kind, err));
    WF_TRY(check_keys(r, node, j, err));
    if (kind == WF_FORMAT_TEXT)
        WF_TRY(check_text(r, node, j, err));
    else if (kind == WF_FORMAT_ARRAYS)
        WF_TRY(check_arrays(r, node, j, err));
    else if (!j->synthetic_records)
        return no_records(r, node, err);
    return wf_check_new_files(r, node, j, err);
}

static wf_status check_data(wf_conf_reader *r, const wf_tree *node, wf_job_conf *j, wf_err *err)
{
    WF_TRY(check_kind(r, node, j, err));
    WF_TRY(wf_check_sequences(r, node, j, err));
    WF_TRY(wf_check_hosts(r, node, j, err));
    WF_TRY(check_shard(r, node, j, err));
    return wf_check_bags(r, node, j, err);
}

static wf_status read_format(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    wf_format_kind kind;

    WF_TRY(wf_read_text(r, node, &j->format, err));
    return wf_err_wrap(err, wf_format_kind_of(j->format, &kind, err), "%s:%d", r->path, node->line);
}

const wf_key wf_data_keys[] = {
    {"format", WF_KEY_CALL, .read = read_format, .required = true},
    {"train", WF_KEY_CALL, .read = read_train},
    {"eval", WF_KEY_CALL, .read = read_eval},
    {"validation_split", WF_KEY_CALL, .read = read_validation_split},
    {"columns", WF_KEY_CALL, .read = read_columns},
    {"schema", WF_KEY_CALL, .read = read_schema},
    {"header", WF_KEY_BOOL, .offset = offsetof(wf_job_conf, header), .usual = "true"},
    {"delimiter", WF_KEY_CALL, .read = read_delimiter, .usual = ","},
    {"on_bad_line", WF_KEY_CALL, .read = read_on_bad_line, .usual = "fail"},
    {"features", WF_KEY_U64, .offset = offsetof(wf_job_conf, features), .least = 1,
     .most = WF_DATA_MOST_FEATURES},
    {"zero_based", WF_KEY_BOOL, .offset = offsetof(wf_job_conf, zero_based), .usual = "false"},
    {"bags", WF_KEY_CALL, .read = wf_read_bags},
    {"separator", WF_KEY_CALL, .read = wf_read_separator, .usual = "|"},
    {"on_long_bag", WF_KEY_CALL, .read = wf_read_on_long_bag, .usual = "fail"},
    {"sequence_length", WF_KEY_U64, .offset = offsetof(wf_job_conf, sequence_length), .least = 1,
     .most = WF_DATA_MOST_OF_BAG},
    {"sequence_stride", WF_KEY_U64, .offset = offsetof(wf_job_conf, sequence_stride), .least = 1,
     .most = WF_DATA_MOST_STRIDE},
    {"map", WF_KEY_CALL, .read = read_map},
    {"records", WF_KEY_U64, .offset = offsetof(wf_job_conf, synthetic_records), .least = 1,
     .most = UINT64_C(1) << 40},
    {"shuffle", WF_KEY_BOOL, .offset = offsetof(wf_job_conf, shuffle), .usual = "true"},
    {"hosts", WF_KEY_CALL, .read = wf_read_hosts},
    {"split_records", WF_KEY_U64, .offset = offsetof(wf_job_conf, split_records), .least = 1,
     .most = UINT64_C(1) << 40},
    {"shard", WF_KEY_CALL, .read = read_shard, .usual = "data"},
    {"new_files", WF_KEY_CALL, .read = wf_read_new_files},
    {"once", WF_KEY_LATER},
    {"cache", WF_KEY_LATER},
    {"prefetch", WF_KEY_LATER},
    {"on_bad_record", WF_KEY_LATER},
    {"require_success", WF_KEY_LATER},
    {0},
};

wf_status wf_read_data(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    j->data_line = node->line;
    WF_TRY(wf_read_map(r, node, "the data", wf_data_keys, j, err));
    return check_data(r, node, j, err);
}
