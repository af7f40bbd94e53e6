/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/supervisor.c - which process is started when, what is reported of its end, and how all
 * go down. Processes are numbers; the master is played by hand, over a transport in memory. */
#include "supervisor/supervisor.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "tests/kit/played_master.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS WF_NS_PER_MS
enum { MASTER, PS, WORKER, N_TASKS, MOST_REPORTS = 64, MASTER_MS = 10000 };
static const wf_supervisor_task tasks[N_TASKS] = {{{WF_ROLE_MASTER, 0}, "master.log"},
                                                  {{WF_ROLE_PS, 0}, "ps.log"},
                                                  {{WF_ROLE_WORKER, 4}, "worker.log"}};

typedef struct report {
    uint32_t role, index;
    uint64_t pid;
    bool down;
    char reason[WF_SUPERVISOR_REASON];
} report;

typedef struct world {
    wf_played_master p;
    wf_supervisor *s;
    /* processes */
    uint64_t pids, pid[N_TASKS]; /* given so far; of each task, 0: it has none */
    uint32_t starts[N_TASKS], asked, killed;
    uint64_t last_killed;
    bool cannot_start[N_TASKS];
    char noted[WF_SUPERVISOR_REASON]; /* of the task that is down */
    /* what the master was told */
    report reports[MOST_REPORTS];
    uint32_t n_reports, n_lists;
    uint64_t listed[N_TASKS]; /* processes, in the last list */
    const char *said;         /* the worker, at its end */
} world;

/* ---- processes ---- */

static wf_status start(void *arg, uint32_t i, uint64_t *pid, wf_err *err)
{
    world *w = arg;

    assert_int_equal(w->pid[i], 0); /* S1 */
    if (w->cannot_start[i])
        return wf_fail(err, WF_IO, NULL, "no such program");
    w->starts[i]++;
    *pid = w->pid[i] = ++w->pids;
    return WF_OK;
}

static void end(void *arg, uint64_t pid, bool with_force)
{
    world *w = arg;

    if (with_force)
        w->killed++;
    else
        w->asked++;
    w->last_killed = with_force ? pid : w->last_killed;
}

static void note_down(void *arg, uint32_t i, const char *reason)
{
    world *w = arg;

    (void)i;
    snprintf(w->noted, sizeof w->noted, "%s", reason);
}

static void last_words(void *arg, uint32_t i, char *out, size_t size)
{
    const world *w = arg;

    snprintf(out, size, "%s", i == WORKER && w->said ? w->said : "");
}

static void die(world *w, int i, wf_exit how)
{
    uint64_t pid = w->pid[i];

    assert_int_not_equal(pid, 0);
    w->pid[i] = 0;
    wf_supervisor_on_end(w->s, pid, how, w->p.now_ns);
}

/* ---- time and the master ---- */

static void hear_list(world *w, const wf_msg *m)
{
    Weft__Processes *body = NULL;

    assert_int_equal(wf_control_get(m, &weft__processes__descriptor, &body, NULL), WF_OK);
    assert_string_equal(body->session, "s");
    w->n_lists++;
    memset(w->listed, 0, sizeof w->listed);
    for (size_t i = 0; i < body->n_processes; i++) {
        const Weft__Process *p = body->processes[i];

        assert_int_equal(p->index, p->role == WF_ROLE_WORKER ? 4 : 0);
        w->listed[p->role == WF_ROLE_WORKER ? WORKER : PS] = p->pid;
    }
    wf_control_free(&body);
}

static void hear(void *arg, const wf_msg *m)
{
    world *w = arg;
    Weft__Died *body = NULL;
    report *r;

    if (m->head.kind == WF_PROCESSES) {
        hear_list(w, m);
        return;
    }
    assert_int_equal(m->head.kind, WF_DIED);
    assert_true(w->n_reports < MOST_REPORTS);
    r = &w->reports[w->n_reports++];
    assert_int_equal(wf_control_get(m, &weft__died__descriptor, &body, NULL), WF_OK);
    assert_string_equal(body->session, "s");
    *r = (report){.role = body->role, .index = body->index, .pid = body->pid, .down = body->down};
    snprintf(r->reason, sizeof r->reason, "%s", body->reason);
    wf_control_free(&body);
}

static void on_event(void *arg, wf_event *ev)
{
    wf_supervisor_on_event(((world *)arg)->s, ev);
}

static void advance(void *arg)
{
    world *w = arg;

    wf_supervisor_advance(w->s, w->p.now_ns);
}

static int begin(void **state)
{
    static world w;
    const wf_supervisor_conf conf = {.tasks = tasks,
                                     .n = N_TASKS,
                                     .session = "s",
                                     .master_ns = MASTER_MS * MS,
                                     .ops = {&w, start, end, note_down, last_words}};

    w = (world){0};
    wf_played_init(&w.p, (wf_task){WF_ROLE_CLIENT, 0}, 2,
                   &(wf_played_acts){&w, on_event, advance, hear});
    assert_int_equal(wf_supervisor_new(&conf, w.p.net, w.p.peer, &w.s, NULL), WF_OK);
    *state = &w;
    return 0;
}

static int finish(void **state)
{
    world *w = *state;

    wf_supervisor_free(&w->s);
    wf_played_close(&w->p);
    return 0;
}

/* ---- tests ---- */

static const wf_exit by_9 = {.signal = 9}, by_itself = {.code = 1}, wrong = {.code = 2},
                     unable = {.code = 3};

static void what_dies_is_started_again(void **state)
{
    world *w = *state;

    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, NULL), WF_OK);
    assert_int_equal(w->pids, N_TASKS);
    assert_int_equal(wf_supervisor_deadline(w->s), INT64_MAX);
    die(w, WORKER, by_9);
    assert_int_equal(wf_supervisor_deadline(w->s) - w->p.now_ns, WF_RESTART_FIRST_NS);
    wf_supervisor_on_end(w->s, 99, by_9, w->p.now_ns); /* of nobody */
    wf_played_pass(&w->p, 40);
    assert_int_equal(w->starts[WORKER], 1);
    wf_played_pass(&w->p, 30);
    assert_int_equal(w->starts[WORKER], 2);
    assert_int_equal(w->starts[PS], 1);
}

static void the_master_learns_of_ends_when_it_can(void **state)
{
    world *w = *state;

    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, NULL), WF_OK);
    die(w, WORKER, by_9); /* nobody listens */
    wf_played_begin_master(&w->p, 7);
    assert_int_equal(w->n_reports, 1);
    assert_int_equal(w->reports[0].role, WF_ROLE_WORKER);
    assert_int_equal(w->reports[0].index, 4);
    assert_int_equal(w->reports[0].pid, 3);
    assert_false(w->reports[0].down);
    assert_non_null(strstr(w->reports[0].reason, "killed by signal 9"));
    die(w, MASTER, by_itself); /* it is told nothing of its own */
    die(w, PS, by_itself);
    wf_played_pass(&w->p, 100);
    assert_int_equal(w->n_reports, 2);
    wf_played_end_master(&w->p);
    wf_played_begin_master(&w->p, 8); /* another one is told all */
    assert_int_equal(w->n_reports, 4);
}

/* It may know of a process before the last one, and take no notice until it has lost that. */
static void a_task_that_is_down_is_reported_again_and_again(void **state)
{
    world *w = *state;

    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, NULL), WF_OK);
    wf_played_begin_master(&w->p, 7);
    die(w, WORKER, by_9);
    die(w, PS, wrong);
    wf_played_pass(&w->p, 10000);
    assert_in_range(w->n_reports, 11, 13);
    for (uint32_t i = 1; i < w->n_reports; i++)
        assert_true(w->reports[i].role == WF_ROLE_PS && w->reports[i].down);
    wf_supervisor_go_down(w->s, w->p.now_ns);
    wf_played_pass(&w->p, 5000);
    assert_in_range(w->n_reports, 11, 13);
}

static void hangs(world *w, wf_role role, uint32_t index, uint64_t pid)
{
    Weft__Hung body = WEFT__HUNG__INIT;

    body.role = role;
    body.index = index;
    body.pid = pid;
    body.reason = (char *)"nothing heard for 5.0 s";
    wf_played_say(&w->p, WF_HUNG, &body.base);
    wf_played_pass(&w->p, 100);
}

static void a_process_that_hangs_is_killed(void **state)
{
    world *w = *state;
    uint64_t pid;

    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, NULL), WF_OK);
    wf_played_begin_master(&w->p, 7);
    wf_played_pass(&w->p, 5000);
    assert_in_range(w->n_lists, 5, 8);
    assert_int_equal(w->listed[PS], w->pid[PS]);
    assert_int_equal(w->listed[WORKER], w->pid[WORKER]);
    pid = w->pid[WORKER];
    hangs(w, WF_ROLE_WORKER, 4, pid + 1); /* another process */
    hangs(w, WF_ROLE_WORKER, 0, pid);     /* another task */
    hangs(w, WF_ROLE_PS, 0, pid);
    hangs(w, WF_ROLE_MASTER, 0, w->pid[MASTER]);
    assert_int_equal(w->killed, 0);
    hangs(w, WF_ROLE_WORKER, 4, pid);
    hangs(w, WF_ROLE_WORKER, 4, pid); /* it is not dead yet */
    assert_int_equal(w->killed, 1);
    assert_int_equal(w->last_killed, pid);
    die(w, WORKER, by_9);
    wf_played_pass(&w->p, 100);
    assert_int_equal(w->starts[WORKER], 2);
    assert_string_equal(w->reports[0].reason, "it hung (nothing heard for 5.0 s), and was killed");
    hangs(w, WF_ROLE_WORKER, 4, pid); /* late */
    assert_int_equal(w->killed, 1);
    die(w, WORKER, by_9); /* and the next end is its own */
    wf_played_pass(&w->p, 100);
    assert_non_null(strstr(w->reports[1].reason, "killed by signal 9"));
}

/* It answers pings of the supervisor, and does so no more. */
static void a_master_that_hangs_is_killed(void **state)
{
    world *w = *state;
    uint64_t pid;

    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, NULL), WF_OK);
    pid = w->pid[MASTER];
    wf_played_begin_master(&w->p, 7);
    wf_played_pass(&w->p, 3 * MASTER_MS);
    assert_int_equal(w->killed, 0);
    w->p.deaf = true;
    wf_played_pass(&w->p, MASTER_MS / 2);
    w->p.now_ns += 2 * MASTER_MS * MS; /* the supervisor stood still, and not the master alone */
    wf_played_pass(&w->p, MASTER_MS - 100);
    assert_int_equal(w->killed, 0);
    wf_played_pass(&w->p, 200);
    assert_int_equal(w->killed, 1);
    assert_int_equal(w->last_killed, pid);
    wf_played_pass(&w->p, MASTER_MS);
    assert_int_equal(w->killed, 1);
    die(w, MASTER, by_9);
    wf_played_end_master(&w->p);
    wf_played_pass(&w->p, MASTER_MS / 2);
    assert_int_equal(w->starts[MASTER], 2);
    wf_played_begin_master(&w->p, 8);
    wf_played_pass(&w->p, 3 * MASTER_MS);
    assert_int_equal(w->killed, 1);
}

static void wrong_files_leave_a_task_down(void **state)
{
    world *w = *state;

    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, NULL), WF_OK);
    die(w, PS, wrong);
    wf_played_pass(&w->p, 30000);
    assert_int_equal(w->starts[PS], 1);
    assert_string_equal(w->noted, "ended with exit code 2 (its files are wrong); see ps.log");
    wf_supervisor_go_down(w->s, w->p.now_ns);
    assert_int_equal(w->asked, 2);
    die(w, MASTER, by_itself);
    die(w, WORKER, by_itself);
    assert_true(wf_supervisor_is_over(w->s));
}

static void a_task_that_is_down_has_the_last_words(void **state)
{
    world *w = *state;

    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, NULL), WF_OK);
    w->said = "cuda:0: this host has no NVIDIA GPU";
    die(w, WORKER, unable);
    assert_string_equal(w->noted, "ended with exit code 3: cuda:0: this host has no NVIDIA GPU "
                                  "(it cannot do what its files say); see worker.log");
}

static void a_used_up_budget_leaves_a_task_down(void **state)
{
    world *w = *state;
    char why[64];

    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, NULL), WF_OK);
    for (int i = 0; i <= WF_RESTART_BUDGET; i++) {
        die(w, WORKER, by_itself);
        wf_played_pass(&w->p, 5100);
    }
    assert_int_equal(w->starts[WORKER], 1 + WF_RESTART_BUDGET);
    assert_int_equal(w->pid[WORKER], 0);
    snprintf(why, sizeof why, "(%d restarts within 10 minutes); see worker.log", WF_RESTART_BUDGET);
    assert_non_null(strstr(w->noted, why));
}

static void a_start_that_fails_is_tried_again(void **state)
{
    world *w = *state;

    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, NULL), WF_OK);
    wf_played_begin_master(&w->p, 7);
    w->cannot_start[PS] = true;
    die(w, PS, by_9);
    wf_played_pass(&w->p, 1000);
    assert_int_equal(w->starts[PS], 1);
    assert_true(w->n_reports > 2);
    assert_int_equal(w->reports[1].pid, 0);
    assert_string_equal(w->reports[1].reason, "no such program");
    w->cannot_start[PS] = false;
    wf_played_pass(&w->p, 5000);
    assert_int_equal(w->starts[PS], 2);
}

/* The first start of all is another matter: whoever waits for the cluster is told. */
static void a_first_start_that_fails_ends_all(void **state)
{
    world *w = *state;
    wf_err err;

    w->cannot_start[PS] = true;
    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, &err), WF_IO);
    wf_supervisor_go_down(w->s, w->p.now_ns);
    assert_int_equal(w->asked, 1);
    die(w, MASTER, by_itself);
    assert_true(wf_supervisor_is_over(w->s));
    wf_played_pass(&w->p, 10000);
    assert_int_equal(w->starts[WORKER], 0);
}

static void all_go_down_and_nothing_is_started(void **state)
{
    world *w = *state;

    assert_int_equal(wf_supervisor_begin(w->s, w->p.now_ns, NULL), WF_OK);
    wf_played_begin_master(&w->p, 7);
    die(w, PS, by_9);
    wf_supervisor_go_down(w->s, w->p.now_ns); /* while the ps waits for its restart */
    wf_supervisor_go_down(w->s, w->p.now_ns);
    assert_int_equal(w->asked, 2);
    die(w, MASTER, by_itself);
    wf_played_pass(&w->p, 9000);
    assert_int_equal(w->killed, 0);
    assert_false(wf_supervisor_is_over(w->s));
    wf_played_pass(&w->p, 2000); /* the worker has not heard */
    assert_int_equal(w->killed, 1);
    assert_false(wf_supervisor_is_over(w->s));
    die(w, WORKER, by_9);
    assert_true(wf_supervisor_is_over(w->s));
    wf_played_pass(&w->p, 10000);
    assert_int_equal(w->pids, N_TASKS);
    assert_int_equal(w->n_reports, 1); /* of the ps: what was ordered is no death */
}

static void delays_double_and_a_long_life_makes_them_short(void **state)
{
    wf_restart r = {0};
    int64_t at, now = 1;

    (void)state;
    for (int64_t want = 50; want < 5000; want *= 2) {
        assert_true(wf_restart_on_death(&r, now, now, &at));
        assert_int_equal((at - now) / MS, want);
    }
    assert_true(wf_restart_on_death(&r, now, now, &at));
    assert_int_equal(at - now, WF_RESTART_MOST_NS);
    assert_true(wf_restart_on_death(&r, now, now + WF_RESTART_HEALTHY_NS, &at));
    assert_int_equal(at - now - WF_RESTART_HEALTHY_NS, WF_RESTART_FIRST_NS);
}

static void a_budget_ends_what_dies_always(void **state)
{
    wf_restart r = {0};
    int64_t at, now = 1;

    (void)state;
    for (int i = 0; i < WF_RESTART_BUDGET; i++, now += WF_NS_PER_S)
        assert_true(wf_restart_on_death(&r, now, now, &at));
    assert_false(wf_restart_on_death(&r, now, now, &at));
    now += WF_RESTART_WINDOW_NS;
    assert_true(wf_restart_on_death(&r, now, now, &at));
}

/* Only wrong files (2, 3) and another process in the task's place (4) make starting it again
 * useless; SIGTERM, which ends a task with 0, does not. */
static void a_task_comes_back_whatever_ended_it(void **state)
{
    (void)state;
    for (int code = 0; code < 256; code++) {
        bool useless = wf_restart_useless((wf_exit){.code = code}) != NULL;

        assert_int_equal(useless, code >= 2 && code <= 4);
    }
    for (int number = 1; number < 32; number++)
        assert_null(wf_restart_useless((wf_exit){.signal = number}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_dies_is_started_again, begin, finish),
        cmocka_unit_test_setup_teardown(the_master_learns_of_ends_when_it_can, begin, finish),
        cmocka_unit_test_setup_teardown(a_task_that_is_down_is_reported_again_and_again, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_process_that_hangs_is_killed, begin, finish),
        cmocka_unit_test_setup_teardown(a_master_that_hangs_is_killed, begin, finish),
        cmocka_unit_test_setup_teardown(wrong_files_leave_a_task_down, begin, finish),
        cmocka_unit_test_setup_teardown(a_task_that_is_down_has_the_last_words, begin, finish),
        cmocka_unit_test_setup_teardown(a_used_up_budget_leaves_a_task_down, begin, finish),
        cmocka_unit_test_setup_teardown(a_start_that_fails_is_tried_again, begin, finish),
        cmocka_unit_test_setup_teardown(a_first_start_that_fails_ends_all, begin, finish),
        cmocka_unit_test_setup_teardown(all_go_down_and_nothing_is_started, begin, finish),
        cmocka_unit_test(delays_double_and_a_long_life_makes_them_short),
        cmocka_unit_test(a_budget_ends_what_dies_always),
        cmocka_unit_test(a_task_comes_back_whatever_ended_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
