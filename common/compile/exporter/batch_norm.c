/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/exporter/batch_norm.c - BatchNormalization that was folded into other layers, or
 * was exported for inference.
 *
 * What is folded is gone: a layer that was Conv, scale and shift is one Conv with other weights.
 * Each exporter leaves a trace:
 *   TorchScript   the weight of a Conv with a bias has a name that was made up; a Conv that is not
 *                 folded keeps its parameter's name. Keras's layers come as (x - mean) * scale, of
 *                 two initializers with names that were made up.
 *   dynamo        a Conv that a rewrite made is called node_Conv_12, one of the model node_conv2d
 *   tf2onnx       names keep the scope, "b1/batchnorm/mul_1"
 */
#include "common/compile/exporter/exporter.h"
#include "common/onnx/onnx.h"

#include <string.h>

static bool is_made_up(const wf_node *n, uint32_t k)
{
    const wf_value *v = wf_exporter_variable(n, k);

    return v && wf_onnx_made_up(v->name);
}

/* x - mean, scaled next: by initializers that had no name of their own. */
static bool is_centred(const wf_node *n)
{
    if (!wf_node_is(n, WF_DOMAIN_ONNX, "Sub") || !is_made_up(n, 1) || !wf_node_has_out(n, 0) ||
        n->out[0]->n_uses != 1)
        return false;
    n = n->out[0]->first_use->node;
    return wf_node_is(n, WF_DOMAIN_ONNX, "Mul") && is_made_up(n, 1);
}

static bool was_folded(const wf_node *n)
{
    bool conv =
        wf_node_is(n, WF_DOMAIN_ONNX, "Conv") || wf_node_is(n, WF_DOMAIN_ONNX, "ConvTranspose");

    if (strstr(n->name, "batchnorm"))
        return true;
    if (conv && strncmp(n->name, "node_Conv", 9) == 0)
        return true;
    return (conv && wf_node_has_in(n, 2) && is_made_up(n, 1)) || is_centred(n);
}

/* dynamo writes the inference form of a model in train mode too, and says which it was. */
static bool may_be_training(const wf_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (wf_node_is(g->nodes[i], WF_DOMAIN_ONNX, "BatchNormalization") &&
            strncmp(g->nodes[i]->name, "node_", 5) == 0 &&
            !strstr(g->nodes[i]->name, "no_training"))
            return true;
    return false;
}

wf_status wf_finding_batch_norm(wf_unit *u, const wf_exporter *by, wf_err *err)
{
    const wf_graph *g = u->graph;
    wf_norm_form form = u->c->source.batch_norm;

    if (form == WF_NORM_INFERENCE && !wf_exporter_has_dropout(g) && !may_be_training(g))
        return wf_unit_warn(u, err,
                            "BatchNormalization is frozen and Dropout is absent: exported for "
                            "inference? weft trains the BatchNormalization, but a Dropout of the "
                            "model is lost%s",
                            wf_exporter_advice(u, by));
    if (form != WF_NORM_NONE || !by->folds)
        return WF_OK;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (was_folded(g->nodes[i]))
            return wf_unit_warn(u, err,
                                "no BatchNormalization in the file: %s seems to have folded it "
                                "into other layers (\"%.100s\"), which trains another model%s",
                                by->name, g->nodes[i]->name, wf_exporter_advice(u, by));
    return WF_OK;
}
