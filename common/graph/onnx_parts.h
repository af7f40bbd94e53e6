/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/onnx_parts.h - what reading and writing ONNX files share. For onnx_*.c. */
#ifndef WF_GRAPH_ONNX_PARTS_H
#define WF_GRAPH_ONNX_PARTS_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/graph/onnx.pb-c.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The oldest and newest opset of the ONNX domain that files may have; nodes of weft's operations
 * mean the same in them, but for what wf_op.upgrade mends. */
enum {
    WF_OPSET_OLDEST = 13,
    WF_OPSET_NEWEST = 23,
    WF_OPSET_WRITTEN = 24 /* the newest that weft writes, for Swish: in weft's own files alone */
};

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

/* What all nodes of a file have in common. */
typedef struct wf_onnx_file {
    int64_t opset;
    const char *folder;
    size_t *n_inferred; /* nodes of the graph that were inferred while reading, for conditions */
} wf_onnx_file;

/* The branch of an If that nodes lie in; NULL: none. */
typedef struct wf_onnx_scope {
    const char *prefix; /* of the names of values made there */
    const struct wf_onnx_scope *around;
    uint32_t depth; /* at least 1 */
    bool tentative;
} wf_onnx_scope;

/* The value that a name stands for within a scope, the innermost first; NULL: there is none yet. */
wf_value *wf_onnx_find(const wf_graph *g, const wf_onnx_scope *scope, const char *name);
/* The value of that name for something in the scope to make. Errors: WF_INVALID when it is given or
 * made already; WF_NOMEM. */
WF_MUST_USE wf_status wf_onnx_made(wf_graph *g, const wf_onnx_scope *scope, const char *name,
                                   wf_value **out, wf_err *err);
/* Adds a node with its attributes; inputs and outputs are found, or made, by name. */
WF_MUST_USE wf_status wf_onnx_node(wf_graph *g, const Weft__Onnx__Node *p, const wf_onnx_file *file,
                                   const wf_onnx_scope *scope, wf_err *err);
/* Adds an initializer, its name after `prefix`. */
WF_MUST_USE wf_status wf_onnx_initializer(wf_graph *g, const Weft__Onnx__Tensor *p,
                                          const char *folder, const char *prefix, wf_err *err);

/* Whether a node is an If of ONNX; its branches, as many as are there; and what wf_onnx_node does
 * with it. Errors: WF_INVALID; WF_UNSUPPORTED for branches nested too deep. */
bool wf_onnx_is_if(const Weft__Onnx__Node *p);
size_t wf_onnx_branches(const Weft__Onnx__Node *p, const Weft__Onnx__Graph *branches[2]);
WF_MUST_USE wf_status wf_onnx_if(wf_graph *g, const Weft__Onnx__Node *p, const wf_onnx_file *file,
                                 const wf_onnx_scope *scope, wf_err *err);
/* Checks a name from a file: not too long, no control characters. `what` is what is named. */
WF_MUST_USE wf_status wf_onnx_check_name(const char *name, const char *what, wf_err *err);
/* An operation's domain and name, never NULL. */
const char *wf_onnx_domain(const Weft__Onnx__Node *p);
const char *wf_onnx_op(const Weft__Onnx__Node *p);

/* Decides which constants of an inferred graph are variables, by the rule of onnx.h. */
WF_MUST_USE wf_status wf_onnx_find_variables(wf_graph *g, const Weft__Onnx__Model *model,
                                             wf_err *err);

#endif
