/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/fold.c - what depends on constants alone is computed once, here.
 *
 * So is what inference followed to a number (the shape arithmetic of exporters). A result that is
 * much larger than what it is made of stays a node: a graph that fills a megabyte with zeros should
 * not travel as a megabyte.
 */
#include "common/compile/pass.h"
#include "common/kernels/kernel.h"
#include <string.h>

/* All results together: a file of many small nodes should not become gigabytes either. */
enum { SMALL_BYTES = 64 * 1024, FOLDED_BYTES = 64 << 20, FOLDED_TIMES = 8 };

/* Whether all that n reads is constant, and its results are of known shape and modest size. */
static bool foldable(const wf_node *n)
{
    size_t in_bytes = 0, out_bytes = 0;

    if (!(n->op->flags & WF_OP_FOLDABLE) || (n->op->flags & (WF_OP_STATEFUL | WF_OP_RANDOM)) ||
        n->n_in > WF_KERNEL_PORTS || n->n_out > WF_KERNEL_PORTS)
        return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (n->in[i] && !wf_value_is_constant(n->in[i]))
            return false;
        in_bytes += n->in[i] ? wf_tensor_bytes(n->in[i]->known) : 0;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        int64_t dims[WF_MAX_RANK], elems;

        if (!n->out[i])
            continue;
        if (!n->out[i]->dtype || !wf_value_dims(n->out[i], dims) ||
            !wf_dims_elems((uint32_t)n->out[i]->rank, dims, &elems))
            return false;
        out_bytes += (size_t)elems * wf_dtype_size(n->out[i]->dtype);
    }
    return out_bytes <= SMALL_BYTES || out_bytes <= in_bytes;
}

/* Output i of n is this tensor from now on. */
static wf_status put(wf_unit *u, wf_node *n, uint32_t i, wf_tensor **t, wf_err *err)
{
    wf_value *constant;

    WF_TRY(wf_graph_add_constant(u->graph, n->out[i]->name, t, &constant, err));
    return wf_hand_over(u, n->out[i], constant, err);
}

static wf_status evaluate(wf_unit *u, wf_node *n, size_t *room, wf_err *err)
{
    const wf_tensor *in[WF_KERNEL_PORTS] = {NULL};
    wf_tensor *out[WF_KERNEL_PORTS] = {NULL};
    wf_status rc;

    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? n->in[i]->known : NULL;
    rc = wf_kernel_eval(n, n->n_in, in, n->n_out, out, *room, err);
    if (rc == WF_UNSUPPORTED || rc == WF_NOMEM)
        return WF_OK; /* it stays a node: whoever runs the graph may have a kernel, or the room */
    for (uint32_t i = 0; i < n->n_out; i++) {
        *room -= out[i] ? wf_tensor_bytes(out[i]) : 0;
        if (rc == WF_OK && out[i])
            rc = put(u, n, i, &out[i], err);
        wf_tensor_free(&out[i]);
    }
    return rc;
}

/* Outputs that inference knows, of a node whose inputs are not constant. */
static wf_status take_known(wf_unit *u, wf_node *n, wf_err *err)
{
    for (uint32_t i = 0; i < n->n_out; i++) {
        wf_tensor *copy = NULL;
        wf_status rc;

        if (!n->out[i] || !n->out[i]->known || !wf_uses(u->graph, n->out[i]))
            continue;
        WF_TRY(wf_tensor_copy(n->out[i]->known, &copy, err));
        rc = put(u, n, i, &copy, err);
        wf_tensor_free(&copy);
        WF_TRY(rc);
    }
    return WF_OK;
}

wf_status wf_pass_fold(wf_unit *u, wf_err *err)
{
    size_t n_nodes = u->graph->n_nodes, room = FOLDED_BYTES;

    room += FOLDED_TIMES * u->c->given_bytes;

    for (size_t i = 0; i < n_nodes; i++) {
        wf_node *n = u->graph->nodes[i];

        WF_TRY(take_known(u, n, err));
        if (foldable(n))
            WF_TRY(evaluate(u, n, &room, err));
    }
    return wf_pass_prune(u, err);
}
