/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/loss/label_loss.h - what the losses over integer labels share. */
#ifndef WF_GRAPH_OPS_LABEL_LOSS_H
#define WF_GRAPH_OPS_LABEL_LOSS_H

#include "common/base/status.h"
#include "common/graph/op.h"

/* ignore_index, reduction. */
extern const wf_attr_row wf_label_loss_rows[];
/* Checks scores [n, classes, d...], labels [n, d...], weights [classes]; sets output 0. */
WF_MUST_USE wf_status wf_infer_label_loss(wf_node *n, wf_err *err);
/* dloss, scores or log_prob, labels, weights -> like input 1: the infer of both gradients. */
wf_status wf_infer_label_loss_grad(wf_graph *g, wf_node *n, wf_err *err);

#endif
