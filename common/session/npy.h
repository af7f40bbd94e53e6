/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/npy.h - tensors as numpy's .npy files. */
#ifndef WF_SESSION_NPY_H
#define WF_SESSION_NPY_H

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stddef.h>

enum { WF_NPY_NAME = 1024 };

/* NAME.npy into file, with '/' and ':' of the name as '_'. */
const char *wf_npy_name(const char *name, char *file, size_t size);
/* Writes DIR/NAME.npy (wf_npy_name). dims [rank]; data in row-major order,
 * bfloat16 as float32, since numpy has none. Errors: WF_IO, WF_INVALID, WF_NOMEM. */
WF_MUST_USE wf_status wf_npy_write(const char *dir, const char *name, wf_dtype dtype, uint32_t rank,
                                   const int64_t dims[], const void *data, wf_err *err);
/* Appends the head of such a file, behind which its elements follow as wf_npy_put_elements has
 * them; its length depends on the dimensions. Errors: WF_INVALID for what numpy does not read;
 * WF_NOMEM.
 */
WF_MUST_USE wf_status wf_npy_put_head(wf_bytes *out, const char *name, wf_dtype dtype,
                                      uint32_t rank, const int64_t dims[], wf_err *err);
void wf_npy_put_elements(wf_bytes *out, wf_dtype dtype, int64_t elems, const void *data);
/* Bytes of an element there. */
size_t wf_npy_element(wf_dtype dtype);
/* Reads a file as a tensor that the caller owns. Errors: as wf_dataset_open. */
WF_MUST_USE wf_status wf_npy_read(const char *path, wf_tensor **out, wf_err *err);

#endif
