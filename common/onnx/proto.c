/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/proto.c - see proto.h. */
#include "common/onnx/proto.h"
#include "common/base/cc.h"

#include <string.h>

wf_status wf_onnx_check_name(const char *name, const char *what, wf_err *err)
{
    size_t n = strnlen(name, WF_GRAPH_LONGEST_NAME + 1);

    if (n > WF_GRAPH_LONGEST_NAME)
        return wf_fail(err, WF_INVALID, NULL, "the name of a %s is longer than %d bytes: %.40s...",
                       what, WF_GRAPH_LONGEST_NAME, name);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F)
            return wf_fail(err, WF_INVALID, NULL,
                           "the name of a %s holds a control character, at byte %zu", what, i);
    return WF_OK;
}

const char *wf_onnx_domain(const Weft__Onnx__Node *p)
{
    return !p->domain || strcmp(p->domain, "ai.onnx") == 0 ? WF_DOMAIN_ONNX : p->domain;
}

const char *wf_onnx_op(const Weft__Onnx__Node *p)
{
    return p->op_type ? p->op_type : "";
}

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

bool wf_onnx_has(const Weft__Onnx__Node *p, const char *name)
{
    return attribute_of(p, name) != NULL;
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
