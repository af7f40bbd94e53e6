/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/chain.h - the program of ai.weft Chain, for the pass that writes it and the kernel
 * that runs it. */
#ifndef WF_GRAPH_CHAIN_H
#define WF_GRAPH_CHAIN_H

#include "common/graph/graph.h"

enum { WF_CHAIN_STEPS = 16, WF_CHAIN_INPUTS = 8 };

typedef enum wf_chain_code {
    WF_CHAIN_ABS = 0,
    WF_CHAIN_ADD,
    WF_CHAIN_DIV,
    WF_CHAIN_EXP,
    WF_CHAIN_MUL,
    WF_CHAIN_NEG,
    WF_CHAIN_RECIPROCAL,
    WF_CHAIN_RELU,
    WF_CHAIN_RELU_GRAD,
    WF_CHAIN_SIGMOID,
    WF_CHAIN_SIGMOID_GRAD,
    WF_CHAIN_SQRT,
    WF_CHAIN_SUB,
    WF_CHAIN_TANH,
    WF_CHAIN_TANH_GRAD,
    WF_CHAIN_CODES
} wf_chain_code;

/* An operation that may be a step: by its plain name, ONNX's or ai.weft's, without attributes. */
typedef struct wf_chain_op {
    const char *name;
    wf_chain_code code;
    uint32_t n_args;
} wf_chain_op;

typedef struct wf_chain_step {
    const wf_chain_op *op;
    int32_t args[2]; /* below n_in an input, n_in + i the result of step i; -1: none */
} wf_chain_step;

typedef struct wf_chain {
    uint32_t n_steps;
    wf_chain_step steps[WF_CHAIN_STEPS];
} wf_chain;

/* NULL when it cannot be a step. */
const wf_chain_op *wf_chain_find(const char *name);
/* The program of a Chain node. Errors: WF_INVALID, WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_chain_read(const wf_node *n, wf_chain *out, wf_err *err);

#endif
