/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/tfrecord.c - TensorFlow's record files of tf.Example, as TensorFlow, Spark and others
 * write them: a field is one feature of all records.
 *
 * A record is its length (u64), the masked crc32c of these 8 bytes (u32), the data, and the masked
 * crc32c of the data (u32), all little-endian. A length that is wrong ends the file: what follows
 * cannot be found. */
#include "common/base/crc32c.h"
#include "common/base/size.h"
#include "common/data/example.h"
#include "common/data/format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 12, TAIL = 4, LARGEST = 256 << 20 /* bytes of a record */, FIRST_ROOM = 64 };

typedef struct reading {
    wf_source *s;
    const char *name;
    const wf_bag *bag; /* NULL: all records have as many values */
    size_t limit_bytes;
    uint8_t *record; /* [room] with its tail */
    size_t room;
    uint64_t n;   /* records that were read */
    wf_array all; /* dims[0]: records that have room */
    size_t each;  /* bytes of one */
} reading;

static bool is_crc_of(const uint8_t *crc, const void *data, size_t n)
{
    uint32_t have = wf_crc32c(0, data, n), said;

    memcpy(&said, crc, sizeof said);
    return said == (have >> 15 | have << 17) + 0xa282ead8u;
}

/* The next record's data, [*n] in r->record; *any is false at the end of the file. */
static wf_status next_record(reading *r, bool *any, size_t *n, wf_err *err)
{
    uint8_t head[HEAD];
    uint64_t length;

    WF_TRY(wf_source_next(r->s, head, HEAD, any, err));
    if (!*any)
        return WF_OK;
    memcpy(&length, head, sizeof length);
    if (!is_crc_of(head + 8, head, 8))
        return r->n ? wf_fail(err, WF_INVALID, "fetch the file again",
                              "the checksum of its length is wrong; the records behind it are lost")
                    : wf_fail(err, WF_INVALID, "check data.format; pack such files with gzip only",
                              "the file is no TFRecord file, or its begin is damaged");
    if (length > LARGEST)
        return wf_fail(err, WF_UNSUPPORTED, "write smaller records",
                       "it has %" PRIu64 " bytes, %d are allowed", length, LARGEST);
    WF_TRY(wf_source_expect(r->s, length + TAIL, err));
    *n = (size_t)length;
    if (r->room < *n + TAIL) {
        free(r->record);
        r->room = 2 * *n + TAIL;
        r->record = malloc(r->room);
        if (!r->record)
            return wf_fail_nomem(err, r->room);
    }
    WF_TRY(wf_source_read(r->s, r->record, *n + TAIL, err));
    if (is_crc_of(r->record + *n, r->record, *n))
        return WF_OK;
    return wf_fail(err, WF_INVALID, "fetch the file again", "the checksum of its data is wrong");
}

/* The first record says what the others must be. */
static wf_status plan_array(reading *r, const wf_feature *f, wf_err *err)
{
    wf_array *a = &r->all;
    int64_t elems;

    if (r->bag) {
        *a = (wf_array){.dtype = r->bag->dtype, .rank = 2, .dims = {FIRST_ROOM}};
        a->dims[1] = (int64_t)r->bag->most;
        r->each = (size_t)r->bag->most * wf_dtype_size(a->dtype);
        return wf_array_make(a, r->s->path, r->limit_bytes, err);
    }
    if (f->dtype == WF_NONE || f->n == 0 || (f->dtype == WF_U8 && f->bytes == 0))
        return wf_fail(err, WF_INVALID, "features without values are not supported",
                       "the feature \"%.64s\" is empty", r->name);
    a->dtype = f->dtype;
    a->rank = 1;
    if (f->n > 1)
        a->dims[a->rank++] = (int64_t)f->n;
    if (f->dtype == WF_U8)
        a->dims[a->rank++] = (int64_t)f->bytes;
    if (!wf_dims_elems(a->rank - 1, a->dims + 1, &elems) ||
        !wf_mul_size((size_t)elems, wf_dtype_size(a->dtype), &r->each))
        return wf_fail(err, WF_INVALID, NULL, "the feature \"%.64s\" is too large", r->name);
    a->dims[0] = FIRST_ROOM;
    return wf_array_make(a, r->s->path, r->limit_bytes, err);
}

static wf_status grow(reading *r, wf_err *err)
{
    wf_array more = r->all;

    if (__builtin_mul_overflow(more.dims[0], 2, &more.dims[0]))
        return wf_fail(err, WF_INVALID, NULL, "%s holds too much", r->s->path);
    WF_TRY(wf_array_make(&more, r->s->path, r->limit_bytes, err));
    memcpy(more.data, r->all.data, (size_t)r->n * r->each);
    wf_array_close(&r->all);
    r->all = more;
    return WF_OK;
}

static wf_status check_alike(const reading *r, const wf_feature *f, wf_err *err)
{
    const wf_array *a = &r->all;
    uint64_t bytes = a->dtype == WF_U8 ? (uint64_t)a->dims[a->rank - 1] : 0;
    uint64_t n = a->rank > 1 + (a->dtype == WF_U8) ? (uint64_t)a->dims[1] : 1;

    if (f->dtype != a->dtype)
        return wf_fail(err, WF_INVALID, "write one kind of list in all records",
                       "the feature \"%.64s\" is a list of %s, in the first record of %s", r->name,
                       f->dtype ? wf_dtype_name(f->dtype) : "nothing", wf_dtype_name(a->dtype));
    if (f->n == n && f->bytes == bytes)
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "pad the lists to one length",
                   "the feature \"%.64s\" has %" PRIu64 " values%s, the first record's %" PRIu64,
                   r->name, f->n * (bytes ? f->bytes : 1), bytes ? " of a byte" : "",
                   n * (bytes ? bytes : 1));
}

static wf_status take_bag(reading *r, const wf_feature *f, void *out, wf_err *err)
{
    const wf_bag *b = r->bag;
    uint64_t n = f->n;
    bool ends = false;

    if (f->n && f->dtype != b->dtype)
        return wf_fail(err, WF_INVALID, "ids are an int64_list, and weights a float_list",
                       "the feature \"%.64s\" is a list of %s, and the model's input takes %s",
                       r->name, wf_dtype_name(f->dtype), wf_dtype_name(b->dtype));
    if (n > b->most) {
        WF_TRY(wf_err_wrap(err, wf_bag_is_full(b, &ends, err), "the feature \"%.64s\"", r->name));
        n = b->most;
    }
    if (n)
        wf_feature_copy(f, n, out);
    for (uint64_t i = 0; b->dtype == WF_I64 && b->filler == -1 && i < n; i++)
        WF_TRY(wf_err_wrap(err, wf_bag_check_id(((const int64_t *)out)[i], err),
                           "the feature \"%.64s\"", r->name));
    wf_bag_fill(b, out, n);
    return WF_OK;
}

static wf_status take_record(reading *r, size_t n, wf_err *err)
{
    wf_feature f;
    void *to;

    WF_TRY(wf_example_find(r->record, n, r->name, &f, err));
    if (r->n == 0)
        WF_TRY(plan_array(r, &f, err));
    if (!r->bag)
        WF_TRY(check_alike(r, &f, err));
    if (r->n == (uint64_t)r->all.dims[0])
        WF_TRY(grow(r, err));
    to = (uint8_t *)r->all.data + (size_t)r->n * r->each;
    if (r->bag)
        WF_TRY(take_bag(r, &f, to, err));
    else
        wf_feature_copy(&f, f.n, to);
    r->n++;
    return WF_OK;
}

static wf_status read_all(reading *r, wf_err *err)
{
    bool any = true;
    size_t n = 0;

    while (any) {
        wf_status rc = next_record(r, &any, &n, err);

        if (rc == WF_OK && any)
            rc = take_record(r, n, err);
        if (rc != WF_OK)
            return wf_err_wrap(err, rc, "%s: record %" PRIu64, r->s->path, r->n);
    }
    return r->n ? WF_OK : wf_fail(err, WF_INVALID, NULL, "%s holds no records", r->s->path);
}

static wf_status read_feature(wf_source *s, const char *name, const wf_bag *bag, size_t limit_bytes,
                              wf_array *out, wf_err *err)
{
    reading r = {.s = s, .name = name ? name : "", .bag = bag, .limit_bytes = limit_bytes};
    wf_status rc = read_all(&r, err);

    free(r.record);
    if (rc != WF_OK) {
        wf_array_close(&r.all);
        return rc;
    }
    r.all.dims[0] = (int64_t)r.n; /* what has room behind them is not touched */
    r.all.bytes = (size_t)r.n * r.each;
    *out = r.all;
    return WF_OK;
}

const wf_format wf_format_tfrecord = {
    .name = "tfrecord", .feature = read_feature, .keys = {"bags", "on_long_bag"}};
