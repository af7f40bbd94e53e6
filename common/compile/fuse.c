/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/fuse.c - several nodes as one kernel that goes over memory once. Gradients are
 * built by now: what they read stays. */
#include "common/compile/rules/rules.h"

wf_status wf_pass_fuse(wf_unit *u, wf_err *err)
{
    const wf_rewrite_rule *const
        products[] = {wf_rules_linear, wf_rules_product, wf_rules_recurrent, NULL},
        *const sums[] = {wf_rules_sums, wf_rules_squares, NULL},
        *const chains[] = {wf_rules_chain, NULL}, *const kept[] = {wf_rules_attention_kept, NULL};

    if (u->spec->is_portable)
        return WF_OK;
    if (u->spec->narrow != WF_NONE) /* kernels that read what is kept compute in 16 bits */
        WF_TRY(wf_rules_apply(u, kept, true, err));
    /* Products first: a Relu that one of them takes in is no step any more. */
    WF_TRY(wf_rules_apply(u, products, true, err));
    /* A product with a second result is none that a rule of the former takes further. */
    WF_TRY(wf_rules_apply(u, sums, true, err));
    return wf_rules_apply(u, chains, true, err);
}
