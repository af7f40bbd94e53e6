/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/resize.h - what Resize and its gradient share. */
#ifndef WF_GRAPH_OPS_RESIZE_H
#define WF_GRAPH_OPS_RESIZE_H

#include "common/graph/op.h"

extern const wf_attr_row wf_resize_rows[];
/* Attributes have values that weft has. Errors: WF_UNSUPPORTED, WF_INVALID. */
WF_MUST_USE wf_status wf_resize_check(const wf_node *n, wf_err *err);

#endif
