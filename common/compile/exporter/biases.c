/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/exporter/biases.c - a file without any bias. tf2onnx leaves out what adds zero,
 * and the biases of a fresh model are zero. */
#include "common/compile/exporter/exporter.h"

/* Whether something that is given with the model is added to what n makes, by itself or next. */
static bool has_bias(const wf_node *n)
{
    const wf_value *y = wf_node_has_out(n, 0) ? n->out[0] : NULL;

    if (!wf_node_is(n, WF_DOMAIN_ONNX, "MatMul") && wf_node_has_in(n, 2))
        return true;
    for (const wf_use *use = y ? y->first_use : NULL; use; use = use->next) {
        if (!wf_node_is(use->node, WF_DOMAIN_ONNX, "Add"))
            continue;
        for (uint32_t k = 0; k < use->node->n_in; k++)
            if (use->node->in[k] && use->node->in[k] != y && !use->node->in[k]->producer)
                return true;
    }
    return false;
}

wf_status wf_finding_biases(wf_unit *u, const wf_exporter *by, wf_err *err)
{
    size_t n = 0;

    if (!by->drops_zeros)
        return WF_OK;
    for (size_t i = 0; i < u->graph->n_nodes; i++) {
        const wf_node *node = u->graph->nodes[i];

        if (!wf_exporter_is_product(node) || !wf_exporter_variable(node, 1))
            continue;
        if (has_bias(node))
            return WF_OK;
        n++;
    }
    if (!n)
        return WF_OK;
    return wf_unit_warn(u, err,
                        "no layer has a bias (%zu with weights): %s leaves out biases that are "
                        "zero, as in a model that was not trained%s",
                        n, by->name, wf_exporter_advice(u, by));
}
