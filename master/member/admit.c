/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/admit.c - who may come in.
 *
 * A hello is anybody's word. A task whose place is held by another process comes in only if that
 * one does not answer any more: it is pinged twice a second in any case, so it is enough to wait a
 * while and look whether it was heard. A supervisor's report of a death clears the place at once.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "master/member/member.h"

#include <stdio.h>

/* Commands of people and programs that are connected at one time. */
enum { MOST_CLIENTS = 256 };

/* Three pings and a beat, as times are in cluster.yaml by default. */
static int64_t answer_wait_ns(const wf_master *m)
{
    return 3 * m->conf.dead_ns / 10;
}

/* Whether the process in place has been heard since somebody else asked for its place. */
static bool still_answers(const wf_master *m, const wf_member *who, int64_t now_ns)
{
    int64_t heard_ns = who->last_heard_ns;

    if (who->peer)
        heard_ns = WF_MAX(heard_ns, who->peer->last_heard_ns);
    return heard_ns > who->challenged_ns || now_ns - who->challenged_ns < answer_wait_ns(m);
}

static wf_status check_place(const wf_master *m, wf_member *who, const wf_hello *hello, wf_err *err)
{
    char text[32];

    if (!who->incarnation || who->incarnation == hello->incarnation ||
        wf_members_is_retired(m, hello->incarnation)) /* to be told so */
        return WF_OK;
    if (!who->challenged_ns || hello->now_ns - who->challenged_ns > 2 * m->conf.dead_ns)
        who->challenged_ns = hello->now_ns;
    if (!still_answers(m, who, hello->now_ns)) {
        who->challenged_ns = 0;
        return WF_OK;
    }
    return wf_fail(err, WF_AGAIN, "end one of the two",
                   "the place of %s is held by process %lu, and process %lu asks for it",
                   wf_task_str(who->task, text, sizeof text), (unsigned long)who->pid,
                   (unsigned long)hello->pid);
}

void wf_master_on_refused(void *arg, const wf_hello *hello, const wf_err *why)
{
    wf_master *m = arg;
    wf_member *who = wf_member_of(m, hello->task);
    char reason[WF_REASON];

    if (!who || who->incarnation) /* anybody may say hello in the name of one that is here */
        return;
    m->now_ns = hello->now_ns;
    snprintf(reason, sizeof reason, "refused: %.350s%s%.120s", why->what, why->hint[0] ? "; " : "",
             why->hint);
    wf_member_keep_reason(m, who, reason);
    who->refused = true;
}

wf_status wf_master_admit(void *arg, const wf_hello *hello, wf_err *err)
{
    wf_master *m = arg;
    wf_member *who;
    char text[32];

    if (hello->task.role == WF_ROLE_CLIENT) {
        if (wf_net_accepted_of(m->net, WF_ROLE_CLIENT) < MOST_CLIENTS)
            return WF_OK;
        return wf_fail(err, WF_AGAIN, NULL, "%d commands are connected to the master",
                       MOST_CLIENTS);
    }
    who = wf_member_of(m, hello->task);
    if (!who)
        return wf_fail(err, WF_MISMATCH, "use the same cluster.yaml for all tasks",
                       "%s is not in the master's cluster.yaml",
                       wf_task_str(hello->task, text, sizeof text));
    return check_place(m, who, hello, err);
}
