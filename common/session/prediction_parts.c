/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/prediction_parts.c - the folder of parts, and what becomes of it.
 *
 * A part is a file as OUT is one: npy with its head, or csv with the names of its columns; so what
 * it has to begin with, and for npy its size, is known.
 */
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/session/npy.h"
#include "common/session/prediction_state.h"
#include "common/tensor/dtype.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_BYTES = 1 << 20 };

static const char REQUEST[] = "request.json";

size_t wf_part_files(const wf_prediction *p)
{
    return p->form == WF_INTO_CSV ? 1 : p->n_outputs;
}

/* ---- names ----
 *
 * With the request's tag: somebody may still write parts of one that was there before.
 */

static const char *part_path(const wf_prediction *p, uint64_t split, size_t file, char path[])
{
    snprintf(path, PATH_MAX, "%s/part-%016" PRIx64 "-%08" PRIu64 ".%zu", p->parts, p->ask.tag,
             split, file);
    return path;
}

/* Of this process alone: several may write the same part. */
static const char *temporary_path(const wf_prediction *p, uint64_t split, size_t file, char path[])
{
    snprintf(path, PATH_MAX, "%s/part-%016" PRIx64 "-%08" PRIu64 ".%zu.%016" PRIx64 ".tmp",
             p->parts, p->ask.tag, split, file, p->id);
    return path;
}

/* Where output `file` goes in the end. */
static wf_status out_path(const wf_prediction *p, size_t file, char path[PATH_MAX], wf_err *err)
{
    char name[WF_NPY_NAME];
    int n;

    if (p->form == WF_INTO_FOLDER)
        n = snprintf(path, PATH_MAX, "%s/%s", p->ask.out,
                     wf_npy_name(p->outputs[file].label, name, sizeof name));
    else
        n = snprintf(path, PATH_MAX, "%s", p->ask.out);
    /* With room for the names in the folder of parts. */
    return n < PATH_MAX - 64
               ? WF_OK
               : wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", p->ask.out);
}

/* ---- what a file begins with ---- */

static int64_t columns_of(const wf_prediction_output *o)
{
    int64_t n = 1;

    for (uint32_t i = 1; i < o->rank; i++)
        n *= o->dims[i]; /* all of them are in memory for a batch */
    return n;
}

/* A name as a cell of csv. */
static void put_name(wf_bytes *out, const char *label, int64_t column)
{
    bool quoted = strpbrk(label, ",\"\r\n") != NULL;

    wf_bytes_puts(out, quoted ? "\"" : "");
    for (const char *c = label; *c; c++)
        wf_bytes_printf(out, "%s%c", *c == '"' ? "\"" : "", *c);
    if (column >= 0)
        wf_bytes_printf(out, "_%" PRId64, column);
    wf_bytes_puts(out, quoted ? "\"" : "");
}

static void put_names(const wf_prediction *p, wf_bytes *out)
{
    for (size_t i = 0; i < p->n_outputs; i++) {
        int64_t n = columns_of(&p->outputs[i]);

        for (int64_t k = 0; k < n; k++) {
            wf_bytes_puts(out, i + (size_t)k ? "," : "");
            put_name(out, p->outputs[i].label, p->outputs[i].rank > 1 ? k : -1);
        }
    }
    wf_bytes_puts(out, "\n");
}

/* The shape of a file of so many records. */
static void dims_of(const wf_prediction *p, const wf_prediction_output *o, uint64_t records,
                    int64_t dims[WF_MAX_RANK])
{
    memcpy(dims, o->dims, sizeof o->dims);
    if (!p->single)
        dims[0] = (int64_t)records;
}

static wf_status put_head(const wf_prediction *p, size_t file, uint64_t records, wf_bytes *out,
                          wf_err *err)
{
    const wf_prediction_output *o = &p->outputs[file];
    int64_t dims[WF_MAX_RANK];

    if (p->form == WF_INTO_CSV) {
        put_names(p, out);
        return wf_bytes_check(out, err);
    }
    dims_of(p, o, records, dims);
    return wf_npy_put_head(out, o->label, o->dtype, o->rank, dims, err);
}

/* Bytes of a file of so many records behind its head; UINT64_MAX: of csv nobody knows. */
static uint64_t body_of(const wf_prediction *p, size_t file, uint64_t records)
{
    const wf_prediction_output *o = &p->outputs[file];
    uint64_t bytes = wf_npy_element(o->dtype);
    int64_t dims[WF_MAX_RANK];

    if (p->form == WF_INTO_CSV)
        return UINT64_MAX;
    dims_of(p, o, records, dims);
    for (uint32_t i = 0; i < o->rank; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)dims[i], &bytes))
            return UINT64_MAX - 1; /* which no file has */
    return bytes;
}

/* ---- the folder ---- */

static wf_status remove_parts(const wf_prediction *p, wf_err *err)
{
    return wf_disk_remove_dir(p->how.disk, p->parts, err);
}

void wf_prediction_drop(wf_prediction *p)
{
    wf_err ignored;
    wf_status rc = remove_parts(p, &ignored);

    (void)rc; /* what stays is taken over by the next request, or refused by it */
}

static bool is_folder(const wf_prediction *p, const char *path)
{
    char within[PATH_MAX + 4];

    snprintf(within, sizeof within, "%s/.", path);
    return wf_disk_exists(p->how.disk, within);
}

/* The folder that OUT is to be in: of a folder of files all of them are made. */
static wf_status check_place(const wf_prediction *p, wf_err *err)
{
    char folder[PATH_MAX], path[PATH_MAX], *slash;

    for (size_t i = 0; i < wf_part_files(p); i++) {
        WF_TRY(out_path(p, i, path, err));
        if (is_folder(p, path))
            return wf_fail(err, WF_EXISTS, "move it away, or write to another",
                           "%s is a folder, not a file", path);
    }
    if (p->form == WF_INTO_FOLDER)
        return wf_disk_make_dirs(p->how.disk, p->ask.out, err);
    snprintf(folder, sizeof folder, "%s", p->ask.out);
    slash = strrchr(folder, '/');
    if (!slash)
        return WF_OK;
    slash[slash == folder] = 0;
    if (wf_disk_exists(p->how.disk, folder))
        return WF_OK;
    return wf_fail(err, WF_NOTFOUND, "make it, or write to another", "there is no folder %s",
                   folder);
}

/* Whether the folder has parts of this very request. */
static wf_status compare(const wf_prediction *p, const wf_bytes *request, const char *path,
                         bool *same, wf_err *err)
{
    wf_bytes before = {0};
    wf_status rc = wf_disk_read_all(p->how.disk, path, WF_PREDICTION_TEXT, &before, err);

    *same = rc == WF_OK && before.size == request->size &&
            memcmp(before.data, request->data, before.size) == 0;
    wf_bytes_close(&before);
    return rc == WF_NOTFOUND || rc == WF_FULL ? WF_OK : rc;
}

/* What a process may leave that ends at any moment, also without its request. */
static bool is_ours(const char *name)
{
    return strncmp(name, "part-", 5) == 0 || strncmp(name, REQUEST, strlen(REQUEST)) == 0;
}

static wf_status clear_names(const wf_prediction *p, wf_arena *a, bool *other, wf_err *err)
{
    const char *const *names = NULL;
    size_t n = 0;

    WF_TRY(wf_disk_list(p->how.disk, p->parts, a, &names, &n, err));
    for (size_t i = 0; i < n; i++)
        if (!is_ours(names[i]))
            return wf_fail(err, WF_EXISTS, "move it away, or write to another file",
                           "%s is needed for parts of the result, and has \"%.80s\" in it",
                           p->parts, names[i]);
    for (size_t i = 0; i < n; i++) {
        const char *file = wf_arena_printf(a, "%s/%s", p->parts, names[i]);

        if (!file)
            return wf_fail_nomem(err, strlen(names[i]));
        WF_TRY(wf_disk_remove(p->how.disk, file, err));
        *other = true;
    }
    return WF_OK;
}

/* Only a folder that is one of parts is emptied; it stays, for it may be locked. */
static wf_status clear_other(const wf_prediction *p, bool *other, wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    wf_status rc = a ? clear_names(p, a, other, err) : wf_fail_nomem(err, 0);

    wf_arena_free(&a);
    return rc;
}

static wf_status begin(wf_prediction *p, const wf_bytes *request, wf_prediction_found *found,
                       wf_err *err)
{
    char path[PATH_MAX];
    bool same = false;

    WF_TRY(check_place(p, err));
    snprintf(path, sizeof path, "%s/%s", p->parts, REQUEST);
    if (wf_disk_exists(p->how.disk, p->parts)) {
        WF_TRY(compare(p, request, path, &same, err));
        if (!same)
            WF_TRY(clear_other(p, &found->other, err));
    }
    if (same) {
        for (uint64_t i = 0; i < p->n_splits; i++)
            found->done += wf_prediction_has(p, i);
        return WF_OK;
    }
    WF_TRY(wf_disk_make_dirs(p->how.disk, p->parts, err));
    return wf_disk_replace(p->how.disk, path, request->data, request->size, err);
}

wf_status wf_prediction_begin(wf_prediction *p, wf_prediction_found *found, wf_err *err)
{
    wf_bytes request = {0};
    wf_status rc;

    *found = (wf_prediction_found){0};
    rc = wf_prediction_describe(p, &request, err);
    if (rc == WF_OK)
        rc = begin(p, &request, found, err);
    wf_bytes_close(&request);
    return rc;
}

/* ---- a part that is there ---- */

/* Opens a part whose beginning and size are right; *body is where its records begin. Errors:
 * WF_NOTFOUND, WF_CORRUPT, WF_IO. */
static wf_status open_part(const wf_prediction *p, uint64_t split, size_t file, wf_disk_file **out,
                           uint64_t *body, uint64_t *size, wf_err *err)
{
    uint64_t n = wf_prediction_end(p, split) - wf_prediction_first(p, split), wanted;
    char path[PATH_MAX], *have = NULL;
    wf_bytes head = {0};
    wf_status rc;

    part_path(p, split, file, path);
    rc = put_head(p, file, n, &head, err);
    have = malloc(head.size + 1);
    if (rc == WF_OK)
        rc = have ? wf_disk_open(p->how.disk, path, WF_DISK_READ, out, err)
                  : wf_fail_nomem(err, head.size);
    if (rc == WF_OK)
        rc = wf_disk_size(*out, size, err);
    wanted = body_of(p, file, n);
    if (rc == WF_OK)
        rc = wf_disk_read(*out, 0, have, head.size, err);
    if (rc == WF_OK && (memcmp(have, head.data, head.size) != 0 ||
                        (wanted != UINT64_MAX && *size - head.size != wanted)))
        rc = wf_fail(err, WF_CORRUPT, NULL, "%s is no part of this result", path);
    *body = head.size;
    if (rc != WF_OK)
        wf_disk_drop(out);
    free(have);
    wf_bytes_close(&head);
    return rc;
}

bool wf_prediction_has(const wf_prediction *p, uint64_t split)
{
    for (size_t i = 0; i < wf_part_files(p); i++) {
        wf_disk_file *f = NULL;
        uint64_t body, size;
        wf_err ignored;

        if (open_part(p, split, i, &f, &body, &size, &ignored) != WF_OK)
            return false;
        wf_disk_drop(&f);
    }
    return true;
}

/* ---- a part that is written ---- */

wf_status wf_part_open(wf_prediction *p, uint64_t split, wf_part_writer *w, wf_err *err)
{
    uint64_t n = wf_prediction_end(p, split) - wf_prediction_first(p, split);
    char path[PATH_MAX];

    *w = (wf_part_writer){.files = calloc(wf_part_files(p) + 1, sizeof(*w->files))};
    if (!w->files)
        return wf_fail_nomem(err, wf_part_files(p) * sizeof(*w->files));
    for (size_t i = 0; i < wf_part_files(p); i++) {
        WF_TRY(wf_disk_open(p->how.disk, temporary_path(p, split, i, path), WF_DISK_CREATE,
                            &w->files[i], err));
        w->n = i + 1;
        wf_bytes_clear(&w->text);
        WF_TRY(put_head(p, i, n, &w->text, err));
        WF_TRY(wf_disk_write(w->files[i], w->text.data, w->text.size, err));
    }
    return WF_OK;
}

static void put_cell(wf_bytes *out, const wf_tensor *t, size_t at)
{
    switch (t->dtype) {
    case WF_F64:
        wf_bytes_printf(out, "%.17g", ((const double *)t->data)[at]);
        return;
    case WF_F32:
        wf_bytes_printf(out, "%.9g", (double)((const float *)t->data)[at]);
        return;
    case WF_F16:
        wf_bytes_printf(out, "%.9g", (double)wf_f16_to_f32(((const uint16_t *)t->data)[at]));
        return;
    case WF_BF16:
        wf_bytes_printf(out, "%.9g", (double)wf_bf16_to_f32(((const uint16_t *)t->data)[at]));
        return;
    case WF_I64:
        wf_bytes_printf(out, "%" PRId64, ((const int64_t *)t->data)[at]);
        return;
    case WF_I32:
        wf_bytes_printf(out, "%" PRId32, ((const int32_t *)t->data)[at]);
        return;
    default: /* u8, bool, and no other dtype of outputs */
        wf_bytes_printf(out, "%u", ((const uint8_t *)t->data)[at]);
    }
}

static void put_rows(const wf_prediction *p, wf_bytes *out, const wf_named_list *outputs)
{
    int64_t n = outputs->rows[0].tensor->dims[0];

    for (int64_t row = 0; row < n; row++) {
        for (size_t i = 0; i < p->n_outputs; i++) {
            int64_t columns = columns_of(&p->outputs[i]);

            for (int64_t k = 0; k < columns; k++) {
                wf_bytes_puts(out, i + (size_t)k ? "," : "");
                put_cell(out, outputs->rows[i].tensor, (size_t)(row * columns + k));
            }
        }
        wf_bytes_puts(out, "\n");
    }
}

/* That records of a later batch are like those of the first. */
static wf_status check_alike(const wf_prediction *p, const wf_named_list *outputs, wf_err *err)
{
    bool alike = outputs->n == p->n_outputs;
    char one[128], other[128];

    for (size_t i = 0; alike && i < p->n_outputs; i++) {
        const wf_prediction_output *o = &p->outputs[i];
        const wf_tensor *t = outputs->rows[i].tensor;

        alike = t->dtype == o->dtype && t->rank == o->rank;
        for (uint32_t k = p->single ? 0 : 1; alike && k < o->rank; k++)
            alike = t->dims[k] == o->dims[k];
        if (!alike)
            return wf_fail(err, WF_SHAPE, "predict all records at once: raise --batch",
                           "output \"%.64s\" has the shape %s in one batch and %s in another",
                           o->label, wf_dims_str(o->rank, o->dims, one, sizeof one),
                           wf_dims_str(t->rank, t->dims, other, sizeof other));
    }
    wf_assert(alike);
    return WF_OK;
}

wf_status wf_part_add(wf_prediction *p, wf_part_writer *w, const wf_named_list *outputs,
                      wf_err *err)
{
    WF_TRY(check_alike(p, outputs, err));
    for (size_t i = 0; i < w->n; i++) {
        const wf_tensor *t = outputs->rows[i].tensor;

        if (p->form != WF_INTO_CSV && t->dtype != WF_BF16) {
            WF_TRY(wf_disk_write(w->files[i], t->data, wf_tensor_bytes(t), err));
            continue;
        }
        wf_bytes_clear(&w->text);
        if (p->form == WF_INTO_CSV)
            put_rows(p, &w->text, outputs);
        else
            wf_npy_put_elements(&w->text, t->dtype, wf_elems(t), t->data);
        WF_TRY(wf_bytes_check(&w->text, err));
        WF_TRY(wf_disk_write(w->files[i], w->text.data, w->text.size, err));
    }
    return WF_OK;
}

wf_status wf_part_finish(wf_prediction *p, uint64_t split, wf_part_writer *w, wf_err *err)
{
    char from[PATH_MAX], to[PATH_MAX];

    for (size_t i = 0; i < w->n; i++) {
        WF_TRY(wf_disk_sync(w->files[i], err));
        WF_TRY(wf_disk_close(&w->files[i], err));
    }
    for (size_t i = 0; i < w->n; i++)
        WF_TRY(wf_disk_rename(p->how.disk, temporary_path(p, split, i, from),
                              part_path(p, split, i, to), err));
    w->n = 0;
    return wf_disk_sync_dir(p->how.disk, p->parts, err);
}

void wf_part_close(wf_prediction *p, uint64_t split, wf_part_writer *w)
{
    char path[PATH_MAX];
    wf_err ignored;

    for (size_t i = 0; i < w->n; i++) {
        wf_disk_drop(&w->files[i]);
        if (wf_disk_remove(p->how.disk, temporary_path(p, split, i, path), &ignored) != WF_OK)
            continue; /* it has become a part already, or goes with the folder */
    }
    free(w->files);
    wf_bytes_close(&w->text);
    *w = (wf_part_writer){0};
}

/* ---- joined ---- */

static uint64_t count_lines(const char *text, size_t n)
{
    uint64_t lines = 0;
    const char *end = text + n;

    while ((text = memchr(text, '\n', (size_t)(end - text)))) {
        lines++;
        text++;
    }
    return lines;
}

/* The part's records behind what is written of the file. */
static wf_status copy_part(const wf_prediction *p, uint64_t split, size_t file, wf_disk_file *to,
                           char *room, wf_err *err)
{
    uint64_t at = 0, size = 0, lines = 0, n;
    wf_disk_file *from = NULL;
    char path[PATH_MAX];
    wf_status rc = open_part(p, split, file, &from, &at, &size, err);

    n = wf_prediction_end(p, split) - wf_prediction_first(p, split);
    while (rc == WF_OK && at < size) {
        size_t now = (size_t)WF_MIN(size - at, (uint64_t)COPY_BYTES);

        rc = wf_disk_read(from, at, room, now, err);
        if (rc == WF_OK)
            rc = wf_disk_write(to, room, now, err);
        lines += count_lines(room, rc == WF_OK ? now : 0);
        at += now;
    }
    wf_disk_drop(&from);
    if (rc == WF_OK && p->form == WF_INTO_CSV && lines != (p->single ? lines : n))
        rc = wf_fail(err, WF_CORRUPT, NULL, "%s has %" PRIu64 " lines of %" PRIu64,
                     part_path(p, split, file, path), lines, n);
    return rc;
}

/* A part that is not there or damaged is removed, so that the next run computes it. */
static wf_status blame(const wf_prediction *p, uint64_t split, size_t file, wf_status rc,
                       wf_err *err)
{
    char path[PATH_MAX];
    wf_err ignored;

    if (rc != WF_CORRUPT && rc != WF_NOTFOUND)
        return rc;
    if (wf_disk_remove(p->how.disk, part_path(p, split, file, path), &ignored) == WF_OK)
        return wf_fail(err, WF_CORRUPT, "run the command again: it is computed anew",
                       "%s was damaged, and is removed", path);
    return wf_fail(err, WF_CORRUPT, "run the command again: it is computed anew",
                   "%s is not there any more", path);
}

static wf_status join_file(const wf_prediction *p, size_t file, const char *temporary, char *room,
                           wf_err *err)
{
    wf_disk_file *to = NULL;
    wf_bytes head = {0};
    wf_status rc = put_head(p, file, p->records, &head, err);

    if (rc == WF_OK)
        rc = wf_disk_open(p->how.disk, temporary, WF_DISK_CREATE, &to, err);
    if (rc == WF_OK)
        rc = wf_disk_write(to, head.data, head.size, err);
    for (uint64_t i = 0; rc == WF_OK && i < p->n_splits; i++)
        rc = blame(p, i, file, copy_part(p, i, file, to, room, err), err);
    if (rc == WF_OK)
        rc = wf_disk_sync(to, err);
    if (rc == WF_OK)
        rc = wf_disk_close(&to, err);
    wf_disk_drop(&to);
    wf_bytes_close(&head);
    return rc;
}

/* The names in the folder of a path are durable. */
static wf_status sync_folder(const wf_prediction *p, const char *path, wf_err *err)
{
    char folder[PATH_MAX], *slash;

    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (!slash)
        return wf_disk_sync_dir(p->how.disk, ".", err);
    slash[slash == folder] = 0;
    return wf_disk_sync_dir(p->how.disk, folder, err);
}

/* Beside the file: in another folder it might be on another disk. */
static wf_status joined_path(const wf_prediction *p, size_t file, char path[PATH_MAX], wf_err *err)
{
    size_t n;

    WF_TRY(out_path(p, file, path, err));
    n = strlen(path);
    snprintf(path + n, PATH_MAX - n, ".joined");
    return WF_OK;
}

static wf_status join_all(wf_prediction *p, char *room, wf_err *err)
{
    char from[PATH_MAX], path[PATH_MAX];

    for (size_t i = 0; i < wf_part_files(p); i++) {
        WF_TRY(joined_path(p, i, from, err));
        WF_TRY(join_file(p, i, from, room, err));
    }
    /* Only when all are whole the first takes its place. */
    for (size_t i = 0; i < wf_part_files(p); i++) {
        WF_TRY(joined_path(p, i, from, err));
        WF_TRY(out_path(p, i, path, err));
        WF_TRY(wf_disk_rename(p->how.disk, from, path, err));
        WF_TRY(sync_folder(p, path, err));
    }
    return WF_OK;
}

/* After a failure: they would fill a disk that is full. */
static void remove_joined(const wf_prediction *p)
{
    char path[PATH_MAX];
    wf_err ignored;

    for (size_t i = 0; i < wf_part_files(p); i++)
        if (joined_path(p, i, path, &ignored) != WF_OK ||
            wf_disk_remove(p->how.disk, path, &ignored) != WF_OK)
            continue; /* it was not made, or the next join makes it anew */
}

wf_status wf_prediction_join(wf_prediction *p,
                             void (*tell)(void *arg, const char *file, wf_dtype dtype,
                                          uint32_t rank, const int64_t dims[]),
                             void *arg, wf_err *err)
{
    char *room = malloc(COPY_BYTES), path[PATH_MAX];
    wf_status rc = room ? join_all(p, room, err) : wf_fail_nomem(err, COPY_BYTES);

    free(room);
    if (rc != WF_OK)
        remove_joined(p);
    else
        rc = remove_parts(p, err);
    for (size_t i = 0; rc == WF_OK && i < wf_part_files(p); i++) {
        int64_t dims[WF_MAX_RANK] = {0};

        rc = out_path(p, i, path, err);
        dims_of(p, &p->outputs[i], p->records, dims);
        if (rc == WF_OK && p->form == WF_INTO_CSV) {
            dims[1] = 0;
            for (size_t k = 0; k < p->n_outputs; k++)
                dims[1] += columns_of(&p->outputs[k]);
            tell(arg, path, WF_NONE, 2, dims);
        } else if (rc == WF_OK) {
            tell(arg, path, p->outputs[i].dtype, p->outputs[i].rank, dims);
        }
    }
    return rc;
}
