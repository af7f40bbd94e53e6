/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/concat.c - Concat. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include <string.h>

static wf_status carry(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_elem all[2 * WF_MAX_CARRIED];
    uint32_t count = 0;

    for (uint32_t i = 0; i < n->n_in; i++) {
        uint32_t more;

        if (count > WF_MAX_CARRIED || !wf_value_elems(n->in[i], all + count, &more))
            return WF_OK;
        count += more;
    }
    return wf_out_carry(g, n, 0, count, all, err);
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *first = n->in[0];
    wf_axis axes[WF_MAX_RANK];
    uint32_t axis, rank;

    wf_out_unknown(n, 0, first->dtype);
    for (uint32_t i = 0; i < n->n_in; i++) {
        WF_TRY(wf_need_same_dtype(n, 0, i, err));
        if (n->in[i]->rank < 0)
            return WF_OK;
    }
    rank = (uint32_t)first->rank;
    memcpy(axes, first->axes, sizeof axes);
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", 0), rank, &axis, err));
    for (uint32_t i = 1; i < n->n_in; i++) {
        const wf_value *v = n->in[i];
        char a[WF_VALUE_STR], b[WF_VALUE_STR];
        bool fits = v->rank == first->rank;

        for (uint32_t k = 0; fits && k < rank; k++) {
            if (k == axis) {
                axes[k] = wf_axis_add(&axes[k], &v->axes[k]);
                continue;
            }
            fits = !wf_axes_clash(&axes[k], &v->axes[k]);
            axes[k] = wf_axis_merge(&axes[k], &v->axes[k]);
        }
        if (!fits)
            return wf_fail(err, WF_SHAPE, NULL,
                           "inputs 0 and %u are %s and %s; all axes but %u must "
                           "agree",
                           i, wf_value_str(first, a, sizeof a), wf_value_str(v, b, sizeof b), axis);
    }
    wf_out_axes(n, 0, first->dtype, rank, axes);
    return carry(g, n, err);
}

/* Each input's part of dy: from the sum of the sizes before it. */
static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);
    wf_value *begin = wf_emit_ints(e, 1, (int64_t[]){0});
    uint32_t axis;

    WF_TRY(wf_need_known_rank(n, 0, err));
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", 0), (uint32_t)n->in[0]->rank, &axis, err));
    for (uint32_t i = 0; i < n->n_in; i++) {
        wf_value *size = wf_emit_dim_of(e, n->in[i], axis), *end;
        wf_elem from, more;

        if (!begin || !size)
            break;
        from = begin->known ? wf_elem_of(*(const int64_t *)begin->known->data) : wf_elem_unknown();
        more = size->known ? wf_elem_of(*(const int64_t *)size->known->data) : wf_elem_unknown();
        from = wf_elem_add(&from, &more);
        end = from.is_known && begin->known && size->known ? wf_emit_ints(e, 1, &from.value)
                                                           : wf_emit_add(e, begin, size);
        if (end && wf_grads_wanted(g, n, i)) {
            wf_value *in[] = {dy, begin, end, wf_emit_ints(e, 1, (int64_t[]){axis})};

            WF_TRY(wf_grads_add(g, n, i, wf_emit_op(e, "Slice", 4, in, 0, NULL)));
        }
        begin = end;
    }
    return wf_emit_end(e);
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, true}, {0}};

const wf_op wf_op_concat = WF_FOLDABLE(WF_DOMAIN_ONNX, "Concat", 13, 1, WF_ANY_NUMBER, infer,
                                       .attrs = attrs, .grad = grad);
