/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/sequence.h - which names stand for sequences of tensors while a file is read. */
#ifndef WF_ONNX_SEQUENCE_H
#define WF_ONNX_SEQUENCE_H

#include "common/base/status.h"
#include "common/onnx/context.h"
#include <stdint.h>

enum { WF_ONNX_MOST_ITEMS = 1024 };

/* The sequence that a value's name stands for, or NULL. */
const wf_onnx_sequence *wf_onnx_sequence_of(const wf_onnx_file *file, const wf_value *v);
/* Lets `name` within the scope stand for items [n]. An empty name is fine. Errors: WF_INVALID,
 * WF_UNSUPPORTED when it is too long, WF_NOMEM. */
WF_MUST_USE wf_status wf_onnx_sequence_add(wf_graph *g, wf_onnx_file *file,
                                           const wf_onnx_scope *scope, const char *name, uint32_t n,
                                           wf_value *const items[], wf_err *err);
/* A node takes or gives n items. Errors: WF_UNSUPPORTED when those of a file are too many. */
WF_MUST_USE wf_status wf_onnx_sequence_count(wf_onnx_file *file, uint32_t n, wf_err *err);
/* `name` within the scope stands for v, a value or a sequence. An empty name is fine. */
WF_MUST_USE wf_status wf_onnx_bind(wf_graph *g, wf_onnx_file *file, const wf_onnx_scope *scope,
                                   const char *name, wf_value *v, wf_err *err);

#endif
