/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/rule.c */
#include "common/session/rule.h"

wf_status wf_rule_get(const char *name, Weft__Option *const options[], size_t n, wf_opt *out,
                      wf_err *err)
{
    const char *names[WF_MAX_SETTINGS];
    double values[WF_MAX_SETTINGS];

    if (n > WF_MAX_SETTINGS)
        return wf_fail(err, WF_PROTO, NULL, "%zu optimizer options", n);
    for (size_t i = 0; i < n; i++) {
        names[i] = options[i]->name;
        values[i] = options[i]->value;
    }
    return wf_opt_init(out, name, (uint32_t)n, names, values, err);
}
