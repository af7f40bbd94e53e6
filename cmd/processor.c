/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/processor.c */
#include "cmd/processor.h"
#include "common/log/log.h"

#include <sched.h>
#include <string.h>

static bool is_here(const wf_task_conf *t)
{
    const char *at = t->address;

    return strncmp(at, "ipc://", 6) == 0 || strncmp(at, "tcp://127.", 10) == 0 ||
           strncmp(at, "tcp://localhost:", 16) == 0 || strncmp(at, "tcp://[::1]", 11) == 0;
}

bool wf_cluster_is_here(const wf_cluster_conf *c)
{
    bool here = is_here(&c->master);

    for (uint32_t i = 0; i < c->n_ps; i++)
        here &= is_here(&c->ps[i]);
    for (uint32_t i = 0; i < c->n_workers; i++)
        here &= is_here(&c->workers[i]);
    return here;
}

static bool have_one_thread(const wf_task_conf *tasks, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (tasks[i].threads != 1)
            return false;
    return true;
}

int wf_processor_of(const wf_cluster_conf *c, wf_task task, uint32_t n)
{
    bool fair = n > 1 && c->n_ps + c->n_workers >= n && c->n_ps % n == 0 && c->n_workers % n == 0;

    if (!fair || !wf_cluster_is_here(c) || !have_one_thread(c->ps, c->n_ps) ||
        !have_one_thread(c->workers, c->n_workers))
        return -1;
    return (int)(task.index % n);
}

void wf_processor_stay(const wf_cluster_conf *c, wf_task task)
{
    cpu_set_t allowed, one;
    int at;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    at = wf_processor_of(c, task, (uint32_t)CPU_COUNT(&allowed));
    for (size_t i = 0; at >= 0 && i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &allowed) || at-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        if (sched_setaffinity(0, sizeof one, &one) == 0)
            WF_LOG_INFO("task.stays", "processor=%zu", i);
        return;
    }
}
