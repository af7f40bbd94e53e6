/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/mode.c - the form of what behaves differently in training: Dropout.
 *
 * TRAIN turns it on, whatever the file says, as a job wants to train; EVAL and INFER take it out;
 * RUN and GRAD leave the file as it is. A Dropout of rate 0 is taken out in TRAIN as well.
 * BatchNormalization follows the same rule, in batch_norm.c. What layers do in training alone is
 * chosen by ai.weft Training, which is true in TRAIN and false in all other modes.
 */
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include <stdlib.h>

static wf_status turn_on(wf_unit *u, wf_node *n, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, n->name, err);
    wf_value *in[3] = {n->in[0], wf_node_has_in(n, 1) ? n->in[1] : NULL, NULL};
    wf_value *out[2] = {NULL, NULL};
    uint32_t n_out = wf_node_has_out(n, 1) ? 2 : 1;

    in[2] = wf_emit_scalar(&e, WF_BOOL, 1.0);
    if (n->n_in == 3 && in[2]) {
        wf_node_set_in(n, 2, in[2]); /* same node, same name: its random numbers are keyed by it */
        return WF_OK;
    }
    /* Optional inputs were left off: a node of the same kind with room for them takes its place. */
    if (wf_emit_node(&e, "Dropout", 3, in, 0, NULL, n_out, out))
        for (uint32_t i = 0; i < n_out; i++)
            if (wf_node_has_out(n, i))
                WF_TRY(wf_hand_over(u, n->out[i], out[i], err));
    return wf_emit_end(&e);
}

/* Everyone who reads the node's result reads what went in; its mask is all true. */
static wf_status take_out(wf_unit *u, wf_node *n, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, n->name, err);

    if (wf_node_has_out(n, 1) && wf_uses(u->graph, n->out[1])) {
        wf_value *yes = wf_emit_scalar(&e, WF_BOOL, 1.0);

        yes = wf_emit_expand_like(&e, yes, n->in[0]);
        WF_TRY(wf_emit_end(&e));
        WF_TRY(wf_hand_over(u, n->out[1], yes, err));
    }
    return n->out[0] ? wf_hand_over(u, n->out[0], n->in[0], err) : WF_OK;
}

/* What Training chooses between becomes the one that it chooses. */
static wf_status decide(wf_unit *u, wf_node *n, bool trains, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, n->name, err);
    wf_value *flag = wf_emit_scalar(&e, WF_BOOL, trains);

    WF_TRY(wf_emit_end(&e));
    for (const wf_use *use = n->out[0]->first_use, *next; use; use = next) {
        wf_node *where = use->node;

        next = use->next;
        if (wf_node_is(where, WF_DOMAIN_ONNX, "Where") && where->in[0] == n->out[0])
            WF_TRY(wf_hand_over(u, where->out[0], where->in[trains ? 1 : 2], err));
    }
    return wf_hand_over(u, n->out[0], flag, err);
}

/* All of them, and no node is left that could not be computed. */
static wf_status decide_all(wf_unit *u, wf_err *err)
{
    wf_graph *g = u->graph;
    size_t n_nodes = g->n_nodes, n = 0;
    bool *keep;

    for (size_t i = 0; i < n_nodes; i++) {
        if (!wf_node_is(g->nodes[i], WF_DOMAIN_WEFT, "Training"))
            continue;
        WF_TRY(decide(u, g->nodes[i], u->spec->mode == WF_COMPILE_TRAIN, err));
        n++;
    }
    if (!n)
        return WF_OK;
    WF_TRY(wf_graph_sort(g, err)); /* an output that is an input has an Identity now */
    keep = wf_arena_array(u->arena, g->n_nodes, sizeof(*keep));
    if (!keep)
        return wf_fail_nomem(err, g->n_nodes);
    for (size_t i = 0; i < g->n_nodes; i++)
        keep[i] = !wf_node_is(g->nodes[i], WF_DOMAIN_WEFT, "Training");
    wf_graph_keep_nodes(g, keep);
    return WF_OK;
}

wf_status wf_pass_mode(wf_unit *u, wf_err *err)
{
    wf_compile_mode mode = u->spec->mode;
    size_t n_nodes;

    WF_TRY(decide_all(u, err));
    if (mode == WF_COMPILE_RUN || mode == WF_COMPILE_GRAD)
        return WF_OK;
    n_nodes = u->graph->n_nodes; /* those made here need no second look */
    for (size_t i = 0; i < n_nodes; i++) {
        wf_node *n = u->graph->nodes[i];
        double ratio;

        if (!wf_node_is(n, WF_DOMAIN_ONNX, "Dropout"))
            continue;
        if (mode != WF_COMPILE_TRAIN ||
            (wf_node_has_in(n, 1) && wf_scalar_of(n->in[1], &ratio) && ratio == 0.0))
            WF_TRY(take_out(u, n, err));
        else
            WF_TRY(turn_on(u, n, err));
    }
    WF_TRY(wf_mode_batch_norm(u, err));
    return wf_graph_sort(u->graph, err);
}
