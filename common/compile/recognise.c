/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/recognise.c - what exporters write out as several nodes, as the one operation that
 * it is. This stands before differentiate: a gradient is only as stable, and as fast, as the form
 * that it is taken of. For other programs it is the other way: the operations that ONNX
 * does not have are written out. */
#include "common/compile/rules/rules.h"

wf_status wf_pass_recognise(wf_unit *u, wf_err *err)
{
    const wf_rewrite_rule *const lists[] = {wf_rules_log_sigmoid, wf_rules_cross_entropy,
                                            wf_rules_norm_fold,   wf_rules_elementwise_transposes,
                                            wf_rules_layer_norm,  wf_rules_gelu,
                                            wf_rules_attention,   NULL},
                                 *const portable[] = {wf_rules_bags, NULL};

    return wf_rules_apply(u, u->spec->is_portable ? portable : lists, false, err);
}
