/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/contained.h - the variables of sessions, as the ps of a cluster tell of them. */
#ifndef WF_CMD_CLI_CONTAINED_H
#define WF_CMD_CLI_CONTAINED_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Asks each ps that has some, by the master's picture, and adds "containers" to the picture:
 * [{"container", "sessions", "variables": [{"name", "dtype", "shape", "bytes", "ps"}]}], in the
 * order of their names. `sessions`: those that asked about a variable in the last ten minutes.
 * Without `all` the first of each ps. A ps that does not answer is listed in "containers_missing":
 * [{"ps", "why"}]. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_contained_add(const wf_cluster_conf *conf, bool all, json_t *picture,
                                       wf_err *err);
/* The table of them; nothing when there are none. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_picture_contained(FILE *f, const json_t *picture, bool all, wf_err *err);

#endif
