/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/data.c - fields read, planned and held; records gathered. */
#include "common/data/data.h"
#include "common/base/arena.h"
#include "common/base/size.h"
#include "common/data/convert.h"
#include "common/data/format.h"
#include "common/data/steps.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 256, LINE = 64, AHEAD = 2 /* records */, AHEAD_LINES = 16 };

typedef struct field {
    wf_field_info info;
    wf_array array;
    wf_steps steps;
} field;

struct wf_dataset {
    wf_arena *arena; /* names and paths */
    uint32_t n_fields;
    uint64_t n_records;
    field fields[WF_DATA_MAX_FIELDS];
};

static wf_status read_array(const wf_format *format, const char *path, size_t limit_bytes,
                            wf_array *out, wf_err *err)
{
    wf_source source;
    wf_status rc = wf_source_open(&source, path, err);

    if (rc == WF_OK)
        rc = format->read(&source, limit_bytes, out, err);
    wf_source_close(&source);
    return rc;
}

/* Fills the facts of a field whose array has been read. */
static wf_status describe(field *f, const wf_field_spec *spec, wf_err *err)
{
    wf_field_info *info = &f->info;
    int64_t elems;

    info->raw_dtype = f->array.dtype;
    info->raw_rank = f->array.rank - 1;
    memcpy(info->raw_dims, f->array.dims + 1, info->raw_rank * sizeof info->raw_dims[0]);
    if (!wf_dims_elems(info->raw_rank, info->raw_dims, &elems) || elems == 0 ||
        !wf_mul_size((size_t)elems, wf_dtype_size(info->raw_dtype), &info->raw_record_bytes))
        return wf_fail(err, WF_INVALID, NULL, "%s: its records are empty", info->path);
    WF_TRY(wf_steps_plan(spec, info->raw_dtype, info->raw_rank, info->raw_dims, &f->steps, err));
    info->dtype = f->steps.dtype;
    info->rank = f->steps.rank;
    memcpy(info->dims, f->steps.dims, info->rank * sizeof info->dims[0]);
    if (!wf_dims_elems(info->rank, info->dims, &elems) ||
        !wf_mul_size((size_t)elems, wf_dtype_size(info->dtype), &info->record_bytes))
        return wf_fail(err, WF_SHAPE, NULL, "%s: a record is too large", info->path);
    return WF_OK;
}

static wf_status add_field(wf_dataset *d, const wf_format *format, const wf_field_spec *spec,
                           size_t limit_bytes, wf_err *err)
{
    field *f = &d->fields[d->n_fields];
    int64_t classes;

    f->info.name = wf_arena_strdup(d->arena, spec->name);
    f->info.path = wf_arena_strdup(d->arena, spec->path);
    if (!f->info.name || !f->info.path)
        return wf_fail_nomem(err, strlen(spec->name) + strlen(spec->path));
    if (wf_dataset_find(d, spec->name) >= 0)
        return wf_fail(err, WF_USAGE, NULL, "data field \"%s\" is given twice", spec->name);
    WF_TRY(read_array(format, spec->path, limit_bytes, &f->array, err));
    d->n_fields++; /* from here on wf_dataset_free frees its array */
    WF_TRY(describe(f, spec, err));
    if (d->n_fields == 1)
        d->n_records = (uint64_t)f->array.dims[0];
    if ((uint64_t)f->array.dims[0] != d->n_records)
        return wf_fail(err, WF_INVALID, "the fields of a data set go record by record",
                       "%s holds %" PRId64 " records (\"%s\"), %s holds %" PRIu64 " (\"%s\")",
                       f->info.path, f->array.dims[0], f->info.name, d->fields[0].info.path,
                       d->n_records, d->fields[0].info.name);
    classes = wf_steps_classes(&f->steps);
    if (classes)
        WF_TRY(wf_dataset_check_labels(d, d->n_fields - 1, classes, err));
    return WF_OK;
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
    d->arena = wf_arena_new(0);
    if (!d->arena)
        rc = wf_fail_nomem(err, sizeof *d);
    for (size_t i = 0; rc == WF_OK && i < spec->n_fields; i++) {
        size_t held = wf_dataset_bytes(d);

        if (spec->limit_bytes && held >= spec->limit_bytes)
            rc = wf_fail(err, WF_NOMEM, NULL, "the data set takes more than %zu bytes",
                         spec->limit_bytes);
        else
            rc = add_field(d, format, &spec->fields[i],
                           spec->limit_bytes ? spec->limit_bytes - held : 0, err);
    }
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
    wf_arena_free(&(*d)->arena);
    free(*d);
    *d = NULL;
}

uint64_t wf_dataset_records(const wf_dataset *d)
{
    return d->n_records;
}

size_t wf_dataset_bytes(const wf_dataset *d)
{
    size_t bytes = 0;

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

/* Asks the processor for the head of a record: shuffled, it lies where nothing else would fetch it.
 * The rest follows from reading in order. */
static void fetch_ahead(const uint8_t *record, size_t bytes)
{
    for (size_t at = 0; at < WF_MIN(bytes, (size_t)AHEAD_LINES * LINE); at += LINE)
        WF_PREFETCH(record + at);
}

void wf_dataset_gather(const wf_dataset *d, uint32_t field_index, const uint64_t at[], size_t n,
                       void *out)
{
    const field *f = &d->fields[field_index];
    const uint8_t *data = f->array.data;
    size_t in_bytes = f->info.raw_record_bytes, out_bytes = f->info.record_bytes;
    uint8_t *to = out;

    wf_assert(field_index < d->n_fields);
    for (size_t i = 0; i < n; i++, to += out_bytes) {
        wf_assert(at[i] < d->n_records);
        if (i + AHEAD < n)
            fetch_ahead(data + at[i + AHEAD] * in_bytes, in_bytes);
        wf_steps_run(&f->steps, data + at[i] * in_bytes, to);
    }
}

wf_field_range wf_dataset_range(const wf_dataset *d, uint32_t field_index)
{
    const field *f = &d->fields[field_index];
    size_t size = wf_dtype_size(f->array.dtype), n = f->array.bytes / size;
    size_t each = f->info.raw_record_bytes / size;
    wf_field_range r = {.least = INFINITY, .most = -INFINITY};
    double tile[TILE];

    wf_assert(field_index < d->n_fields);
    for (size_t from = 0; from < n; from += TILE) {
        size_t now = WF_MIN(n - from, (size_t)TILE);

        wf_convert(f->array.dtype, (const uint8_t *)f->array.data + from * size, WF_F64, tile, now);
        for (size_t i = 0; i < now; i++) {
            if (tile[i] < r.least) {
                r.least = tile[i];
                r.least_at = (from + i) / each;
            }
            if (tile[i] > r.most) {
                r.most = tile[i];
                r.most_at = (from + i) / each;
            }
        }
    }
    if (r.least > r.most)
        return (wf_field_range){0};
    return r;
}

wf_status wf_dataset_check_labels(const wf_dataset *d, uint32_t field_index, int64_t classes,
                                  wf_err *err)
{
    wf_field_range r = wf_dataset_range(d, field_index);
    bool low = trunc(r.least) < 0;

    if (!low && r.most < (double)classes)
        return WF_OK;
    return wf_fail(err, WF_INVALID, "change the data, or the number of units of the last layer",
                   "%s: record %" PRIu64 " has the label %.15g; there are %" PRId64
                   " classes, 0 to %" PRId64,
                   d->fields[field_index].info.path, low ? r.least_at : r.most_at,
                   low ? r.least : r.most, classes, classes - 1);
}
