/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/data_get.h - published data sets: where their files are, and whether those that are there
 * are whole. */
#ifndef WF_CLI_DATA_GET_H
#define WF_CLI_DATA_GET_H

#include "common/base/status.h"

/* Prints of each file of the set `name` whether dir (NULL: data/NAME) holds it as published, and
 * how to fetch what is missing. Errors: WF_USAGE for an unknown set; WF_NOTFOUND when a file is
 * missing; WF_INVALID for one that is another or damaged; WF_IO. */
WF_MUST_USE wf_status wf_data_get(const char *name, const char *dir, wf_err *err);

#endif
