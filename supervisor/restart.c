/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/restart.c */
#include "supervisor/restart.h"
#include "common/base/status.h"

#include <stdio.h>
#include <string.h>

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

const char *wf_exit_str(wf_exit how, char *text, size_t size)
{
    if (how.signal)
        snprintf(text, size, "killed by signal %d (%s)", how.signal, strsignal(how.signal));
    else
        snprintf(text, size, "ended with exit code %d", how.code);
    return text;
}

const char *wf_restart_useless(wf_exit how)
{
    if (how.signal)
        return NULL;
    if (how.code == wf_exit_code(WF_USAGE))
        return "its files are wrong";
    if (how.code == wf_exit_code(WF_UNSUPPORTED))
        return "it cannot do what its files say";
    return how.code == wf_exit_code(WF_SUPERSEDED) ? "another process has its place" : NULL;
}
