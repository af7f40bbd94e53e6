/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/wait.c */
#include "common/wire/wait.h"
#include "common/base/clock.h"
#include "common/base/size.h"

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>

static bool any_ready(wf_transport *const t[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (t[i]->ops->ready(t[i]))
            return true;
    return false;
}

static void spin(wf_transport *const t[], size_t n, int64_t until_ns)
{
    while (wf_now_ns() < until_ns && !any_ready(t, n))
        sched_yield();
}

void wf_wait(wf_transport *const t[], size_t n, int fd, int64_t timeout_ms, int spin_us)
{
    enum { FEW = 64 };
    struct pollfd few[FEW], *at = n + 1 <= FEW ? few : calloc(n + 1, sizeof *at);
    bool something = false;
    nfds_t used = 0;

    if (!at) { /* memory is short: what has arrived is looked at every millisecond */
        poll(NULL, 0, 1);
        return;
    }
    if (timeout_ms > 0 && spin_us > 0)
        spin(t, n, wf_now_ns() + (int64_t)spin_us * 1000);
    for (size_t i = 0; !something && i < n; i++) {
        something = t[i]->ops->arm(t[i]);
        if (t[i]->fd >= 0)
            at[used++] = (struct pollfd){.fd = t[i]->fd, .events = POLLIN};
        else
            timeout_ms = WF_MIN(timeout_ms, (int64_t)1);
    }
    if (fd >= 0)
        at[used++] = (struct pollfd){.fd = fd, .events = POLLIN};
    if (!something)
        poll(at, used, (int)WF_MIN(WF_MAX(timeout_ms, (int64_t)0), (int64_t)INT_MAX));
    if (at != few)
        free(at);
}
