/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/tensor.h - TensorProto to wf_tensor. */
#ifndef WF_ONNX_TENSOR_H
#define WF_ONNX_TENSOR_H

#include "common/base/status.h"
#include "common/onnx/onnx.pb-c.h"
#include "common/tensor/tensor.h"

/* A tensor out of a message, from its raw or typed data, or from a file in `folder` (NULL:
 * refused). The caller owns it. Errors: WF_INVALID, WF_UNSUPPORTED, WF_IO, WF_NOTFOUND, WF_NOMEM.
 */
WF_MUST_USE wf_status wf_onnx_tensor(const Weft__Onnx__Tensor *p, const char *folder,
                                     wf_tensor **out, wf_err *err);

#endif
