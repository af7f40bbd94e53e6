/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/model.h - a model written as a list of layers, as a job file's `model:` has it.
 *
 * The layers and their options are those of common/conf/layers.h. Names of variables are Keras's:
 * "dense/kernel" [in, out] and "dense/bias" [out]; the second nameless dense layer is "dense_1".
 * Nodes and values are named after their layer: "dense/matmul", "dense/relu".
 *
 * Activations: linear, relu, sigmoid, tanh, softmax, log_softmax, exponential.
 * Initializers: zeros, ones, glorot_uniform, glorot_normal, he_uniform, he_normal, lecun_uniform,
 * lecun_normal, random_uniform, random_normal. Limits and deviations are Keras's; the draws are
 * not: element i of a variable comes from (seed, variable name, i) alone.
 */
#ifndef WF_COMPILE_MODEL_H
#define WF_COMPILE_MODEL_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/graph/graph.h"
#include <stddef.h>
#include <stdint.h>

/* The output of a model of layers; its input is named by the job. */
#define WF_MODEL_OUTPUT "output"

typedef struct wf_model {
    const char *file;            /* for messages: "job.yaml"; NULL: "model" */
    const wf_conf_input *inputs; /* exactly one: a list of layers is a chain */
    size_t n_inputs;
    const wf_conf_item *layers;
    size_t n_layers;
} wf_model;

/* Builds the graph of a model of layers: a float32 input with a leading axis "batch" of at most
 * `batch` records (0: not bounded), trainable variables with their initial values, one output
 * WF_MODEL_OUTPUT. The caller owns *out; `m` is read during the call only.
 * Errors: WF_USAGE with file and line: an unknown layer or word (names the nearest), a value out of
 * range, a layer that does not fit what comes before it; WF_UNSUPPORTED; WF_NOMEM. */
WF_MUST_USE wf_status wf_model_build(const wf_model *m, int64_t batch, uint64_t seed,
                                     wf_graph **out, wf_err *err);

#endif
