/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/recurrent.c - an LSTM or GRU whose gradient is in the graph keeps its
 * activations for it (ai.weft LSTMKeep, GRUKeep): without them the gradient would go the whole way
 * there once more. After differentiate. With clip the activations do not tell where their inputs
 * were cut, and nothing is kept. */
#include "common/compile/rules/rules.h"
#include <string.h>

/* Which of the gradient's inputs are the operation's first one and Y. */
typedef struct pair {
    const char *op, *keep, *grad;
    uint32_t x, y, n_in, n_out;
} pair;

static const pair pairs[] = {{"LSTM", "LSTMKeep", "LSTMGrad", 3, 11, 8, 3},
                             {"GRU", "GRUKeep", "GRUGrad", 2, 8, 6, 2}};

static bool same_attributes(const wf_node *a, const wf_node *b)
{
    return !strcmp(wf_node_string(a, "direction", "forward"),
                   wf_node_string(b, "direction", "forward")) &&
           wf_node_int(a, "layout", 0) == wf_node_int(b, "layout", 0) &&
           wf_node_int(a, "linear_before_reset", 0) == wf_node_int(b, "linear_before_reset", 0) &&
           wf_node_float(b, "clip", 0) == 0;
}

/* The gradient of this very node, which does not take what was kept yet. */
static bool is_grad_of(const wf_node *grad, const wf_node *n, const pair *p)
{
    if (!wf_node_is(grad, WF_DOMAIN_WEFT, p->grad) || grad->n_in != p->y + 1 ||
        grad->in[p->y] != n->out[0] || !same_attributes(n, grad))
        return false;
    for (uint32_t i = 0; i < p->n_in; i++)
        if (grad->in[p->x + i] != (wf_node_has_in(n, i) ? n->in[i] : NULL))
            return false;
    return true;
}

static wf_status take(wf_rewrite *r, wf_node *grad, const pair *p, wf_value *const kept[2])
{
    wf_value **in = wf_arena_array(r->u->graph->arena, grad->n_in + 2, sizeof in[0]);

    if (!in)
        return wf_fail_nomem(r->err, (grad->n_in + 2) * sizeof in[0]);
    memcpy(in, grad->in, grad->n_in * sizeof in[0]);
    in[p->y + 1] = kept[0];
    in[p->y + 2] = kept[1];
    return wf_node_set_ins(r->u->graph, grad, grad->n_in + 2, in, r->err);
}

static wf_status keep(wf_rewrite *r, const pair *p)
{
    wf_graph *g = r->u->graph;
    wf_value *kept[2] = {NULL, NULL};

    if (wf_node_float(r->n, "clip", 0) != 0)
        return WF_OK;
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (!is_grad_of(g->nodes[i], r->n, p))
            continue;
        r->n->op = wf_op_find(WF_DOMAIN_WEFT, p->keep);
        for (uint32_t k = 0; k < 2; k++)
            WF_TRY(wf_node_want_output(g, r->n, p->n_out + k, &kept[k], r->err));
        WF_TRY(take(r, g->nodes[i], p, kept));
        r->changed = true;
    }
    return WF_OK;
}

static wf_status lstm(wf_rewrite *r)
{
    return keep(r, &pairs[0]);
}

static wf_status gru(wf_rewrite *r)
{
    return keep(r, &pairs[1]);
}

const wf_rewrite_rule wf_rules_recurrent[] = {
    {WF_DOMAIN_ONNX, "LSTM", lstm},
    {WF_DOMAIN_ONNX, "GRU", gru},
    {0},
};
