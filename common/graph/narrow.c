/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/narrow.c - the operation's own inference sees float32, as its kernel does. */
#include "common/graph/narrow.h"
#include "common/graph/op.h"

#include <string.h>

wf_dtype wf_node_narrow(const wf_node *n)
{
    const wf_attr *a = wf_node_attr(n, WF_NARROW);
    wf_dtype dtype = a && a->kind == WF_ATTR_STRING ? wf_dtype_of(a->s) : WF_NONE;

    return wf_dtype_is_narrow(dtype) ? dtype : WF_NONE;
}

uint32_t wf_node_narrow_out(const wf_node *n)
{
    return wf_node_narrow(n) == WF_NONE ? 0 : (uint32_t)wf_node_int(n, WF_NARROW_OUT, 0);
}

bool wf_narrow_attr(const wf_attr *attr)
{
    return (strcmp(attr->name, WF_NARROW) == 0 && attr->kind == WF_ATTR_STRING) ||
           ((strcmp(attr->name, WF_NARROW_OUT) == 0 ||
             strcmp(attr->name, WF_NARROW_OUT_GPU) == 0) &&
            attr->kind == WF_ATTR_INT);
}

wf_status wf_narrow_infer(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_dtype narrow = wf_node_narrow(n), was[WF_NARROW_INPUTS];
    uint32_t out = wf_node_narrow_out(n);
    wf_status rc;

    if (narrow == WF_NONE || n->n_in > WF_NARROW_INPUTS)
        return wf_fail(
            err, WF_INVALID, "leave the attribute out",
            "its attribute narrow is bfloat16 or float16, of a node of at most %d inputs",
            (int)WF_NARROW_INPUTS);
    for (uint32_t i = 0; i < n->n_in; i++)
        was[i] = n->in[i] ? n->in[i]->dtype : WF_NONE;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (was[i] == narrow)
            n->in[i]->dtype = WF_F32;
    rc = n->op->infer(g, n, err);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i])
            n->in[i]->dtype = was[i];
    for (uint32_t i = 0; rc == WF_OK && i < n->n_out && i < 32; i++)
        if (n->out[i] && (out >> i & 1u) && n->out[i]->dtype == WF_F32)
            n->out[i]->dtype = narrow;
    return rc;
}

wf_status wf_narrow_for_gpus(wf_graph *g, wf_dtype to, wf_err *err)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        wf_node *n = g->nodes[i];
        const int64_t out = wf_node_int(n, WF_NARROW_OUT_GPU, -1);

        if (out < 0)
            continue;
        wf_node_drop_attr(n, WF_NARROW_OUT_GPU);
        WF_TRY(wf_node_set_string(g, n, WF_NARROW, wf_dtype_name(to), err));
        WF_TRY(wf_node_set_int(g, n, WF_NARROW_OUT, out, err));
    }
    return WF_OK;
}

void wf_narrow_drop(wf_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        wf_node_drop_attr(g->nodes[i], WF_NARROW);
        wf_node_drop_attr(g->nodes[i], WF_NARROW_OUT);
        wf_node_drop_attr(g->nodes[i], WF_NARROW_OUT_GPU);
    }
}
