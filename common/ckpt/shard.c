/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/shard.c - writing a safetensors file. */
#include "common/ckpt/shard.h"
#include "common/base/size.h"
#include "common/ckpt/dtypes.h"
#include "common/ckpt/json.h"
#include "common/ckpt/sum.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

struct wf_shard_writer {
    wf_disk *disk;
    wf_disk_file *file;
    wf_sum *sum;
    char *path;
    uint64_t wanted, written; /* bytes of data */
    uint64_t header;          /* bytes before the data */
};

/* jansson gives NULL for both. */
static wf_status no_memory_or_utf8(const char *path, const char *what, const char *name,
                                   wf_err *err)
{
    if (wf_json_ran_out())
        return wf_fail_nomem(err, 0);
    return wf_fail(err, WF_INVALID, NULL, "%s: %s \"%.200s\" is not UTF-8", path, what, name);
}

static wf_status declare(json_t *root, const wf_shard_tensor *t, uint64_t *at, const char *path,
                         wf_err *err)
{
    const char *dtype = wf_shard_dtype_name(t->dtype);
    json_t *shape = json_array(), *entry = NULL;
    bool ok = shape;
    int64_t elems;
    size_t bytes;
    wf_status rc;

    if (!dtype || t->rank > WF_MAX_RANK || !wf_dims_elems(t->rank, t->dims, &elems) ||
        !wf_mul_size((size_t)elems, wf_dtype_size(t->dtype), &bytes) || bytes > INT64_MAX - *at) {
        rc = wf_fail(err, WF_INVALID, NULL, "%s: tensor \"%.200s\" has no size that fits", path,
                     t->name);
        goto out;
    }
    if (strcmp(t->name, "__metadata__") == 0 || strlen(t->name) > WF_SHARD_MAX_NAME ||
        json_object_get(root, t->name)) {
        rc = wf_fail(err, WF_INVALID, NULL,
                     "%s: the name \"%.200s\" is taken, or not one for a tensor", path, t->name);
        goto out;
    }
    for (uint32_t i = 0; ok && i < t->rank; i++)
        ok = json_array_append_new(shape, json_integer(t->dims[i])) == 0;
    if (ok)
        entry = json_pack("{s:s, s:O, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets",
                          (json_int_t)*at, (json_int_t)(*at + bytes));
    rc = !entry || json_object_set(root, t->name, entry) != 0
             ? no_memory_or_utf8(path, "the name", t->name, err)
             : WF_OK;
    *at += bytes;
out:
    json_decref(entry);
    json_decref(shape);
    return rc;
}

/* The JSON of a header; *data_bytes is what follows it. */
static wf_status build(const wf_shard_tensor tensors[], size_t n, const wf_shard_meta meta[],
                       size_t n_meta, const char *path, char **text, uint64_t *data_bytes,
                       wf_err *err)
{
    json_t *root, *about;
    wf_status rc = WF_OK;

    *data_bytes = 0;
    wf_json_begin();
    root = json_object();
    about = json_object();
    if (!root || !about)
        rc = wf_fail_nomem(err, 0);
    if (n > WF_SHARD_MAX_TENSORS)
        rc = wf_fail(err, WF_INVALID, NULL, "%s: %zu tensors; %d may be", path, n,
                     WF_SHARD_MAX_TENSORS);
    for (size_t i = 0; rc == WF_OK && i < n_meta; i++)
        if (json_object_set_new(about, meta[i].key, json_string(meta[i].value)) != 0)
            rc = no_memory_or_utf8(path, "metadata", meta[i].key, err);
    if (rc == WF_OK && n_meta && json_object_set(root, "__metadata__", about) != 0)
        rc = wf_fail_nomem(err, 0);
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        rc = declare(root, &tensors[i], data_bytes, path, err);
    if (rc == WF_OK)
        *text = json_dumps(root, JSON_COMPACT);
    if (rc == WF_OK && (!*text || wf_json_ran_out()))
        rc = wf_fail_nomem(err, 0);
    json_decref(about);
    json_decref(root);
    return rc;
}

static wf_status put(wf_shard_writer *w, const void *data, size_t n, wf_err *err)
{
    WF_TRY(wf_disk_write(w->file, data, n, err));
    wf_sum_add(w->sum, data, n);
    return WF_OK;
}

static wf_status put_header(wf_shard_writer *w, const char *text, wf_err *err)
{
    static const char spaces[ALIGN + 1] =
        "                                                                ";
    size_t size = strlen(text), padded = wf_align_up(size + 8, ALIGN) - 8;
    uint8_t length[8];

    if (padded > WF_SHARD_MAX_HEADER)
        return wf_fail(err, WF_INVALID, NULL, "%s: a header of %zu bytes; %d may be", w->path,
                       padded, WF_SHARD_MAX_HEADER);
    for (size_t i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)padded >> (8 * i));
    WF_TRY(put(w, length, sizeof length, err));
    WF_TRY(put(w, text, size, err));
    w->header = 8 + padded;
    return put(w, spaces, padded - size, err);
}

wf_status wf_shard_create(wf_disk *disk, const char *path, const wf_shard_tensor tensors[],
                          size_t n, const wf_shard_meta meta[], size_t n_meta,
                          wf_shard_writer **out, wf_err *err)
{
    wf_shard_writer *w = calloc(1, sizeof *w);
    char *text = NULL;
    wf_status rc;

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->disk = disk;
    w->path = strdup(path);
    w->sum = wf_sum_begin();
    if (!w->path || !w->sum) {
        rc = wf_fail_nomem(err, sizeof *w);
        goto out;
    }
    rc = build(tensors, n, meta, n_meta, path, &text, &w->wanted, err);
    if (rc != WF_OK)
        goto out;
    rc = wf_disk_open(disk, path, WF_DISK_CREATE, &w->file, err);
    if (rc != WF_OK)
        goto out;
    rc = put_header(w, text, err);
    if (rc != WF_OK)
        goto out;
    *out = w;
    w = NULL;
out:
    free(text);
    wf_shard_abort(&w);
    return rc;
}

wf_status wf_shard_write(wf_shard_writer *w, const void *data, size_t bytes, wf_err *err)
{
    if (bytes > w->wanted - w->written)
        return wf_fail(err, WF_INVALID, NULL,
                       "%s: %zu bytes more, and %" PRIu64 " were declared and not written yet",
                       w->path, bytes, w->wanted - w->written);
    WF_TRY(put(w, data, bytes, err));
    w->written += bytes;
    return WF_OK;
}

static void free_writer(wf_shard_writer **w)
{
    wf_sum_end(&(*w)->sum, NULL);
    free((*w)->path);
    free(*w);
    *w = NULL;
}

wf_status wf_shard_finish(wf_shard_writer **w, uint64_t *bytes, char sum[WF_SUM_TEXT], wf_err *err)
{
    wf_shard_writer *s = *w;
    wf_status rc = WF_OK;

    if (s->written != s->wanted)
        rc = wf_fail(err, WF_INVALID, NULL,
                     "%s: %" PRIu64 " of %" PRIu64 " declared bytes were written", s->path,
                     s->written, s->wanted);
    if (rc == WF_OK)
        rc = wf_disk_sync(s->file, err);
    if (rc == WF_OK)
        rc = wf_disk_close(&s->file, err);
    if (rc != WF_OK) {
        wf_shard_abort(w);
        return rc;
    }
    *bytes = s->header + s->wanted;
    wf_sum_end(&s->sum, sum);
    free_writer(w);
    return WF_OK;
}

void wf_shard_abort(wf_shard_writer **w)
{
    wf_status gone;

    if (!*w)
        return;
    wf_disk_drop(&(*w)->file);
    gone = (*w)->path ? wf_disk_remove((*w)->disk, (*w)->path, NULL) : WF_OK;
    (void)gone; /* the whole folder goes when a checkpoint fails */
    free_writer(w);
}

wf_status wf_shard_sum(wf_disk *disk, const char *path, uint64_t *bytes, char sum[WF_SUM_TEXT],
                       wf_err *err)
{
    enum { BLOCK = 1 << 20 };
    wf_disk_file *f = NULL;
    wf_sum *s = wf_sum_begin();
    void *block = malloc(BLOCK);
    wf_status rc;

    if (!s || !block) {
        rc = wf_fail_nomem(err, BLOCK);
        goto out;
    }
    rc = wf_disk_open(disk, path, WF_DISK_READ, &f, err);
    if (rc == WF_OK)
        rc = wf_disk_size(f, bytes, err);
    for (uint64_t at = 0; rc == WF_OK && at < *bytes; at += BLOCK) {
        size_t n = (size_t)WF_MIN((uint64_t)BLOCK, *bytes - at);

        rc = wf_disk_read(f, at, block, n, err);
        if (rc == WF_OK)
            wf_sum_add(s, block, n);
    }
out:
    wf_sum_end(&s, rc == WF_OK ? sum : NULL);
    free(block);
    wf_disk_drop(&f);
    return rc;
}
