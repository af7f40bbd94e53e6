/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/verbs.h - commands that do several things (`weft ckpt ls`), as their usage lists them. */
#ifndef WF_CMD_CLI_VERBS_H
#define WF_CMD_CLI_VERBS_H

#include "cmd/cli/cli.h"

enum { WF_VERB = 24 };

/* Copies verb i of a command: the word after its name in the line of its usage; false past the end.
 * A command whose words are operands has none. */
bool wf_verb_at(const wf_cmd *cmd, size_t i, char verb[static WF_VERB]);

/* WF_USAGE unless the command has no verbs or `word` is one: names the nearest that removes
 * nothing. `word` NULL: none was given. */
WF_MUST_USE wf_status wf_verb_check(const char *command, const char *word, wf_err *err);

#endif
