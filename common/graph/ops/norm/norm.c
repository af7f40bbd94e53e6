/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/norm/norm.c */
#include "common/graph/ops/norm/norm.h"
#include "common/graph/infer.h"

wf_status wf_infer_norm_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_floats(n, n->n_in, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[1]);
    wf_out_like(n, 1, n->in[0]->dtype, n->in[2]);
    wf_out_like(n, 2, n->in[0]->dtype, n->in[2]);
    return WF_OK;
}

wf_status wf_need_floats(const wf_node *n, uint32_t count, wf_err *err)
{
    WF_TRY(wf_need_float(n, 0, "X", err));
    for (uint32_t i = 1; i < count; i++)
        if (wf_node_has_in(n, i))
            WF_TRY(wf_need_same_dtype(n, 0, i, err));
    return WF_OK;
}

wf_status wf_need_per_channel(const wf_node *n, uint32_t count, wf_err *err)
{
    const wf_value *x = n->in[0];
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    for (uint32_t i = 1; x->rank >= 0 && i < count; i++) {
        const wf_value *v = wf_node_has_in(n, i) ? n->in[i] : NULL;

        if (x->rank < 2 ||
            (v && v->rank >= 0 && (v->rank != 1 || wf_axes_clash(&v->axes[0], &x->axes[1]))))
            return wf_fail(
                err, WF_SHAPE, NULL, "X is %s and input %u %s; it must have one element a channel",
                wf_value_str(x, a, sizeof a), i, v ? wf_value_str(v, b, sizeof b) : "absent");
    }
    return WF_OK;
}
