/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/constant.c - Constant and ConstantOfShape. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* Constant: its value is an attribute, one of five. Import makes a constant value of it and drops
 * the node. */

/* The tensor of whichever attribute is there. */
static wf_status content(const wf_attr *a, wf_tensor **t, wf_err *err)
{
    int64_t dims[1] = {(int64_t)a->n};

    switch (a->kind) {
    case WF_ATTR_TENSOR:
        return wf_tensor_share(a->t, t, err);
    case WF_ATTR_INT:
        WF_TRY(wf_tensor_new(WF_I64, 0, NULL, t, err));
        *(int64_t *)(*t)->data = a->i;
        return WF_OK;
    case WF_ATTR_FLOAT:
        WF_TRY(wf_tensor_new(WF_F32, 0, NULL, t, err));
        *(float *)(*t)->data = a->f;
        return WF_OK;
    case WF_ATTR_INTS:
        WF_TRY(wf_tensor_new(WF_I64, 1, dims, t, err));
        if (a->n)
            memcpy((*t)->data, a->ints, a->n * sizeof a->ints[0]);
        return WF_OK;
    case WF_ATTR_FLOATS:
        WF_TRY(wf_tensor_new(WF_F32, 1, dims, t, err));
        if (a->n)
            memcpy((*t)->data, a->floats, a->n * sizeof a->floats[0]);
        return WF_OK;
    case WF_ATTR_STRING:
    case WF_ATTR_STRINGS:
    case WF_ATTR_GRAPH:
        break;
    }
    return wf_fail(err, WF_UNSUPPORTED, NULL, "weft has no constants of text");
}

static wf_status infer_constant(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_value *out = n->out[0];
    wf_tensor *t = NULL;

    (void)g;
    if (n->n_attrs != 1)
        return wf_fail(err, WF_INVALID, NULL, "it has %u values, and must have one", n->n_attrs);
    if (!out)
        return WF_OK;
    WF_TRY(content(&n->attrs[0], &t, err));
    wf_value_set_type(out, t->dtype, t->rank, t->dims);
    wf_value_set_known(out, &t);
    return WF_OK;
}

static const wf_attr_row constant_attrs[] = {
    {"value", WF_ATTR_TENSOR, false},          {"value_float", WF_ATTR_FLOAT, false},
    {"value_floats", WF_ATTR_FLOATS, false},   {"value_int", WF_ATTR_INT, false},
    {"value_ints", WF_ATTR_INTS, false},       {"value_string", WF_ATTR_STRING, false},
    {"value_strings", WF_ATTR_STRINGS, false}, {0}};

const wf_op wf_op_constant =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Constant", 13, 0, 0, infer_constant, .attrs = constant_attrs);

/* ConstantOfShape: attr value, one element, in the shape that input 0 gives; float32 0 without it.
 */

/* The one element as a carried integer; false when it is of another kind. */
static bool filler(const wf_tensor *t, wf_elem *out)
{
    if (t->dtype == WF_I64)
        *out = wf_elem_of(*(const int64_t *)t->data);
    else if (t->dtype == WF_I32)
        *out = wf_elem_of(*(const int32_t *)t->data);
    else if (t->dtype == WF_BOOL)
        *out = wf_elem_of(*(const uint8_t *)t->data != 0);
    else
        return false;
    return true;
}

static wf_status carry(wf_graph *g, wf_node *n, const wf_tensor *value, wf_err *err)
{
    const wf_value *y = n->out[0];
    wf_elem elems[WF_MAX_CARRIED], element;
    int64_t dims[WF_MAX_RANK], count;

    if (y->rank > 1 || !wf_value_dims(y, dims) || !filler(value, &element))
        return WF_OK;
    count = y->rank ? dims[0] : 1;
    if (count > WF_MAX_CARRIED)
        return WF_OK;
    for (int64_t i = 0; i < count; i++)
        elems[i] = element;
    return wf_out_carry(g, n, 0, (uint32_t)count, elems, err);
}

static wf_status infer_constant_of_shape(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_attr *value = wf_node_attr(n, "value");
    wf_dtype dtype = value ? value->t->dtype : WF_F32;
    wf_axis axes[WF_MAX_RANK];
    uint32_t rank;
    bool known;

    if (value && wf_elems(value->t) != 1)
        return wf_fail(err, WF_SHAPE, "ConstantOfShape repeats a single element",
                       "attr value has %lld elements, and must have one",
                       (long long)wf_elems(value->t));
    wf_out_unknown(n, 0, dtype);
    WF_TRY(wf_shape_input(n, 0, &known, &rank, axes, err));
    if (!known)
        return WF_OK;
    wf_out_axes(n, 0, dtype, rank, axes);
    return value ? carry(g, n, value->t, err) : WF_OK;
}

static const wf_attr_row constant_of_shape_attrs[] = {{"value", WF_ATTR_TENSOR, false}, {0}};

const wf_op wf_op_constant_of_shape =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "ConstantOfShape", 9, 1, 1, infer_constant_of_shape,
                .no_grad_in = 1u << 0, .attrs = constant_of_shape_attrs);
