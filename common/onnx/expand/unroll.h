/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/unroll.h - what Loop and Scan share: the iterations of a body become part of
 * the graph around it, one after the other.
 *
 * That needs a number of iterations that is known while the file is read: a count, a condition that
 * follows from the iteration's number, or the size of the axis that is scanned. Sequences may pass
 * from iteration to iteration (sequence.c). Gradients need nothing new. What all iterations share,
 * initializers and constants, is added once. The nodes that loops may make in one file are bounded,
 * whatever their counts say.
 */
#ifndef WF_ONNX_EXPAND_UNROLL_H
#define WF_ONNX_EXPAND_UNROLL_H

#include "common/base/status.h"
#include "common/graph/emit.h"
#include "common/onnx/context.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nodes and results of all iterations in a file. */
enum { WF_MOST_UNROLLED = 4 * 4096 };

/* What an iteration gave. */
typedef struct wf_iteration {
    const struct wf_iteration *before;
    wf_value **results; /* [outputs of the body] */
} wf_iteration;

/* A node with a body. The first four are set by who begins. */
typedef struct wf_unroll {
    wf_graph *g;
    const Weft__Onnx__Node *p;
    wf_onnx_file *file;
    const wf_onnx_scope *around;
    const Weft__Onnx__Graph *body;
    wf_onnx_scope shared; /* of what all iterations share */
    const wf_iteration *last;
    int64_t n_iterations;
} wf_unroll;

#define WF_UNROLLED                                                                                \
    "its iterations become part of the graph; their number must be known when it is read"

/* Finds the body, which must have n_in inputs and at least n_out_min outputs, and adds what all
 * iterations share. Errors: WF_INVALID, and those of its nodes. */
WF_MUST_USE wf_status wf_unroll_begin(wf_unroll *l, size_t n_in, size_t n_out_min, wf_err *err);
/* One more iteration, with args [inputs of the body]: what they stand for in it. */
WF_MUST_USE wf_status wf_unroll_once(wf_unroll *l, wf_value *const args[], wf_err *err);
/* Output i of the node: what result k was in each iteration, along a new axis. */
WF_MUST_USE wf_status wf_unroll_stack(const wf_unroll *l, wf_emit *e, size_t i, size_t k,
                                      int64_t along, bool is_reversed, wf_err *err);
/* Nodes that an iteration costs at least, and the error when they would be too many. */
size_t wf_unroll_cost(const wf_unroll *l);
wf_status wf_unroll_too_many(const wf_unroll *l, wf_err *err);
/* For nodes around the body. */
wf_emit wf_unroll_emit(const wf_unroll *l, wf_err *err);

#endif
