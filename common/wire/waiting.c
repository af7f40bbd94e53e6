/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/waiting.c */
#include "common/wire/waiting.h"
#include "common/base/clock.h"
#include "common/log/log.h"

static const int64_t FIRST_NS = 5 * WF_NS_PER_S;

void wf_waiting_note(wf_waiting_log *log, const wf_waiting *w, int64_t now_ns)
{
    bool waits = w->whom.role != WF_ROLE_NONE;
    char whom[32];

    if (log->since_ns && (!waits || w->since_ns != log->since_ns)) {
        if (log->next_ns - log->since_ns > FIRST_NS) /* it was logged */
            WF_LOG_INFO("wait.over", "after_s=%.1f", (double)(now_ns - log->since_ns) / 1e9);
        *log = (wf_waiting_log){0};
    }
    if (!waits)
        return;
    if (!log->since_ns)
        *log = (wf_waiting_log){w->since_ns, w->since_ns + FIRST_NS};
    if (now_ns < log->next_ns)
        return;
    WF_LOG_WARN("wait.long", "for=%s what=\"%s\" since_s=%.1f",
                wf_task_str(w->whom, whom, sizeof whom), w->what,
                (double)(now_ns - w->since_ns) / 1e9);
    log->next_ns = w->since_ns + 2 * (now_ns - w->since_ns);
}
