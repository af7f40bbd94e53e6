/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/if.c - If: its branches become part of the graph around it.
 *
 * Where the condition is known while the file is read, as in what exporters make of Python's `if`,
 * there is just the one branch. Otherwise both are there, and a Choose (ai.weft) takes the results
 * of one: operations with an effect are refused there, so the other does no harm, and the
 * compiler drops it as soon as the condition is known. Until then it may hold what does not fit (an
 * `if` that asks for a shape before it uses it), so its nodes are tentative: see wf_node.
 *
 * Names within a subgraph get a prefix, since two may use the same ones.
 */
#include "common/graph/op.h"
#include "common/onnx/expand.h"
#include "common/onnx/known.h"
#include "common/onnx/proto.h"
#include "common/onnx/sequence.h"

#include <string.h>

enum { MOST_OUTPUTS = 64 };

/* The results of a branch, whose nodes are added. */
static wf_status add_branch(wf_graph *g, const Weft__Onnx__Node *p, const char *which,
                            wf_onnx_file *file, const wf_onnx_scope *around, bool tentative,
                            wf_value *results[], wf_err *err)
{
    const Weft__Onnx__Graph *b =
        wf_onnx_subgraph(p, strcmp(which, "then") == 0 ? "then_branch" : "else_branch");
    wf_onnx_scope scope;
    char *prefix;

    if (!b)
        return wf_fail(err, WF_INVALID, NULL, "it has no %s_branch", which);
    if (b->n_input || b->n_output != p->n_output || b->n_sparse_initializer)
        return wf_fail(err, WF_INVALID, NULL,
                       "its %s_branch has %zu inputs and %zu outputs, and must have none and %zu",
                       which, b->n_input, b->n_output, p->n_output);
    prefix = wf_arena_printf(g->arena, "%s/%s", p->output[0], which);
    if (!prefix)
        return wf_fail_nomem(err, strlen(p->output[0]));
    WF_TRY(wf_onnx_enter(g, around, prefix, tentative, &scope, err));
    for (size_t i = 0; i < b->n_initializer; i++)
        WF_TRY(wf_onnx_initializer(g, b->initializer[i], file->folder, scope.prefix, err));
    for (size_t i = 0; i < b->n_node; i++)
        WF_TRY(file->add_node(g, b->node[i], file, &scope, err));
    return wf_err_wrap(err, wf_onnx_results(g, b, &scope, results, err), "its %s_branch", which);
}

static wf_status choose(wf_graph *g, const Weft__Onnx__Node *p, const wf_onnx_file *file,
                        const wf_onnx_scope *scope, wf_value *condition, wf_value *const a[],
                        wf_value *const b[], wf_err *err)
{
    wf_value *in[1 + 2 * MOST_OUTPUTS] = {condition}, *out[MOST_OUTPUTS];
    uint32_t n = 0;
    wf_node *node;

    for (size_t i = 0; i < p->n_output; i++)
        n += p->output[i][0] != 0;
    for (size_t i = 0, k = 0; i < p->n_output; i++) {
        if (!p->output[i][0])
            continue;
        if (wf_onnx_sequence_of(file, a[i]) || wf_onnx_sequence_of(file, b[i]))
            return wf_fail(err, WF_UNSUPPORTED, NULL,
                           "it chooses between sequences by a condition that is known only during "
                           "the run");
        WF_TRY(wf_onnx_made(g, scope, p->output[i], &out[k], err));
        in[1 + k] = a[i];
        in[1 + n + k++] = b[i];
    }
    return wf_graph_add_node_like(g, wf_op_find(WF_DOMAIN_WEFT, "Choose"),
                                  p->name && p->name[0] ? p->name : p->output[0], 1 + 2 * n, in, n,
                                  out, &node, err);
}

static wf_status expand(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                        const wf_onnx_scope *scope, wf_err *err)
{
    wf_value *taken[MOST_OUTPUTS] = {NULL}, *other[MOST_OUTPUTS] = {NULL}, *condition;
    int64_t value = 1;
    bool known;

    if (p->n_input != 1 || p->n_output < 1 || p->n_output > MOST_OUTPUTS || !p->output[0][0])
        return wf_fail(err, WF_INVALID, NULL, "it has %zu inputs and %zu outputs", p->n_input,
                       p->n_output);
    condition = wf_onnx_find(g, scope, p->input[0]);
    if (!condition)
        return wf_fail(err, WF_INVALID, NULL, "nothing before it makes its condition \"%.200s\"",
                       p->input[0]);
    WF_TRY(wf_onnx_catch_up(g, file, err));
    known = wf_onnx_known(condition, &value);
    WF_TRY(add_branch(g, p, value ? "then" : "else", file, scope, !known, taken, err));
    for (size_t i = 0; known && i < p->n_output; i++)
        WF_TRY(wf_onnx_bind(g, file, scope, p->output[i], taken[i], err));
    if (known)
        return WF_OK;
    WF_TRY(add_branch(g, p, "else", file, scope, true, other, err));
    return choose(g, p, file, scope, condition, taken, other, err);
}

static const wf_attr_row attrs[] = {
    {"else_branch", WF_ATTR_GRAPH, true}, {"then_branch", WF_ATTR_GRAPH, true}, {0}};

const wf_expansion wf_expansion_if = {
    .op =
        {
            .name = "If",
            .domain = WF_DOMAIN_ONNX,
            .since = 16,
            .n_in_min = 1,
            .n_in_max = 1,
            .n_out_min = 1,
            .n_out_max = WF_ANY_NUMBER,
            .note = "its branches become part of the graph: one, once the condition is known; else "
                    "both",
            .no_grad_in = 1,
            .attrs = attrs,
        },
    .add = expand,
};
