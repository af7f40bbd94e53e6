/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/index/elements.c - GatherElements and ScatterElements. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* Indices lie within data but along `axis`. */
static wf_status ids_within(const wf_value *data, const wf_value *ids, uint32_t axis, wf_err *err)
{
    char a[WF_VALUE_STR], b[WF_VALUE_STR];
    bool fits = data->rank == ids->rank;

    for (int32_t i = 0; fits && i < ids->rank; i++)
        fits = (uint32_t)i == axis || data->axes[i].size < 0 || ids->axes[i].size < 0 ||
               ids->axes[i].size <= data->axes[i].size;
    if (fits)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL,
                   "data is %s and indices are %s, which must fit into it but along axis %u",
                   wf_value_str(data, a, sizeof a), wf_value_str(ids, b, sizeof b), axis);
}

/* GatherElements: each index names a place along attr axis; its place along the other axes is its
 * own. Negative ones count from the end. */

static wf_status infer_gather_elements(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *data = n->in[0], *ids = n->in[1];
    uint32_t axis;

    (void)g;
    WF_TRY(wf_need_int(n, 1, "indices", err));
    wf_out_like(n, 0, data->dtype, ids);
    if (data->rank < 0 || ids->rank < 0)
        return WF_OK;
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", 0), (uint32_t)data->rank, &axis, err));
    return ids_within(data, ids, axis, err);
}

static wf_status grad_gather_elements(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_attr gather_elements_attrs[] = {wf_attr_int("axis", wf_node_int(n, "axis", 0)),
                                       wf_attr_string("reduction", "add")};
    wf_value *zeros = wf_emit_expand_like(e, wf_emit_scalar(e, n->in[0]->dtype, 0), n->in[0]);
    wf_value *in[] = {zeros, n->in[1], wf_grads_upstream(g, n, 0)};

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_op(e, "ScatterElements", 3, in, 2, gather_elements_attrs));
}

static const wf_attr_row gather_elements_attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_gather_elements = WF_FOLDABLE(
    WF_DOMAIN_ONNX, "GatherElements", 13, 2, 2, infer_gather_elements, .no_grad_in = 1u << 1,
    .attrs = gather_elements_attrs, .grad = grad_gather_elements);

/* ScatterElements: data with updates put (attr reduction: added, multiplied, the larger, the
 * smaller) where GatherElements with the same indices takes from. */

wf_status wf_check_reduction(const wf_node *n, wf_err *err)
{
    static const char *const known[] = {"none", "add", "mul", "max", "min", NULL};

    return wf_need_choice(n, "reduction", known, err);
}

static wf_status infer_scatter_elements(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *data = n->in[0], *ids = n->in[1], *updates = n->in[2];
    uint32_t axis;

    (void)g;
    WF_TRY(wf_need_int(n, 1, "indices", err));
    WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    WF_TRY(wf_check_reduction(n, err));
    wf_out_like(n, 0, data->dtype, data);
    if (data->rank < 0 || ids->rank < 0)
        return WF_OK;
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", 0), (uint32_t)data->rank, &axis, err));
    WF_TRY(ids_within(data, ids, axis, err));
    if (updates->rank >= 0) {
        char a[WF_VALUE_STR], b[WF_VALUE_STR];
        bool same = updates->rank == ids->rank;

        for (int32_t i = 0; same && i < ids->rank; i++)
            same = !wf_axes_clash(&ids->axes[i], &updates->axes[i]);
        if (!same)
            return wf_fail(err, WF_SHAPE, NULL, "indices are %s and updates %s",
                           wf_value_str(ids, a, sizeof a), wf_value_str(updates, b, sizeof b));
    }
    return WF_OK;
}

wf_status wf_grad_scatter(wf_grads *g, const wf_node *n, const char *gather, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    const char *reduction = wf_node_string(n, "reduction", "none");
    const wf_attr *axis = wf_node_attr(n, "axis");
    wf_value *dy = wf_grads_upstream(g, n, 0), *dx = dy;

    if (strcmp(reduction, "none") != 0 && strcmp(reduction, "add") != 0)
        return wf_fail(err, WF_UNSUPPORTED, "weft has that of none and add",
                       "there is no gradient of reduction \"%s\"", reduction);
    if (wf_grads_wanted(g, n, 0) && strcmp(reduction, "none") == 0) {
        wf_value *zeros = wf_emit_expand_like(e, wf_emit_scalar(e, n->in[2]->dtype, 0), n->in[2]);

        dx = wf_emit_op(e, n->op->name, 3, (wf_value *[]){dy, n->in[1], zeros}, axis != NULL, axis);
    }
    WF_TRY(wf_grads_add(g, n, 0, dx));
    if (!wf_grads_wanted(g, n, 2))
        return wf_emit_end(e);
    return wf_grads_add(g, n, 2,
                        wf_emit_op(e, gather, 2, (wf_value *[]){dy, n->in[1]}, axis != NULL, axis));
}

static wf_status grad_scatter_elements(wf_grads *g, const wf_node *n, wf_err *err)
{
    return wf_grad_scatter(g, n, "GatherElements", err);
}

static const wf_attr_row scatter_elements_attrs[] = {
    {"axis", WF_ATTR_INT, false}, {"reduction", WF_ATTR_STRING, false}, {0}};

const wf_op wf_op_scatter_elements =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "ScatterElements", 18, 3, 3, infer_scatter_elements,
                .note = "gradient of reductions none and add", .no_grad_in = 1u << 1,
                .attrs = scatter_elements_attrs, .grad = grad_scatter_elements);
