/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/node.c - NodeProto to wf_node, checked against the operation's row. */
#include "common/onnx/node.h"
#include "common/base/nearest.h"
#include "common/graph/narrow.h"
#include "common/graph/op.h"
#include "common/onnx/expand.h"
#include "common/onnx/proto.h"
#include "common/onnx/sequence.h"
#include "common/onnx/tensor.h"
#include "common/onnx/variables.h"

#include <string.h>

enum { MOST_ATTRIBUTES = 64 };

/* A zero-terminated copy of bytes that hold no zero. */
static wf_status text_of(wf_graph *g, const ProtobufCBinaryData *bytes, const char **out,
                         wf_err *err)
{
    if (bytes->len && memchr(bytes->data, 0, bytes->len))
        return wf_fail(err, WF_INVALID, NULL, "its text holds a zero byte");
    *out = wf_arena_strndup(g->arena, bytes->len ? (const char *)bytes->data : "", bytes->len);
    return *out ? WF_OK : wf_fail_nomem(err, bytes->len);
}

static wf_status texts_of(wf_graph *g, const Weft__Onnx__Attribute *p, wf_attr *a, wf_err *err)
{
    const char **list = wf_arena_array(g->arena, p->n_strings, sizeof list[0]);

    if (!list)
        return wf_fail_nomem(err, p->n_strings * sizeof list[0]);
    for (size_t i = 0; i < p->n_strings; i++)
        WF_TRY(text_of(g, &p->strings[i], &list[i], err));
    a->n = p->n_strings;
    a->strings = list;
    return WF_OK;
}

static const char *kind_name(int kind)
{
    static const char *const names[] = {"nothing",  "a number",        "an integer",    "a text",
                                        "a tensor", "a graph",         "numbers",       "integers",
                                        "texts",    "several tensors", "several graphs"};

    return kind >= 0 && kind <= 10 ? names[kind] : "of a kind that weft does not know";
}

/* AttributeProto.type has numbers of its own. Files that leave it out (before IR version 2) are not
 * read: opset 7 came long after. *t is a tensor that the caller owns. */
static wf_status attribute(wf_graph *g, const Weft__Onnx__Attribute *p, const char *folder,
                           wf_attr *a, wf_tensor **t, wf_err *err)
{
    enum { FLOAT = 1, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS };

    switch (p->type) {
    case FLOAT:
        *a = (wf_attr){.kind = WF_ATTR_FLOAT, .f = p->f};
        return WF_OK;
    case INT:
        *a = (wf_attr){.kind = WF_ATTR_INT, .i = p->i};
        return WF_OK;
    case STRING:
        *a = (wf_attr){.kind = WF_ATTR_STRING};
        return text_of(g, &p->s, &a->s, err);
    case TENSOR:
        if (!p->t)
            return wf_fail(err, WF_INVALID, NULL, "it has no tensor");
        WF_TRY(wf_onnx_tensor(p->t, folder, t, err));
        *a = (wf_attr){.kind = WF_ATTR_TENSOR, .t = *t};
        return WF_OK;
    case FLOATS:
        *a = (wf_attr){.kind = WF_ATTR_FLOATS, .n = p->n_floats, .floats = p->floats};
        return WF_OK;
    case INTS:
        *a = (wf_attr){.kind = WF_ATTR_INTS, .n = p->n_ints, .ints = p->ints};
        return WF_OK;
    case STRINGS:
        *a = (wf_attr){.kind = WF_ATTR_STRINGS};
        return texts_of(g, p, a, err);
    default:
        return wf_fail(err, WF_UNSUPPORTED, NULL, "it is %s", kind_name(p->type));
    }
}

static wf_status add_attribute(wf_graph *g, wf_node *n, const Weft__Onnx__Attribute *p,
                               const char *folder, wf_err *err)
{
    wf_tensor *t = NULL;
    wf_attr a = {0};
    wf_status rc;

    if (!p->name || !p->name[0])
        return wf_fail(err, WF_INVALID, NULL, "an attribute without a name");
    if (p->ref_attr_name && p->ref_attr_name[0])
        return wf_fail(err, WF_UNSUPPORTED, NULL, "attribute \"%.60s\" refers to a function's",
                       p->name);
    if (wf_node_attr(n, p->name))
        return wf_fail(err, WF_INVALID, NULL, "attribute \"%.60s\" is there twice", p->name);
    rc = attribute(g, p, folder, &a, &t, err);
    a.name = p->name;
    if (rc == WF_OK)
        rc = wf_node_set_attr(g, n, &a, err);
    wf_tensor_free(&t);
    return wf_err_wrap(err, rc, "attribute \"%.60s\"", p->name);
}

static wf_status unknown_attribute(const wf_node *n, const char *name, wf_err *err)
{
    const char *names[16], *near;
    size_t count = 0;

    for (const wf_attr_row *row = n->op->attrs; row && row->name && count < 16; row++)
        names[count++] = row->name;
    near = wf_nearest(name, names, count);
    return wf_fail(err, WF_UNSUPPORTED, NULL, "weft does not know its attribute \"%.60s\"%s%s%s",
                   name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* Attributes are those of the operation's row, of its kinds; required ones are there. */
static wf_status check_attributes(const wf_node *n, wf_err *err)
{
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const wf_attr_row *row = n->op->attrs;

        if (wf_narrow_attr(&n->attrs[i]))
            continue;
        while (row && row->name && strcmp(row->name, n->attrs[i].name) != 0)
            row++;
        if (!row || !row->name)
            return unknown_attribute(n, n->attrs[i].name, err);
        if (row->kind != n->attrs[i].kind)
            return wf_fail(err, WF_INVALID, NULL, "its attribute \"%s\" is of the wrong kind",
                           row->name);
    }
    for (const wf_attr_row *row = n->op->attrs; row && row->name; row++)
        if (row->required && !wf_node_attr(n, row->name))
            return wf_fail(err, WF_INVALID, NULL, "its attribute \"%s\" is missing", row->name);
    return WF_OK;
}

static wf_status check_ports(const wf_op *op, size_t n_in, char *const inputs[], size_t n_out,
                             wf_err *err)
{
    if (n_in < op->n_in_min || (op->n_in_max != WF_ANY_NUMBER && n_in > op->n_in_max))
        return wf_fail(err, WF_INVALID, NULL, "it has %zu inputs, and takes %u to %u", n_in,
                       op->n_in_min, op->n_in_max);
    if (n_out < op->n_out_min || (op->n_out_max != WF_ANY_NUMBER && n_out > op->n_out_max))
        return wf_fail(err, WF_INVALID, NULL, "it has %zu outputs, and makes %u to %u", n_out,
                       op->n_out_min, op->n_out_max);
    for (size_t i = 0; i < n_in; i++)
        if ((i < op->n_in_min || op->n_in_max == WF_ANY_NUMBER) && !inputs[i][0])
            return wf_fail(err, WF_INVALID, NULL, "its input %zu is missing", i);
    return WF_OK;
}

/* Inputs by name; NULL for empty names. Outside of branches, nodes may come before what they read.
 */
static wf_status find_inputs(wf_graph *g, const wf_onnx_file *file, const wf_onnx_scope *scope,
                             size_t n, char *const names[], wf_value **values, wf_err *err)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = names[i][0] ? wf_onnx_find(g, scope, names[i]) : NULL;
        if (names[i][0] && !values[i]) {
            WF_TRY(wf_onnx_check_name(names[i], "value", err));
            WF_TRY(wf_graph_add_value(g, names[i], &values[i], err));
        }
        if (values[i] && wf_onnx_sequence_of(file, values[i]))
            return wf_fail(err, WF_INVALID, NULL, "its input \"%s\" is a sequence, not a tensor",
                           values[i]->name);
    }
    return WF_OK;
}

static wf_status add_node(wf_graph *g, const Weft__Onnx__Node *p, const wf_op *op,
                          const wf_onnx_file *file, const wf_onnx_scope *scope, wf_err *err)
{
    size_t n_in = p->n_input, n_out = p->n_output;
    wf_value **in, **out;
    wf_node *n = NULL;

    while (n_in && !p->input[n_in - 1][0])
        n_in--;
    while (n_out && !p->output[n_out - 1][0])
        n_out--;
    WF_TRY(check_ports(op, n_in, p->input, n_out, err));
    in = wf_arena_array(g->arena, n_in, sizeof in[0]);
    out = wf_arena_array(g->arena, n_out, sizeof out[0]);
    if (!in || !out)
        return wf_fail_nomem(err, (n_in + n_out) * sizeof in[0]);
    WF_TRY(find_inputs(g, file, scope, n_in, p->input, in, err));
    for (size_t i = 0; i < n_out; i++)
        if (p->output[i][0])
            WF_TRY(wf_onnx_made(g, scope, p->output[i], &out[i], err));
    /* ONNX lets nodes share a name; the second gets another. */
    WF_TRY(wf_graph_add_node(g, op,
                             p->name && p->name[0] && !wf_graph_node(g, p->name) ? p->name : NULL,
                             (uint32_t)n_in, in, (uint32_t)n_out, out, &n, err));
    n->is_tentative = scope && scope->tentative;
    if (n->is_tentative && op->flags & WF_OP_EFFECT)
        return wf_fail(err, WF_UNSUPPORTED, "use it behind the If or Loop, with what that gives",
                       "%s in a branch or loop whose condition is computed would be carried out in "
                       "any case",
                       op->name);
    if (p->n_attribute > MOST_ATTRIBUTES)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu attributes", p->n_attribute);
    for (size_t i = 0; i < p->n_attribute; i++)
        WF_TRY(add_attribute(g, n, p->attribute[i], file->folder, err));
    if (file->opset != WF_OPSET && op->upgrade)
        WF_TRY(op->upgrade(g, n, file->opset, err));
    if (p->doc_string && strncmp(p->doc_string, WF_ONNX_DEVICE, strlen(WF_ONNX_DEVICE)) == 0) {
        WF_TRY(wf_onnx_check_name(p->doc_string, "device", err));
        n->device = wf_arena_strdup(g->arena, p->doc_string + strlen(WF_ONNX_DEVICE));
        if (!n->device)
            return wf_fail_nomem(err, strlen(p->doc_string));
    }
    if (p->doc_string && strncmp(p->doc_string, WF_ONNX_TASK, strlen(WF_ONNX_TASK)) == 0) {
        WF_TRY(wf_onnx_check_name(p->doc_string, "task", err));
        n->device = wf_arena_strdup(g->arena, p->doc_string);
        if (!n->device)
            return wf_fail_nomem(err, strlen(p->doc_string));
    }
    return check_attributes(n, err);
}

/* An Identity of a sequence: what it copies is no value of the graph. */
static wf_status copy(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                      const wf_onnx_scope *scope, const wf_op *op, wf_err *err)
{
    wf_value *v = NULL;

    if (file->n_sequences && p->n_input == 1 && p->n_output == 1)
        v = wf_onnx_find(g, scope, p->input[0]);
    return v && wf_onnx_sequence_of(file, v) ? wf_onnx_bind(g, file, scope, p->output[0], v, err)
                                             : add_node(g, p, op, file, scope, err);
}

static wf_status add(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                     const wf_onnx_scope *scope, wf_err *err)
{
    const wf_op *op = wf_op_find(wf_onnx_domain(p), wf_onnx_op(p));
    const wf_expansion *x = wf_expansion_find(wf_onnx_domain(p), wf_onnx_op(p), file->opset);
    size_t before = g->n_nodes;

    wf_assert(op || x);
    if (p->name) /* before names are made of it */
        WF_TRY(wf_onnx_check_name(p->name, "node", err));
    if (!x)
        return strcmp(op->name, "Identity") == 0 ? copy(g, p, file, scope, op, err)
                                                 : add_node(g, p, op, file, scope, err);
    WF_TRY(wf_onnx_expand(x, g, p, file, scope, err));
    for (size_t i = before; i < g->n_nodes; i++)
        g->nodes[i]->is_tentative = g->nodes[i]->is_tentative || (scope && scope->tentative);
    return WF_OK;
}

wf_status wf_onnx_node(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                       const wf_onnx_scope *scope, wf_err *err)
{
    const char *name = p->name && p->name[0] ? p->name : p->n_output ? p->output[0] : "";

    return wf_err_wrap(err, add(g, p, file, scope, err), "%s \"%.200s\"", wf_onnx_op(p), name);
}
