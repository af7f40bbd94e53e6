/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/local.h - a cluster within this process: a master and one worker that holds the
 * variables, in one thread, over a transport in memory. It has a journal and checkpoints as every
 * cluster has, and nobody outside can reach it.
 */
#ifndef WF_CMD_CLI_LOCAL_H
#define WF_CMD_CLI_LOCAL_H

#include "cmd/cli/ask.h"
#include "common/base/status.h"
#include "common/conf/conf.h"

typedef struct wf_local wf_local;

/* Starts it, with its journal in STATE/local and the checkpoints of `conf`, which is borrowed.
 * Close *out after an error as well. Errors: WF_EXISTS when another process does the same there;
 * WF_IO; WF_NOMEM. */
WF_MUST_USE wf_status wf_local_open(const wf_cluster_conf *conf, wf_local **out, wf_err *err);
/* Ends it; what is being trained goes on with --resume. NULL is fine. */
void wf_local_close(wf_local **l);
/* Its configuration, borrowed. */
const wf_cluster_conf *wf_local_conf(const wf_local *l);
/* How to ask its master; while an answer is waited for, it trains. */
wf_ask_way wf_local_way(wf_local *l);

#endif
