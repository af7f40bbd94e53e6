/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/variables.c - which initializers of a file are trained: the rule of onnx.h. */
#include "common/onnx/variables.h"
#include "common/base/cc.h"
#include "common/graph/op.h"
#include "common/onnx/onnx.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Exporters let equal initializers of several nodes become one, behind Identities. */
static bool is_running(const wf_node *n, uint32_t k)
{
    const wf_value *v = n->in[k];

    while (v->producer && strcmp(v->producer->op->name, "Identity") == 0)
        v = v->producer->in[0];
    return k < 32 && (n->op->running_in >> k & 1u) && !v->producer;
}

static bool passes(const wf_node *n, uint32_t k)
{
    return n->in[k] && wf_dtype_is_float(n->in[k]->dtype) && !wf_op_cuts_grad(n->op, k) &&
           !is_running(n, k);
}

/* reached [n_values]: a gradient of some output can arrive there. One pass backwards (G1). */
static void mark_reached(const wf_graph *g, bool reached[])
{
    for (size_t i = 0; i < g->n_outputs; i++)
        reached[g->outputs[i]->index] = wf_dtype_is_float(g->outputs[i]->dtype);
    for (size_t i = g->n_nodes; i-- > 0;) {
        const wf_node *n = g->nodes[i];
        bool from_here = false;

        for (uint32_t k = 0; k < n->n_out; k++)
            from_here = from_here || (n->out[k] && reached[n->out[k]->index]);
        for (uint32_t k = 0; from_here && n->op->grad && k < n->n_in; k++)
            if (passes(n, k))
                reached[n->in[k]->index] = true;
    }
}

static bool multiplies(const wf_node *n)
{
    return n && (strcmp(n->op->name, "MatMul") == 0 || strcmp(n->op->name, "Gemm") == 0);
}

/* A weight or bias of a linear layer: an operand of Gemm or MatMul, or added to what one makes. */
static void mark_linear(const wf_graph *g, bool linear[])
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];
        bool adds = strcmp(n->op->name, "Add") == 0 &&
                    (multiplies(n->in[0]->producer) || multiplies(n->in[1]->producer));

        for (uint32_t k = 0; (adds || multiplies(n)) && k < n->n_in; k++)
            if (n->in[k])
                linear[n->in[k]->index] = true;
    }
}

/* Whether nothing but digits, and at least one, follows. */
static bool is_count(const char *text)
{
    return text[0] && text[strspn(text, "0123456789")] == 0;
}

bool wf_onnx_made_up(const char *name)
{
    const char *plain = name[0] == '_' ? name + 1 : name, *last = NULL;

    for (const char *at = strstr(name, "__"); at; at = strstr(at + 1, "__"))
        last = at + 2;
    return strncmp(name, "onnx::", 6) == 0 ||
           (strncmp(plain, "val_", 4) == 0 && is_count(plain + 4)) || (last && is_count(last));
}

/* Whether an initializer of one element, which is no operand of a linear layer, is a number of a
 * formula. */
static bool is_number(const wf_value *v, const Weft__Onnx__Model *model)
{
    const char *producer = model->producer_name ? model->producer_name : "";

    if (strcmp(producer, "pytorch") == 0)
        return wf_onnx_made_up(v->name);
    return strcmp(producer, "tf2onnx") != 0 || !strstr(v->name, "ReadVariableOp");
}

static wf_status by_use(wf_graph *g, const Weft__Onnx__Model *model, wf_err *err)
{
    bool *reached = calloc(g->n_values + 1, sizeof reached[0]);
    bool *linear = calloc(g->n_values + 1, sizeof linear[0]);
    const char **numbers = wf_arena_array(g->arena, model->graph->n_initializer, sizeof numbers[0]);
    wf_status rc = WF_OK;

    if (!reached || !linear || !numbers) {
        rc = wf_fail_nomem(err, g->n_values);
        goto out;
    }
    mark_reached(g, reached);
    mark_linear(g, linear);
    for (size_t i = 0; i < model->graph->n_initializer; i++) {
        wf_value *v = wf_graph_value(g, model->graph->initializer[i]->name);

        if (!v || !v->known || !wf_dtype_is_float(v->dtype) || !reached[v->index])
            continue;
        if (wf_elems(v->known) == 1 && !linear[v->index] && is_number(v, model))
            numbers[g->origin.n_numbers++] = v->name;
        else
            v->variable = WF_VAR_TRAINABLE;
    }
    g->origin.numbers = numbers;
out:
    free(reached);
    free(linear);
    return rc;
}

static wf_status by_metadata(wf_graph *g, const Weft__Onnx__Model *model, wf_err *err)
{
    static const char *const kinds[] = {[WF_VAR_TRAINABLE] = "trainable",
                                        [WF_VAR_STATISTIC] = "statistic",
                                        [WF_VAR_FROZEN] = "frozen"};

    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const char *key = model->metadata_props[i]->key, *kind = model->metadata_props[i]->value;
        wf_value *v;
        int k = WF_VAR_FROZEN;

        if (!key || strncmp(key, WF_ONNX_VARIABLE_KEY, strlen(WF_ONNX_VARIABLE_KEY)) != 0)
            continue;
        v = wf_graph_value(g, key + strlen(WF_ONNX_VARIABLE_KEY));
        while (k > WF_VAR_NOT && (!kind || strcmp(kind, kinds[k]) != 0))
            k--;
        if (k == WF_VAR_NOT)
            return wf_fail(err, WF_INVALID, "write trainable, statistic or frozen",
                           "metadata %.200s is \"%.40s\", which is no kind of variable", key,
                           kind ? kind : "");
        if (v && v->known && !v->producer)
            v->variable = (wf_var_kind)k;
    }
    return WF_OK;
}

wf_status wf_onnx_find_variables(wf_graph *g, const Weft__Onnx__Model *model, wf_err *err)
{
    bool says_so = model->producer_name && strcmp(model->producer_name, WF_ONNX_PRODUCER) == 0;

    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const char *key = model->metadata_props[i]->key;

        says_so = says_so ||
                  (key && strncmp(key, WF_ONNX_VARIABLE_KEY, strlen(WF_ONNX_VARIABLE_KEY)) == 0);
    }
    g->origin.names_variables = says_so;
    return says_so ? by_metadata(g, model, err) : by_use(g, model, err);
}
