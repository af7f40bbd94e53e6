/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/node.h - NodeProto to nodes of the graph. */
#ifndef WF_ONNX_NODE_H
#define WF_ONNX_NODE_H

#include "common/onnx/context.h"

/* Adds a node with its attributes, or what its operation is expanded to. The operation is one that
 * weft has. Errors: WF_INVALID, WF_UNSUPPORTED, WF_SHAPE, WF_NOMEM; they name the node. */
wf_onnx_add wf_onnx_node;

#endif
