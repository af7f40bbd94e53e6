/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/fellows.h - where a worker listens for other workers, in jobs in which workers exchange
 * gradients: at its address, or, in a cluster with ps, where that is for the clients of sessions,
 * beside it. */
#ifndef WF_CMD_FELLOWS_H
#define WF_CMD_FELLOWS_H

#include "cmd/shell.h"

/* Whether workers dial each other at their addresses. */
bool wf_fellows_at_addresses(const wf_cluster_conf *c);
/* In a cluster with ps, listens at one more address for each that the worker has: a socket whose
 * path ends with ".w", or a free port of the same host. `out` names them, as wires.h writes
 * several; "" where workers do not dial each other there. One that cannot be had is logged, and
 * left out: the cluster serves all jobs but those in which workers exchange gradients. */
void wf_fellows_listen(wf_shell *s, char out[WF_ADDRESSES_MAX]);

#endif
