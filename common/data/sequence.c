/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/sequence.c */
#include "common/data/sequence.h"
#include "common/base/size.h"
#include "common/data/dataset.h"
#include "common/data/learnt.h"
#include "common/data/paths.h"
#include "common/data/resize.h"
#include "common/data/zst.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_BYTES = 16 << 20, /* of a file: few heads are read again, and little memory is held */
    TILE = 1024              /* records that are gathered in one call */
};

/* A file of an array format, whose records follow those of the file before. */
typedef struct file {
    const char *path; /* with its "#NAME" */
    const char *shown;
    uint64_t first, end; /* of its records, among all */
} file;

struct wf_sequence {
    wf_arena *arena;
    wf_dataset_spec spec;
    wf_field_spec field;
    wf_map_step steps[WF_DATA_MAX_STEPS + 1];
    wf_learnt_list learnt; /* what the steps go by, where nobody gave it */
    wf_field_info info;
    file *files; /* [n_files] */
    size_t n_files;
    uint64_t records;
    bool is_text;
    wf_dataset *open;    /* that holds records [begin, end); of text all */
    uint64_t begin, end; /* none: 0, 0 */
};

/* ---- files ---- */

static wf_status list_files(wf_sequence *s, const char *const paths[], size_t n, bool members,
                            wf_err *err)
{
    const char *const *found = NULL;

    WF_TRY(wf_paths_expand(paths, n, members, s->arena, &found, &n, err));
    s->files = wf_arena_array(s->arena, n, sizeof *s->files);
    if (!s->files)
        return wf_fail_nomem(err, n * sizeof *s->files);
    for (size_t i = 0; i < n; i++) {
        const char *mark = members ? wf_paths_member(found[i]) : found[i] + strlen(found[i]);

        s->files[i] =
            (file){.path = found[i],
                   .shown = wf_arena_printf(s->arena, "%.*s", (int)(mark - found[i]), found[i])};
        if (!s->files[i].shown)
            return wf_fail_nomem(err, strlen(found[i]));
    }
    s->n_files = n;
    return WF_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);

    return n >= k && strcmp(text + n - k, end) == 0;
}

/* Whether a part of the file can be read without what is before it. */
static bool has_windows(const wf_sequence *s, const wf_format *format, const file *f)
{
    return format->read && !format->member && !wf_resize_of(&s->field) &&
           !ends_with(f->shown, ".gz") && !wf_is_zst(f->shown);
}

/* A data set of records [first, first + n) of a file, which are among those of all; n 0: all. */
static wf_status open_file(wf_sequence *s, const file *f, uint64_t first, uint64_t n,
                           bool head_only, wf_dataset **out, wf_err *err)
{
    wf_dataset_spec spec = s->spec;
    wf_field_spec field = s->field;

    field.path = f->path;
    field.more = NULL;
    field.n_more = 0;
    field.head_only = head_only;
    spec.fields = &field;
    spec.window_first = first;
    spec.window_records = n;
    return wf_dataset_open(&spec, out, err);
}

static wf_status check_alike(const wf_sequence *s, const file *f, const wf_field_info *info,
                             wf_err *err)
{
    const wf_field_info *first = &s->info;
    char one[128], other[128];

    if (info->raw_dtype == first->raw_dtype && info->raw_rank == first->raw_rank &&
        memcmp(info->raw_dims, first->raw_dims, first->raw_rank * sizeof first->raw_dims[0]) == 0)
        return WF_OK;
    return wf_fail(err, WF_INVALID, "the files of an input hold records of one kind",
                   "a record of %s is %s%s, one of %s is %s%s", f->shown,
                   wf_dtype_name(info->raw_dtype),
                   wf_dims_str(info->raw_rank, info->raw_dims, other, sizeof other),
                   s->files[0].shown, wf_dtype_name(first->raw_dtype),
                   wf_dims_str(first->raw_rank, first->raw_dims, one, sizeof one));
}

/* What the steps have learnt by now, they keep: the training data are read once. */
static wf_status keep_learnt(wf_sequence *s, const wf_dataset *d, wf_err *err)
{
    wf_learnt rows[WF_LEARNT_MOST];
    size_t n = wf_dataset_learnt(d, rows);

    if (n == 0)
        return WF_OK;
    WF_TRY(wf_learnt_keep(rows, n, &s->learnt, err));
    return wf_learnt_give(s->learnt.rows, s->learnt.n, s->field.name, s->steps, s->field.n_steps,
                          err);
}

/* How many records each file holds, and what they are. */
static wf_status count_records(wf_sequence *s, wf_err *err)
{
    for (size_t i = 0; i < s->n_files; i++) {
        file *f = &s->files[i];
        wf_dataset *d = NULL;
        wf_status rc = open_file(s, f, 0, 0, true, &d, err);

        if (rc == WF_OK && i == 0) {
            s->info = *wf_dataset_field(d, 0);
            s->info.name = s->field.name;
            s->info.path = f->path;
            rc = keep_learnt(s, d, err);
        } else if (rc == WF_OK) {
            rc = check_alike(s, f, wf_dataset_field(d, 0), err);
        }
        if (rc == WF_OK) {
            f->first = s->records;
            s->records += wf_dataset_records(d);
            f->end = s->records;
        }
        wf_dataset_free(&d);
        if (rc != WF_OK)
            return rc;
    }
    return WF_OK;
}

/* ---- opened ---- */

static wf_status open_text(wf_sequence *s, wf_err *err)
{
    WF_TRY(list_files(s, s->spec.files, s->spec.n_files, false, err));
    WF_TRY(wf_dataset_open(&s->spec, &s->open, err));
    s->info = *wf_dataset_field(s->open, 0);
    s->end = s->records = wf_dataset_records(s->open);
    s->is_text = true;
    return WF_OK;
}

static wf_status open_arrays(wf_sequence *s, const wf_format *format, wf_err *err)
{
    const char **paths = wf_arena_array(s->arena, s->field.n_more + 1, sizeof *paths);

    if (!paths)
        return wf_fail_nomem(err, s->field.n_more * sizeof *paths);
    paths[0] = s->field.path;
    for (size_t i = 0; i < s->field.n_more; i++)
        paths[i + 1] = s->field.more[i];
    WF_TRY(list_files(s, paths, s->field.n_more + 1, wf_format_has_members(format), err));
    return count_records(s, err);
}

wf_status wf_sequence_open(const wf_dataset_spec *set, wf_sequence **out, wf_err *err)
{
    wf_sequence *s = calloc(1, sizeof *s);
    const wf_format *format = NULL;
    wf_status rc;

    *out = NULL;
    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    wf_assert(set->n_fields == 1 && set->fields[0].n_steps <= WF_DATA_MAX_STEPS + 1);
    s->spec = *set;
    s->field = set->fields[0];
    if (s->field.n_steps)
        memcpy(s->steps, s->field.steps, s->field.n_steps * sizeof *s->steps);
    s->field.steps = s->steps;
    s->spec.fields = &s->field;
    s->arena = wf_arena_new(0);
    rc = s->arena ? wf_format_find(set->format, &format, err) : wf_fail_nomem(err, 0);
    if (rc == WF_OK && (format->make || format->lend))
        rc = wf_fail(err, WF_USAGE, NULL, "data of the format \"%s\" has no files", format->name);
    if (rc == WF_OK)
        rc = format->text ? open_text(s, err) : open_arrays(s, format, err);
    if (rc == WF_OK)
        *out = s;
    else
        wf_sequence_free(&s);
    return rc;
}

void wf_sequence_free(wf_sequence **s)
{
    if (!*s)
        return;
    wf_dataset_free(&(*s)->open);
    wf_learnt_close(&(*s)->learnt);
    wf_arena_free(&(*s)->arena);
    free(*s);
    *s = NULL;
}

uint64_t wf_sequence_records(const wf_sequence *s)
{
    return s->records;
}

const wf_field_info *wf_sequence_field(const wf_sequence *s)
{
    return &s->info;
}

const char *wf_sequence_file(const wf_sequence *s, size_t i)
{
    return i < s->n_files ? s->files[i].shown : NULL;
}

bool wf_sequence_part(const wf_sequence *s, size_t i, const char **path, uint64_t *records)
{
    if (i >= s->n_files)
        return false;
    *path = s->files[i].shown;
    *records = s->files[i].end - s->files[i].first;
    return !s->is_text || wf_dataset_part(s->open, i, path, records);
}

/* ---- read ---- */

/* Opens what holds record `at`. */
static wf_status move_to(wf_sequence *s, uint64_t at, wf_err *err)
{
    uint64_t window = WF_MAX(WINDOW_BYTES / WF_MAX(s->info.raw_record_bytes, (size_t)1), (size_t)1);
    const wf_format *format = NULL;
    const file *f = s->files;
    uint64_t first, n;

    wf_assert(at < s->records);
    WF_TRY(wf_format_find(s->spec.format, &format, err));
    while (at >= f->end)
        f++;
    wf_dataset_free(&s->open);
    first = has_windows(s, format, f) ? at : f->first;
    n = has_windows(s, format, f) ? WF_MIN(window, f->end - at) : f->end - f->first;
    s->begin = s->end = 0;
    WF_TRY(
        open_file(s, f, first - f->first, has_windows(s, format, f) ? n : 0, false, &s->open, err));
    if (wf_dataset_records(s->open) != n)
        return wf_fail(err, WF_INVALID, "leave the files alone while they are read",
                       "%s has %" PRIu64 " records, it had %" PRIu64 " before", f->shown,
                       wf_dataset_records(s->open), n);
    WF_TRY(check_alike(s, f, wf_dataset_field(s->open, 0), err));
    s->begin = first;
    s->end = first + n;
    return WF_OK;
}

wf_status wf_sequence_read(wf_sequence *s, uint64_t first, size_t n, void *out, wf_err *err)
{
    uint8_t *to = out;
    uint64_t at[TILE];

    while (n > 0) {
        size_t now;

        if (first < s->begin || first >= s->end)
            WF_TRY(move_to(s, first, err));
        now = (size_t)WF_MIN(WF_MIN((uint64_t)n, s->end - first), (uint64_t)TILE);
        for (size_t i = 0; i < now; i++)
            at[i] = first - s->begin + i;
        WF_TRY(wf_dataset_gather(s->open, 0, at, now, to, err));
        to += now * s->info.record_bytes;
        first += now;
        n -= now;
    }
    return WF_OK;
}
