/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/task.h - roles, and tasks: a role and a number. */
#ifndef WF_WIRE_TASK_H
#define WF_WIRE_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum wf_role {
    WF_ROLE_NONE = 0,
    WF_ROLE_MASTER = 1,
    WF_ROLE_PS = 2,
    WF_ROLE_WORKER = 3,
    WF_ROLE_CLIENT = 4, /* a command line or a session */
    WF_N_ROLES
} wf_role;

typedef struct wf_task {
    wf_role role;
    uint32_t index;
} wf_task;

static inline bool wf_task_same(wf_task a, wf_task b)
{
    return a.role == b.role && a.index == b.index;
}

/* "master", "ps", "worker", "client"; "?" for another number. */
const char *wf_role_name(wf_role role);
/* "worker/3", "master"; written into text (cut to fit), which is returned. */
const char *wf_task_str(wf_task task, char *text, size_t size);

#endif
