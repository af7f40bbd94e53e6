/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/tensor.h - the front door of common/tensor: dtype, shape, storage.
 *
 * A tensor is dense, row-major and contiguous. `data` points into `buf`, or into memory that the
 * maker of the tensor lends (buf is NULL then).
 */
#ifndef WF_TENSOR_TENSOR_H
#define WF_TENSOR_TENSOR_H

#include "common/base/status.h"
#include "common/tensor/buf.h"
#include "common/tensor/dtype.h"
#include <stddef.h>
#include <stdint.h>

enum { WF_MAX_RANK = 8 };

typedef struct wf_tensor {
    wf_dtype dtype;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    void *data;
    wf_buf *buf;
} wf_tensor;

/* A zeroed tensor that the caller owns. Errors: WF_NOMEM; WF_SHAPE for a negative dimension, a rank
 * above WF_MAX_RANK or a size that overflows. */
WF_MUST_USE wf_status wf_tensor_new(wf_dtype dtype, uint32_t rank, const int64_t dims[],
                                    wf_tensor **out, wf_err *err);
/* One that the caller owns, whose elements read as 0 and take no memory: it has a shape, and its
 * content is elsewhere. Nobody may write it. Errors: as of wf_tensor_new. */
WF_MUST_USE wf_status wf_tensor_new_blank(wf_dtype dtype, uint32_t rank, const int64_t dims[],
                                          wf_tensor **out, wf_err *err);
/* A tensor over memory that the caller keeps alive; frees only the header later. */
WF_MUST_USE wf_status wf_tensor_over(wf_dtype dtype, uint32_t rank, const int64_t dims[],
                                     void *data, wf_tensor **out, wf_err *err);
WF_MUST_USE wf_status wf_tensor_copy(const wf_tensor *t, wf_tensor **out, wf_err *err);
/* A tensor of the same storage, which lives until the last of them is freed; a copy when t is over
 * lent memory. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_tensor_share(const wf_tensor *t, wf_tensor **out, wf_err *err);
/* Frees *t and sets it to NULL; NULL is fine. */
void wf_tensor_free(wf_tensor **t);

/* Elements: the product of the dimensions, 1 for a scalar. */
int64_t wf_elems(const wf_tensor *t);
size_t wf_tensor_bytes(const wf_tensor *t);
/* The dimension at `axis`; negative counts from the end. */
int64_t wf_dim(const wf_tensor *t, int axis);
/* The product of dims with a check; false when it overflows or a dimension is negative. */
int wf_dims_elems(uint32_t rank, const int64_t dims[], int64_t *out);
/* Writes "[32, 784]" into text (cut to fit) and returns it; negative dimensions show as "?". */
const char *wf_dims_str(uint32_t rank, const int64_t dims[], char *text, size_t size);

static inline const float *wf_f32(const wf_tensor *t)
{
    return (const float *)t->data;
}
static inline float *wf_f32_mut(wf_tensor *t)
{
    return (float *)t->data;
}

#endif
