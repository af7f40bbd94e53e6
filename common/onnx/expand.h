/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand.h - operations that no graph of weft's has: when a file is read, other nodes
 * are put in their place. Each is a row in a file of common/onnx/expand, named in its meson.build.
 * Some are forms that an operation had in older opsets (older.h).
 *
 * Gradients follow from the nodes that it expands to, and the compiler's rules find the patterns
 * that it knows (attention).
 */
#ifndef WF_ONNX_EXPAND_H
#define WF_ONNX_EXPAND_H

#include "common/base/status.h"
#include "common/graph/op.h"
#include "common/onnx/call.h"
#include "common/onnx/context.h"
#include <stddef.h>
#include <stdint.h>

/* One of `call` and `add` is set. */
typedef struct wf_expansion {
    wf_op op; /* its name, ports, attributes and note; what computes is not set */
    /* The opsets whose files have this form: from `from` to before `until`; 0: no bound. */
    int64_t from, until;
    /* Formulas of tensors. Adds the nodes and sets c->out; a failure may also lie in c->e. */
    wf_status (*call)(wf_call *c, wf_err *err);
    /* Those with subgraphs or sequences, which see to their names themselves. */
    wf_onnx_add *add;
} wf_expansion;

#define WF_EXPANDED "expanded at import"

/* A row of `call` for an operation of least_in to most_in inputs and least_out to most_out outputs;
 * further fields of `op` follow. */
#define WF_EXPANDS(domain_, name_, since_, least_in, most_in, least_out, most_out, call_, ...)     \
    {                                                                                              \
        .op = {.name = name_,                                                                      \
               .domain = domain_,                                                                  \
               .since = since_,                                                                    \
               .n_in_min = least_in,                                                               \
               .n_in_max = most_in,                                                                \
               .n_out_min = least_out,                                                             \
               .n_out_max = most_out,                                                              \
               __VA_ARGS__},                                                                       \
        .call = call_                                                                              \
    }

/* Of files of this opset; NULL when there is none. Domain "ai.onnx" is "". */
const wf_expansion *wf_expansion_find(const char *domain, const char *name, int64_t opset);
/* Row i, in the order of names; NULL past the last. */
const wf_expansion *wf_expansion_at(size_t i);
/* Puts what a node means into the graph, once its attributes are checked. Errors: WF_INVALID,
 * WF_UNSUPPORTED, WF_SHAPE, WF_NOMEM. */
WF_MUST_USE wf_status wf_onnx_expand(const wf_expansion *x, wf_graph *g, const Weft__Onnx__Node *p,
                                     wf_onnx_file *file, const wf_onnx_scope *scope, wf_err *err);

#endif
