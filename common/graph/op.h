/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/op.h - what the graph knows about one operation. No data, no device.
 *
 * One const row per operation, in a file of common/graph/ops; the table is made from the list in
 * common/graph/ops/meson.build. Kernels register apart from this, in files of the same names under
 * common/kernels.
 */
#ifndef WF_GRAPH_OP_H
#define WF_GRAPH_OP_H

#include "common/graph/graph.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_grads wf_grads; /* emit.h */

enum { WF_ANY_NUMBER = 255 }; /* n_in_max or n_out_max without limit (Concat) */

typedef enum wf_op_flag {
    WF_OP_ELEMENTWISE = 1, /* output element i depends on input elements i (broadcast) alone */
    WF_OP_STATEFUL = 2,    /* must run once per step, in order: never merged or folded */
    WF_OP_RANDOM = 4,   /* draws from (seed, node, epoch, split, batch): never merged or folded */
    WF_OP_FOLDABLE = 8, /* may be computed at compile time when all inputs are constant */
    /* Ends of an exchange, which computes nothing: a variable's value comes in with the first, and
     * what is of a variable goes out with the second. Attribute `variable` names it. */
    WF_OP_SOURCE = 16,
    WF_OP_SINK = 32,
    WF_OP_EFFECT = 64, /* changes what is outside of the graph, whether its result is used or not */
} wf_op_flag;

/* One attribute that the operation knows. Others in a file are an error that names the nearest. */
typedef struct wf_attr_row {
    const char *name;
    wf_attr_kind kind;
    bool required;
} wf_attr_row;

struct wf_op {
    const char *name, *domain;
    uint8_t since; /* the opset version of this form of the operation (docs/operators.md) */
    uint8_t n_in_min, n_in_max, n_out_min, n_out_max;
    uint32_t flags;   /* wf_op_flag */
    const char *note; /* what is refused, for docs/operators.md; NULL: nothing */
    /* Of weft's own operations, NULL for others: (inputs) -> outputs; attributes with their
     * defaults; meaning. An input or output in brackets may be absent. */
    const char *means;
    /* The input that holds class labels, of as many classes as input 0 has along axis 1; 0: none.
     */
    uint8_t labels_in;
    bool keeps_order;         /* output 0 holds input 0's elements in their order: Reshape, Cast */
    uint32_t no_grad_in;      /* bit i: input i carries no gradient by definition (axes, labels) */
    uint32_t running_in;      /* bit i: an initializer at input i is a running value, no weight */
    const wf_attr_row *attrs; /* ends with a NULL name; NULL: none */
    /* dtype and axes (and known content of small integers) of the outputs from those of the inputs.
     * An unknown input rank gives unknown outputs, not an error. */
    wf_status (*infer)(wf_graph *g, wf_node *n, wf_err *err);
    /* Adds the nodes that turn d loss/d outputs into d loss/d inputs. NULL: not differentiable. */
    wf_status (*grad)(wf_grads *grads, const wf_node *n, wf_err *err);
    /* Of a gradient that one node computes: its operation, and what that takes (ops/ops.h). */
    const char *grad_op, *grad_takes;
    /* Brings a node as another opset `from`, 7 to 25, has it to the form of WF_OPSET (attributes
     * that became inputs, and so on), or NULL when it means the same in all of them. Errors:
     * WF_UNSUPPORTED. */
    wf_status (*upgrade)(wf_graph *g, wf_node *n, int64_t from, wf_err *err);
};

/* True when input i never carries a gradient, whatever its dtype. */
static inline bool wf_op_cuts_grad(const wf_op *op, uint32_t i)
{
    return i < 32 && (op->no_grad_in >> i & 1u);
}

/* NULL when weft has no such operation. Domain "ai.onnx" is "". */
const wf_op *wf_op_find(const char *domain, const char *name);
/* The registered operation with the nearest name, or NULL: for "did you mean". */
const char *wf_op_nearest(const char *name);
/* Row i of the table, NULL past its end; for documentation and table-driven tests. */
const wf_op *wf_op_at(size_t i);

#endif
