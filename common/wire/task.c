/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/task.c */
#include "common/wire/task.h"

#include <stdio.h>

const char *wf_role_name(wf_role role)
{
    static const char *const names[WF_N_ROLES] = {"?", "master", "ps", "worker", "client"};

    return (unsigned)role < WF_N_ROLES ? names[role] : "?";
}

const char *wf_task_str(wf_task task, char *text, size_t size)
{
    if (task.role == WF_ROLE_MASTER)
        snprintf(text, size, "master");
    else
        snprintf(text, size, "%s/%u", wf_role_name(task.role), task.index);
    return text;
}
