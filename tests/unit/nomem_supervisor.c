/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_supervisor.c - a supervisor starts its processes again while memory ends, and
 * when it comes back the master learns how the last ones ended. The master is the test's, and has
 * all the memory that it wants. */
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "supervisor/supervisor.h"
#include "tests/kit/memnet.h"
#include "tests/unit/nomem.h"

#define MS WF_NS_PER_MS
enum { N_TASKS = 3 };
static const wf_supervisor_task tasks[N_TASKS] = {
    {{WF_ROLE_MASTER, 0}, "m"}, {{WF_ROLE_PS, 0}, "p"}, {{WF_ROLE_WORKER, 0}, "w"}};

typedef struct world {
    wf_memnet nets;
    wf_net *master, *net;
    wf_supervisor *s;
    int64_t now_ns;
    uint64_t pids, started[N_TASKS], told[N_TASKS]; /* the last process: started; told of its end */
} world;

static wf_status start(void *arg, uint32_t i, uint64_t *pid, wf_err *err)
{
    world *w = arg;

    (void)err;
    *pid = w->started[i] = ++w->pids;
    return WF_OK;
}

static void end(void *arg, uint64_t pid, bool with_force)
{
    world *w = arg;

    (void)with_force;
    wf_supervisor_on_end(w->s, pid, (wf_exit){0}, w->now_ns);
}

static void note_down(void *arg, uint32_t i, const char *reason)
{
    (void)arg, (void)i, (void)reason;
}

static void run_master(world *w)
{
    bool was = wf_nomem_spare(true);
    Weft__Died *body = NULL;
    wf_event ev;

    wf_net_poll(w->master, w->now_ns);
    while (wf_net_event(w->master, w->now_ns, &ev)) {
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        if (ev.msg->head.kind == WF_PROCESSES) {
            wf_net_free_msg(w->master, &ev.msg);
            continue;
        }
        wf_assert(wf_control_get(ev.msg, &weft__died__descriptor, &body, NULL) == WF_OK);
        w->told[body->role == WF_ROLE_PS ? 1 : 2] = body->pid;
        wf_control_free(&body);
        wf_net_free_msg(w->master, &ev.msg);
    }
    wf_net_flush(w->master, w->now_ns);
    wf_nomem_spare(was);
}

static void pass(world *w, int64_t ms)
{
    wf_event ev;

    for (int64_t end_ns = w->now_ns + ms * MS; w->now_ns < end_ns; w->now_ns += 100 * MS) {
        wf_net_poll(w->net, w->now_ns);
        while (wf_net_event(w->net, w->now_ns, &ev))
            wf_supervisor_on_event(w->s, &ev);
        wf_supervisor_advance(w->s, w->now_ns);
        wf_net_flush(w->net, w->now_ns);
        run_master(w);
    }
}

/* Two deaths, one before the master is known to be there; then all go down. */
static wf_status supervise(world *w, wf_err *err)
{
    uint64_t died[N_TASKS];

    WF_TRY(wf_supervisor_begin(w->s, w->now_ns, err));
    wf_supervisor_on_end(w->s, w->started[1], (wf_exit){.signal = 9}, w->now_ns);
    pass(w, 3000);
    memcpy(died, w->started, sizeof died);
    wf_supervisor_on_end(w->s, died[1], (wf_exit){.signal = 9}, w->now_ns);
    wf_supervisor_on_end(w->s, died[2], (wf_exit){.code = 2}, w->now_ns);
    pass(w, 1000);
    wf_nomem_spare(true);
    pass(w, 10000);
    for (int i = 1; i < N_TASKS; i++)
        if (w->told[i] != died[i])
            return wrong(err, "the end of process %lu of task %d is not known",
                         (unsigned long)died[i], i);
    if (w->started[1] == died[1])
        return wrong(err, "the ps is not started again");
    wf_supervisor_go_down(w->s, w->now_ns);
    return wf_supervisor_is_over(w->s) ? WF_OK : wrong(err, "it is not over");
}

static wf_status processes(void *context, wf_err *err)
{
    world w = {.now_ns = 1000 * MS};
    const wf_supervisor_conf conf = {
        .tasks = tasks, .n = N_TASKS, .session = "s", .ops = {&w, start, end, note_down}};
    bool was = wf_nomem_spare(true);
    wf_net_conf c;
    wf_peer *master;
    wf_status rc;

    (void)context;
    wf_memnet_init(&w.nets, "c");
    c = wf_memnet_conf(&w.nets, tasks[0].task, 1);
    w.master = wf_memnet_new(&c);
    wf_memnet_listen(&w.nets, w.master, "m");
    c = wf_memnet_conf(&w.nets, (wf_task){WF_ROLE_CLIENT, 0}, 2);
    w.net = wf_memnet_new(&c);
    master = wf_memnet_dial(&w.nets, w.net, tasks[0].task, "m");
    wf_nomem_spare(was);
    rc = wf_supervisor_new(&conf, w.net, master, &w.s, err);
    if (rc == WF_OK)
        rc = supervise(&w, err);
    wf_supervisor_free(&w.s);
    wf_net_free(&w.net, 0);
    wf_net_free(&w.master, 0);
    wf_memnet_close(&w.nets);
    wf_nomem_spare(was);
    return rc;
}

static void ends_are_reported_when_memory_is_back(void **state)
{
    (void)state;
    assert_survives(processes, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ends_are_reported_when_memory_is_back)};

    wf_log_init("test", WF_ERROR + 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
