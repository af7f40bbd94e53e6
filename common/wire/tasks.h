/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/tasks.h - which tasks a cluster has, for clients that know the address of one. */
#ifndef WF_WIRE_TASKS_H
#define WF_WIRE_TASKS_H

#include "common/base/status.h"
#include "common/wire/net.h"
#include <stdint.h>

/* Addresses by the tasks' numbers; borrowed. */
typedef struct wf_tasks {
    const char *const *ps;      /* [n_ps] */
    const char *const *workers; /* [n_workers] */
    uint32_t n_ps, n_workers;
} wf_tasks;

/* Answers a WF_TASKS_ASK of the peer `to`. Errors: WF_NOMEM, WF_FULL. */
WF_MUST_USE wf_status wf_tasks_answer(wf_net *net, wf_peer *to, const wf_msg *ask,
                                      const wf_tasks *tasks, wf_err *err);

#endif
