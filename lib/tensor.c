/* SPDX-License-Identifier: Apache-2.0 */
/* lib/tensor.c */
#include "common/base/size.h"
#include "lib/lib.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)WEFT_MAX_RANK == (int)WF_MAX_RANK, "ranks are the same");
_Static_assert((int)WEFT_BF16 == (int)WF_BF16 && (int)WEFT_I64 == (int)WF_I64, "so are dtypes");

/* What the owner of a weft_tensor points to, the tensor in front. */
typedef struct owned {
    weft_tensor pub;
    wf_tensor *tensor; /* NULL: a view */
    int64_t shape[WF_MAX_RANK], strides[WF_MAX_RANK];
} owned;

const char *weft_dtype_name(weft_dtype dtype)
{
    return wf_dtype_computes((wf_dtype)dtype) ? wf_dtype_name((wf_dtype)dtype) : "?";
}

weft_dtype weft_dtype_of(const char *name)
{
    wf_dtype dtype = name ? wf_dtype_of(name) : WF_NONE;

    return wf_dtype_computes(dtype) ? (weft_dtype)dtype : (weft_dtype)0;
}

size_t weft_dtype_size(weft_dtype dtype)
{
    return wf_dtype_computes((wf_dtype)dtype) ? wf_dtype_size((wf_dtype)dtype) : 0;
}

static wf_status check(const char *what, weft_dtype dtype, int32_t rank, const int64_t shape[],
                       int64_t *elements, wf_err *err)
{
    char text[128];
    size_t bytes;

    if (!wf_dtype_computes((wf_dtype)dtype))
        return wf_fail(err, WF_INVALID, "take one of weft_dtype", "%s: %d is no dtype", what,
                       (int)dtype);
    if (rank < 0 || rank > WF_MAX_RANK)
        return wf_fail(err, WF_SHAPE, NULL, "%s: a tensor has 0 to %d axes, not %d", what,
                       WF_MAX_RANK, (int)rank);
    if (rank && !shape)
        return wf_fail(err, WF_INVALID, NULL, "%s: the shape of %d axes is NULL", what, (int)rank);
    if (!wf_dims_elems((uint32_t)rank, shape, elements) ||
        !wf_mul_size((size_t)*elements, wf_dtype_size((wf_dtype)dtype), &bytes) ||
        bytes > PTRDIFF_MAX)
        return wf_fail(err, WF_SHAPE, NULL, "%s: %s is no shape", what,
                       wf_dims_str((uint32_t)rank, shape, text, sizeof text));
    return WF_OK;
}

static bool is_dense(const weft_tensor *t)
{
    int64_t step = 1;

    for (int32_t i = t->rank; t->strides && i-- > 0;) {
        if (t->shape[i] != 1 && t->strides[i] != step)
            return false;
        step *= t->shape[i];
    }
    return true;
}

/* Copies the elements of axes `axis` and on, and moves *to behind them. */
static void gather(const weft_tensor *t, int32_t axis, const char *from, size_t size, char **to)
{
    if (axis == t->rank) {
        memcpy(*to, from, size);
        *to += size;
        return;
    }
    for (int64_t i = 0; i < t->shape[axis]; i++)
        gather(t, axis + 1, from + i * t->strides[axis] * (int64_t)size, size, to);
}

wf_status wf_lib_take(const weft_tensor *t, const char *what, wf_tensor **out, wf_err *err)
{
    size_t size;
    int64_t elements = 0;
    char *to;

    *out = NULL;
    if (!t)
        return wf_fail(err, WF_INVALID, NULL, "%s is NULL", what);
    WF_TRY(check(what, t->dtype, t->rank, t->shape, &elements, err));
    if (elements && !t->data)
        return wf_fail(err, WF_INVALID, NULL, "%s: the data is NULL", what);
    if (elements == 0 || is_dense(t))
        return wf_tensor_over((wf_dtype)t->dtype, (uint32_t)t->rank, t->shape, t->data, out, err);
    WF_TRY(wf_tensor_new((wf_dtype)t->dtype, (uint32_t)t->rank, t->shape, out, err));
    size = wf_dtype_size((wf_dtype)t->dtype);
    to = (*out)->data;
    gather(t, 0, t->data, size, &to);
    return WF_OK;
}

static wf_status new_owned(weft_dtype dtype, int32_t rank, const int64_t shape[], owned **out,
                           wf_err *err)
{
    owned *o = calloc(1, sizeof *o);

    if (!o)
        return wf_fail_nomem(err, sizeof *o);
    if (rank)
        memcpy(o->shape, shape, (size_t)rank * sizeof shape[0]);
    o->pub = (weft_tensor){.dtype = dtype, .rank = rank, .shape = o->shape, .owner = o};
    *out = o;
    return WF_OK;
}

wf_status wf_lib_give(wf_tensor **t, weft_tensor **out, wf_err *err)
{
    owned *o = NULL;
    wf_status rc;

    rc = new_owned((weft_dtype)(*t)->dtype, (int32_t)(*t)->rank, (*t)->dims, &o, err);
    if (rc != WF_OK) {
        wf_tensor_free(t);
        return rc;
    }
    o->tensor = *t;
    o->pub.data = (*t)->data;
    *t = NULL;
    *out = &o->pub;
    return WF_OK;
}

static wf_status make(weft_dtype dtype, int32_t rank, const int64_t shape[], weft_tensor **out,
                      wf_err *err)
{
    wf_tensor *t = NULL;
    int64_t elements;

    WF_TRY(check("weft_tensor_new", dtype, rank, shape, &elements, err));
    WF_TRY(wf_tensor_new((wf_dtype)dtype, (uint32_t)rank, shape, &t, err));
    return wf_lib_give(&t, out, err);
}

weft_code weft_tensor_new(weft_dtype dtype, int32_t rank, const int64_t shape[], weft_tensor **out,
                          weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = NULL;
    return wf_lib_end(make(dtype, rank, shape, out, &err), &err, error);
}

static wf_status view(const weft_tensor *t, weft_tensor **out, wf_err *err)
{
    owned *o = NULL;
    int64_t elements;

    WF_TRY(check("weft_tensor_view", t->dtype, t->rank, t->shape, &elements, err));
    if (elements && !t->data)
        return wf_fail(err, WF_INVALID, NULL, "weft_tensor_view: the data is NULL");
    WF_TRY(new_owned(t->dtype, t->rank, t->shape, &o, err));
    o->pub.data = t->data;
    if (t->strides && t->rank) {
        memcpy(o->strides, t->strides, (size_t)t->rank * sizeof t->strides[0]);
        o->pub.strides = o->strides;
    }
    *out = &o->pub;
    return WF_OK;
}

weft_code weft_tensor_view(void *data, weft_dtype dtype, int32_t rank, const int64_t shape[],
                           const int64_t strides[], weft_tensor **out, weft_error *error)
{
    const weft_tensor t = {data, dtype, rank, (int64_t *)shape, (int64_t *)strides, NULL};
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = NULL;
    return wf_lib_end(view(&t, out, &err), &err, error);
}

void weft_tensor_free(weft_tensor **t)
{
    owned *o = t && *t ? (*t)->owner : NULL;

    if (t)
        *t = NULL;
    if (!o)
        return;
    wf_tensor_free(&o->tensor);
    free(o);
}

int64_t weft_tensor_elements(const weft_tensor *t)
{
    int64_t elements;

    return t && check("", t->dtype, t->rank, t->shape, &elements, NULL) == WF_OK ? elements : -1;
}
