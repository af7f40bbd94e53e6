/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/parts.c */
#include "common/data/parts.h"
#include "common/base/size.h"
#include "common/data/paths.h"
#include "common/data/resize.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A path without its "#NAME", and the name there, or else the field's. */
static wf_status split(const char *path, char file[PATH_MAX], const char **name, wf_err *err)
{
    const char *mark = wf_paths_member(path);

    if (snprintf(file, PATH_MAX, "%.*s", (int)(mark - path), path) >= PATH_MAX)
        return wf_fail(err, WF_INVALID, NULL, "the path %.64s... is too long", path);
    *name = *mark ? mark + 1 : *name;
    return WF_OK;
}

static wf_status open_member(wf_source *s, const wf_format *format, const char *path,
                             const char *name, wf_err *err)
{
    char file[PATH_MAX], member[WF_ZIP_NAME];

    WF_TRY(split(path, file, &name, err));
    WF_TRY(format->member(file, name, member, err));
    return wf_source_open_member(s, path, file, member, err);
}

/* Which of a file's records are wanted. */
typedef struct wanted {
    bool head_only;
    uint64_t first, records; /* 0 records: all */
} wanted;

static wf_status open_and_read(const wf_format *format, const char *path, const char *name,
                               const wf_bag *bag, wanted what, size_t limit_bytes, wf_array *out,
                               wf_err *err)
{
    wf_source source = {0};
    char file[PATH_MAX];
    wf_status rc = WF_OK;

    if (format->feature) {
        WF_TRY(split(path, file, &name, err));
        rc = wf_source_open(&source, file, err);
    } else {
        rc = format->member ? open_member(&source, format, path, name, err)
                            : wf_source_open(&source, path, err);
    }
    source.head_only = what.head_only;
    source.window_first = what.first;
    source.window_records = what.records;
    if (rc == WF_OK)
        rc = format->feature ? format->feature(&source, name, bag, limit_bytes, out, err)
                             : format->read(&source, limit_bytes, out, err);
    wf_source_close(&source);
    return rc;
}

/* One whole file or folder. */
static wf_status read_file(const wf_format *format, const char *path, const char *name,
                           const char *trained, const wf_map_step *resize, const wf_bag *bag,
                           wanted what, size_t limit_bytes, wf_array *out, wf_err *err)
{
    wf_status rc;

    if (format->load)
        return format->load(path, trained, resize, limit_bytes, out, err);
    what.head_only &= !resize;
    rc = open_and_read(format, path, name, bag, what, limit_bytes, out, err);
    if (rc == WF_OK && resize)
        rc = wf_resize_array(out, resize, path, limit_bytes, err);
    return rc;
}

wf_status wf_parts_read_file(const wf_format *format, const char *path, const char *name,
                             size_t limit_bytes, wf_array *out, wf_err *err)
{
    return read_file(format, path, name, NULL, NULL, NULL, (wanted){0}, limit_bytes, out, err);
}

const wf_part *wf_parts_find(const wf_parts *p, uint64_t record, uint64_t *at)
{
    const wf_part *file = p->files;

    for (; file + 1 < p->files + p->n && record >= file->records; file++)
        record -= file->records;
    *at = record;
    return file;
}

static wf_status check_alike(const wf_array *first, const char *first_path, const wf_array *a,
                             const char *path, wf_err *err)
{
    char one[128], other[128];

    if (a->dtype == first->dtype && a->rank == first->rank && a->rank > 0 &&
        memcmp(a->dims + 1, first->dims + 1, (a->rank - 1) * sizeof a->dims[0]) == 0)
        return WF_OK;
    return wf_fail(err, WF_INVALID, "the files of a field hold records of one kind",
                   "%s is %s%s, %s is %s%s", path, wf_dtype_name(a->dtype),
                   wf_dims_str(a->rank, a->dims, other, sizeof other), first_path,
                   wf_dtype_name(first->dtype),
                   wf_dims_str(first->rank, first->dims, one, sizeof one));
}

/* Puts arrays one after the other, and gives back each as soon as it is copied. */
static wf_status join(wf_array parts[], size_t n, size_t limit_bytes, const char *path,
                      wf_array *out, wf_err *err)
{
    wf_array all = parts[0];
    uint8_t *to;
    bool head_only = !parts[0].data;

    for (size_t i = 1; i < n; i++) {
        if (__builtin_add_overflow(all.dims[0], parts[i].dims[0], &all.dims[0]))
            return wf_fail(err, WF_INVALID, NULL, "%s and the files after it hold too much", path);
        head_only |= !parts[i].data;
    }
    if (head_only) {
        all.data = NULL;
        all.bytes = 0;
        *out = all;
        return WF_OK;
    }
    WF_TRY(wf_array_make(&all, path, limit_bytes, err));
    to = all.data;
    for (size_t i = 0; i < n; i++) {
        memcpy(to, parts[i].data, parts[i].bytes);
        to += parts[i].bytes;
        wf_array_close(&parts[i]);
    }
    *out = all;
    return WF_OK;
}

static wf_status read_parts(const wf_format *format, const wf_dataset_spec *set,
                            const wf_field_spec *spec, const char *trained, const wf_bag *bag,
                            size_t limit_bytes, wf_parts *p, wf_array parts[], wf_err *err)
{
    const wanted what = {spec->head_only, set->window_first, set->window_records};
    size_t held = 0;

    wf_assert(!what.records || p->n == 1);

    for (size_t i = 0; i < p->n; i++) {
        if (limit_bytes && held >= limit_bytes)
            return wf_fail(err, WF_NOMEM, NULL, "the data set takes more than %zu bytes",
                           limit_bytes);
        WF_TRY(read_file(format, p->files[i].path, spec->name, trained, wf_resize_of(spec), bag,
                         what, limit_bytes ? limit_bytes - held : 0, &parts[i], err));
        held += parts[i].bytes; /* each is in memory, so their sum fits */
        if (i > 0)
            WF_TRY(check_alike(&parts[0], p->files[0].path, &parts[i], p->files[i].path, err));
        p->files[i].records = parts[i].rank ? (uint64_t)parts[i].dims[0] : 0;
    }
    return WF_OK;
}

static wf_status list_files(const wf_format *format, const wf_field_spec *spec, wf_arena *a,
                            wf_parts *p, wf_err *err)
{
    const char *const *paths = NULL, *const *more = NULL;
    size_t n = 0, n_more = 0;

    WF_TRY(wf_paths_expand(&spec->path, 1, wf_format_has_members(format), a, &paths, &n, err));
    WF_TRY(wf_paths_expand(spec->more, spec->n_more, wf_format_has_members(format), a, &more,
                           &n_more, err));
    p->files = wf_arena_array(a, n + n_more, sizeof *p->files);
    if (!p->files)
        return wf_fail_nomem(err, (n + n_more) * sizeof *p->files);
    for (p->n = 0; p->n < n + n_more; p->n++)
        p->files[p->n] = (wf_part){.path = p->n < n ? paths[p->n] : more[p->n - n]};
    return WF_OK;
}

static wf_status lend(const wf_format *format, const wf_dataset_spec *set,
                      const wf_field_spec *spec, size_t limit_bytes, wf_array *out, wf_err *err)
{
    const wf_map_step *resize = wf_resize_of(spec);

    if (spec->n_more)
        return wf_fail(err, WF_USAGE, "name one, which has all records",
                       "field \"%.64s\" names %zu of the format \"%s\"", spec->name,
                       spec->n_more + 1, format->name);
    WF_TRY(format->lend(set, spec, limit_bytes, out, err));
    return resize ? wf_resize_array(out, resize, spec->path, limit_bytes, err) : WF_OK;
}

wf_status wf_parts_read(const wf_format *format, const wf_dataset_spec *set,
                        const wf_field_spec *spec, const char *trained, const wf_bag *bag,
                        size_t limit_bytes, wf_arena *a, wf_parts *parts, wf_array *out,
                        wf_err *err)
{
    wf_array *arrays;
    wf_status rc;

    if (format->lend)
        return lend(format, set, spec, limit_bytes, out, err);
    WF_TRY(list_files(format, spec, a, parts, err));
    if (format->load && parts->n > 1)
        return wf_fail(err, WF_UNSUPPORTED, "name one folder",
                       "\"%s\" has %zu folders of the format \"%s\"", spec->name, parts->n,
                       format->name);
    arrays = calloc(parts->n + 1, sizeof *arrays);
    if (!arrays)
        return wf_fail_nomem(err, parts->n * sizeof *arrays);
    rc = read_parts(format, set, spec, trained, bag, limit_bytes, parts, arrays, err);
    if (rc == WF_OK && parts->n == 1) {
        *out = arrays[0];
        arrays[0] = (wf_array){0};
    } else if (rc == WF_OK) {
        rc = join(arrays, parts->n, limit_bytes, parts->files[0].path, out, err);
    }
    for (size_t i = 0; i < parts->n; i++)
        wf_array_close(&arrays[i]);
    free(arrays);
    return rc;
}
