/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/peek_text.h - what the lines of plain text hold, and how a job reads them. */
#ifndef WF_CLI_PEEK_TEXT_H
#define WF_CLI_PEEK_TEXT_H

#include "common/base/status.h"

/* Prints it. Errors: those of wf_text_survey. */
WF_MUST_USE wf_status wf_peek_text(const char *path, wf_err *err);

#endif
