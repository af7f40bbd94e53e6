/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/peek_csv.h - what is in the columns of a csv file, and how a job names them. */
#ifndef WF_CLI_PEEK_CSV_H
#define WF_CLI_PEEK_CSV_H

#include "common/base/status.h"

/* Prints it. Errors: those of wf_csv_survey. */
WF_MUST_USE wf_status wf_peek_csv(const char *path, wf_err *err);

#endif
