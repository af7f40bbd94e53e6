/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/exporter/exporter.h - what the program that wrote a model's file did to the model.
 *
 * Exporters write what computes the same in inference. On the way there they fold, merge and drop
 * what training needs: BatchNormalization, Dropout, biases of zero, parameters that are equal when
 * they are fresh. A file does not say so, but traces of it remain: names, and the shape of the
 * graph. Each kind of trace is a finding, in a file of its own, which warns in one sentence at
 * most. A file that lists its variables (WF_ONNX_VARIABLE_KEY) was written to be trained, and gets
 * none.
 */
#ifndef WF_COMPILE_EXPORTER_EXPORTER_H
#define WF_COMPILE_EXPORTER_EXPORTER_H

#include "common/base/status.h"
#include "common/compile/pass.h"
#include "common/graph/graph.h"
#include <stdbool.h>

/* A program that writes ONNX files. */
typedef struct wf_exporter {
    const char *name; /* for messages: "PyTorch's exporter (dynamo)" */
    bool (*wrote)(const wf_graph *g);
    bool folds;       /* BatchNormalization into the layer before it, by default */
    bool drops_zeros; /* biases that are zero, and scales that are one */
    bool renames;     /* all weights, after operations of its own */
    /* A name that it made up shows that the file is for inference: there is no Dropout in it. */
    bool infers;
    const char *advice; /* how to keep the model as it is */
} wf_exporter;

/* Fills u->c->source. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_exporter_describe(wf_unit *u, wf_err *err);
/* Runs all findings. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_exporter_warn(wf_unit *u, wf_err *err);

/* One finding: looks at u->graph as it was read, and warns of what it finds. */
typedef wf_status wf_finding(wf_unit *u, const wf_exporter *by, wf_err *err);
wf_finding wf_finding_batch_norm; /* folded away, or in inference form without Dropout */
wf_finding wf_finding_biases;     /* none in the whole file */
wf_finding wf_finding_names;      /* made up */
wf_finding wf_finding_numbers;    /* initializers taken for constants */
wf_finding wf_finding_shared;     /* one initializer for several layers */
wf_finding wf_finding_untied;     /* two initializers for what was one */

/* "; " and the advice, for the end of a warning; "" when an earlier one has given it. */
const char *wf_exporter_advice(const wf_unit *u, const wf_exporter *by);
/* Whether the graph has a Dropout. */
bool wf_exporter_has_dropout(const wf_graph *g);
/* Whether a node multiplies its input by weights: products, convolutions. */
bool wf_exporter_is_product(const wf_node *n);
/* The variable behind input k of n, through Identity, Transpose and other moves of all of it; NULL:
 * there is none. */
const wf_value *wf_exporter_variable(const wf_node *n, uint32_t k);

#endif
