/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/model.h - a model written as layers, as a job file's `model:` has it.
 *
 * The layers and their options are Keras's: layers/ has what they mean, common/conf/layers.h their
 * rows, docs/jobs.md the whole for people. Names of variables are Keras's: "dense/kernel" [in, out]
 * and "dense/bias" [out]; the second nameless dense layer is "dense_1". Nodes and values are named
 * after their layer: "dense/MatMul", "dense/Relu".
 *
 * A layer takes what the one before it gives, or the layers and inputs that its option "inputs"
 * names. First values: limits and deviations are Keras's; the draws are not: element i of a
 * variable comes from (seed, variable name, i) alone.
 */
#ifndef WF_COMPILE_MODEL_H
#define WF_COMPILE_MODEL_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/graph/graph.h"
#include <stddef.h>
#include <stdint.h>

/* The output of a model that names none; others are called as their layers. */
#define WF_MODEL_OUTPUT "output"

typedef struct wf_model {
    const char *file; /* for messages: "job.yaml"; NULL: "model" */
    const wf_conf_input *inputs;
    size_t n_inputs;
    /* Of the data: the inputs whose names are the ids of these hold bags, and with `pairs` so do
     * those of the fields of libsvm's indices. */
    const wf_conf_bag *bags;
    size_t n_bags;
    const wf_conf_field *pairs;
    size_t n_pairs;
    const wf_conf_item *layers;
    size_t n_layers;
    const char *const *outputs; /* [n_outputs] names of layers; none: the last */
    size_t n_outputs;
    int outputs_line;
    /* [n_tables] whose content nobody reads here: variables of these names get none where a ps can
     * compute it. */
    const wf_conf_table *tables;
    size_t n_tables;
    bool is_blank; /* nobody reads the content of any */
} wf_model;

/* What there is to know of the graph of a model beside it; it lives as long as the graph. */
typedef struct wf_model_facts {
    wf_value *penalty; /* a scalar in the graph: what regularizers add to a loss; NULL: nothing */
    struct wf_unbounded *unbounded; /* variables whose rows have any ids */
    struct wf_seeded *seeded;       /* variables whose first values a ps computes */
} wf_model_facts;

/* Builds the graph of a model of layers: inputs with a leading axis "batch" of at most `batch`
 * records (0: not bounded), variables with their initial values, the outputs. The caller owns *out;
 * `m` is read during the call only.
 * Errors: WF_USAGE with file and line: an unknown layer, name or word (names the nearest), a value
 * out of range, a layer that does not fit what comes before it, a layer or input that nobody uses;
 * WF_UNSUPPORTED; WF_NOMEM. */
WF_MUST_USE wf_status wf_model_build(const wf_model *m, int64_t batch, uint64_t seed,
                                     wf_graph **out, wf_model_facts *facts, wf_err *err);

#endif
