/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/chain.c */
#include "common/kernels/shape/chain.h"

typedef struct spread {
    int64_t period, span; /* as in the plan; period 0: the input is spread in another way */
} spread;

/* From the last axis on: axes that both have, then axes of 1 over which these are repeated, then
 * axes that both have again. */
static spread spread_of(const wf_tensor *in, const wf_tensor *out)
{
    int64_t period = 1, span = 1, heads = 1;
    bool repeats = false;

    for (uint32_t i = 1; i <= out->rank; i++) {
        int64_t dim = i <= in->rank ? wf_dim(in, -(int)i) : 1, to = wf_dim(out, -(int)i);

        if (dim != to && (dim != 1 || heads > 1))
            return (spread){0};
        repeats |= dim != to;
        heads *= repeats ? dim : 1;
        period *= repeats ? 1 : dim;
        span *= heads > 1 ? 1 : to;
    }
    if (wf_elems(in) != period * heads)
        return (spread){0};
    return (spread){period, heads > 1 ? span : 0};
}

wf_status wf_chain_plan_of(const wf_node *n, const wf_tensor *const in[], const wf_tensor *out,
                           wf_chain_plan *p, wf_err *err)
{
    WF_TRY(wf_chain_read(n, &p->chain, err));
    p->n_in = n->n_in;
    for (uint32_t i = 0; i < p->n_in; i++) {
        const spread s = spread_of(in[i], out);

        p->periods[i] = s.period;
        p->spans[i] = s.span;
        if (!s.period && wf_elems(out))
            return wf_fail(err, WF_UNSUPPORTED, "let it have the output's shape, or its last axes",
                           "input %u is broadcast along two inner axes that do not lie together",
                           i);
    }
    return WF_OK;
}
