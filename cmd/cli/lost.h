/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/lost.h - tasks found by the cluster file on their command lines: a cluster whose state
 * folder was removed while it was up: its supervisor holds a lock on a file that nobody finds any
 * more, and its tasks run on. */
#ifndef WF_CMD_CLI_LOST_H
#define WF_CMD_CLI_LOST_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { WF_LOST_MOST = 1024 };

typedef struct wf_lost {
    pid_t pids[WF_LOST_MOST]; /* [n], each supervisor before its tasks */
    bool supervises[WF_LOST_MOST];
    size_t n;
} wf_lost;

/* The tasks of that cluster file on this host whose supervisor lives, and it. False: none. To be
 * asked where no supervisor has the lock of the state folder (wf_super_pid). */
bool wf_lost_find(const char *cluster_file, wf_lost *out);
/* That there are none. Errors: WF_INVALID with their process ids. */
WF_MUST_USE wf_status wf_lost_check(const wf_cluster_conf *conf, wf_err *err);
/* Ends them, asked first and by force after timeout_ms. False when there were none. Errors:
 * WF_TIMEOUT when some are still there. */
WF_MUST_USE wf_status wf_lost_end(const wf_cluster_conf *conf, int64_t timeout_ms, bool *any,
                                  wf_err *err);
/* The cluster file of the weft task that listens at an address of this host, as another folder's
 * cluster does; false where /proc does not show one. */
bool wf_lost_owner(const char *address, char file[PATH_MAX]);

#endif
