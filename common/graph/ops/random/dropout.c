/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/random/dropout.c - Dropout and DropoutGrad. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Dropout: y = mask x / (1 - ratio) when input training_mode is true, else x. Output 1, the mask,
 * is what the gradient needs. attr seed is not used: weft's random numbers come from the job's
 * seed and the node (docs/reproducibility.md, "Random numbers"). */

static wf_status infer_dropout(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "the data", err));
    if (wf_node_has_in(n, 1))
        WF_TRY(wf_need_float(n, 1, "the ratio", err));
    if (wf_node_has_in(n, 2))
        WF_TRY(wf_need_dtype(n, 2, WF_BOOL, "training_mode", err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    wf_out_like(n, 1, WF_BOOL, n->in[0]);
    return WF_OK;
}

static bool never_drops(const wf_node *n)
{
    return !wf_node_has_in(n, 2) ||
           (wf_value_is_constant(n->in[2]) && *(const uint8_t *)n->in[2]->known->data == 0);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_value *dy = wf_grads_upstream(g, n, 0);
    wf_value *in[4] = {dy, NULL, NULL, NULL};

    (void)err;
    if (never_drops(n))
        return wf_grads_add(g, n, 0, dy);
    in[1] = wf_grads_output(g, n, 1);
    in[2] = n->in[1];
    in[3] = n->in[2];
    return wf_grads_add(g, n, 0, wf_emit_op(wf_grads_emit(g), "DropoutGrad", 4, in, 0, NULL));
}

/* Before opset 12 the ratio was an attribute, and nothing was dropped: training_mode came with it.
 */
static wf_status upgrade(wf_graph *g, wf_node *n, int64_t from, wf_err *err)
{
    float ratio = wf_node_float(n, "ratio", 0.5f);
    wf_emit e = wf_emit_begin(g, n->name, err);
    wf_value *in[2] = {n->in[0], NULL};

    if (from >= 12 || n->n_in != 1)
        return WF_OK;
    in[1] = wf_emit_scalar(&e, WF_F32, (double)ratio);
    WF_TRY(wf_emit_end(&e));
    wf_node_drop_attr(n, "ratio");
    return wf_node_set_ins(g, n, 2, in, err);
}

static const wf_attr_row attrs[] = {{"seed", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_dropout =
    WF_OPERATION(WF_DOMAIN_ONNX, "Dropout", 13, 1, 3, 1, 2, WF_OP_RANDOM, infer_dropout,
                 .no_grad_in = 1u << 1 | 1u << 2, .attrs = attrs, .grad = grad, .upgrade = upgrade);

/* ai.weft DropoutGrad: dx = mask ? dy / (1 - ratio) : 0 in training mode, else dy. ratio is 0.5
 * when absent, as for Dropout. */

static wf_status infer_dropout_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_dtype(n, 1, WF_BOOL, "the mask", err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    return WF_OK;
}

const wf_op wf_op_dropout_grad = WF_OPERATION(
    WF_DOMAIN_WEFT, "DropoutGrad", 1, 2, 4, 1, 1, WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,
    infer_dropout_grad,
    .means = "(dy, mask, (ratio), (training_mode)) -> dx; mask ? dy / (1 - ratio) : 0; "
             "dy itself when training_mode is false or absent");
