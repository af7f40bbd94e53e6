/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/tensor.c - TensorProto to wf_tensor: raw bytes, typed lists, or a file beside
 * the model. All sizes are checked against what is there before memory is taken. */
#include "common/onnx/tensor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXTERNAL = 1 };

/* Bools may come as any byte; ours are 0 and 1. */
static void clean_bools(wf_tensor *t)
{
    uint8_t *data = t->data;

    if (t->dtype != WF_BOOL)
        return;
    for (int64_t i = 0; i < wf_elems(t); i++)
        data[i] = data[i] != 0;
}

static bool narrow(wf_tensor *t, const int32_t from[])
{
    for (int64_t i = 0; i < wf_elems(t); i++) {
        if (wf_dtype_size(t->dtype) == 2) {
            if (from[i] < 0 || from[i] > UINT16_MAX)
                return false;
            ((uint16_t *)t->data)[i] = (uint16_t)from[i];
        } else {
            if (from[i] < 0 || from[i] > UINT8_MAX)
                return false;
            ((uint8_t *)t->data)[i] = (uint8_t)from[i];
        }
    }
    return true;
}

/* The typed list that belongs to a dtype. */
static const void *typed_list(const Weft__Onnx__Tensor *p, wf_dtype dtype, size_t *n)
{
    switch (dtype) {
    case WF_F32:
        *n = p->n_float_data;
        return p->float_data;
    case WF_F64:
        *n = p->n_double_data;
        return p->double_data;
    case WF_I64:
        *n = p->n_int64_data;
        return p->int64_data;
    default:
        *n = p->n_int32_data;
        return p->int32_data;
    }
}

static wf_status check_amount(size_t there, size_t wanted, const char *of, wf_err *err)
{
    if (there == wanted)
        return WF_OK;
    return wf_fail(err, WF_INVALID, NULL, "%zu %s are there, its shape needs %zu", there, of,
                   wanted);
}

static wf_status from_message(const Weft__Onnx__Tensor *p, wf_dtype dtype, uint32_t rank,
                              const int64_t dims[], int64_t elems, wf_tensor **out, wf_err *err)
{
    const void *list;
    size_t n;

    if (p->has_raw_data)
        WF_TRY(check_amount(p->raw_data.len, (size_t)elems * wf_dtype_size(dtype), "bytes", err));
    list = typed_list(p, dtype, &n);
    if (!p->has_raw_data)
        WF_TRY(check_amount(n, (size_t)elems, "elements", err));
    WF_TRY(wf_tensor_new(dtype, rank, dims, out, err));
    if (elems == 0)
        return WF_OK;
    if (p->has_raw_data)
        memcpy((*out)->data, p->raw_data.data, p->raw_data.len);
    else if (wf_dtype_size(dtype) >= 4)
        memcpy((*out)->data, list, wf_tensor_bytes(*out));
    else if (!narrow(*out, list))
        return wf_fail(err, WF_INVALID, NULL, "an element is out of the range of %s",
                       wf_dtype_name(dtype));
    return WF_OK;
}

typedef struct place {
    const char *location;
    uint64_t offset, length;
    bool has_length;
} place;

static bool parse_u64(const char *text, uint64_t *out)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == 0;
}

static wf_status find_place(const Weft__Onnx__Tensor *p, place *out, wf_err *err)
{
    *out = (place){0};
    for (size_t i = 0; i < p->n_external_data; i++) {
        const char *key = p->external_data[i]->key, *value = p->external_data[i]->value;
        bool good = true;

        if (!key || !value)
            continue;
        if (strcmp(key, "location") == 0) {
            out->location = value;
        } else if (strcmp(key, "offset") == 0) {
            good = parse_u64(value, &out->offset);
        } else if (strcmp(key, "length") == 0) {
            good = parse_u64(value, &out->length);
            out->has_length = true;
        }
        if (!good)
            return wf_fail(err, WF_INVALID, NULL, "%s of its external data is \"%.40s\"", key,
                           value);
    }
    if (!out->location || !out->location[0])
        return wf_fail(err, WF_INVALID, NULL, "its external data have no location");
    return WF_OK;
}

/* Opens the file if it lies in the folder or below, links followed. */
static wf_status open_within(const char *folder, const char *location, int *fd, wf_err *err)
{
    static const char hint[] = "keep the data file in the model's folder";
    char joined[PATH_MAX], root[PATH_MAX], path[PATH_MAX];
    size_t n;

    if (location[0] == '/' || strcmp(location, "..") == 0 || strncmp(location, "../", 3) == 0 ||
        strstr(location, "/../"))
        return wf_fail(err, WF_INVALID, hint,
                       "its external data \"%.200s\" lie outside the model's "
                       "folder",
                       location);
    if (snprintf(joined, sizeof joined, "%s/%s", folder, location) >= (int)sizeof joined)
        return wf_fail(err, WF_INVALID, NULL, "the path of its external data is too long");
    if (!realpath(folder, root))
        return wf_fail_errno(err, errno, NULL, "cannot open folder %s", folder);
    if (!realpath(joined, path))
        return wf_fail_errno(err, errno, hint, "cannot open its external data %s", joined);
    n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, n) != 0 || path[n] != '/')
        return wf_fail(err, WF_INVALID, hint,
                       "its external data \"%.200s\" lead outside the model's "
                       "folder",
                       location);
    /* Not blocking: the name may be a pipe's. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*fd < 0)
        return wf_fail_errno(err, errno, NULL, "cannot open its external data %s", path);
    return WF_OK;
}

static wf_status read_range(int fd, const place *at, wf_tensor *t, wf_err *err)
{
    size_t bytes = wf_tensor_bytes(t), done = 0;
    struct stat st;

    if (fstat(fd, &st) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot stat its external data %s", at->location);
    if (!S_ISREG(st.st_mode))
        return wf_fail(err, WF_INVALID, NULL, "its external data %s are no file", at->location);
    if (at->has_length && at->length != bytes)
        return wf_fail(err, WF_INVALID, NULL, "%" PRIu64 " bytes are in %s, its shape needs %zu",
                       at->length, at->location, bytes);
    if (at->offset > (uint64_t)st.st_size || bytes > (uint64_t)st.st_size - at->offset)
        return wf_fail(err, WF_INVALID, NULL, "%zu bytes at %" PRIu64 " of %s, which has %" PRId64,
                       bytes, at->offset, at->location, (int64_t)st.st_size);
    t->buf = wf_buf_new(bytes);
    if (!t->buf)
        return wf_fail_nomem(err, bytes);
    t->data = t->buf->data;
    while (done < bytes) {
        ssize_t n = pread(fd, (char *)t->data + done, bytes - done, (off_t)(at->offset + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wf_fail_errno(err, errno, NULL, "cannot read %s", at->location);
        if (n == 0)
            return wf_fail(err, WF_INVALID, NULL, "%s became shorter while it was read",
                           at->location);
        done += (size_t)n;
    }
    return WF_OK;
}

static wf_status external(const Weft__Onnx__Tensor *p, const char *folder, wf_tensor *t,
                          wf_err *err)
{
    place at;
    wf_status rc;
    int fd = -1;

    WF_TRY(find_place(p, &at, err));
    if (!folder)
        return wf_fail(err, WF_INVALID, "give a model with its weights inside",
                       "its data are in the file \"%.200s\", and there is no folder here",
                       at.location);
    WF_TRY(open_within(folder, at.location, &fd, err));
    rc = read_range(fd, &at, t, err);
    close(fd);
    return rc;
}

static wf_status decode(const Weft__Onnx__Tensor *p, const char *folder, wf_tensor **out,
                        wf_err *err)
{
    wf_dtype dtype = (wf_dtype)p->data_type;
    int64_t elems = 0, bits;

    if (p->data_type <= 0 || p->data_type > 64 || !wf_dtype_computes(dtype))
        return wf_fail(err, WF_UNSUPPORTED, NULL, "weft has no element type of ONNX's number %d",
                       (int)p->data_type);
    if (p->n_dims > WF_MAX_RANK)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "it has %zu axes, and weft has %d at most",
                       p->n_dims, WF_MAX_RANK);
    if (!wf_dims_elems((uint32_t)p->n_dims, p->dims, &elems) ||
        __builtin_mul_overflow(elems, (int64_t)wf_dtype_size(dtype), &bits))
        return wf_fail(err, WF_INVALID, NULL, "its shape is negative, or larger than any memory");
    if (p->data_location != EXTERNAL)
        return from_message(p, dtype, (uint32_t)p->n_dims, p->dims, elems, out, err);
    WF_TRY(wf_tensor_over(dtype, (uint32_t)p->n_dims, p->dims, NULL, out, err));
    return external(p, folder, *out, err);
}

wf_status wf_onnx_tensor(const Weft__Onnx__Tensor *p, const char *folder, wf_tensor **out,
                         wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc = decode(p, folder, &t, err);

    if (rc != WF_OK) {
        wf_tensor_free(&t);
        return wf_err_wrap(err, rc, "tensor \"%s\"", p->name ? p->name : "");
    }
    clean_bools(t);
    *out = t;
    return WF_OK;
}
