/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/pretrained.h - weights to start from, out of a file of another program or another
 * job: an ONNX model, or safetensors (a shard of weft's too, where a variable lies in one piece).
 */
#ifndef WF_CKPT_PRETRAINED_H
#define WF_CKPT_PRETRAINED_H

#include "common/base/status.h"
#include "common/tensor/named.h"

/* Reads all tensors of `path`, whose end says what it is: .onnx or .safetensors. *out is the
 * caller's, empty before; after an error too it is to be closed. Errors: WF_USAGE for another kind
 * of file; WF_NOTFOUND, WF_IO, WF_CORRUPT, WF_NOMEM; those of wf_onnx_read. */
WF_MUST_USE wf_status wf_pretrained_read(const char *path, wf_named_list *out, wf_err *err);

#endif
