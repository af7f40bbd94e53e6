/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/constant.c - Constant: its value is an attribute, one of five. Import makes a
 * constant value of it and drops the node. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

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

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
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

static const wf_attr_row attrs[] = {
    {"value", WF_ATTR_TENSOR, false},          {"value_float", WF_ATTR_FLOAT, false},
    {"value_floats", WF_ATTR_FLOATS, false},   {"value_int", WF_ATTR_INT, false},
    {"value_ints", WF_ATTR_INTS, false},       {"value_string", WF_ATTR_STRING, false},
    {"value_strings", WF_ATTR_STRINGS, false}, {0}};

const wf_op wf_op_constant = {
    .name = "Constant",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 0,
    .n_in_max = 0,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
};
