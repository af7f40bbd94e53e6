/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/json.h - what a command prints with --json. */
#ifndef WF_CMD_CLI_JSON_H
#define WF_CMD_CLI_JSON_H

#include "common/base/status.h"
#include <jansson.h>
#include <stddef.h>

/* Prints a value as a text of its own, with jansson's `flags`, and gives back the reference to it.
 * Errors: WF_NOMEM, also for a value that is NULL because it could not be made. */
WF_MUST_USE wf_status wf_json_print(json_t *value, size_t flags, wf_err *err);

#endif
