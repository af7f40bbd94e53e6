/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/proto.h - what a NodeProto says: its names, its attributes and its subgraphs. */
#ifndef WF_ONNX_PROTO_H
#define WF_ONNX_PROTO_H

#include "common/base/status.h"
#include "common/graph/op.h"
#include "common/onnx/onnx.pb-c.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checks a name from a file: not too long, no control characters. `what` is what is named. */
WF_MUST_USE wf_status wf_onnx_check_name(const char *name, const char *what, wf_err *err);
/* An operation's domain and name, never NULL. */
const char *wf_onnx_domain(const Weft__Onnx__Node *p);
const char *wf_onnx_op(const Weft__Onnx__Node *p);

/* The attributes of a node are those of the operation's row, of its kinds; required ones are there.
 * Errors: WF_UNSUPPORTED, WF_INVALID. */
WF_MUST_USE wf_status wf_onnx_check_attributes(const Weft__Onnx__Node *p, const wf_op *op,
                                               wf_err *err);
/* A node's subgraph in the attribute of that name, or NULL; and all that it has, at most 2. */
const Weft__Onnx__Graph *wf_onnx_subgraph(const Weft__Onnx__Node *p, const char *name);
size_t wf_onnx_subgraphs(const Weft__Onnx__Node *p, const Weft__Onnx__Graph *graphs[2]);
/* Whether the node has the attribute. */
bool wf_onnx_has(const Weft__Onnx__Node *p, const char *name);
/* Numbers among the attributes; a list is borrowed, NULL when there is none. */
float wf_onnx_float(const Weft__Onnx__Node *p, const char *name, float otherwise);
int64_t wf_onnx_int(const Weft__Onnx__Node *p, const char *name, int64_t otherwise);
const int64_t *wf_onnx_ints(const Weft__Onnx__Node *p, const char *name, size_t *n);
const float *wf_onnx_floats(const Weft__Onnx__Node *p, const char *name, size_t *n);
/* Whether a string attribute is `text`; one that is absent is "". */
bool wf_onnx_says(const Weft__Onnx__Node *p, const char *name, const char *text);

#endif
