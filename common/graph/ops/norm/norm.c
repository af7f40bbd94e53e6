/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/norm/norm.c */
#include "common/graph/ops/norm/norm.h"
#include "common/graph/infer.h"

#include <string.h>

enum { MOST_MORE = 2 };

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

wf_status wf_grad_norm(wf_grads *g, const wf_node *n, const char *op, uint32_t n_more,
                       wf_value *const more[], uint32_t n_attrs, const wf_attr attrs[], wf_err *err)
{
    wf_value *in[3 + MOST_MORE] = {wf_grads_upstream(g, n, 0), n->in[0], n->in[1]}, *out[3];
    uint32_t n_out = wf_grads_wanted(g, n, 2) ? 3 : wf_grads_wanted(g, n, 1) ? 2 : 1;

    wf_assert(n_more <= MOST_MORE);
    for (uint32_t i = 1; i < n->n_out; i++)
        if (wf_grads_upstream(g, n, i))
            return wf_fail(err, WF_UNSUPPORTED, NULL,
                           "the loss depends on its output %u, for which weft has no gradient", i);
    if (n_more)
        memcpy(in + 3, more, n_more * sizeof more[0]);
    if (!wf_emit_node(wf_grads_emit(g), op, 3 + n_more, in, n_attrs, attrs, n_out, out))
        return wf_emit_end(wf_grads_emit(g));
    for (uint32_t i = 0; i < n_out; i++)
        WF_TRY(wf_grads_add(g, n, i, out[i]));
    return WF_OK;
}
