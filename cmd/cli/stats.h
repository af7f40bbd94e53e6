/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/stats.h - range, missing share and different values of each column of a data file. */
#ifndef WF_CLI_STATS_H
#define WF_CLI_STATS_H

#include "common/base/status.h"
#include <stdbool.h>

/* Prints a table, or JSON. job: a job file whose data keys and map the file is read with; NULL: the
 * file as it is, its format by name and content. file: NULL: the job's training data. Errors:
 * WF_USAGE; those of the job file and of reading. */
WF_MUST_USE wf_status wf_stats(const char *file, const char *job, bool json, wf_err *err);

#endif
