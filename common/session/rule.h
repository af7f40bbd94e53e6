/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/rule.h - the update rule of a job, as Setup and Start name it. */
#ifndef WF_SESSION_RULE_H
#define WF_SESSION_RULE_H

#include "common/optim/rule.h"
#include "common/wire/control.pb-c.h"

/* Makes the rule of that name with options[n], which are all that it has. Errors: WF_PROTO for more
 * options than there can be; those of wf_opt_init. */
WF_MUST_USE wf_status wf_rule_get(const char *name, Weft__Option *const options[], size_t n,
                                  wf_opt *out, wf_err *err);

#endif
