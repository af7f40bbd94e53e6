/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/onnx_branch.c - If: its branches become part of the graph around it.
 *
 * Where the condition is known while the file is read, as in what exporters make of Python's `if`,
 * there is just the one branch. Otherwise both are there, and a Choose (ai.weft) takes the results
 * of one: the operations of weft's graphs have no side effects, so the other does no harm, and the
 * compiler drops it as soon as the condition is known. Until then it may hold what does not fit (an
 * `if` that asks for a shape before it uses it), so its nodes are tentative: see wf_node.
 *
 * Names within a branch get a prefix, since the two may use the same ones.
 */
#include "common/graph/infer.h"
#include "common/graph/onnx_parts.h"
#include "common/graph/op.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 8, MOST_OUTPUTS = 64 };

static const Weft__Onnx__Graph *branch_of(const Weft__Onnx__Node *p, const char *name)
{
    for (size_t i = 0; i < p->n_attribute; i++)
        if (p->attribute[i]->name && strcmp(p->attribute[i]->name, name) == 0)
            return p->attribute[i]->g;
    return NULL;
}

bool wf_onnx_is_if(const Weft__Onnx__Node *p)
{
    return !wf_onnx_domain(p)[0] && strcmp(wf_onnx_op(p), "If") == 0;
}

size_t wf_onnx_branches(const Weft__Onnx__Node *p, const Weft__Onnx__Graph *branches[2])
{
    static const char *const names[] = {"then_branch", "else_branch"};
    size_t n = 0;

    for (size_t i = 0; i < 2; i++) {
        branches[n] = branch_of(p, names[i]);
        n += branches[n] != NULL;
    }
    return n;
}

/* The results of a branch, whose nodes are added. */
static wf_status add_branch(wf_graph *g, const Weft__Onnx__Node *p, const char *which,
                            const wf_onnx_file *file, const wf_onnx_scope *around, bool tentative,
                            wf_value *results[], wf_err *err)
{
    const Weft__Onnx__Graph *b =
        branch_of(p, strcmp(which, "then") == 0 ? "then_branch" : "else_branch");
    wf_onnx_scope scope = {.around = around,
                           .depth = around ? around->depth + 1 : 1,
                           .tentative = tentative || (around && around->tentative)};

    if (!b)
        return wf_fail(err, WF_INVALID, NULL, "it has no %s_branch", which);
    if (scope.depth > DEEPEST)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "branches within branches, more than %d deep",
                       DEEPEST);
    if (b->n_input || b->n_output != p->n_output || b->n_sparse_initializer)
        return wf_fail(err, WF_INVALID, NULL,
                       "its %s_branch has %zu inputs and %zu outputs, and must have none and %zu",
                       which, b->n_input, b->n_output, p->n_output);
    scope.prefix =
        wf_arena_printf(g->arena, "%s%s/%s/", around ? around->prefix : "", p->output[0], which);
    if (!scope.prefix)
        return wf_fail_nomem(err, strlen(p->output[0]));
    for (size_t i = 0; i < b->n_initializer; i++)
        WF_TRY(wf_onnx_initializer(g, b->initializer[i], file->folder, scope.prefix, err));
    for (size_t i = 0; i < b->n_node; i++)
        WF_TRY(wf_onnx_node(g, b->node[i], file, &scope, err));
    for (size_t i = 0; i < b->n_output; i++) {
        results[i] = b->output[i]->name ? wf_onnx_find(g, &scope, b->output[i]->name) : NULL;
        if (!results[i])
            return wf_fail(err, WF_INVALID, NULL, "nothing makes output %zu of its %s_branch", i,
                           which);
    }
    return WF_OK;
}

/* Whether the condition is known already. What comes before it is inferred once, here. */
static wf_status look(wf_graph *g, const wf_onnx_file *file, const wf_value *condition, bool *known,
                      bool *value, wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t n;

    for (; *file->n_inferred < g->n_nodes; ++*file->n_inferred)
        WF_TRY(wf_infer_node(g, g->nodes[*file->n_inferred], err));
    *known = wf_value_elems(condition, elems, &n) && n == 1 && elems[0].is_known;
    *value = *known && elems[0].value != 0;
    return WF_OK;
}

/* Output i is results[i]. */
static wf_status give(wf_graph *g, const Weft__Onnx__Node *p, const wf_onnx_scope *scope,
                      wf_value *const results[], wf_err *err)
{
    for (size_t i = 0; i < p->n_output; i++) {
        wf_node *n;
        wf_value *out;

        if (!p->output[i][0])
            continue;
        WF_TRY(wf_onnx_made(g, scope, p->output[i], &out, err));
        WF_TRY(wf_graph_add_node_like(g, wf_op_find(WF_DOMAIN_ONNX, "Identity"), out->name, 1,
                                      &results[i], 1, &out, &n, err));
        n->is_tentative = scope && scope->tentative;
    }
    return WF_OK;
}

static wf_status choose(wf_graph *g, const Weft__Onnx__Node *p, const wf_onnx_scope *scope,
                        wf_value *condition, wf_value *const a[], wf_value *const b[], wf_err *err)
{
    wf_value *in[1 + 2 * MOST_OUTPUTS] = {condition}, *out[MOST_OUTPUTS];
    uint32_t n = 0;
    wf_node *node;

    for (size_t i = 0; i < p->n_output; i++)
        n += p->output[i][0] != 0;
    for (size_t i = 0, k = 0; i < p->n_output; i++) {
        if (!p->output[i][0])
            continue;
        WF_TRY(wf_onnx_made(g, scope, p->output[i], &out[k], err));
        in[1 + k] = a[i];
        in[1 + n + k++] = b[i];
    }
    WF_TRY(wf_graph_add_node_like(g, wf_op_find(WF_DOMAIN_WEFT, "Choose"),
                                  p->name && p->name[0] ? p->name : p->output[0], 1 + 2 * n, in, n,
                                  out, &node, err));
    node->is_tentative = scope && scope->tentative;
    return WF_OK;
}

static wf_status add_if(wf_graph *g, const Weft__Onnx__Node *p, const wf_onnx_file *file,
                        const wf_onnx_scope *scope, wf_err *err)
{
    wf_value *taken[MOST_OUTPUTS], *other[MOST_OUTPUTS], *condition;
    bool known, value;

    if (p->n_input != 1 || p->n_output < 1 || p->n_output > MOST_OUTPUTS || !p->output[0][0])
        return wf_fail(err, WF_INVALID, NULL, "it has %zu inputs and %zu outputs", p->n_input,
                       p->n_output);
    condition = wf_onnx_find(g, scope, p->input[0]);
    if (!condition)
        return wf_fail(err, WF_INVALID, NULL, "nothing before it makes its condition \"%.200s\"",
                       p->input[0]);
    WF_TRY(look(g, file, condition, &known, &value, err));
    WF_TRY(add_branch(g, p, !known || value ? "then" : "else", file, scope, !known, taken, err));
    if (known)
        return give(g, p, scope, taken, err);
    WF_TRY(add_branch(g, p, "else", file, scope, true, other, err));
    return choose(g, p, scope, condition, taken, other, err);
}

wf_status wf_onnx_if(wf_graph *g, const Weft__Onnx__Node *p, const wf_onnx_file *file,
                     const wf_onnx_scope *scope, wf_err *err)
{
    const char *name = p->name && p->name[0] ? p->name : p->n_output ? p->output[0] : "";

    return wf_err_wrap(err, add_if(g, p, file, scope, err), "If \"%.200s\"", name);
}
