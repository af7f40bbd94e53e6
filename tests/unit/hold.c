/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/hold.c - a worker that holds for a checkpoint trains nothing until the master says so.
 * The master is played by hand, over a transport in memory; the job has no variables, and no ps. */
#include "common/base/clock.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "tests/kit/idle_shell.h"
#include "tests/kit/memnet.h"
#include "worker/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS WF_NS_PER_MS
enum { JOB = 1, GENERATION = 1, CUT = 7, ENDLESS = 1 << 20 };
static const wf_task master_task = {WF_ROLE_MASTER, 0};

typedef struct world {
    wf_memnet nets;
    wf_net *master, *net; /* net: the worker's */
    wf_peer *to_worker;
    wf_worker *worker;
    int64_t now_ns;
    wf_idle_shell shell;
    uint32_t got[WF_N_KINDS]; /* by the master */
    uint32_t registered_cut;  /* the hold that the worker has registered last */
} world;

/* ---- everybody's turn ---- */

static void note_register(world *w, const wf_msg *m)
{
    Weft__Register *body = NULL;

    assert_int_equal(wf_control_get(m, &weft__register__descriptor, &body, NULL), WF_OK);
    w->registered_cut = body->cut;
    wf_control_free(&body);
}

static void run_master(world *w)
{
    wf_event ev;

    wf_net_poll(w->master, w->now_ns);
    while (wf_net_event(w->master, w->now_ns, &ev)) {
        w->to_worker = ev.kind == WF_EV_DOWN ? NULL : ev.peer;
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        w->got[ev.msg->head.kind]++;
        if (ev.msg->head.kind == WF_REGISTER)
            note_register(w, ev.msg);
        wf_net_free_msg(w->master, &ev.msg);
    }
    wf_net_flush(w->master, w->now_ns);
}

static void run_worker(world *w)
{
    wf_event ev;

    wf_net_poll(w->net, w->now_ns);
    while (wf_net_event(w->net, w->now_ns, &ev))
        assert_int_equal(wf_worker_on_event(w->worker, &ev, w->now_ns, NULL), WF_OK);
    assert_int_equal(wf_worker_advance(w->worker, w->now_ns, NULL), WF_OK);
    assert_int_equal(wf_idle_shell_end_step(&w->shell, w->worker, NULL), WF_OK);
    wf_net_flush(w->net, w->now_ns);
}

static void turn(world *w, int64_t ms)
{
    for (int64_t k = 0; k <= ms / 10; k++) {
        run_worker(w);
        run_master(w);
        w->now_ns += 10 * MS;
    }
}

static void say(world *w, uint16_t kind, uint32_t cut, const ProtobufCMessage *body)
{
    wf_msg *m = NULL;

    assert_non_null(w->to_worker);
    assert_int_equal(wf_net_msg(w->master, kind, &m, NULL), WF_OK);
    if (body)
        assert_int_equal(wf_control_put(m, body, NULL), WF_OK);
    m->head.job = JOB;
    m->head.generation = GENERATION;
    m->head.cut = cut;
    assert_int_equal(wf_net_send(w->master, w->to_worker, WF_LANE_CONTROL, 0, &m, NULL), WF_OK);
    turn(w, 50);
}

static void begin_master(world *w, uint64_t incarnation)
{
    wf_net_conf c = wf_memnet_conf(&w->nets, master_task, incarnation);

    w->master = wf_memnet_new(&c);
    wf_memnet_listen(&w->nets, w->master, "m");
    turn(w, 3000);
    assert_non_null(w->to_worker);
}

/* A worker that trains, and then holds for CUT. */
static int begin(void **state)
{
    static world w;
    Weft__Start body = WEFT__START__INIT;
    Weft__View view = WEFT__VIEW__INIT;
    Weft__Split split = WEFT__SPLIT__INIT;
    Weft__Cut cut = WEFT__CUT__INIT;
    wf_worker_conf conf = {.incarnation = 2, .progress_ns = 1000 * MS, .session = ""};
    wf_net_conf c;
    wf_peer *master;

    w = (world){.now_ns = 1000 * MS, .shell.records = ENDLESS};
    conf.ops = wf_idle_shell_ops(&w.shell);
    wf_memnet_init(&w.nets, "demo");
    c = wf_memnet_conf(&w.nets, (wf_task){WF_ROLE_WORKER, 0}, 2);
    w.net = wf_memnet_new(&c);
    master = wf_memnet_dial(&w.nets, w.net, master_task, "m");
    assert_int_equal(wf_worker_new(&conf, w.net, master, &w.worker, NULL), WF_OK);
    begin_master(&w, 1);
    body.job = "one";
    body.strategy = "parameter_server";
    body.view = &view;
    say(&w, WF_START, 0, &body.base);
    split.end = ENDLESS;
    say(&w, WF_SPLIT, 0, &split.base);
    assert_true(w.shell.steps > 0);
    cut.chief = 99; /* another worker */
    say(&w, WF_CUT_OPEN, CUT, &cut.base);
    assert_int_equal(w.got[WF_CUT_REPORT], 1);
    *state = &w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;

    wf_worker_free(&w->worker);
    wf_net_free(&w->net, 0);
    wf_net_free(&w->master, 0);
    wf_memnet_close(&w->nets);
    return 0;
}

/* ---- the tests ---- */

static void a_hold_ends_with_the_masters_word_for_this_cut(void **state)
{
    world *w = *state;
    uint32_t steps = w->shell.steps;

    turn(w, 1000);
    say(w, WF_CUT_RESUME, CUT - 1, NULL);
    assert_int_equal(w->shell.steps, steps);
    say(w, WF_CUT_RESUME, CUT, NULL);
    assert_true(w->shell.steps > steps);
}

/* The master has started again. Records that the worker trained now would be in no ledger. */
static void a_hold_outlives_the_link_and_is_reported_again(void **state)
{
    world *w = *state;
    uint32_t steps = w->shell.steps;

    wf_net_free(&w->master, 0);
    w->to_worker = NULL;
    begin_master(w, 3);
    assert_int_equal(w->registered_cut, CUT);
    assert_int_equal(w->got[WF_CUT_REPORT], 2);
    assert_int_equal(w->shell.steps, steps);
    say(w, WF_CUT_RESUME, CUT, NULL);
    assert_true(w->shell.steps > steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hold_ends_with_the_masters_word_for_this_cut, begin, end),
        cmocka_unit_test_setup_teardown(a_hold_outlives_the_link_and_is_reported_again, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
