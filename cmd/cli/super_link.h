/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super_link.h - the supervisor's reports to the master of tasks that have ended, and the
 * question to the master whether all are there. The only part of the supervisor that uses the
 * protocol. */
#ifndef WF_CMD_CLI_SUPER_LINK_H
#define WF_CMD_CLI_SUPER_LINK_H

#include "cmd/cli/super.h"
#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_super_link wf_super_link;

/* For the supervisor's process; *out is the caller's. Errors: WF_NOMEM, WF_IO. */
WF_MUST_USE wf_status wf_super_link_open(const wf_cluster_conf *conf, wf_super_link **out,
                                         wf_err *err);
/* Closes *l and sets it to NULL; NULL is fine. */
void wf_super_link_close(wf_super_link **l);
/* The hooks of super.h, with the link as their argument. */
void wf_super_on_death(void *link, const wf_super_death *death);
void wf_super_on_turn(void *link, int64_t now_ns);

/* Writes the names of tasks that are not ready, as "ps/1 worker/0", "" when all are. */
WF_MUST_USE wf_status wf_cluster_missing(const wf_cluster_conf *conf, char *names, size_t size,
                                         wf_err *err);

#endif
