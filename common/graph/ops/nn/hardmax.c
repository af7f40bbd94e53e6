/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/hardmax.c - Hardmax: 1 at the first largest element along attr axis, 0
 * elsewhere; a step, which no gradient passes. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_hardmax = WF_FOLDABLE(WF_DOMAIN_ONNX, "Hardmax", 13, 1, 1, wf_infer_along_axis,
                                        .no_grad_in = 1u << 0, .attrs = attrs);
