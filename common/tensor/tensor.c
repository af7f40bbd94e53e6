/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/tensor.c */
#include "common/tensor/tensor.h"
#include "common/base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int wf_dims_elems(uint32_t rank, const int64_t dims[], int64_t *out)
{
    int64_t n = 1;
    int empty = 0;

    /* An axis of 0 counts as 1: products of the others (strides) are formed as well. */
    for (uint32_t i = 0; i < rank; i++) {
        empty |= dims[i] == 0;
        if (dims[i] < 0 || !wf_mul_i64(n, dims[i] ? dims[i] : 1, &n))
            return 0;
    }
    *out = empty ? 0 : n;
    return 1;
}

const char *wf_dims_str(uint32_t rank, const int64_t dims[], char *text, size_t size)
{
    size_t at = 0;

    snprintf(text, size, "[");
    for (uint32_t i = 0; i < rank; i++) {
        at = strlen(text);
        if (dims[i] < 0)
            snprintf(text + at, size - at, "%s?", i ? ", " : "");
        else
            snprintf(text + at, size - at, "%s%" PRId64, i ? ", " : "", dims[i]);
    }
    at = strlen(text);
    snprintf(text + at, size - at, "]");
    return text;
}

/* The bytes that a tensor of this shape needs, checked. */
static wf_status measure(wf_dtype dtype, uint32_t rank, const int64_t dims[], size_t *bytes,
                         wf_err *err)
{
    char text[128];
    int64_t n;

    if (rank > WF_MAX_RANK)
        return wf_fail(err, WF_SHAPE, NULL, "rank %u is above the %d that weft allows", rank,
                       WF_MAX_RANK);
    if (wf_dtype_size(dtype) == 0)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "unknown element type %d", (int)dtype);
    if (!wf_dims_elems(rank, dims, &n) || !wf_mul_size((size_t)n, wf_dtype_size(dtype), bytes) ||
        *bytes > INT64_MAX)
        return wf_fail(err, WF_SHAPE, NULL, "the shape %s cannot be held",
                       wf_dims_str(rank, dims, text, sizeof text));
    return WF_OK;
}

wf_status wf_tensor_over(wf_dtype dtype, uint32_t rank, const int64_t dims[], void *data,
                         wf_tensor **out, wf_err *err)
{
    size_t bytes = 0;
    wf_tensor *t;

    WF_TRY(measure(dtype, rank, dims, &bytes, err));
    t = calloc(1, sizeof *t);
    if (!t)
        return wf_fail_nomem(err, sizeof *t);
    t->dtype = dtype;
    t->rank = rank;
    if (rank)
        memcpy(t->dims, dims, rank * sizeof dims[0]);
    t->data = data;
    *out = t;
    return WF_OK;
}

wf_status wf_tensor_new(wf_dtype dtype, uint32_t rank, const int64_t dims[], wf_tensor **out,
                        wf_err *err)
{
    size_t bytes = 0;
    wf_tensor *t = NULL;

    WF_TRY(measure(dtype, rank, dims, &bytes, err));
    WF_TRY(wf_tensor_over(dtype, rank, dims, NULL, &t, err));
    t->buf = wf_buf_new(bytes);
    if (!t->buf) {
        wf_tensor_free(&t);
        return wf_fail_nomem(err, bytes);
    }
    t->data = t->buf->data;
    *out = t;
    return WF_OK;
}

static void unmap(void *data, void *bytes)
{
    munmap(data, (size_t)(uintptr_t)bytes);
}

wf_status wf_tensor_new_blank(wf_dtype dtype, uint32_t rank, const int64_t dims[], wf_tensor **out,
                              wf_err *err)
{
    size_t bytes = 0;
    wf_tensor *t = NULL;
    void *data;

    WF_TRY(measure(dtype, rank, dims, &bytes, err));
    bytes = bytes ? bytes : 1;
    WF_TRY(wf_tensor_over(dtype, rank, dims, NULL, &t, err));
    data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data != MAP_FAILED) {
        t->data = data;
        t->buf = wf_buf_wrap(data, bytes, unmap, (void *)(uintptr_t)bytes);
        if (!t->buf)
            munmap(data, bytes);
    }
    if (!t->buf) {
        wf_tensor_free(&t);
        return wf_fail_nomem(err, bytes);
    }
    *out = t;
    return WF_OK;
}

wf_status wf_tensor_copy(const wf_tensor *t, wf_tensor **out, wf_err *err)
{
    WF_TRY(wf_tensor_new(t->dtype, t->rank, t->dims, out, err));
    if (wf_tensor_bytes(t))
        memcpy((*out)->data, t->data, wf_tensor_bytes(t));
    return WF_OK;
}

wf_status wf_tensor_share(const wf_tensor *t, wf_tensor **out, wf_err *err)
{
    if (!t->buf)
        return wf_tensor_copy(t, out, err);
    WF_TRY(wf_tensor_over(t->dtype, t->rank, t->dims, t->data, out, err));
    (*out)->buf = wf_buf_ref(t->buf);
    return WF_OK;
}

void wf_tensor_free(wf_tensor **t)
{
    if (!*t)
        return;
    wf_buf_unref(&(*t)->buf);
    free(*t);
    *t = NULL;
}

int64_t wf_elems(const wf_tensor *t)
{
    int64_t n = 1;

    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

size_t wf_tensor_bytes(const wf_tensor *t)
{
    return (size_t)wf_elems(t) * wf_dtype_size(t->dtype);
}

int64_t wf_dim(const wf_tensor *t, int axis)
{
    return t->dims[axis < 0 ? axis + (int)t->rank : axis];
}
