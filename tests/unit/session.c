/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/session.c - what a ps and a worker do toward the master alike: they register over each
 * fresh link, and say a fault again with it. The master is played by hand, over a transport in
 * memory. */
#include "common/wire/session.h"
#include "common/wire/control.h"
#include "tests/kit/played_master.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { JOB = 3, MOST = 8 };

typedef struct world {
    wf_played_master p;
    wf_session session;
    uint32_t downs; /* of the task's link */
    /* what the master has got, in order */
    uint32_t n;
    uint16_t kinds[MOST];
    wf_header heads[MOST];
    char fault[64], registered[16];
    uint64_t fault_begin, fault_end;
} world;

static void stamp(const void *role, wf_header *head)
{
    head->job = *(const uint16_t *)role;
}

static const uint16_t job = JOB;

static void hear(void *arg, const wf_msg *m)
{
    world *w = arg;
    Weft__Fault *fault = NULL;
    Weft__Register *body = NULL;

    assert_true(w->n < MOST);
    w->heads[w->n] = m->head;
    w->kinds[w->n++] = m->head.kind;
    if (m->head.kind == WF_FAULT) {
        assert_int_equal(wf_control_get(m, &weft__fault__descriptor, &fault, NULL), WF_OK);
        snprintf(w->fault, sizeof w->fault, "%s", fault->what);
        w->fault_begin = fault->split ? fault->split->begin : 0;
        w->fault_end = fault->split ? fault->split->end : 0;
        wf_control_free(&fault);
    } else if (m->head.kind == WF_REGISTER) {
        assert_int_equal(wf_control_get(m, &weft__register__descriptor, &body, NULL), WF_OK);
        snprintf(w->registered, sizeof w->registered, "%s", body->session);
        wf_control_free(&body);
    }
}

static void enrol(world *w)
{
    Weft__Register body = WEFT__REGISTER__INIT;

    body.job = "";
    assert_int_equal(wf_session_register(&w->session, &body, NULL), WF_OK);
}

static void on_event(void *arg, wf_event *ev)
{
    world *w = arg;

    w->downs += ev->kind == WF_EV_DOWN;
    if (ev->kind == WF_EV_UP)
        enrol(w);
    if (ev->kind == WF_EV_DOWN)
        wf_session_lost(&w->session, w->p.now_ns);
}

static void advance(void *arg)
{
    wf_session_advance(&((world *)arg)->session);
}

static void begin_master(world *w, uint64_t incarnation)
{
    w->n = 0;
    wf_played_begin_master(&w->p, incarnation);
}

static int begin(void **state)
{
    static world w;
    const wf_task self = {WF_ROLE_WORKER, 2};

    w = (world){0};
    wf_played_init(&w.p, self, 5, &(wf_played_acts){&w, on_event, advance, hear});
    w.session = (wf_session){.net = w.p.net,
                             .peer = w.p.peer,
                             .self = self,
                             .supervisor = "s7",
                             .stamp = stamp,
                             .role = &job};
    *state = &w;
    return 0;
}

static int finish(void **state)
{
    world *w = *state;

    wf_played_close(&w->p);
    return 0;
}

/* ---- tests ---- */

static void without_a_link_nothing_is_sent(void **state)
{
    world *w = *state;

    assert_int_equal(wf_session_send(&w->session, WF_SPLIT_WANT, NULL, NULL), WF_OK);
    begin_master(w, 1);
    assert_int_equal(w->n, 1); /* no message from before the link comes ahead of the register */
    assert_int_equal(w->kinds[0], WF_REGISTER);
    assert_int_equal(w->heads[0].job, JOB);
    assert_string_equal(w->registered, "s7");
    assert_int_equal(wf_session_send(&w->session, WF_SPLIT_WANT, NULL, NULL), WF_OK);
    wf_played_pass(&w->p, 100);
    assert_int_equal(w->n, 2);
    assert_int_equal(w->kinds[1], WF_SPLIT_WANT);
    assert_int_equal(w->heads[1].job, JOB);
}

static void a_fault_follows_each_register_until_it_is_forgotten(void **state)
{
    world *w = *state;
    const wf_err first = {.status = WF_IO, .what = "a disk fails"},
                 second = {.status = WF_NUMERIC, .what = "what follows from it"};
    Weft__Split split = WEFT__SPLIT__INIT;

    split.begin = 10;
    split.end = 20;
    begin_master(w, 1);
    wf_session_fault(&w->session, &first, &split);
    wf_session_fault(&w->session, &second, NULL);
    wf_played_pass(&w->p, 100);
    assert_int_equal(w->n, 3);
    assert_int_equal(w->kinds[2], WF_FAULT);
    assert_string_equal(w->fault, "a disk fails");
    assert_int_equal(w->fault_begin, 10);
    assert_int_equal(w->fault_end, 20);
    wf_played_end_master(&w->p);
    begin_master(w, 2);
    assert_int_equal(w->n, 2);
    assert_int_equal(w->kinds[0], WF_REGISTER);
    assert_int_equal(w->kinds[1], WF_FAULT);
    wf_session_forget_fault(&w->session);
    wf_played_end_master(&w->p);
    begin_master(w, 3);
    assert_int_equal(w->n, 1);
    wf_session_fault(&w->session, &second, NULL); /* of the next job */
    wf_played_pass(&w->p, 100);
    assert_string_equal(w->fault, "what follows from it");
    assert_int_equal(w->fault_end, 0);
}

static void an_idle_task_waits_for_a_link_alone(void **state)
{
    world *w = *state;
    int64_t alone_ns;
    wf_waiting wait;

    wf_session_waiting(&w->session, &wait);
    assert_int_equal(wait.whom.role, WF_ROLE_MASTER);
    assert_int_equal(wait.since_ns, 0);
    begin_master(w, 1);
    wf_session_waiting(&w->session, &wait);
    assert_int_equal(wait.whom.role, WF_ROLE_NONE);
    wf_played_end_master(&w->p);
    alone_ns = w->p.now_ns;
    begin_master(w, 2); /* the link to the one before is lost with it */
    assert_int_equal(w->downs, 1);
    wf_session_waiting(&w->session, &wait);
    assert_int_equal(wait.whom.role, WF_ROLE_NONE);
    assert_true(wait.since_ns >= alone_ns);
}

static void a_dismissal_says_why(void **state)
{
    world *w = *state;
    wf_msg m = {.head = {.kind = WF_DISMISS, .request = WF_DISMISS_SUPERSEDED}};
    wf_err err;

    assert_int_equal(wf_session_on_dismiss(&w->session, &m, &err), WF_SUPERSEDED);
    assert_string_equal(err.what, "worker 2: a newer process has this task's place");
    m.head.request = WF_DISMISS_RESTART;
    assert_int_equal(wf_session_on_dismiss(&w->session, &m, &err), WF_TIMEOUT);
    assert_non_null(strstr(err.what, "worker 2: the master gave this process up"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_link_nothing_is_sent, begin, finish),
        cmocka_unit_test_setup_teardown(a_fault_follows_each_register_until_it_is_forgotten, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(an_idle_task_waits_for_a_link_alone, begin, finish),
        cmocka_unit_test_setup_teardown(a_dismissal_says_why, begin, finish),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
