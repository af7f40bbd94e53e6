/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/later.h - commands and options that are known and not built yet: they end with exit code
 * 3 and say what does the work meanwhile. */
#ifndef WF_CMD_CLI_LATER_H
#define WF_CMD_CLI_LATER_H

#include "common/base/status.h"
#include <stddef.h>

/* WF_UNSUPPORTED for a command that is not built yet, WF_OK for any other word. */
wf_status wf_later_command(const char *name, wf_err *err);
/* The same for an option ("--int8") or a verb of a command. */
wf_status wf_later_word(const char *command, const char *word, wf_err *err);

/* Row i: the command, and its option or verb (NULL: all of it); NULL past the end. */
const char *wf_later_at(size_t i, const char **word);

#endif
