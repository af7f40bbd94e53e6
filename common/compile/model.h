/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/model.h - a model written as a list of layers, as a job file's `model:` has it.
 *
 * Plain structs, so that anyone who can name a layer can have it compiled: a job file, a test, a
 * binding. Names of layers, options and initializers are Keras's, and so are variables' names:
 * "dense/kernel" [in, out] and "dense/bias" [out]; the second nameless dense layer is "dense_1".
 *
 *   layer     options (default)
 *   dense     units, activation (linear), use_bias (true), kernel_initializer (glorot_uniform),
 *             bias_initializer (zeros), name; works on the last axis
 *   flatten   name; keeps the batch axis
 *   dropout   rate, name
 *   activation  activation (or `function`), name
 *   reshape   target_shape, name; without the batch axis; one extent may be -1
 *   relu, sigmoid, tanh, softmax   name; the activation as a layer
 *
 * Activations: linear, relu, sigmoid, tanh, softmax, log_softmax, exponential.
 */
#ifndef WF_COMPILE_MODEL_H
#define WF_COMPILE_MODEL_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"
#include <stddef.h>
#include <stdint.h>

/* The output of a model of layers; its inputs are named by the job. */
#define WF_MODEL_OUTPUT "output"

typedef enum wf_layer_kind {
    WF_LAYER_NUMBER = 1, /* 128, 0.5 */
    WF_LAYER_BOOL,       /* true, false; number is 1 or 0 */
    WF_LAYER_TEXT,       /* relu */
    WF_LAYER_INTS        /* [28, 28] */
} wf_layer_kind;

/* One option of a layer. What it may hold is checked when the layer is built. */
typedef struct wf_layer_option {
    const char *name;
    wf_layer_kind kind;
    double number;
    const char *text;
    const int64_t *ints; /* [n_ints] */
    size_t n_ints;
    uint32_t line; /* of the job file, for messages; 0 when there is none */
} wf_layer_option;

typedef struct wf_layer {
    const char *type; /* "dense" */
    const wf_layer_option *options;
    size_t n_options;
    uint32_t line;
} wf_layer;

/* One input; dims are without the batch axis. */
typedef struct wf_model_input {
    const char *name;
    wf_dtype dtype; /* WF_NONE: float32 */
    uint32_t rank;
    const int64_t *dims;
} wf_model_input;

typedef struct wf_model {
    const char *file; /* for messages: "job.yaml"; NULL when there is none */
    const wf_model_input *inputs;
    size_t n_inputs; /* 1: a list of layers is a chain */
    const wf_layer *layers;
    size_t n_layers;
} wf_model;

/* Builds the graph of a model of layers: inputs with a leading axis "batch" of at most `batch`
 * records, trainable variables with their initial values drawn from (seed, variable name), one
 * output WF_MODEL_OUTPUT. The caller owns *out; `m` is read during the call only.
 * Errors: WF_USAGE with file and line: an unknown layer, option or word (names the nearest), a
 * value out of range; WF_SHAPE: a layer that does not fit what comes before it; WF_NOMEM. */
WF_MUST_USE wf_status wf_model_build(const wf_model *m, int64_t batch, uint64_t seed,
                                     wf_graph **out, wf_err *err);

#endif
