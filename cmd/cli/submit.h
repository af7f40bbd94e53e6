/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/submit.h - a job file handed to the master. */
#ifndef WF_CMD_CLI_SUBMIT_H
#define WF_CMD_CLI_SUBMIT_H

#include "cmd/cli/ask.h"
#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdbool.h>

/* Checks the file (words and model) here, where errors can name its lines, keeps a copy under the
 * state folder, and submits it. name [65] is the job's. Errors: those of the file and its model;
 * what the master answers. */
WF_MUST_USE wf_status wf_submit(const wf_cluster_conf *conf, wf_ask *a, const char *path,
                                bool resume, char name[65], wf_err *err);

#endif
