/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/chain.c */
#include "common/kernels/shape/chain.h"

/* How many elements of `in` the flat output runs through before it begins anew: the trailing axes
 * that both have. 0: the input is spread in another way. */
static int64_t period_of(const wf_tensor *in, const wf_tensor *out)
{
    int64_t period = 1, elems = wf_elems(in);

    for (uint32_t i = 1; i <= in->rank && period < elems; i++) {
        if (wf_dim(in, -(int)i) != wf_dim(out, -(int)i))
            return 0;
        period *= wf_dim(in, -(int)i);
    }
    return period == elems ? period : 0;
}

wf_status wf_chain_plan_of(const wf_node *n, const wf_tensor *const in[], const wf_tensor *out,
                           wf_chain_plan *p, wf_err *err)
{
    WF_TRY(wf_chain_read(n, &p->chain, err));
    p->n_in = n->n_in;
    for (uint32_t i = 0; i < p->n_in; i++) {
        p->periods[i] = period_of(in[i], out);
        if (!p->periods[i] && wf_elems(out))
            return wf_fail(err, WF_UNSUPPORTED, "let it have the output's shape, or its last axes",
                           "input %u is broadcast along an inner axis", i);
    }
    return WF_OK;
}
