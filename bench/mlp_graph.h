/* SPDX-License-Identifier: Apache-2.0 */
/* bench/mlp_graph.h - the MLP 784-128-10 with softmax cross-entropy, for programs that measure its
 * training step. */
#ifndef WF_BENCH_MLP_GRAPH_H
#define WF_BENCH_MLP_GRAPH_H

#include "common/graph/graph.h"

enum {
    MLP_IN = 784,
    MLP_HIDDEN = 128,
    MLP_OUT = 10,
    MLP_VARIABLES = 4,
    MLP_RECORDS = 60000 /* of the data that it is trained on */
};

/* Inputs: x [batch, MLP_IN], labels [batch] of 64-bit integers, w1, b1, w2, b2. Outputs: the loss
 * and the gradients of the four. *out is the caller's, also if making it fails half-way. */
WF_MUST_USE wf_status mlp_graph_make(int64_t batch, wf_graph **out, wf_err *err);

#endif
