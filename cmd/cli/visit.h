/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/visit.h - a cluster that a command started for itself belongs to all commands that use
 * it, and ends with the last of them. Each holds a lock on STATE/users.lock for as long as it uses
 * the cluster (of the open file: it goes with the process however that ends); the file says whether
 * the cluster ends with its users, or stays up until `weft down`.
 */
#ifndef WF_CMD_CLI_VISIT_H
#define WF_CMD_CLI_VISIT_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdbool.h>

typedef struct wf_visit {
    int fd; /* -1: the state folder is not on this host */
} wf_visit;

/* Uses the cluster from here on; waits while its last user ends it. Always to be ended. */
wf_visit wf_visit_begin(const wf_cluster_conf *conf);
/* Starts the cluster if it is not up, for its users alone, and waits until it is ready. Errors:
 * those of wf_super_start and wf_super_wait_ready. */
WF_MUST_USE wf_status wf_visit_start(wf_visit *v, const wf_cluster_conf *conf, wf_err *err);
/* For `weft up`: the cluster stays up whoever uses it. */
void wf_visit_keep(const wf_cluster_conf *conf);
/* Ends the visit; and the cluster, when it ends with its users, nobody else uses it, and no job is
 * under way. */
void wf_visit_end(wf_visit *v, const wf_cluster_conf *conf);

#endif
