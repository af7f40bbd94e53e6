/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/fuse.c - several nodes as one kernel that goes over memory once. Gradients are
 * built by now: what they read stays. */
#include "common/compile/rules/rules.h"

wf_status wf_pass_fuse(wf_unit *u, wf_err *err)
{
    const wf_rule *const lists[] = {wf_rules_linear, NULL};

    if (u->spec->is_portable)
        return WF_OK;
    return wf_rules_apply(u, lists, true, err);
}
