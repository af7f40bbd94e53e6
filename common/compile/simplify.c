/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/simplify.c - nodes that do nothing, or less than they seem to, go. The result
 * means the same: equal values, but for the sign of a zero where 0 is added. */
#include "common/compile/rules/rules.h"

wf_status wf_pass_simplify(wf_unit *u, wf_err *err)
{
    const wf_rewrite_rule *const lists[] = {wf_rules_identities,
                                            wf_rules_shapes,
                                            wf_rules_slices,
                                            wf_rules_casts,
                                            wf_rules_attention_forms,
                                            wf_rules_transposes,
                                            wf_rules_elementwise_transposes,
                                            wf_rules_powers,
                                            NULL};

    return wf_rules_apply(u, lists, true, err);
}
