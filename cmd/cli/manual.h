/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/manual.h - the manual page and the shells' completion, made from the rows of the
 * commands when weft is built. */
#ifndef WF_CMD_CLI_MANUAL_H
#define WF_CMD_CLI_MANUAL_H

#include "common/base/status.h"

/* weft(1), for man. */
void wf_manual_print(void);
/* A script for "bash" or "zsh". Errors: WF_USAGE for another shell. */
WF_MUST_USE wf_status wf_completion_print(const char *shell, wf_err *err);

#endif
