/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/end.c - all go down together: each process is asked to end, and killed if it does not
 * in time. */
#include "common/log/log.h"
#include "supervisor/state.h"

void wf_supervisor_go_down(wf_supervisor *s, int64_t now_ns)
{
    if (s->kill_ns)
        return;
    s->kill_ns = now_ns + WF_SUPERVISOR_END_NS;
    for (uint32_t i = 0; i < s->conf.n; i++) {
        wf_ward *w = &s->wards[i];

        wf_ward_move(w, WF_LIFE_ORDERED); /* S2: one that is due is over */
        if (w->state == WF_LIFE_ENDING)
            s->conf.ops.end(s->conf.ops.arg, w->pid, false);
    }
}

void wf_end_advance(wf_supervisor *s, int64_t now_ns)
{
    unsigned left = 0;

    if (!s->kill_ns || now_ns < s->kill_ns)
        return;
    for (uint32_t i = 0; i < s->conf.n; i++) {
        wf_ward *w = &s->wards[i];

        if (w->state != WF_LIFE_ENDING)
            continue;
        wf_ward_move(w, WF_LIFE_OVERDUE);
        s->conf.ops.end(s->conf.ops.arg, w->pid, true);
        left++;
    }
    if (left)
        WF_LOG_WARN("task.killed", "left=%u", left);
}
