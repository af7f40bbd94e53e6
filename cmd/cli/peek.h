/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/peek.h - what a data file holds, as weft reads it. */
#ifndef WF_CLI_PEEK_H
#define WF_CLI_PEEK_H

#include "common/base/status.h"

/* Prints it, whatever the format is: a folder, or by the name of the file. Errors: those of reading
 * the file. */
WF_MUST_USE wf_status wf_peek(const char *path, wf_err *err);

#endif
