/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/onnx_branch.c - If: its branches become part of the graph around it; and what
 * subgraphs of all kinds share.
 *
 * Where the condition is known while the file is read, as in what exporters make of Python's `if`,
 * there is just the one branch. Otherwise both are there, and a Choose (ai.weft) takes the results
 * of one: the operations of weft's graphs have no side effects, so the other does no harm, and the
 * compiler drops it as soon as the condition is known. Until then it may hold what does not fit (an
 * `if` that asks for a shape before it uses it), so its nodes are tentative: see wf_node.
 *
 * Names within a subgraph get a prefix, since two may use the same ones.
 */
#include "common/base/cc.h"
#include "common/graph/infer.h"
#include "common/graph/onnx_parts.h"
#include "common/graph/op.h"

#include <string.h>

enum { DEEPEST = 8, MOST_OUTPUTS = 64 };

static const Weft__Onnx__Attribute *attribute_of(const Weft__Onnx__Node *p, const char *name)
{
    for (size_t i = 0; i < p->n_attribute; i++)
        if (p->attribute[i]->name && strcmp(p->attribute[i]->name, name) == 0)
            return p->attribute[i];
    return NULL;
}

/* The row of an attribute, NULL when the operation has none of that name. */
static const wf_attr_row *row_of(const wf_op *op, const char *name)
{
    const wf_attr_row *row = op->attrs;

    while (row && row->name && strcmp(row->name, name) != 0)
        row++;
    return row && row->name ? row : NULL;
}

wf_status wf_onnx_check_attributes(const Weft__Onnx__Node *p, const wf_op *op, wf_err *err)
{
    static const int type_of[] = {
        [WF_ATTR_INT] = 2,  [WF_ATTR_FLOAT] = 1,  [WF_ATTR_STRING] = 3,  [WF_ATTR_TENSOR] = 4,
        [WF_ATTR_INTS] = 7, [WF_ATTR_FLOATS] = 6, [WF_ATTR_STRINGS] = 8, [WF_ATTR_GRAPH] = 5};

    for (size_t i = 0; i < p->n_attribute; i++) {
        const char *name = p->attribute[i]->name ? p->attribute[i]->name : "";
        const wf_attr_row *row = row_of(op, name);

        if (!row)
            return wf_fail(err, WF_UNSUPPORTED, NULL, "weft does not know its attribute \"%.60s\"",
                           name);
        if ((int)p->attribute[i]->type != type_of[row->kind])
            return wf_fail(err, WF_INVALID, NULL, "its attribute \"%s\" is of the wrong kind",
                           row->name);
    }
    for (const wf_attr_row *row = op->attrs; row && row->name; row++)
        if (row->required && !attribute_of(p, row->name))
            return wf_fail(err, WF_INVALID, NULL, "its attribute \"%s\" is missing", row->name);
    return WF_OK;
}

const Weft__Onnx__Graph *wf_onnx_subgraph(const Weft__Onnx__Node *p, const char *name)
{
    const Weft__Onnx__Attribute *a = attribute_of(p, name);

    return a ? a->g : NULL;
}

float wf_onnx_float(const Weft__Onnx__Node *p, const char *name, float otherwise)
{
    const Weft__Onnx__Attribute *a = attribute_of(p, name);

    return a ? a->f : otherwise;
}

int64_t wf_onnx_int(const Weft__Onnx__Node *p, const char *name, int64_t otherwise)
{
    const Weft__Onnx__Attribute *a = attribute_of(p, name);

    return a ? a->i : otherwise;
}

const int64_t *wf_onnx_ints(const Weft__Onnx__Node *p, const char *name, size_t *n)
{
    const Weft__Onnx__Attribute *a = attribute_of(p, name);

    *n = a ? a->n_ints : 0;
    return a ? a->ints : NULL;
}

const float *wf_onnx_floats(const Weft__Onnx__Node *p, const char *name, size_t *n)
{
    const Weft__Onnx__Attribute *a = attribute_of(p, name);

    *n = a ? a->n_floats : 0;
    return a ? a->floats : NULL;
}

bool wf_onnx_says(const Weft__Onnx__Node *p, const char *name, const char *text)
{
    const Weft__Onnx__Attribute *a = attribute_of(p, name);
    size_t n = a && a->has_s ? a->s.len : 0;

    return n == strlen(text) && (n == 0 || memcmp(a->s.data, text, n) == 0);
}

size_t wf_onnx_subgraphs(const Weft__Onnx__Node *p, const Weft__Onnx__Graph *graphs[2])
{
    static const char *const names[] = {"then_branch", "else_branch", "body"};
    size_t n = 0;

    for (size_t i = 0; i < WF_COUNT(names) && n < 2; i++) {
        graphs[n] = wf_onnx_subgraph(p, names[i]);
        n += graphs[n] != NULL;
    }
    return n;
}

wf_onnx_structure *wf_onnx_structure_of(const wf_graph *g, const Weft__Onnx__Node *p,
                                        const wf_onnx_file *file, const wf_onnx_scope *scope)
{
    static const struct {
        const char *op;
        wf_onnx_structure *add;
    } rows[] = {
        {"ConcatFromSequence", wf_onnx_sequence_node},
        {"If", wf_onnx_if},
        {"Loop", wf_onnx_loop},
        {"Scan", wf_onnx_scan},
        {"SequenceAt", wf_onnx_sequence_node},
        {"SequenceConstruct", wf_onnx_sequence_node},
        {"SequenceEmpty", wf_onnx_sequence_node},
        {"SequenceErase", wf_onnx_sequence_node},
        {"SequenceInsert", wf_onnx_sequence_node},
        {"SequenceLength", wf_onnx_sequence_node},
        {"SplitToSequence", wf_onnx_sequence_node},
    };
    const char *op = wf_onnx_op(p);

    if (strcmp(wf_onnx_domain(p), WF_DOMAIN_ML) == 0)
        return wf_onnx_function;
    if (wf_onnx_domain(p)[0])
        return NULL;
    if (file->n_sequences && strcmp(op, "Identity") == 0 && p->n_input == 1) {
        const wf_value *v = wf_onnx_find(g, scope, p->input[0]);

        return v && wf_onnx_sequence_of(file, v) ? wf_onnx_sequence_node : NULL;
    }
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (strcmp(op, rows[i].op) == 0)
            return rows[i].add;
    return wf_onnx_is_function(op) ? wf_onnx_function : NULL;
}

wf_status wf_onnx_enter(wf_graph *g, const wf_onnx_scope *around, const char *prefix,
                        bool tentative, wf_onnx_scope *scope, wf_err *err)
{
    *scope = (wf_onnx_scope){.around = around,
                             .depth = around ? around->depth + 1 : 1,
                             .tentative = tentative || (around && around->tentative)};
    if (scope->depth > DEEPEST)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "branches within branches, more than %d deep",
                       DEEPEST);
    scope->prefix = wf_arena_printf(g->arena, "%s%s/", around ? around->prefix : "", prefix);
    return scope->prefix ? WF_OK : wf_fail_nomem(err, strlen(prefix));
}

wf_status wf_onnx_results(wf_graph *g, const Weft__Onnx__Graph *body, const wf_onnx_scope *scope,
                          wf_value *results[], wf_err *err)
{
    for (size_t i = 0; i < body->n_output; i++) {
        results[i] = body->output[i]->name ? wf_onnx_find(g, scope, body->output[i]->name) : NULL;
        if (!results[i])
            return wf_fail(err, WF_INVALID, NULL, "nothing makes its output %zu", i);
    }
    return WF_OK;
}

wf_status wf_onnx_bind(wf_graph *g, wf_onnx_file *file, const wf_onnx_scope *scope,
                       const char *name, wf_value *v, wf_err *err)
{
    const wf_onnx_sequence *s = wf_onnx_sequence_of(file, v);
    wf_value *out;
    wf_node *n;

    if (!name[0])
        return WF_OK;
    if (s)
        return wf_onnx_sequence_add(g, file, scope, name, s->n, s->items, err);
    WF_TRY(wf_onnx_made(g, scope, name, &out, err));
    WF_TRY(wf_graph_add_node_like(g, wf_op_find(WF_DOMAIN_ONNX, "Identity"), out->name, 1, &v, 1,
                                  &out, &n, err));
    n->is_tentative = scope && scope->tentative;
    return WF_OK;
}

wf_status wf_onnx_input(const wf_graph *g, const Weft__Onnx__Node *p, const wf_onnx_scope *scope,
                        size_t i, wf_value **out, wf_err *err)
{
    *out = NULL;
    if (i >= p->n_input || !p->input[i][0])
        return WF_OK;
    *out = wf_onnx_find(g, scope, p->input[i]);
    return *out ? WF_OK
                : wf_fail(err, WF_INVALID, NULL, "nothing before it makes its input \"%.200s\"",
                          p->input[i]);
}

wf_status wf_onnx_catch_up(wf_graph *g, wf_onnx_file *file, wf_err *err)
{
    for (; file->n_inferred < g->n_nodes; file->n_inferred++)
        WF_TRY(wf_infer_node(g, g->nodes[file->n_inferred], err));
    return WF_OK;
}

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
        WF_TRY(wf_onnx_node(g, b->node[i], file, &scope, err));
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

wf_status wf_onnx_if(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
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
