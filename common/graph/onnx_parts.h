/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/onnx_parts.h - what reading and writing ONNX files share. For onnx_*.c. */
#ifndef WF_GRAPH_ONNX_PARTS_H
#define WF_GRAPH_ONNX_PARTS_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/graph/onnx.pb-c.h"
#include "common/tensor/tensor.h"

/* The oldest and newest opset of the ONNX domain that files may have; nodes of weft's operations
 * mean the same in them, but for what wf_op.upgrade mends. */
enum { WF_OPSET_OLDEST = 13, WF_OPSET_NEWEST = 23 };

/* "weft.variable.<name>" in metadata_props. */
#define WF_ONNX_VARIABLE_KEY "weft.variable."
#define WF_ONNX_PRODUCER "weft"

/* A tensor out of a message, from its raw or typed data, or from a file in `folder` (NULL:
 * refused). The caller owns it. Errors: WF_INVALID, WF_UNSUPPORTED, WF_IO, WF_NOTFOUND, WF_NOMEM.
 */
WF_MUST_USE wf_status wf_onnx_tensor(const Weft__Onnx__Tensor *p, const char *folder,
                                     wf_tensor **out, wf_err *err);
/* A tensor's content from a file that the message names, within `folder`. */
WF_MUST_USE wf_status wf_onnx_external(const Weft__Onnx__Tensor *p, const char *folder,
                                       wf_tensor *t, wf_err *err);

/* Adds a node with its attributes; inputs and outputs are found, or made, by name. */
WF_MUST_USE wf_status wf_onnx_node(wf_graph *g, const Weft__Onnx__Node *p, int64_t opset,
                                   const char *folder, wf_err *err);
/* Checks a name from a file: not too long, no control characters. `what` is what is named. */
WF_MUST_USE wf_status wf_onnx_check_name(const char *name, const char *what, wf_err *err);
/* An operation's domain and name, never NULL. */
const char *wf_onnx_domain(const Weft__Onnx__Node *p);
const char *wf_onnx_op(const Weft__Onnx__Node *p);

/* Decides which constants of an inferred graph are variables, by the rule of onnx.h. */
WF_MUST_USE wf_status wf_onnx_find_variables(wf_graph *g, const Weft__Onnx__Model *model,
                                             wf_err *err);

#endif
