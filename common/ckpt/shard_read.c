/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/shard_read.c - reading a safetensors file that nobody vouches for. */
#include "common/base/size.h"
#include "common/ckpt/dtypes.h"
#include "common/ckpt/json.h"
#include "common/ckpt/shard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct wf_shard {
    wf_disk_file *file;
    json_t *root; /* keeps names and metadata alive */
    char *path;
    uint64_t data;            /* where data begins in the file */
    wf_shard_tensor *tensors; /* [n], by begin */
    wf_shard_tensor **names;  /* [n], by name */
    size_t n;
};

static wf_status read_dims(const wf_shard *s, const char *name, const json_t *shape,
                           wf_shard_tensor *t, wf_err *err)
{
    size_t rank = json_array_size(shape);

    if (!json_is_array(shape) || rank > WF_MAX_RANK)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: tensor \"%.200s\" has no shape that weft reads", s->path, name);
    t->rank = (uint32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);

        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                           "%s: tensor \"%.200s\": axis %zu is no size", s->path, name, i);
        t->dims[i] = json_integer_value(dim);
    }
    return WF_OK;
}

static wf_status read_entry(const wf_shard *s, const char *name, const json_t *entry,
                            wf_shard_tensor *t, wf_err *err)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *range = json_object_get(entry, "data_offsets");
    const json_t *first = json_array_get(range, 0), *last = json_array_get(range, 1);
    int64_t elems;
    size_t bytes;

    t->name = name;
    t->dtype = dtype ? wf_shard_dtype_of(dtype) : WF_NONE;
    if (t->dtype == WF_NONE || strlen(name) > WF_SHARD_MAX_NAME)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: tensor \"%.200s\" has no dtype that weft reads", s->path, name);
    WF_TRY(read_dims(s, name, json_object_get(entry, "shape"), t, err));
    if (json_array_size(range) != 2 || !json_is_integer(first) || !json_is_integer(last) ||
        json_integer_value(first) < 0 || json_integer_value(last) < json_integer_value(first))
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: tensor \"%.200s\" has no range of bytes", s->path, name);
    t->begin = (uint64_t)json_integer_value(first);
    t->bytes = (uint64_t)json_integer_value(last) - t->begin;
    if (!wf_dims_elems(t->rank, t->dims, &elems) ||
        !wf_mul_size((size_t)elems, wf_dtype_size(t->dtype), &bytes) || bytes != t->bytes)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: tensor \"%.200s\": its range has %" PRIu64
                       " bytes, which its shape and dtype do not",
                       s->path, name, t->bytes);
    return WF_OK;
}

static int by_place(const void *a, const void *b)
{
    const wf_shard_tensor *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(wf_shard_tensor *const *)a)->name, (*(wf_shard_tensor *const *)b)->name);
}

static wf_status check_ranges(const wf_shard *s, uint64_t data_bytes, wf_err *err)
{
    uint64_t at = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (s->tensors[i].begin != at)
            return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                           "%s: tensor \"%.200s\" begins at byte %" PRIu64
                           ", and the one before it ends at %" PRIu64,
                           s->path, s->tensors[i].name, s->tensors[i].begin, at);
        at += s->tensors[i].bytes;
    }
    if (at != data_bytes)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: %s: %" PRIu64 " of %" PRIu64 " bytes are there", s->path,
                       data_bytes < at ? "cut short" : "more than its header declares",
                       s->data + data_bytes, s->data + at);
    return WF_OK;
}

static wf_status check_meta(const wf_shard *s, const json_t *meta, wf_err *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(meta))
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR, "%s: __metadata__ is not an object",
                       s->path);
    json_object_foreach((json_t *)meta, key, value) if (!json_is_string(value)) return wf_fail(
        err, WF_CORRUPT, WF_CKPT_REPAIR, "%s: __metadata__ \"%.64s\" is not text", s->path, key);
    return WF_OK;
}

static wf_status read_tensors(wf_shard *s, uint64_t data_bytes, wf_err *err)
{
    size_t room = json_object_size(s->root);
    const char *name;
    json_t *entry;

    if (room > WF_SHARD_MAX_TENSORS + 1)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR, "%s: %zu tensors; %d may be", s->path, room,
                       WF_SHARD_MAX_TENSORS);
    s->tensors = calloc(room + 1, sizeof *s->tensors);
    s->names = calloc(room + 1, sizeof *s->names);
    if (!s->tensors || !s->names)
        return wf_fail_nomem(err, room * sizeof *s->tensors);
    json_object_foreach(s->root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            WF_TRY(check_meta(s, entry, err));
        else
            WF_TRY(read_entry(s, name, entry, &s->tensors[s->n++], err));
    }
    qsort(s->tensors, s->n, sizeof *s->tensors, by_place);
    for (size_t i = 0; i < s->n; i++)
        s->names[i] = &s->tensors[i];
    qsort(s->names, s->n, sizeof *s->names, by_name);
    return check_ranges(s, data_bytes, err);
}

static wf_status read_header(wf_shard *s, wf_err *err)
{
    uint8_t length[8];
    uint64_t bytes, n = 0;
    char *text = NULL;
    wf_status rc;

    WF_TRY(wf_disk_size(s->file, &bytes, err));
    if (bytes < sizeof length)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: cut short: %" PRIu64
                       " bytes are there, and a safetensors file has 8 at least",
                       s->path, bytes);
    WF_TRY(wf_disk_read(s->file, 0, length, sizeof length, err));
    for (size_t i = 0; i < sizeof length; i++)
        n |= (uint64_t)length[i] << (8 * i);
    if (n > WF_SHARD_MAX_HEADER)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: no safetensors file, or damaged in its first 8 bytes: they give its "
                       "header %" PRIu64 " bytes, and %d may be",
                       s->path, n, WF_SHARD_MAX_HEADER);
    if (n > bytes - sizeof length)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: cut short, or damaged in its first 8 bytes: %" PRIu64
                       " bytes are there, and its header alone takes %" PRIu64,
                       s->path, bytes, n + sizeof length);
    text = malloc((size_t)n + 1);
    if (!text)
        return wf_fail_nomem(err, n);
    rc = wf_disk_read(s->file, sizeof length, text, (size_t)n, err);
    if (rc == WF_OK && (n == 0 || text[0] != '{'))
        rc = wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                     "%s: damaged at byte 8: its header does not begin with {", s->path);
    if (rc == WF_OK)
        rc = wf_json_read(text, (size_t)n, s->path, sizeof length, &s->root, err);
    s->data = sizeof length + n;
    free(text);
    return rc == WF_OK ? read_tensors(s, bytes - s->data, err) : rc;
}

wf_status wf_shard_open(wf_disk *disk, const char *path, wf_shard **out, wf_err *err)
{
    wf_shard *s = calloc(1, sizeof *s);
    wf_status rc;

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    s->path = strdup(path);
    rc = s->path ? wf_disk_open(disk, path, WF_DISK_READ, &s->file, err)
                 : wf_fail_nomem(err, strlen(path));
    if (rc == WF_OK)
        rc = read_header(s, err);
    if (rc != WF_OK) {
        wf_shard_close(&s);
        return rc;
    }
    *out = s;
    return WF_OK;
}

void wf_shard_close(wf_shard **s)
{
    if (!*s)
        return;
    wf_disk_drop(&(*s)->file);
    json_decref((*s)->root);
    free((*s)->tensors);
    free((*s)->names);
    free((*s)->path);
    free(*s);
    *s = NULL;
}

size_t wf_shard_count(const wf_shard *s)
{
    return s->n;
}

const wf_shard_tensor *wf_shard_at(const wf_shard *s, size_t i)
{
    return &s->tensors[i];
}

const wf_shard_tensor *wf_shard_find(const wf_shard *s, const char *name)
{
    wf_shard_tensor wanted = {.name = name}, *key = &wanted;
    wf_shard_tensor **found = bsearch(&key, s->names, s->n, sizeof *s->names, by_name);

    return found ? *found : NULL;
}

const char *wf_shard_meta_find(const wf_shard *s, const char *key)
{
    return json_string_value(json_object_get(json_object_get(s->root, "__metadata__"), key));
}

wf_status wf_shard_read(wf_shard *s, const wf_shard_tensor *t, uint64_t offset, void *data,
                        size_t bytes, wf_err *err)
{
    if (offset > t->bytes || bytes > t->bytes - offset)
        return wf_fail(err, WF_INVALID, NULL,
                       "%s: tensor \"%.200s\" has %" PRIu64 " bytes, asked for %zu from %" PRIu64,
                       s->path, t->name, t->bytes, bytes, offset);
    return wf_disk_read(s->file, s->data + t->begin + offset, data, bytes, err);
}
