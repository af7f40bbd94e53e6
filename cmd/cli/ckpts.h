/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/ckpts.h - lists of checkpoints: those of a run, and the newest and best of each run. */
#ifndef WF_CMD_CLI_CKPTS_H
#define WF_CMD_CLI_CKPTS_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Prints the checkpoints of a run in the folder `dir`, the newest first, as a table or as JSON.
 * Errors: those of wf_ckpt_list. */
WF_MUST_USE wf_status wf_ckpts_print(const char *dir, const char *run, bool json, wf_err *err);
/* The same of all runs, a row each. Errors: WF_NOTFOUND when there is no such folder. */
WF_MUST_USE wf_status wf_ckpts_print_runs(const char *dir, bool json, wf_err *err);

/* "2026-03-01 10:00:00" of a time since 1970 into text, "-" where there is none. */
const char *wf_ckpts_time(int64_t ms, char *text, size_t size);

#endif
