/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/operators.h - the listing of operations, docs/operators.md, from the registry. */
#ifndef WF_CMD_CLI_OPERATORS_H
#define WF_CMD_CLI_OPERATORS_H

#include "common/base/status.h"
#include <stdbool.h>

/* Prints the page as Markdown, or what it holds as JSON. Errors: WF_NOMEM, WF_IO. */
WF_MUST_USE wf_status wf_operators_print(bool as_json, wf_err *err);

#endif
