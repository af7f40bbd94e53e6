/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/npy.c - reading goes through the data room, which holds a header against its file.
 */
#include "common/session/npy.h"
#include "common/base/bytes.h"
#include "common/base/file.h"
#include "common/data/data.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *descr_of(wf_dtype dtype)
{
    switch (dtype) {
    case WF_F32:
    case WF_BF16:
        return "<f4";
    case WF_F64:
        return "<f8";
    case WF_F16:
        return "<f2";
    case WF_U8:
        return "|u1";
    case WF_I32:
        return "<i4";
    case WF_I64:
        return "<i8";
    case WF_BOOL:
        return "|b1";
    default:
        return NULL;
    }
}

/* Version 1.0: the head is padded so that the elements begin at a multiple of 64. */
static void put_head(wf_bytes *out, const char *descr, uint32_t rank, const int64_t dims[])
{
    wf_bytes text = {0};
    size_t padded;
    uint8_t head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};

    wf_bytes_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t i = 0; i < rank; i++)
        wf_bytes_printf(&text, "%" PRId64 ", ", dims[i]);
    wf_bytes_puts(&text, "), }");
    padded = (text.size + 1 + sizeof head + 63) / 64 * 64 - sizeof head;
    while (!text.failed && text.size + 1 < padded)
        wf_bytes_puts(&text, " ");
    wf_bytes_puts(&text, "\n");
    head[8] = (uint8_t)(padded & 0xff);
    head[9] = (uint8_t)(padded >> 8);
    wf_bytes_add(out, head, sizeof head);
    wf_bytes_add(out, text.data, text.size);
    out->failed = out->failed || text.failed;
    wf_bytes_close(&text);
}

void wf_npy_put_elements(wf_bytes *out, wf_dtype dtype, int64_t elems, const void *data)
{
    if (dtype != WF_BF16) {
        wf_bytes_add(out, data, (size_t)elems * wf_dtype_size(dtype));
        return;
    }
    for (int64_t i = 0; i < elems; i++) {
        float f = wf_bf16_to_f32(((const uint16_t *)data)[i]);

        wf_bytes_add(out, &f, sizeof f);
    }
}

size_t wf_npy_element(wf_dtype dtype)
{
    return dtype == WF_BF16 ? sizeof(float) : wf_dtype_size(dtype);
}

wf_status wf_npy_put_head(wf_bytes *out, const char *name, wf_dtype dtype, uint32_t rank,
                          const int64_t dims[], wf_err *err)
{
    const char *descr = descr_of(dtype);

    if (!descr)
        return wf_fail(err, WF_INVALID, NULL, "\"%.200s\" is not a tensor that numpy reads", name);
    put_head(out, descr, rank, dims);
    return wf_bytes_check(out, err);
}

const char *wf_npy_name(const char *name, char *file, size_t size)
{
    snprintf(file, size, "%s.npy", name);
    for (char *c = file; *c; c++)
        if (*c == '/' || *c == ':')
            *c = '_';
    return file;
}

wf_status wf_npy_write(const char *dir, const char *name, wf_dtype dtype, uint32_t rank,
                       const int64_t dims[], const void *data, wf_err *err)
{
    const char *descr = descr_of(dtype);
    char path[PATH_MAX], file[WF_NPY_NAME];
    wf_bytes out = {0};
    int64_t elems;
    int n = snprintf(path, sizeof path, "%s/%s", dir, wf_npy_name(name, file, sizeof file));
    wf_status rc;

    if (n < 0 || n >= (int)sizeof path)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s/%.200s.npy is too long", dir, name);
    if (!descr || !wf_dims_elems(rank, dims, &elems))
        return wf_fail(err, WF_INVALID, NULL, "\"%.200s\" is not a tensor that numpy reads", name);
    put_head(&out, descr, rank, dims);
    wf_npy_put_elements(&out, dtype, elems, data);
    rc = wf_bytes_check(&out, err);
    if (rc == WF_OK)
        rc = wf_file_write(path, out.data, out.size, err);
    wf_bytes_close(&out);
    return rc;
}

wf_status wf_npy_read(const char *path, wf_tensor **out, wf_err *err)
{
    return wf_data_load("npy", path, out, err);
}
