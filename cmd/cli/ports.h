/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/ports.h - addresses of tasks on this host: which are ours to start, and which are taken.
 */
#ifndef WF_CMD_CLI_PORTS_H
#define WF_CMD_CLI_PORTS_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdbool.h>

/* Whether the task's address is one of this machine's. */
bool wf_port_is_here(const wf_task_conf *t);
/* That nobody listens at the address. Errors: WF_INVALID, naming the process where /proc tells. */
WF_MUST_USE wf_status wf_port_check_free(const wf_task_conf *t, const char *who, wf_err *err);
/* Whether somebody listens there now. */
bool wf_port_answers(const wf_task_conf *t);

#endif
