/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/supervised.c - histories whose processes run under the supervisor's own role, which is
 * in the client's process. It is told of each end and decides what follows; here a start takes its
 * time or fails, and a process that is asked to end does so later, or is deaf. `weft down` ends all
 * while a job runs, and `weft up` follows.
 *
 *   V1  a task has one process, and restarts within its budget
 *   V2  a task whose process has ended is started again in time, or its supervisor has given it up:
 *       for its exit code, or for its budget
 *   V3  nothing is started once the end is ordered
 *   V4  all is down a bounded time after the order, and the supervisor is over then and not before
 */
#include "common/base/size.h"
#include "common/wire/header.h"
#include "tests/sim/world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

/* The longest delay, and what a start and a turn of the supervisor take. */
static const int64_t AGAIN_NS = WF_RESTART_MOST_NS + 500 * MS;
static const int64_t DOWN_NS = WF_SUPERVISOR_END_NS + 500 * MS;

static process *supervisor_of(wf_sim *s)
{
    process *client = &s->procs[s->n - 1];

    return client->alive && client->supervisor ? client : NULL;
}

static bool is_there(const process *p)
{
    return p->alive || p->starting;
}

/* ---- what the supervisor does ---- */

static wf_status start(void *arg, uint32_t i, uint64_t *pid, wf_err *err)
{
    wf_sim *s = arg;
    process *p = &s->procs[i];

    if (s->down_ns)
        wf_sim_broken(s, "nothing is started once the end is ordered", i, p->life);
    if (is_there(p))
        wf_sim_broken(s, "a task has one process", i, p->life);
    if (p->starts++ > WF_RESTART_BUDGET)
        wf_sim_broken(s, "restarts are within the budget", i, p->starts);
    if (p->starts > 1 && s->now_ns < s->spec.faults_end_ms * MS && wf_sim_below(s, 20) == 0)
        return wf_fail(err, WF_IO, NULL, "no process can be made");
    *pid = p->starting = wf_sim_id(s);
    wf_sim_plan(s, wf_sim_between(s, 1, 50) * MS,
                (wf_happening){.kind = BOOT, .who = i, .life = p->starting});
    return WF_OK;
}

static process *process_of(wf_sim *s, uint64_t pid)
{
    for (uint32_t i = 0; i + 1 < s->n; i++)
        if (is_there(&s->procs[i]) &&
            (s->procs[i].alive ? s->procs[i].life : s->procs[i].starting) == pid)
            return &s->procs[i];
    return NULL;
}

static void end(void *arg, uint64_t pid, bool with_force)
{
    wf_sim *s = arg;
    process *p = process_of(s, pid);

    if (!p) /* it has ended by itself, and its supervisor has yet to hear of it */
        return;
    if (with_force)
        wf_sim_ends(p, (wf_exit){.signal = SIGKILL});
    else if (!p->alive) /* it does not listen yet */
        wf_sim_ends(p, (wf_exit){.signal = SIGTERM});
    else if (wf_sim_below(s, 8))
        wf_sim_plan(s, wf_sim_between(s, 1, 20) * MS,
                    (wf_happening){.kind = TERM, .who = p->number, .life = p->life});
}

static void note_down(void *arg, uint32_t i, const char *reason)
{
    wf_sim *s = arg;
    process *p = &s->procs[i];

    (void)reason;
    p->given_up = true;
    if (p->starts <= WF_RESTART_BUDGET && !wf_restart_useless(p->last_end))
        wf_sim_broken(s, "a task is started again within its budget", i, p->starts);
}

wf_status wf_sim_supervise(process *client, wf_err *err)
{
    wf_sim *s = client->sim;

    for (uint32_t i = 0; i + 1 < s->n; i++) {
        s->tasks[i] = (wf_supervisor_task){s->procs[i].task, s->procs[i].address};
        s->procs[i].starts = 0;
        s->procs[i].given_up = false;
    }
    snprintf(s->session_text, sizeof s->session_text, "%" PRIu64, s->session);
    WF_TRY(wf_supervisor_new(
        &(wf_supervisor_conf){
            .tasks = s->tasks,
            .n = s->n - 1,
            .session = s->session_text,
            .ops = {.arg = s, .start = start, .end = end, .note_down = note_down}},
        client->net, client->to_master, &client->supervisor, err));
    return wf_supervisor_begin(client->supervisor, wf_sim_clock(client), err);
}

/* ---- what the supervisor hears ---- */

void wf_sim_reap_later(process *p, uint64_t pid, wf_exit how)
{
    p->ended_ns = p->sim->now_ns;
    p->last_end = how;
    wf_sim_plan(p->sim, wf_sim_between(p->sim, 1, 20) * MS,
                (wf_happening){.kind = ENDED,
                               .who = p->number,
                               .life = pid,
                               .number = (uint64_t)how.signal << 32 | (uint64_t)how.code});
}

void wf_sim_reap(wf_sim *s, const wf_happening *h)
{
    process *client = supervisor_of(s);

    if (!client) /* it is of a supervisor that has ended before */
        return;
    wf_supervisor_on_end(
        client->supervisor, h->life,
        (wf_exit){.signal = (int)(h->number >> 32), .code = (int)(h->number & UINT32_MAX)},
        wf_sim_clock(client));
    wf_sim_run_process(client);
}

/* ---- weft down, weft up ---- */

void wf_sim_down(wf_sim *s)
{
    process *client = supervisor_of(s);

    if (!client || s->down_ns)
        return;
    s->down_ns = s->now_ns;
    wf_supervisor_go_down(client->supervisor, wf_sim_clock(client));
}

void wf_sim_term(process *p)
{
    wf_sim *s = p->sim;

    if (wf_sim_stands_still(p))
        wf_sim_plan(s, 20 * MS, (wf_happening){.kind = TERM, .who = p->number, .life = p->life});
    else
        wf_sim_ends(p, (wf_exit){0});
}

/* The supervisor ends, and after a while somebody starts another one. */
static void up_again(process *client)
{
    wf_sim *s = client->sim;

    s->result.downs++;
    s->down_ns = 0;
    s->session++;
    wf_sim_die(client, 0);
    wf_sim_plan(s, wf_sim_between(s, 10, 300) * MS,
                (wf_happening){.kind = BOOT, .who = client->number});
}

void wf_sim_supervisor_advance(process *client)
{
    wf_sim *s = client->sim;
    bool is_over;

    wf_supervisor_advance(client->supervisor, wf_sim_clock(client));
    is_over = wf_supervisor_is_over(client->supervisor);
    for (uint32_t i = 0; i + 1 < s->n; i++) {
        const process *p = &s->procs[i];

        if (is_over && is_there(p))
            wf_sim_broken(s, "the supervisor is over when all processes are gone", i, p->life);
        if (!s->down_ns && !is_there(p) && !p->given_up && s->now_ns - p->ended_ns > AGAIN_NS)
            wf_sim_broken(s, "a process that ended is started again", i, p->life);
    }
    if (s->down_ns && !is_over && s->now_ns - s->down_ns > DOWN_NS)
        wf_sim_broken(s, "all is down a bounded time after the order",
                      (uint64_t)(s->now_ns - s->down_ns) / MS, 0);
    if (is_over)
        up_again(client);
}
