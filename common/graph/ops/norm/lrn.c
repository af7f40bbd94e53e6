/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/norm/lrn.c - LRN and LRNGrad. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* LRN: each element over a power of the squares of its neighbours in other channels. */

static const wf_attr_row attrs[] = {{"alpha", WF_ATTR_FLOAT, false},
                                    {"beta", WF_ATTR_FLOAT, false},
                                    {"bias", WF_ATTR_FLOAT, false},
                                    {"size", WF_ATTR_INT, true},
                                    {0}};

const wf_op wf_op_lrn = WF_FOLDABLE(WF_DOMAIN_ONNX, "LRN", 13, 1, 1, wf_infer_like_float,
                                    .attrs = attrs, WF_GRAD_NODE("LRNGrad", "d0 x0"));

/* ai.weft LRNGrad(dy, x): LRN's gradient. */

const wf_op wf_op_lrn_grad = WF_FOLDABLE(WF_DOMAIN_WEFT, "LRNGrad", 1, 2, 2, wf_infer_grad_like,
                                         .means = "(dy, x) -> dx; LRN's attrs", .attrs = attrs);
