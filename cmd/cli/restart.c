/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/restart.c */
#include "cmd/cli/restart.h"

#include <sys/wait.h>

bool wf_restart_on_death(wf_restart *r, int64_t started_ns, int64_t now_ns, int64_t *at_ns)
{
    int64_t *oldest = &r->deaths_ns[r->n_deaths % WF_RESTART_BUDGET];

    if (r->n_deaths >= WF_RESTART_BUDGET && now_ns - *oldest < WF_RESTART_WINDOW_NS)
        return false;
    *oldest = now_ns;
    r->n_deaths++;
    if (now_ns - started_ns >= WF_RESTART_HEALTHY_NS || r->delay_ns == 0)
        r->delay_ns = WF_RESTART_FIRST_NS;
    else if (r->delay_ns < WF_RESTART_MOST_NS / 2)
        r->delay_ns *= 2;
    else
        r->delay_ns = WF_RESTART_MOST_NS;
    *at_ns = now_ns + r->delay_ns;
    return true;
}

const char *wf_restart_useless(int status)
{
    if (!WIFEXITED(status))
        return NULL;
    switch (WEXITSTATUS(status)) {
    case 2:
    case 3:
        return "its files are wrong";
    case 4:
        return "another process has its place";
    default:
        return NULL;
    }
}
