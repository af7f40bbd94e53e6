/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/exporter/shared.c - initializers that stand for weights of several layers.
 *
 * Exporters keep equal parameters once. Fresh biases and scales are all equal, and so are layers
 * that were copied; what was made from one initializer is trained as one. A table that is looked up
 * and multiplied by as well (tied embeddings) is meant so: weights drawn at random are not equal by
 * chance.
 */
#include "common/compile/exporter/exporter.h"
#include "common/graph/op.h"

#include <stdlib.h>
#include <string.h>

/* A use of a variable as the weights of a layer. */
typedef struct layer {
    const wf_value *weights;
    const wf_node *node;
    bool looks_up;
} layer;

static bool is_one_of(const wf_node *n, const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wf_node_is(n, WF_DOMAIN_ONNX, names[i]))
            return true;
    return false;
}

/* Whether input k of n is for weights of the layer. */
static bool is_weight(const wf_node *n, uint32_t k)
{
    static const char *const scaled[] = {"BatchNormalization", "LayerNormalization",
                                         "InstanceNormalization", "GroupNormalization"};
    static const char *const recurrent[] = {"LSTM", "GRU", "RNN"};

    if (wf_exporter_is_product(n))
        return true;
    if (is_one_of(n, scaled, WF_COUNT(scaled)))
        return k == 1 || k == 2;
    if (is_one_of(n, recurrent, WF_COUNT(recurrent)))
        return k >= 1 && k <= 3;
    if (wf_node_is(n, WF_DOMAIN_ONNX, "Gather"))
        return k == 0;
    if (wf_node_is(n, WF_DOMAIN_ONNX, "Add")) /* a bias */
        return wf_node_has_in(n, 1 - k) && wf_exporter_is_product(n->in[1 - k]->producer);
    return false;
}

/* Order: by weights, those that look up last. */
static int compare(const void *a, const void *b)
{
    const layer *x = a, *y = b;

    if (x->weights != y->weights)
        return x->weights->index < y->weights->index ? -1 : 1;
    if (x->looks_up != y->looks_up)
        return x->looks_up ? 1 : -1;
    return x->node->index < y->node->index ? -1 : x->node->index > y->node->index;
}

static size_t find_layers(const wf_graph *g, layer *layers)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i]->n_in; k++) {
            const wf_node *node = g->nodes[i];
            const wf_value *v = is_weight(node, k) ? wf_exporter_variable(node, k) : NULL;

            if (v)
                layers[n++] = (layer){v, node, wf_node_is(node, WF_DOMAIN_ONNX, "Gather")};
        }
    qsort(layers, n, sizeof(*layers), compare);
    return n;
}

static size_t count_inputs(const wf_graph *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++)
        n += g->nodes[i]->n_in;
    return n;
}

static wf_status warn(wf_unit *u, const wf_exporter *by, size_t n, const layer *first, wf_err *err)
{
    return wf_unit_warn(
        u, err,
        "%zu initializer%s several layers and %s trained as one (\"%.60s\": layers "
        "\"%.40s\", \"%.40s\"): right if the model shares them; otherwise %s merged "
        "equal ones%s",
        n, n == 1 ? " belongs to" : "s belong to", n == 1 ? "is" : "are", first[0].weights->name,
        first[0].node->name, first[1].node->name, by->name, wf_exporter_advice(u, by));
}

wf_status wf_finding_shared(wf_unit *u, const wf_exporter *by, wf_err *err)
{
    layer *layers = calloc(count_inputs(u->graph) + 1, sizeof(*layers));
    const layer *first = NULL;
    wf_status rc = WF_OK;
    size_t n, n_shared = 0;

    if (!layers)
        return wf_fail_nomem(err, count_inputs(u->graph) * sizeof(*layers));
    n = find_layers(u->graph, layers);
    for (size_t i = 1, begin = 0; i < n; i++) {
        if (layers[i].weights != layers[begin].weights ||
            layers[i].looks_up != layers[begin].looks_up)
            begin = i;
        /* Counted at its second layer; one node may read it twice. */
        if (i != begin + 1 || layers[i].node == layers[begin].node)
            continue;
        first = first ? first : &layers[begin];
        n_shared++;
    }
    if (n_shared)
        rc = warn(u, by, n_shared, first, err);
    free(layers);
    return rc;
}
