/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/exporter/exporter.c - the exporters that weft knows, and all findings. */
#include "common/compile/exporter/exporter.h"

#include <string.h>

static bool is_from(const wf_graph *g, const char *producer)
{
    return g->origin.producer && strcmp(g->origin.producer, producer) == 0;
}

/* PyTorch has two exporters and one name for them. The older one names a node after its module and
 * operation ("/fc/Gemm"), the newer one "node_linear". */
static bool by_dynamo(const wf_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (strncmp(g->nodes[i]->name, "node_", 5) == 0)
            return is_from(g, "pytorch");
    return false;
}

static bool by_torchscript(const wf_graph *g)
{
    return is_from(g, "pytorch");
}

static bool by_tf2onnx(const wf_graph *g)
{
    return is_from(g, "tf2onnx");
}

static bool by_anyone(const wf_graph *g)
{
    (void)g;
    return true;
}

/* The first that fits. */
static const wf_exporter exporters[] = {
    {.name = "PyTorch's exporter (dynamo)",
     .wrote = by_dynamo,
     .folds = true,
     .advice =
         "; export model.train() with optimize=False, or use weft_export.py (docs/import.md)"},
    {.name = "PyTorch's exporter (TorchScript)",
     .wrote = by_torchscript,
     .folds = true,
     .infers = true,
     .advice = "; export with training=TrainingMode.TRAINING and do_constant_folding=False, or use "
               "weft_export.py, also for Keras (docs/import.md)"},
    {.name = "tf2onnx",
     .wrote = by_tf2onnx,
     .folds = true,
     .drops_zeros = true,
     .renames = true,
     .infers = true,
     .advice = "; export the Keras model with weft_export.py (docs/import.md)"},
    {.name = "the exporter",
     .wrote = by_anyone,
     .advice = "; docs/import.md shows how to export a model for training"},
};

static wf_finding *const findings[] = {
    wf_finding_batch_norm, wf_finding_biases, wf_finding_shared,
    wf_finding_untied,     wf_finding_names,  wf_finding_numbers,
};

wf_status wf_exporter_warn(wf_unit *u, wf_err *err)
{
    const wf_exporter *by = exporters;

    if (!u->graph->origin.opset || u->graph->origin.names_variables)
        return WF_OK;
    while (!by->wrote(u->graph))
        by++;
    for (size_t i = 0; i < WF_COUNT(findings); i++)
        WF_TRY(findings[i](u, by, err));
    return WF_OK;
}

const char *wf_exporter_advice(const wf_unit *u, const wf_exporter *by)
{
    for (size_t i = 0; i < u->c->n_warnings; i++)
        if (strstr(u->c->warnings[i], by->advice))
            return "";
    return by->advice;
}

bool wf_exporter_has_dropout(const wf_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (wf_node_is(g->nodes[i], WF_DOMAIN_ONNX, "Dropout"))
            return true;
    return false;
}

bool wf_exporter_is_product(const wf_node *n)
{
    static const char *const names[] = {"Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"};

    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (wf_node_is(n, WF_DOMAIN_ONNX, names[i]))
            return true;
    return false;
}

/* Operations that give all elements of their first input, moved at most. */
static bool moves(const wf_node *n)
{
    static const char *const names[] = {"Identity", "Transpose", "Reshape",
                                        "Cast",     "Squeeze",   "Unsqueeze"};

    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (wf_node_is(n, WF_DOMAIN_ONNX, names[i]))
            return true;
    return false;
}

const wf_value *wf_exporter_variable(const wf_node *n, uint32_t k)
{
    const wf_value *v = wf_node_has_in(n, k) ? n->in[k] : NULL;

    while (v && moves(v->producer))
        v = v->producer->in[0];
    return v && v->variable == WF_VAR_TRAINABLE ? v : NULL;
}
