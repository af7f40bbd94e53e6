/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/transpose.c - Transpose: output axis i is input axis perm[i]; reversed by
 * default. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status permutation(const wf_node *n, uint32_t rank, int64_t perm[], wf_err *err)
{
    size_t count;
    const int64_t *given = wf_node_ints(n, "perm", &count);
    uint32_t seen = 0;

    for (uint32_t i = 0; i < rank; i++)
        perm[i] = rank - 1 - i;
    if (!given)
        return WF_OK;
    if (count != rank)
        return wf_fail(err, WF_SHAPE, NULL, "perm has %zu axes and the input %u", count, rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (given[i] < 0 || given[i] >= rank || seen >> given[i] & 1u)
            return wf_fail(err, WF_SHAPE, NULL, "perm is not an order of %u axes", rank);
        seen |= 1u << given[i];
        perm[i] = given[i];
    }
    return WF_OK;
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_axis axes[WF_MAX_RANK];
    int64_t perm[WF_MAX_RANK];

    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(permutation(n, (uint32_t)x->rank, perm, err));
    for (int32_t i = 0; i < x->rank; i++)
        axes[i] = x->axes[perm[i]];
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return wf_carry_input(g, n, err); /* of one axis at most: nothing moves */
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    int64_t perm[WF_MAX_RANK], back[WF_MAX_RANK];
    uint32_t rank = (uint32_t)n->in[0]->rank;

    WF_TRY(wf_need_known_rank(n, 0, err));
    WF_TRY(permutation(n, rank, perm, err));
    for (uint32_t i = 0; i < rank; i++)
        back[perm[i]] = i;
    return wf_grads_add(g, n, 0,
                        wf_emit_transpose(wf_grads_emit(g), wf_grads_upstream(g, n, 0), back));
}

static const wf_attr_row attrs[] = {{"perm", WF_ATTR_INTS, false}, {0}};

const wf_op wf_op_transpose =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Transpose", 13, 1, 1, infer, .attrs = attrs, .grad = grad);
