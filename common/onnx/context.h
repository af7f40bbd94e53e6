/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/context.h - where in a file reading stands: what its nodes have in common, the scopes
 * of its subgraphs, and what names stand for there. */
#ifndef WF_ONNX_CONTEXT_H
#define WF_ONNX_CONTEXT_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/onnx/onnx.pb-c.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of tensors. It is no value of the graph: what makes and takes one is worked out while the
 * file is read, and its name only stands for its items. */
typedef struct wf_onnx_sequence {
    uint32_t name; /* index of the value that keeps the name taken; nothing makes or reads it */
    uint32_t n;
    wf_value **items; /* [n], in the graph's arena */
} wf_onnx_sequence;

/* The subgraph that nodes lie in; NULL: none. */
typedef struct wf_onnx_scope {
    const char *prefix; /* of the names of values made there */
    const struct wf_onnx_scope *around;
    uint32_t depth; /* at least 1 */
    bool tentative;
} wf_onnx_scope;

typedef struct wf_onnx_file wf_onnx_file;

/* Adds what a node of a file is in the graph; its inputs and outputs are found, or made, by name.
 */
typedef wf_status wf_onnx_add(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                              const wf_onnx_scope *scope, wf_err *err);

/* What all nodes of a file have in common. */
struct wf_onnx_file {
    int64_t opset;
    const char *folder;    /* of external data; NULL: refused */
    wf_onnx_add *add_node; /* wf_onnx_node, for the nodes of subgraphs */
    size_t n_inferred;     /* nodes of the graph that were inferred while reading, for conditions */
    size_t n_unrolled;     /* nodes and results that iterations of loops made so far */
    wf_onnx_sequence *sequences; /* [n_sequences], by name */
    size_t n_sequences, sequences_room;
    size_t n_items; /* that all nodes of sequences took or gave */
};

/* The value that a name stands for within a scope, the innermost first; NULL: there is none yet. */
wf_value *wf_onnx_find(const wf_graph *g, const wf_onnx_scope *scope, const char *name);
/* The value of that name for something in the scope to make. Errors: WF_INVALID when it is given or
 * made already; WF_NOMEM. */
WF_MUST_USE wf_status wf_onnx_made(wf_graph *g, const wf_onnx_scope *scope, const char *name,
                                   wf_value **out, wf_err *err);
/* A scope within `around`, for names after `prefix`. Errors: WF_UNSUPPORTED when nested too deep.
 */
WF_MUST_USE wf_status wf_onnx_enter(wf_graph *g, const wf_onnx_scope *around, const char *prefix,
                                    bool tentative, wf_onnx_scope *scope, wf_err *err);
/* Adds an initializer, its name after `prefix`. */
WF_MUST_USE wf_status wf_onnx_initializer(wf_graph *g, const Weft__Onnx__Tensor *p,
                                          const char *folder, const char *prefix, wf_err *err);
/* Input i of a node as a value; NULL when it is absent. Errors: WF_INVALID when nothing before the
 * node makes it. */
WF_MUST_USE wf_status wf_onnx_input(const wf_graph *g, const Weft__Onnx__Node *p,
                                    const wf_onnx_scope *scope, size_t i, wf_value **out,
                                    wf_err *err);
/* results [n_output]: what the outputs of a subgraph stand for, once its nodes are added in
 * `scope`. Errors: WF_INVALID. */
WF_MUST_USE wf_status wf_onnx_results(wf_graph *g, const Weft__Onnx__Graph *body,
                                      const wf_onnx_scope *scope, wf_value *results[], wf_err *err);
/* Infers what was added since the last time, once. */
WF_MUST_USE wf_status wf_onnx_catch_up(wf_graph *g, wf_onnx_file *file, wf_err *err);

#endif
