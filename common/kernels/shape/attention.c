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

    *a = (wf_attention){.heads = 1,
                        .t = wf_dim(q, -2),
                        .s = wf_dim(v, -2),
                        .d = wf_dim(q, -1),
                        .e = wf_dim(v, -1),
                        .trans_k = wf_node_int(n, "transK", 0) != 0,
                        .causal = wf_node_int(n, "causal", 0) != 0,
                        .scale = (double)wf_node_float(n, "scale", 1),
                        .fill = (double)wf_node_float(n, "fill", -INFINITY)};
    for (uint32_t i = 0; i + 2 < q->rank; i++)
        a->heads *= q->dims[i];
    if (k->rank != q->rank || v->rank != q->rank || wf_elems(k) != a->heads * a->s * a->d ||
        wf_elems(v) != a->heads * a->s * a->e || (a->s == 0 && a->t > 0) ||
        WF_MAX(WF_MAX(a->t, a->s), WF_MAX(a->d, a->e)) > INT32_MAX)
        return wf_fail(err, WF_SHAPE, NULL, "q, k and v do not fit each other");
    return WF_OK;
}
