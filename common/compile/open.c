/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/open.c - shapes that no plan of a job could know.
 *
 * A job's shapes follow from the batch and from what its data looks like. Where an extent depends
 * on what is fed (NonZero, a Reshape to fed sizes), no plan can be made, and the job would end on
 * its first worker; so it is refused here, by name.
 */
#include "common/compile/pass.h"
#include "common/kernels/kernel.h"
#include <stdlib.h>
#include <string.h>

/* Inputs whose content, not whose shape, an operation takes its extents from. */
static const struct {
    const char *op;
    uint32_t first, last;
} extent_inputs[] = {
    {"ConstantOfShape", 0, 0}, {"Expand", 1, 1}, {"OneHot", 1, 1}, {"Pad", 1, 1},  {"Range", 0, 2},
    {"Reshape", 1, 1},         {"Slice", 1, 4},  {"Tile", 1, 1},   {"TopK", 1, 1},
};

static bool any_of(const wf_node *n, uint32_t first, uint32_t last, const bool fed[])
{
    for (uint32_t i = first; i <= last && i < n->n_in; i++)
        if (n->in[i] && fed[n->in[i]->index])
            return true;
    return false;
}

/* Whether the extents of n's results depend on what is fed. */
static bool depends(const wf_node *n, const bool fed[])
{
    if (n->n_in == 0 || strcmp(n->op->domain, WF_DOMAIN_ONNX) != 0)
        return false;
    for (size_t i = 0; i < WF_COUNT(extent_inputs); i++)
        if (!strcmp(extent_inputs[i].op, n->op->name))
            return any_of(n, extent_inputs[i].first, extent_inputs[i].last, fed);
    return any_of(n, 0, n->n_in - 1, fed) && wf_kernel_counts(n);
}

/* The first axis of v that is neither known nor named; -1: none; the rank itself when that is open.
 */
static int32_t open_axis(const wf_value *v)
{
    for (int32_t i = 0; i < v->rank; i++)
        if (v->axes[i].size < 0 && !v->axes[i].symbol)
            return i;
    return v->rank < 0 ? 0 : -1;
}

static wf_status check(const wf_node *n, const bool fed[], wf_err *err)
{
    char text[160];

    if (!depends(n, fed))
        return WF_OK;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && open_axis(n->out[i]) >= 0)
            return wf_fail(err, WF_UNSUPPORTED,
                           "give it a fixed size when exporting, or a mask in its place",
                           "%s \"%s\": axis %d of its result \"%s\", which is %s, depends on what "
                           "is fed, and a job plans by the batch alone",
                           n->op->name, n->name, open_axis(n->out[i]), n->out[i]->name,
                           wf_value_str(n->out[i], text, sizeof text));
    return WF_OK;
}

wf_status wf_check_open(const wf_unit *u, wf_err *err)
{
    const wf_graph *g = u->graph;
    bool *fed = calloc(g->n_values + 1, sizeof *fed); /* whose content depends on feeds */
    wf_status rc = WF_OK;

    if (!fed)
        return wf_fail_nomem(err, g->n_values);
    for (size_t i = 0; i < g->n_values; i++)
        fed[g->values[i]->index] = !g->values[i]->producer && !wf_value_is_constant(g->values[i]);
    for (size_t i = 0; rc == WF_OK && i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];
        bool reads = n->n_in && any_of(n, 0, n->n_in - 1, fed);

        rc = check(n, fed, err);
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k]) /* a shape is known from the batch */
                fed[n->out[k]->index] = reads && !wf_node_is(n, WF_DOMAIN_ONNX, "Shape") &&
                                        !wf_node_is(n, WF_DOMAIN_ONNX, "Size");
    }
    free(fed);
    return rc;
}
