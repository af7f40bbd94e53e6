/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/data.c - fields opened and planned. */
#include "common/data/data.h"
#include "common/base/arena.h"
#include "common/base/size.h"
#include "common/data/dataset.h"
#include "common/data/paths.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- fields ---- */

/* Fills the facts of a field whose records are known: dtype, rank and dims in raw_*. */
static wf_status describe(wf_field *f, const wf_field_spec *spec, wf_err *err)
{
    wf_field_info *info = &f->info;
    int64_t elems;

    if (!wf_dims_elems(info->raw_rank, info->raw_dims, &elems) || elems == 0 ||
        !wf_mul_size((size_t)elems, wf_dtype_size(info->raw_dtype), &info->raw_record_bytes))
        return wf_fail(err, WF_INVALID, NULL, "%s: its records are empty", info->path);
    WF_TRY(wf_steps_plan(spec, info->raw_dtype, info->raw_rank, info->raw_dims, &f->steps, err));
    info->dtype = f->steps.dtype;
    info->is_bag = spec->is_bag;
    info->rank = f->steps.rank;
    memcpy(info->dims, f->steps.dims, info->rank * sizeof info->dims[0]);
    if (!wf_dims_elems(info->rank, info->dims, &elems) ||
        !wf_mul_size((size_t)elems, wf_dtype_size(info->dtype), &info->record_bytes))
        return wf_fail(err, WF_SHAPE, NULL, "%s: a record is too large", info->path);
    return WF_OK;
}

static wf_status describe_array(wf_field *f, const wf_field_spec *spec, wf_err *err)
{
    wf_field_info *info = &f->info;

    if (f->array.rank == 0)
        return wf_fail(err, WF_INVALID, "give it a first axis, one entry a record",
                       "%s holds a single number and no records", info->path);
    if (f->array.dims[0] == 0)
        return wf_fail(err, WF_INVALID, NULL, "%s holds no records", info->path);
    info->raw_dtype = f->array.dtype;
    info->raw_rank = f->array.rank - 1;
    memcpy(info->raw_dims, f->array.dims + 1, info->raw_rank * sizeof info->raw_dims[0]);
    return describe(f, spec, err);
}

/* The file of a field in the training data; NULL: these are it. */
static const char *trained_path(const wf_dataset_spec *set, const char *name)
{
    for (size_t i = 0; set->reference && i < set->reference->n_fields; i++)
        if (strcmp(set->reference->fields[i].name, name) == 0)
            return set->reference->fields[i].path;
    return NULL;
}

/* How the bags of a field of arrays are held. Errors: WF_USAGE. */
static wf_status plan_bag(const wf_dataset_spec *set, const wf_field_spec *spec,
                          atomic_uint_fast64_t *cut, wf_bag *out, wf_err *err)
{
    bool weights = spec->bag_ids || wf_dtype_is_float(spec->want);

    *out = wf_bag_of(spec, set, weights ? WF_F32 : WF_I64, cut);
    if (!spec->is_bag || (out->most > 0 && out->most <= WF_DATA_MOST_OF_BAG))
        return WF_OK;
    return wf_fail(err, WF_USAGE, "give the model's input the shape [most values of a bag]",
                   "field \"%.64s\": bags of up to %" PRIu64 " values; 1 to %d", spec->name,
                   out->most, WF_DATA_MOST_OF_BAG);
}

/* Reads or makes the array of a field and describes it. */
static wf_status fill_field(wf_dataset *d, wf_field *f, const wf_format *format,
                            const wf_dataset_spec *set, const wf_field_spec *spec,
                            size_t limit_bytes, wf_err *err)
{
    static const wf_map_step to_one = {.type = "scale", .number = 1.0 / 255};
    wf_field_spec scaled = *spec;
    atomic_uint_fast64_t cut = 0;
    wf_bag bag;

    if (!format->make) {
        WF_TRY(plan_bag(set, spec, &cut, &bag, err));
        WF_TRY(wf_parts_read(format, set, spec, trained_path(set, spec->name),
                             bag.most ? &bag : NULL, limit_bytes, d->arena, &f->parts, &f->array,
                             err));
        d->cut += atomic_load(&cut);
        if (format->lend) { /* its path has the job's folder in front, which says nothing */
            const char *slash = strrchr(spec->path, '/');

            f->info.path = wf_arena_printf(d->arena, "memory:%s", slash ? slash + 1 : spec->path);
            if (!f->info.path)
                return wf_fail_nomem(err, strlen(spec->path));
        }
        if (f->parts.n > 1) {
            f->info.path = wf_arena_printf(d->arena, "%s and %zu more", f->parts.files[0].path,
                                           f->parts.n - 1);
            if (!f->info.path)
                return wf_fail_nomem(err, strlen(spec->path));
        }
        return describe_array(f, spec, err);
    }
    WF_TRY(format->make(set, spec, limit_bytes, &f->array, err));
    if (spec->n_steps == 0 && spec->classes == 0 && wf_dtype_is_float(spec->want)) {
        scaled.steps = &to_one;
        scaled.n_steps = 1;
    }
    return describe_array(f, &scaled, err);
}

/* A field by its name; `path` is for messages. */
static wf_status new_field(wf_dataset *d, const wf_field_spec *spec, const char *path,
                           wf_field **out, wf_err *err)
{
    wf_field *f = &d->fields[d->n_fields];

    f->info.name = wf_arena_strdup(d->arena, spec->name);
    f->info.path = wf_arena_strdup(d->arena, path);
    if (!f->info.name || !f->info.path)
        return wf_fail_nomem(err, strlen(spec->name) + strlen(path));
    if (wf_dataset_find(d, spec->name) >= 0)
        return wf_fail(err, WF_USAGE, NULL, "data field \"%s\" is given twice", spec->name);
    d->n_fields++; /* from here on wf_dataset_free frees its array */
    *out = f;
    return WF_OK;
}

static wf_status check_one_hot(wf_dataset *d, uint32_t field_index, wf_err *err)
{
    int64_t classes = wf_steps_classes(&d->fields[field_index].steps);

    return classes ? wf_dataset_check_labels(d, field_index, classes, err) : WF_OK;
}

/* Two fields of different counts: by their files where these go in pairs, else as a whole. */
static wf_status check_counts(const wf_dataset *d, const wf_field *f, wf_err *err)
{
    const wf_field *first = &d->fields[0];
    const char *path = f->info.path, *first_path = first->info.path;
    uint64_t n = (uint64_t)f->array.dims[0], first_n = (uint64_t)first->array.dims[0];

    if (n == first_n)
        return WF_OK;
    for (size_t i = 0; f->parts.n == first->parts.n && i < f->parts.n; i++)
        if (f->parts.files[i].records != first->parts.files[i].records) {
            path = f->parts.files[i].path;
            n = f->parts.files[i].records;
            first_path = first->parts.files[i].path;
            first_n = first->parts.files[i].records;
            break;
        }
    return wf_fail(err, WF_INVALID, "the fields of a data set go record by record",
                   "%s holds %" PRIu64 " records (\"%s\"), %s holds %" PRIu64 " (\"%s\")", path, n,
                   f->info.name, first_path, first_n, first->info.name);
}

static wf_status add_array(wf_dataset *d, const wf_format *format, const wf_dataset_spec *set,
                           const wf_field_spec *spec, size_t limit_bytes, wf_err *err)
{
    wf_field *f = NULL;

    if (!format->make && !spec->path)
        return wf_fail(err, WF_USAGE, NULL, "data field \"%s\" has no file", spec->name);
    if (wf_steps_read_words(spec))
        return wf_fail(err, WF_USAGE, "leave it out, or give a csv file",
                       "map of \"%s\": %s: data of the format \"%s\" has no words", spec->name,
                       spec->steps[0].type, format->name);
    WF_TRY(new_field(d, spec, spec->path ? spec->path : format->name, &f, err));
    WF_TRY(fill_field(d, f, format, set, spec, limit_bytes, err));
    WF_TRY(check_counts(d, f, err));
    d->n_records = (uint64_t)f->array.dims[0];
    if (!f->array.lent) /* what the program lends no other process reads */
        d->digest = XXH3_64bits_withSeed(f->array.data, f->array.bytes, d->digest);
    return check_one_hot(d, d->n_fields - 1, err);
}

static wf_status add_arrays(wf_dataset *d, const wf_format *format, const wf_dataset_spec *spec,
                            wf_err *err)
{
    for (size_t i = 0; i < spec->n_fields; i++) {
        size_t held = wf_dataset_bytes(d);

        if (spec->limit_bytes && held >= spec->limit_bytes)
            return wf_fail(err, WF_NOMEM, NULL, "the data set takes more than %zu bytes",
                           spec->limit_bytes);
        WF_TRY(add_array(d, format, spec, &spec->fields[i],
                         spec->limit_bytes ? spec->limit_bytes - held : 0, err));
    }
    return WF_OK;
}

static wf_status add_columns(wf_dataset *d, const wf_field_spec *spec, wf_err *err)
{
    uint32_t at = d->n_fields;
    wf_text_shape shape = wf_text_shape_of(d->text, at);
    wf_field_spec own = *spec; /* of libsvm a column says that it has bags */
    wf_field *f = NULL;

    WF_TRY(new_field(d, spec, wf_text_path(d->text), &f, err));
    f->info.raw_dtype = shape.dtype;
    f->info.raw_rank = shape.is_row;
    f->info.raw_dims[0] = shape.width;
    own.is_bag |= shape.is_bag;
    WF_TRY(describe(f, &own, err));
    return check_one_hot(d, at, err);
}

static wf_status add_text(wf_dataset *d, const wf_format *format, const wf_dataset_spec *spec,
                          wf_err *err)
{
    wf_dataset_spec found = *spec;

    if (spec->n_files == 0)
        return wf_fail(err, WF_USAGE, NULL, "a data set of the format \"%s\" has no file",
                       format->name);
    WF_TRY(wf_paths_expand(spec->files, spec->n_files, false, d->arena, &found.files,
                           &found.n_files, err));
    for (size_t i = 0; i < spec->n_fields; i++)
        if (spec->fields[i].n_columns == 0 ||
            (spec->fields[i].n_columns > 1 && !spec->fields[i].is_row))
            return wf_fail(err, WF_USAGE, "name its columns", "data field \"%s\" has %zu columns",
                           spec->fields[i].name, spec->fields[i].n_columns);
    WF_TRY(wf_text_open(format->text, &found, &d->text, err));
    d->n_records = wf_text_records(d->text);
    d->digest = wf_text_digest(d->text);
    for (size_t i = 0; i < spec->n_fields; i++)
        WF_TRY(add_columns(d, &spec->fields[i], err));
    return WF_OK;
}

/* ---- what is held out ---- */

/* Leaves `n` records of an array, from `first` on. Those at the end of the file move into memory of
 * their own size; the others stay, and what is behind them is not touched again. */
static wf_status keep_records(wf_field *f, uint64_t first, uint64_t n, wf_err *err)
{
    wf_array part = f->array;
    size_t record = f->info.raw_record_bytes;

    part.dims[0] = (int64_t)n;
    if (first == 0 || !f->array.data) {
        f->array.dims[0] = part.dims[0];
        f->array.bytes = f->array.data ? (size_t)n * record : 0;
        return WF_OK;
    }
    if (f->array.lent) {
        f->array.data = (uint8_t *)f->array.data + (size_t)first * record;
        f->array.bytes = (size_t)n * record;
        f->array.dims[0] = part.dims[0];
        return WF_OK;
    }
    WF_TRY(wf_array_make(&part, f->info.path, 0, err));
    memcpy(part.data, (const uint8_t *)f->array.data + (size_t)first * record, part.bytes);
    wf_array_close(&f->array);
    f->array = part;
    return WF_OK;
}

static wf_status hold_out(wf_dataset *d, const wf_dataset_spec *spec, wf_err *err)
{
    uint64_t all = d->n_records, before = (uint64_t)floor((double)all * (1 - spec->held_out));

    if (spec->held_out == 0)
        return WF_OK;
    if (!(spec->held_out > 0 && spec->held_out < 1))
        return wf_fail(err, WF_USAGE, "write 0.1 to hold out a tenth of the records",
                       "a share of %g held out", spec->held_out);
    if (before == 0 || before >= all)
        return wf_fail(err, WF_INVALID, "give more records, or another validation_split",
                       "%s holds %" PRIu64 " records; a validation_split of %g leaves none for %s",
                       d->fields[0].info.path, all, spec->held_out,
                       before ? "evaluation" : "training");
    d->first = spec->is_held_out ? before : 0;
    d->n_records = spec->is_held_out ? all - before : before;
    for (uint32_t i = 0; !d->text && i < d->n_fields; i++)
        WF_TRY(keep_records(&d->fields[i], d->first, d->n_records, err));
    return WF_OK;
}

/* Whether a step goes by numbers or words that nobody has given. */
static bool has_to_learn(const wf_dataset *d)
{
    bool learns = false;

    for (uint32_t f = 0; f < d->n_fields; f++) {
        if (d->text && wf_text_words(d->text, f, &learns) && learns)
            return true;
        for (uint32_t i = 0; i < d->fields[f].steps.n; i++)
            if (d->fields[f].steps.stages[i].n_numbers && !d->fields[f].steps.stages[i].numbers)
                return true;
    }
    return false;
}

/* What steps learn is learnt of the training data, which may be another data set: words first,
 * which may be standardised. */
static wf_status settle(wf_dataset *d, const wf_dataset_spec *spec, wf_err *err)
{
    wf_dataset *from = NULL;
    wf_status rc = WF_OK;

    if (spec->reference && has_to_learn(d))
        rc = wf_dataset_open(spec->reference, &from, err);
    if (rc == WF_OK && d->text)
        rc = wf_dataset_settle_words(d, from, spec, err);
    if (rc == WF_OK)
        rc = wf_dataset_settle(d, from, err);
    wf_dataset_free(&from);
    return rc;
}

wf_status wf_dataset_open(const wf_dataset_spec *spec, wf_dataset **out, wf_err *err)
{
    const wf_format *format;
    wf_dataset *d = NULL;
    wf_status rc = WF_OK;

    WF_TRY(wf_format_find(spec->format, &format, err));
    if (spec->n_fields == 0 || spec->n_fields > WF_DATA_MAX_FIELDS)
        return wf_fail(err, WF_USAGE, NULL, "a data set of %zu fields; 1 to %d", spec->n_fields,
                       WF_DATA_MAX_FIELDS);
    d = calloc(1, sizeof *d);
    if (!d)
        return wf_fail_nomem(err, sizeof *d);
    d->is_random = spec->is_random;
    d->seed = spec->seed;
    d->arena = wf_arena_new(0);
    if (!d->arena)
        rc = wf_fail_nomem(err, sizeof *d);
    else
        rc = (format->text ? add_text : add_arrays)(d, format, spec, err);
    if (rc == WF_OK)
        rc = hold_out(d, spec, err);
    if (rc == WF_OK)
        rc = settle(d, spec, err);
    if (rc == WF_OK)
        *out = d;
    else
        wf_dataset_free(&d);
    return rc;
}

void wf_dataset_free(wf_dataset **d)
{
    if (!*d)
        return;
    for (uint32_t i = 0; i < (*d)->n_fields; i++)
        wf_array_close(&(*d)->fields[i].array);
    wf_text_close(&(*d)->text);
    wf_arena_free(&(*d)->arena);
    free(*d);
    *d = NULL;
}

uint64_t wf_dataset_records(const wf_dataset *d)
{
    return d->n_records;
}

uint64_t wf_dataset_skipped(const wf_dataset *d, const char **path, uint64_t *line)
{
    return d->text ? wf_text_skipped(d->text, path, line) : 0;
}

uint64_t wf_dataset_cut(const wf_dataset *d)
{
    return d->text ? wf_text_cut(d->text) : d->cut;
}

uint64_t wf_dataset_digest(const wf_dataset *d)
{
    return d->digest ? d->digest : 1;
}

size_t wf_dataset_bytes(const wf_dataset *d)
{
    size_t bytes = d->text ? wf_text_bytes(d->text) : 0;

    for (uint32_t i = 0; i < d->n_fields; i++)
        bytes += d->fields[i].array.bytes; /* each is in memory, so their sum fits */
    return bytes;
}

uint32_t wf_dataset_n_fields(const wf_dataset *d)
{
    return d->n_fields;
}

const wf_field_info *wf_dataset_field(const wf_dataset *d, uint32_t i)
{
    wf_assert(i < d->n_fields);
    return &d->fields[i].info;
}

int wf_dataset_find(const wf_dataset *d, const char *name)
{
    for (uint32_t i = 0; i < d->n_fields; i++)
        if (strcmp(d->fields[i].info.name, name) == 0)
            return (int)i;
    return -1;
}

void wf_dataset_blocks(const wf_dataset *d, uint64_t *block, uint64_t *window)
{
    *block = *window = 0;
    if (d->text)
        wf_text_blocks(d->text, block, window);
}

bool wf_dataset_part(const wf_dataset *d, size_t i, const char **path, uint64_t *records)
{
    const wf_parts *p = &d->fields[0].parts;

    if (d->text)
        return wf_text_part(d->text, i, path, records);
    if (d->n_fields == 0 || i >= p->n)
        return false;
    *path = p->files[i].path;
    *records = p->files[i].records;
    return true;
}
