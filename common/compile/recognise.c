/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/recognise.c - what exporters write out as several nodes, as the one operation that
 * it is. This stands before differentiate: a gradient is only as stable, and as fast, as the form
 * that it is taken of. */
#include "common/compile/rules/rules.h"

wf_status wf_pass_recognise(wf_unit *u, wf_err *err)
{
    const wf_rewrite_rule *const lists[] = {wf_rules_log_sigmoid, wf_rules_cross_entropy,
                                            wf_rules_norm_fold,   wf_rules_elementwise_transposes,
                                            wf_rules_layer_norm,  wf_rules_gelu,
                                            wf_rules_attention,   NULL};

    if (u->spec->is_portable)
        return WF_OK;
    return wf_rules_apply(u, lists, false, err);
}
