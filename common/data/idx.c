/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/idx.c - MNIST's format: two zero bytes, a type, a rank, big-endian u32 dims, the
 * elements (big-endian too, which matters for types wider than a byte).
 * http://yann.lecun.com/exdb/mnist, "the IDX file format". */
#include "common/base/bytes.h"
#include "common/data/format.h"

#include <string.h>

static bool knows(const char *path)
{
    return strstr(path, "-ubyte") || wf_path_is(path, ".idx");
}

static wf_dtype dtype_of(uint8_t code)
{
    switch (code) {
    case 0x08:
        return WF_U8;
    case 0x0C:
        return WF_I32;
    case 0x0D:
        return WF_F32;
    case 0x0E:
        return WF_F64;
    default:
        return WF_NONE;
    }
}

static uint32_t big_endian(const uint8_t b[4])
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void swap_all(wf_array *a)
{
    size_t size = wf_dtype_size(a->dtype), n = 1;
    uint8_t *p = a->data;

    if (size == 1)
        return;
    for (uint32_t i = 0; i < a->rank; i++)
        n *= (size_t)a->dims[i]; /* was multiplied with a check when it was read */
    for (; n-- > 0; p += size)
        for (size_t i = 0; i < size / 2; i++) {
            uint8_t byte = p[i];

            p[i] = p[size - 1 - i];
            p[size - 1 - i] = byte;
        }
}

static wf_status read_from(wf_source *s, const char *path, wf_array *out, wf_err *err)
{
    uint8_t head[4], dim[4];
    int64_t dims[WF_MAX_RANK];
    wf_dtype dtype;

    WF_TRY(wf_source_all(s, head, sizeof head, err));
    dtype = dtype_of(head[2]);
    if (head[0] || head[1] || dtype == WF_NONE || head[3] < 1 || head[3] > WF_MAX_RANK)
        return wf_fail(err, WF_INVALID, "MNIST's files begin with 00 00 08",
                       "%s is no IDX file: it begins with %02x %02x %02x %02x", path, head[0],
                       head[1], head[2], head[3]);
    for (uint8_t i = 0; i < head[3]; i++) {
        WF_TRY(wf_source_all(s, dim, sizeof dim, err));
        dims[i] = big_endian(dim);
    }
    WF_TRY(wf_source_array(s, dtype, head[3], dims, out, err));
    swap_all(out);
    return WF_OK;
}

static wf_status read_idx(const char *path, wf_array *out, wf_err *err)
{
    wf_source *s = NULL;
    wf_status rc;

    WF_TRY(wf_source_open(path, &s, err));
    rc = read_from(s, path, out, err);
    wf_source_close(&s);
    return rc;
}

const wf_format wf_format_idx = {.name = "idx", .knows = knows, .read = read_idx};
