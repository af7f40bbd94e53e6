/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/attention.c */
#include "common/kernels/shape/attention.h"
#include "common/base/size.h"
#include "common/graph/graph.h"

#include <math.h>

wf_status wf_attention_of(const wf_node *n, const wf_tensor *const in[], wf_attention *a,
                          wf_err *err)
{
    const wf_tensor *q = in[0], *k = in[1], *v = in[2];
    const bool last = wf_node_int(n, "headsLast", 0) != 0;

    *a = (wf_attention){.heads = 1,
                        .t = wf_dim(q, last ? -3 : -2),
                        .s = wf_dim(v, last ? -3 : -2),
                        .d = wf_dim(q, -1),
                        .e = wf_dim(v, -1),
                        .heads_last = last,
                        .side = last ? WF_MAX(wf_dim(q, -2), (int64_t)1) : 1,
                        .trans_k = wf_node_int(n, "transK", 0) != 0,
                        .causal = wf_node_int(n, "causal", 0) != 0,
                        .scale = (double)wf_node_float(n, "scale", 1),
                        .fill = (double)wf_node_float(n, "fill", -INFINITY)};
    for (uint32_t i = 0; i + 1 < q->rank; i++)
        a->heads *= i + 2 + last == q->rank ? 1 : q->dims[i];
    if (k->rank != q->rank || v->rank != q->rank || wf_elems(k) != a->heads * a->s * a->d ||
        wf_elems(v) != a->heads * a->s * a->e || (a->s == 0 && a->t > 0) ||
        WF_MAX(WF_MAX(a->t, a->s), WF_MAX(WF_MAX(a->d, a->e), a->side)) > INT32_MAX)
        return wf_fail(err, WF_SHAPE, NULL, "q, k and v do not fit each other");
    return WF_OK;
}

wf_tensor wf_attention_scores(const wf_attention *a, const wf_tensor *q)
{
    wf_tensor scores = *q;

    scores.data = NULL;
    for (uint32_t i = 0; i + 2 < q->rank; i++) /* heads, without the axis of rows */
        scores.dims[i] = q->dims[i + (a->heads_last && i + 3 == q->rank)];
    scores.dims[q->rank - 2] = a->t;
    scores.dims[q->rank - 1] = a->s;
    return scores;
}
