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

/* A list of tensors. It is no value of the graph: what makes and takes one is worked out while the
 * file is read, and its name only stands for its items. */
typedef struct wf_onnx_sequence {
    uint32_t name; /* index of the value that keeps the name taken; nothing makes or reads it */
    uint32_t n;
    wf_value **items; /* [n], in the graph's arena */
} wf_onnx_sequence;

/* What all nodes of a file have in common. */
typedef struct wf_onnx_file {
    int64_t opset;
    const char *folder;
    size_t n_inferred; /* nodes of the graph that were inferred while reading, for conditions */
    size_t n_unrolled; /* nodes and results that turns of loops made so far */
    wf_onnx_sequence *sequences; /* [n_sequences], by name */
    size_t n_sequences, sequences_room;
    size_t n_items; /* that all nodes of sequences took or gave */
} wf_onnx_file;

/* The subgraph that nodes lie in; NULL: none. */
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
WF_MUST_USE wf_status wf_onnx_node(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                                   const wf_onnx_scope *scope, wf_err *err);
/* Adds an initializer, its name after `prefix`. */
WF_MUST_USE wf_status wf_onnx_initializer(wf_graph *g, const Weft__Onnx__Tensor *p,
                                          const char *folder, const char *prefix, wf_err *err);

/* What reading does with nodes that leave others in their place: those with subgraphs, those of
 * sequences, and operations that are written out. */
typedef wf_status wf_onnx_structure(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                                    const wf_onnx_scope *scope, wf_err *err);
wf_onnx_structure wf_onnx_if, wf_onnx_loop, wf_onnx_scan; /* onnx_branch.c, onnx_loop.c */
wf_onnx_structure wf_onnx_sequence_node;                  /* onnx_sequence.c */
wf_onnx_structure wf_onnx_function;                       /* onnx_function.c */
bool wf_onnx_is_function(const char *op);
/* NULL: none of these. An Identity is when what it copies is a sequence. */
wf_onnx_structure *wf_onnx_structure_of(const wf_graph *g, const Weft__Onnx__Node *p,
                                        const wf_onnx_file *file, const wf_onnx_scope *scope);

/* The attributes of such a node are those of the operation's row, of its kinds; required ones are
 * there. Errors: WF_UNSUPPORTED, WF_INVALID. */
WF_MUST_USE wf_status wf_onnx_check_attributes(const Weft__Onnx__Node *p, const wf_op *op,
                                               wf_err *err);
/* A node's subgraph in the attribute of that name, or NULL; and all that it has, at most 2. */
const Weft__Onnx__Graph *wf_onnx_subgraph(const Weft__Onnx__Node *p, const char *name);
size_t wf_onnx_subgraphs(const Weft__Onnx__Node *p, const Weft__Onnx__Graph *graphs[2]);
/* Numbers among the attributes of a node in a file; a list is borrowed, NULL when there is none. */
float wf_onnx_float(const Weft__Onnx__Node *p, const char *name, float otherwise);
int64_t wf_onnx_int(const Weft__Onnx__Node *p, const char *name, int64_t otherwise);
const int64_t *wf_onnx_ints(const Weft__Onnx__Node *p, const char *name, size_t *n);
const float *wf_onnx_floats(const Weft__Onnx__Node *p, const char *name, size_t *n);
/* Whether a string attribute is `text`; one that is absent is "". */
bool wf_onnx_says(const Weft__Onnx__Node *p, const char *name, const char *text);
/* A scope within `around`, for names after `prefix`. Errors: WF_UNSUPPORTED when nested too deep.
 */
WF_MUST_USE wf_status wf_onnx_enter(wf_graph *g, const wf_onnx_scope *around, const char *prefix,
                                    bool tentative, wf_onnx_scope *scope, wf_err *err);
/* results [n_output]: what the outputs of a subgraph stand for, once its nodes are added in
 * `scope`. Errors: WF_INVALID. */
WF_MUST_USE wf_status wf_onnx_results(wf_graph *g, const Weft__Onnx__Graph *body,
                                      const wf_onnx_scope *scope, wf_value *results[], wf_err *err);
/* `name` within the scope stands for v, a value or a sequence. An empty name is fine. */
WF_MUST_USE wf_status wf_onnx_bind(wf_graph *g, wf_onnx_file *file, const wf_onnx_scope *scope,
                                   const char *name, wf_value *v, wf_err *err);
/* Input i of a node as a value; NULL when it is absent. Errors: WF_INVALID when nothing before the
 * node makes it. */
WF_MUST_USE wf_status wf_onnx_input(const wf_graph *g, const Weft__Onnx__Node *p,
                                    const wf_onnx_scope *scope, size_t i, wf_value **out,
                                    wf_err *err);
/* Infers what was added since the last time, once. */
WF_MUST_USE wf_status wf_onnx_catch_up(wf_graph *g, wf_onnx_file *file, wf_err *err);
/* The content of a single integer or bool, if it is known while the file is read. */
bool wf_onnx_known(const wf_value *v, int64_t *content);

/* The sequence that a value's name stands for, or NULL. */
const wf_onnx_sequence *wf_onnx_sequence_of(const wf_onnx_file *file, const wf_value *v);
/* Lets `name` within the scope stand for items [n]. Errors: WF_INVALID, WF_UNSUPPORTED when it is
 * too long, WF_NOMEM. */
WF_MUST_USE wf_status wf_onnx_sequence_add(wf_graph *g, wf_onnx_file *file,
                                           const wf_onnx_scope *scope, const char *name, uint32_t n,
                                           wf_value *const items[], wf_err *err);
/* Checks a name from a file: not too long, no control characters. `what` is what is named. */
WF_MUST_USE wf_status wf_onnx_check_name(const char *name, const char *what, wf_err *err);
/* An operation's domain and name, never NULL. */
const char *wf_onnx_domain(const Weft__Onnx__Node *p);
const char *wf_onnx_op(const Weft__Onnx__Node *p);

/* Decides which constants of an inferred graph are variables, by the rule of onnx.h. */
WF_MUST_USE wf_status wf_onnx_find_variables(wf_graph *g, const Weft__Onnx__Model *model,
                                             wf_err *err);

#endif
