/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/norm/lrn.c - LRN and LRNGrad. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* LRN: each element over a power of the squares of its neighbours in other channels. */

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_value *in[] = {wf_grads_upstream(g, n, 0), n->in[0]};

    (void)err;
    return wf_grads_add(g, n, 0,
                        wf_emit_op(wf_grads_emit(g), "LRNGrad", 2, in, n->n_attrs, n->attrs));
}

static const wf_attr_row lrn_attrs[] = {{"alpha", WF_ATTR_FLOAT, false},
                                        {"beta", WF_ATTR_FLOAT, false},
                                        {"bias", WF_ATTR_FLOAT, false},
                                        {"size", WF_ATTR_INT, true},
                                        {0}};

const wf_op wf_op_lrn = WF_FOLDABLE(WF_DOMAIN_ONNX, "LRN", 13, 1, 1, wf_infer_like_float,
                                    .attrs = lrn_attrs, .grad = grad);

/* ai.weft LRNGrad(dy, x): LRN's gradient. */

static const wf_attr_row lrn_grad_attrs[] = {{"alpha", WF_ATTR_FLOAT, false},
                                             {"beta", WF_ATTR_FLOAT, false},
                                             {"bias", WF_ATTR_FLOAT, false},
                                             {"size", WF_ATTR_INT, true},
                                             {0}};

const wf_op wf_op_lrn_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "LRNGrad", 1, 2, 2, wf_infer_grad_like,
                .means = "(dy, x) -> dx; LRN's attrs", .attrs = lrn_grad_attrs);
