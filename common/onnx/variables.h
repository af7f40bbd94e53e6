/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/variables.h - which initializers of a file are trained. */
#ifndef WF_ONNX_VARIABLES_H
#define WF_ONNX_VARIABLES_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/onnx/onnx.pb-c.h"

/* In front of the name of a node's device, as its doc_string. */
#define WF_ONNX_DEVICE "/job:worker/device:"
/* What begins the doc_string of a node that a session runs on one worker: "/job:worker/task:1",
 * which as a whole is the node's device. */
#define WF_ONNX_TASK "/job:worker/task:"
/* "weft.variable.<name>" in metadata_props. */
#define WF_ONNX_VARIABLE_KEY "weft.variable."
#define WF_ONNX_PRODUCER "weft"

/* Decides which constants of an inferred graph are variables, by the rule of onnx.h. */
WF_MUST_USE wf_status wf_onnx_find_variables(wf_graph *g, const Weft__Onnx__Model *model,
                                             wf_err *err);

#endif
