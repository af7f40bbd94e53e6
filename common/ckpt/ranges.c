/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/ranges.c - reading a checkpoint's elements, however they were sliced and of whatever
 * type they are. */
#include "common/base/size.h"
#include "common/ckpt/tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static float to_f32(wf_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case WF_F64:
        return (float)((const double *)data)[i];
    case WF_F16:
        return wf_f16_to_f32(((const uint16_t *)data)[i]);
    case WF_BF16:
        return wf_bf16_to_f32(((const uint16_t *)data)[i]);
    case WF_I32:
        return (float)((const int32_t *)data)[i];
    case WF_I64:
        return (float)((const int64_t *)data)[i];
    case WF_U8:
    case WF_BOOL:
        return (float)((const uint8_t *)data)[i];
    default: /* int8 has scales beside it */
        return ((const float *)data)[i];
    }
}

static wf_status read_converted(wf_shard *shard, const wf_shard_tensor *t, uint64_t from,
                                uint64_t count, float *out, wf_err *err)
{
    uint64_t block[512];
    size_t width = wf_dtype_size(t->dtype);

    while (count > 0) {
        size_t n = count < sizeof block / width ? (size_t)count : sizeof block / width;

        WF_TRY(wf_shard_read(shard, t, width * from, block, n * width, err));
        for (size_t i = 0; i < n; i++)
            out[i] = to_f32(t->dtype, block, i);
        out += n;
        from += n;
        count -= n;
    }
    return WF_OK;
}

static wf_status read_scales(wf_ckpt *c, wf_shard *shard, const wf_shard_tensor *t, uint64_t first,
                             uint64_t n, float out[], wf_err *err)
{
    WF_TRY(wf_shard_read(shard, t, first * sizeof *out, out, n * sizeof *out, err));
    for (uint64_t i = 0; i < n; i++)
        if (out[i] < 0 || isinf(out[i]))
            return wf_fail(err, WF_CORRUPT, NULL, "%s: \"%.200s\": row %" PRIu64 " is scaled by %g",
                           c->name, t->name, first + i, (double)out[i]);
    return WF_OK;
}

/* Elements [from, from + count) of a slice of int8 rows, by the scales of their rows. */
static wf_status read_int8(wf_ckpt *c, const wf_ckpt_variable *v, const wf_ckpt_slice *s,
                           uint64_t from, uint64_t count, float *out, wf_err *err)
{
    enum { BLOCK = 1024 };
    const wf_shard_tensor *values = NULL, *of_rows = NULL;
    uint64_t row = wf_ckpt_row(v);
    float scales[BLOCK + 1];
    wf_shard *shard = NULL;
    int8_t block[BLOCK];

    WF_TRY(wf_ckpt_tensor(c, v, NULL, s, &shard, &values, err));
    WF_TRY(wf_ckpt_scales(c, v, s, &shard, &of_rows, err));
    for (uint64_t at = 0, n; at < count; at += n) {
        uint64_t begin = from + at, first = begin / row;

        n = WF_MIN(count - at, (uint64_t)BLOCK);
        WF_TRY(wf_shard_read(shard, values, begin, block, n, err));
        WF_TRY(
            read_scales(c, shard, of_rows, first, (begin + n - 1) / row - first + 1, scales, err));
        for (uint64_t i = 0; i < n; i++)
            out[at + i] = (float)block[i] * scales[(begin + i) / row - first];
    }
    return WF_OK;
}

wf_status wf_ckpt_read_part(wf_ckpt *c, const wf_ckpt_variable *v, const char *slot,
                            const wf_ckpt_slice *s, wf_dtype as, uint64_t from, uint64_t count,
                            void *out, wf_err *err)
{
    const wf_shard_tensor *t = NULL;
    wf_shard *shard = NULL;
    size_t width;

    WF_TRY(wf_ckpt_tensor(c, v, slot, s, &shard, &t, err));
    width = wf_dtype_size(t->dtype);
    if (t->dtype == as)
        return wf_shard_read(shard, t, width * from, out, (size_t)(width * count), err);
    if (as != WF_F32)
        return wf_fail(err, WF_INVALID, NULL, "%s: \"%.200s\" is %s, asked for %s", c->name,
                       v->name, wf_dtype_name(t->dtype), wf_dtype_name(as));
    if (t->dtype == WF_I8)
        return read_int8(c, v, s, from, count, out, err);
    return read_converted(shard, t, from, count, out, err);
}

static wf_status find_range(wf_ckpt *c, const char *variable, uint64_t offset, uint64_t count,
                            const wf_ckpt_variable **out, wf_err *err)
{
    const wf_ckpt_variable *v = wf_ckpt_variable_find(c, variable);
    uint64_t elems = 0;

    if (!v)
        return wf_fail(err, WF_NOTFOUND, NULL, "%s has no variable \"%.200s\"", c->name, variable);
    if (v->unbounded)
        return wf_fail(err, WF_INVALID, "read its rows by their ids",
                       "%s: \"%.200s\" is an unbounded table, and has no elements in a row",
                       c->name, variable);
    for (size_t i = 0; i < v->n_slices; i++)
        elems += v->slices[i].count;
    if (offset > elems || count > elems - offset)
        return wf_fail(err, WF_INVALID, NULL,
                       "%s: \"%.200s\" has %" PRIu64 " elements, asked for %" PRIu64
                       " from %" PRIu64,
                       c->name, variable, elems, count, offset);
    *out = v;
    return WF_OK;
}

wf_status wf_ckpt_read_as(wf_ckpt *c, const char *variable, const char *slot, wf_dtype as,
                          uint64_t offset, uint64_t count, void *out, wf_err *err)
{
    const wf_ckpt_variable *v = NULL;
    uint64_t end = offset + count;

    WF_TRY(find_range(c, variable, offset, count, &v, err));
    for (size_t i = 0; i < v->n_slices; i++) {
        const wf_ckpt_slice *s = &v->slices[i];
        uint64_t from = WF_MAX(offset, s->offset), to = WF_MIN(end, s->offset + s->count);

        if (from < to)
            WF_TRY(wf_ckpt_read_part(c, v, slot, s, as, from - s->offset, to - from,
                                     (uint8_t *)out + (from - offset) * wf_dtype_size(as), err));
    }
    return WF_OK;
}

wf_status wf_ckpt_read_range(wf_ckpt *c, const char *variable, const char *slot, uint64_t offset,
                             uint64_t count, float out[], wf_err *err)
{
    return wf_ckpt_read_as(c, variable, slot, WF_F32, offset, count, out, err);
}

wf_status wf_ckpt_read_scales(wf_ckpt *c, const char *variable, uint64_t first, uint64_t n,
                              float out[], wf_err *err)
{
    const wf_ckpt_variable *v = wf_ckpt_variable_find(c, variable);
    uint64_t row = v ? wf_ckpt_row(v) : 0, count = 0;

    if (__builtin_mul_overflow(n, row, &count) || __builtin_mul_overflow(first, row, &first))
        return wf_fail(err, WF_INVALID, NULL, "%s: \"%.200s\" has no %" PRIu64 " rows", c->name,
                       variable, n);
    WF_TRY(find_range(c, variable, first, count, &v, err));
    for (size_t i = 0; i < v->n_slices; i++) {
        const wf_ckpt_slice *s = &v->slices[i];
        uint64_t from = WF_MAX(first, s->offset), to = WF_MIN(first + count, s->offset + s->count);
        const wf_shard_tensor *t = NULL;
        wf_shard *shard = NULL;

        if (from >= to)
            continue;
        WF_TRY(wf_ckpt_scales(c, v, s, &shard, &t, err));
        WF_TRY(read_scales(c, shard, t, (from - s->offset) / row, (to - from) / row,
                           out + (from - first) / row, err));
    }
    return WF_OK;
}

wf_status wf_ckpt_count_rows(wf_ckpt *c, const wf_ckpt_variable *v, uint64_t *rows, wf_err *err)
{
    wf_shard *shard = NULL;
    const wf_shard_tensor *t = NULL;

    *rows = 0;
    for (size_t i = 0; i < v->n_slices; i++) {
        WF_TRY(wf_ckpt_tensor(c, v, NULL, &v->slices[i], &shard, &t, err));
        *rows += (uint64_t)t->dims[0];
    }
    return WF_OK;
}

static const wf_ckpt_slice *slice_at(const wf_ckpt_variable *v, uint64_t offset)
{
    for (size_t i = 0; v && i < v->n_slices; i++)
        if (v->slices[i].offset == offset)
            return &v->slices[i];
    return NULL;
}

wf_status wf_ckpt_read_array(wf_ckpt *c, const char *variable, const char *slot, uint64_t offset,
                             void **out, uint64_t *bytes, wf_err *err)
{
    const wf_ckpt_variable *v = wf_ckpt_variable_find(c, variable);
    const wf_ckpt_slice *s = slice_at(v, offset);
    char name[2 * WF_SHARD_MAX_NAME];
    const wf_shard_tensor *t;
    wf_shard *shard = NULL;
    wf_status rc;

    if (!s)
        return wf_fail(err, WF_NOTFOUND, NULL, "%s: \"%.200s\" has no slice at %" PRIu64, c->name,
                       variable, offset);
    WF_TRY(wf_ckpt_shard(c, s->file, &shard, err));
    wf_ckpt_tensor_name(v->name, slot, s->offset, v->n_slices == 1, name, sizeof name);
    t = wf_shard_find(shard, name);
    if (!t)
        return wf_fail(err, WF_NOTFOUND, NULL, "%s has no tensor \"%.200s\"",
                       c->m.files[s->file].name, name);
    *out = malloc(t->bytes + 1);
    if (!*out)
        return wf_fail_nomem(err, t->bytes);
    *bytes = t->bytes;
    rc = wf_shard_read(shard, t, 0, *out, t->bytes, err);
    if (rc != WF_OK) {
        free(*out);
        *out = NULL;
    }
    return rc;
}
