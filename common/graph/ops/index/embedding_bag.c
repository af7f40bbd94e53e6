/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/index/embedding_bag.c - EmbeddingBag, EmbeddingBagGrad and
 * EmbeddingBagWeightsGrad: the rows of a table that the ids of a bag name, as one row.
 *
 * A bag is the last axis of ids, as long as the longest may be; an id below 0 names no row,
 * whatever its weight. TensorFlow's safe_embedding_lookup_sparse leaves these out too;
 * torch.nn.EmbeddingBag has a padding_idx in their place. A bag without ids gives zeros, as in
 * both. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

static const char *const modes[] = {"sum", "max", NULL};
static const wf_attr_row attrs[] = {{"mode", WF_ATTR_STRING, false}, {0}};

/* Weights, input i, are as the ids of input 1. */
static wf_status check_weights(const wf_node *n, uint32_t i, wf_err *err)
{
    const wf_value *ids = n->in[1], *weights = wf_node_has_in(n, i) ? n->in[i] : NULL;
    char a[WF_VALUE_STR], b[WF_VALUE_STR];
    bool fits;

    if (!weights)
        return WF_OK;
    if (strcmp(wf_node_string(n, "mode", modes[0]), modes[1]) == 0)
        return wf_fail(err, WF_INVALID, "leave the weights out", "a largest row has no weights");
    if (weights->rank < 0 || ids->rank < 0)
        return WF_OK;
    fits = weights->rank == ids->rank;
    for (int32_t k = 0; fits && k < ids->rank; k++)
        fits = !wf_axes_clash(&ids->axes[k], &weights->axes[k]);
    return fits ? WF_OK
                : wf_fail(err, WF_SHAPE, "each id has a weight", "ids are %s and weights %s",
                          wf_value_str(ids, a, sizeof a), wf_value_str(weights, b, sizeof b));
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *table = n->in[0], *ids = n->in[1];
    wf_axis axes[WF_MAX_RANK];
    char text[WF_VALUE_STR];

    (void)g;
    WF_TRY(wf_need_float(n, 0, "table", err));
    WF_TRY(wf_need_int(n, 1, "ids", err));
    WF_TRY(wf_need_choice(n, "mode", modes, err));
    if (wf_node_has_in(n, 2))
        WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    WF_TRY(check_weights(n, 2, err));
    wf_out_unknown(n, 0, table->dtype);
    if (table->rank >= 0 && table->rank != 2)
        return wf_fail(err, WF_SHAPE, NULL, "the table is %s, which must be [rows, dim]",
                       wf_value_str(table, text, sizeof text));
    if (ids->rank == 0)
        return wf_fail(err, WF_SHAPE, NULL, "the ids are one number, which must be [..., most]");
    if (table->rank < 0 || ids->rank < 0)
        return WF_OK;
    memcpy(axes, ids->axes, (size_t)ids->rank * sizeof axes[0]);
    axes[ids->rank - 1] = table->axes[1];
    wf_out_axes(n, 0, table->dtype, (uint32_t)ids->rank, axes);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    const char *mode = wf_node_string(n, "mode", modes[0]);
    bool weighted = wf_node_has_in(n, 2);
    wf_value *in[4] = {wf_grads_upstream(g, n, 0), n->in[1], n->in[0], weighted ? n->in[2] : NULL};
    wf_attr attr = wf_attr_string("mode", mode);

    (void)err; /* the emitter has it */
    if (wf_grads_wanted(g, n, 0))
        WF_TRY(wf_grads_add(g, n, 0,
                            wf_emit_op(e, "EmbeddingBagGrad", weighted ? 4 : 3, in, 1, &attr)));
    if (weighted && wf_grads_wanted(g, n, 2))
        WF_TRY(wf_grads_add(g, n, 2, wf_emit_op(e, "EmbeddingBagWeightsGrad", 3, in, 0, NULL)));
    return wf_emit_end(e);
}

const wf_op wf_op_embedding_bag = WF_FOLDABLE(
    WF_DOMAIN_WEFT, "EmbeddingBag", 1, 2, 3, infer,
    .means =
        "(table, ids, weights) -> rows; table [rows, dim], ids [..., most] -> [..., dim]: the "
        "sum of the rows that ids name, each times its weight (1 without weights, which are as "
        "ids), or with attr mode = \"max\" the largest of each column; an id below 0 names no "
        "row; 0 where a bag names none",
    .no_grad_in = 1u << 1, .attrs = attrs, .grad = grad);

static wf_status infer_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(wf_need_choice(n, "mode", modes, err));
    WF_TRY(check_weights(n, 3, err));
    return wf_infer_grad_by_ids(g, n, err);
}

const wf_op wf_op_embedding_bag_grad = WF_FOLDABLE(
    WF_DOMAIN_WEFT, "EmbeddingBagGrad", 1, 3, 4, infer_grad,
    .means =
        "(dy, ids, table, weights) -> as table; attr mode = \"sum\" or \"max\"; each bag's dy, "
        "times the weight, added to the rows that its ids name, or with \"max\" each column to "
        "the first row that is the largest; of \"sum\" only the table's shape is read",
    .attrs = attrs);

static wf_status infer_weights_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_int(n, 1, "ids", err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[1]);
    return WF_OK;
}

const wf_op wf_op_embedding_bag_weights_grad = WF_FOLDABLE(
    WF_DOMAIN_WEFT, "EmbeddingBagWeightsGrad", 1, 3, 3, infer_weights_grad,
    .means = "(dy, ids, table) -> as ids; the product of a bag's dy and the row that the id names; "
             "0 for an id below 0");
