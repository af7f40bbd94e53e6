/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/array.c - elements of a file into memory: bounded, in our byte order, widened where
 * weft has no dtype for them. */
#include "common/base/pages.h"
#include "common/base/size.h"
#include "common/data/convert.h"
#include "common/data/format.h"
#include "common/data/parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 4096 /* elements */ };

static const struct known {
    char kind;
    uint8_t size;
    wf_dtype dtype;
} known[] = {
    {'b', 1, WF_BOOL}, {'u', 1, WF_U8},  {'u', 2, WF_I32}, {'u', 4, WF_I64},
    {'i', 1, WF_I32},  {'i', 2, WF_I32}, {'i', 4, WF_I32}, {'i', 8, WF_I64},
    {'f', 2, WF_F16},  {'f', 4, WF_F32}, {'f', 8, WF_F64},
};

wf_dtype wf_element_dtype(wf_element e)
{
    for (size_t i = 0; i < WF_COUNT(known); i++)
        if (known[i].kind == e.kind && known[i].size == e.size)
            return known[i].dtype;
    return WF_NONE;
}

void wf_array_close(wf_array *a)
{
    if (!a->lent)
        free(a->data);
    *a = (wf_array){0};
}

static void swap_bytes(void *data, size_t n, size_t size)
{
    uint8_t *p = data;

    for (size_t i = 0; i < n; i++, p += size)
        for (size_t k = 0; k < size / 2; k++) {
            uint8_t byte = p[k];

            p[k] = p[size - 1 - k];
            p[size - 1 - k] = byte;
        }
}

/* Integers of 1, 2 or 4 bytes, in our byte order, into the wider dtype. */
static void widen(wf_element e, const uint8_t *in, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += e.size) {
        int16_t s = 0;
        uint16_t u = 0;
        uint32_t wide = 0;

        if (e.kind == 'u' && e.size == 4) {
            memcpy(&wide, in, 4);
            ((int64_t *)out)[i] = wide;
        } else if (e.size == 1) {
            ((int32_t *)out)[i] = (int8_t)in[0];
        } else if (e.kind == 'i') {
            memcpy(&s, in, 2);
            ((int32_t *)out)[i] = s;
        } else {
            memcpy(&u, in, 2);
            ((int32_t *)out)[i] = u;
        }
    }
}

static wf_status read_widened(wf_source *s, wf_element e, size_t n, wf_array *a, wf_err *err)
{
    uint8_t tile[TILE * 4];
    size_t size = wf_dtype_size(a->dtype);

    for (size_t at = 0; at < n; at += TILE) {
        size_t now = WF_MIN(n - at, (size_t)TILE);

        WF_TRY(wf_source_read(s, tile, now * e.size, err));
        if (e.big_endian)
            swap_bytes(tile, now, e.size);
        widen(e, tile, (uint8_t *)a->data + at * size, now);
    }
    return WF_OK;
}

static wf_status fill(wf_source *s, wf_element e, size_t n, wf_array *a, wf_err *err)
{
    uint8_t *p = a->data;

    if (wf_dtype_size(a->dtype) != e.size)
        return read_widened(s, e, n, a, err);
    WF_TRY(wf_source_rest(s, p, a->bytes, err));
    if (e.big_endian)
        swap_bytes(p, n, e.size);
    for (size_t i = 0; e.kind == 'b' && i < n; i++)
        p[i] = p[i] != 0;
    return WF_OK;
}

wf_status wf_array_make(wf_array *a, const char *path, size_t limit_bytes, wf_err *err)
{
    char text[128];
    int64_t elems;

    if (!wf_dims_elems(a->rank, a->dims, &elems) ||
        !wf_mul_size((size_t)elems, wf_dtype_size(a->dtype), &a->bytes))
        return wf_fail(err, WF_INVALID, "check the shape",
                       "%s: the shape %s is more than any memory holds", path,
                       wf_dims_str(a->rank, a->dims, text, sizeof text));
    if (limit_bytes && a->bytes > limit_bytes)
        return wf_fail(err, WF_NOMEM, NULL, "%s takes %zu bytes, %zu are allowed", path, a->bytes,
                       limit_bytes);
    a->lent = false;
    a->data =
        a->bytes > SIZE_MAX - WF_SOURCE_ROOM ? NULL : wf_pages_alloc(a->bytes + WF_SOURCE_ROOM);
    return a->data ? WF_OK : wf_fail_nomem(err, a->bytes);
}

/* Whether a file can hold what its header claims; *n are its elements. */
static wf_status check_claim(const wf_source *s, wf_element e, uint32_t rank, const int64_t dims[],
                             size_t *n, wf_err *err)
{
    char text[128];
    int64_t elems;
    size_t bytes;

    if (rank > WF_MAX_RANK)
        return wf_fail(err, WF_INVALID, NULL, "%s has %u dimensions; weft takes up to %d", s->path,
                       rank, WF_MAX_RANK);
    if (!wf_dims_elems(rank, dims, &elems) || !wf_mul_size((size_t)elems, e.size, &bytes))
        return wf_fail(err, WF_INVALID, "fetch the file again",
                       "%s: its header claims the shape %s, which no memory holds", s->path,
                       wf_dims_str(rank, dims, text, sizeof text));
    *n = (size_t)elems;
    return wf_source_expect(s, bytes, err);
}

/* Passes over what is before the window, and leaves its records in dims; *n are their elements. */
static wf_status take_window(wf_source *s, wf_element e, wf_array *a, size_t *n, wf_err *err)
{
    uint64_t first = s->window_first, records = s->window_records, have;
    size_t row;

    have = a->rank ? (uint64_t)a->dims[0] : 0;
    if (first > have || records > have - first)
        return wf_fail(err, WF_INVALID, "leave the files alone while they are read",
                       "%s has %" PRIu64 " records, it had %" PRIu64 " before", s->path, have,
                       first + records);
    row = *n / (size_t)have;
    *n = row * (size_t)records; /* not more than all of them, whose sizes fit */
    a->dims[0] = (int64_t)records;
    return wf_source_skip(s, first * row * e.size, err);
}

wf_status wf_array_read(wf_source *s, wf_element e, uint32_t rank, const int64_t dims[],
                        size_t limit_bytes, wf_array *out, wf_err *err)
{
    wf_array a = {.dtype = wf_element_dtype(e), .rank = rank};
    wf_status rc;
    size_t n = 0;

    if (a.dtype == WF_NONE)
        return wf_fail(err, WF_UNSUPPORTED, "convert it first (numpy.ndarray.astype)",
                       "%s holds elements of type %c%u, which weft does not read", s->path, e.kind,
                       e.size);
    WF_TRY(check_claim(s, e, rank, dims, &n, err));
    if (rank)
        memcpy(a.dims, dims, rank * sizeof dims[0]);
    if (s->head_only && wf_source_holds(s, (uint64_t)n * e.size)) {
        *out = a;
        return WF_OK;
    }
    if (s->window_records)
        WF_TRY(take_window(s, e, &a, &n, err));
    rc = wf_array_make(&a, s->path, limit_bytes, err);
    if (rc == WF_OK)
        rc = fill(s, e, n, &a, err);
    if (rc == WF_OK && !s->window_records)
        rc = wf_source_end(s, err);
    if (rc == WF_OK)
        *out = a;
    else
        wf_array_close(&a);
    return rc;
}

/* ---- tensors ---- */

static void free_data(void *data, void *hint)
{
    (void)hint;
    free(data);
}

wf_status wf_data_load(const char *format, const char *path, wf_tensor **out, wf_err *err)
{
    const wf_format *row;
    wf_array a = {0};
    wf_tensor *t = NULL;
    wf_status rc;

    WF_TRY(wf_format_find(format, &row, err));
    if (!row->read && !row->load && !row->feature)
        return wf_fail(err, WF_USAGE, NULL, "a file of the data format \"%s\" is no array", format);
    WF_TRY(wf_parts_read_file(row, path, NULL, 0, &a, err));
    rc = wf_tensor_over(a.dtype, a.rank, a.dims, a.data, &t, err);
    if (rc == WF_OK) {
        t->buf = wf_buf_wrap(a.data, a.bytes, free_data, NULL);
        if (t->buf) {
            *out = t;
            return WF_OK;
        }
        rc = wf_fail_nomem(err, sizeof *t->buf);
    }
    wf_tensor_free(&t);
    wf_array_close(&a);
    return rc;
}
