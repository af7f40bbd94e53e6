/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/net.c - who may come in, what they are told who may not, and what becomes of links. */
#include "common/wire/net.h"
#include "common/base/clock.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/mem.h"
#include "tests/kit/memnet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS WF_NS_PER_MS
static const wf_task master = {WF_ROLE_MASTER, 0}, ps0 = {WF_ROLE_PS, 0},
                     worker3 = {WF_ROLE_WORKER, 3};

typedef struct world {
    wf_memnet nets;
    int64_t now_ns;
} world;

static wf_net_conf conf_of(world *w, wf_task self, uint64_t incarnation)
{
    return wf_memnet_conf(&w->nets, self, incarnation);
}

static wf_net *serve(world *w, const wf_net_conf *conf, const char *address)
{
    wf_net *n = wf_memnet_new(conf);

    wf_memnet_listen(&w->nets, n, address);
    return n;
}

static wf_net *dial(world *w, const wf_net_conf *conf, wf_task to, const char *address, wf_peer **p)
{
    wf_net *n = wf_memnet_new(conf);

    *p = wf_memnet_dial(&w->nets, n, to, address);
    return n;
}

/* Takes the next event, which must be of `kind`. */
static wf_event expect(world *w, wf_net *n, wf_event_kind kind)
{
    wf_event ev;

    assert_true(wf_net_event(n, w->now_ns, &ev));
    assert_int_equal(ev.kind, kind);
    return ev;
}

static void expect_nothing(world *w, wf_net *n)
{
    wf_event ev;

    assert_false(wf_net_event(n, w->now_ns, &ev));
}

static void poll_both(world *w, wf_net *a, wf_net *b)
{
    for (int i = 0; i < 4; i++) {
        wf_net_poll(a, w->now_ns);
        wf_net_poll(b, w->now_ns);
    }
}

/* A link between the two comes up. */
static void expect_link(world *w, wf_net *dialler, wf_net *listener)
{
    poll_both(w, dialler, listener);
    expect(w, dialler, WF_EV_UP);
    expect(w, listener, WF_EV_UP);
}

/* The listener has forgotten the link: the dialler hears of it, and a new one comes up. */
static void expect_fresh_link(world *w, wf_net *dialler, wf_net *listener)
{
    poll_both(w, dialler, listener);
    expect(w, dialler, WF_EV_DOWN);
    expect_link(w, dialler, listener);
}

static void expect_step(world *w, wf_net *n, uint32_t step)
{
    wf_event ev = expect(w, n, WF_EV_MESSAGE);

    assert_int_equal(ev.msg->head.step, step);
    wf_net_free_msg(n, &ev.msg);
}

static void say(wf_net *n, wf_peer *to, uint16_t kind, uint32_t step)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(n, kind, &m, NULL), WF_OK);
    m->head.step = step;
    assert_int_equal(wf_net_send(n, to, WF_LANE_CONTROL, 0, &m, NULL), WF_OK);
}

static int set_up(void **state)
{
    static world w;

    w = (world){.now_ns = 1000 * MS};
    wf_memnet_init(&w.nets, "demo");
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    wf_memnet_close(&((world *)*state)->nets);
    return 0;
}

static void a_hello_opens_a_link_both_ways(void **state)
{
    world *w = *state;
    wf_net_conf m = conf_of(w, master, 1), k = conf_of(w, worker3, 2);
    wf_net *a = serve(w, &m, "m"), *b;
    wf_peer *to_master = NULL;
    wf_event ev;

    k.pid = 4711;
    b = dial(w, &k, master, "m", &to_master);
    say(b, to_master, WF_SPLIT_WANT, 8); /* before the link is there: it waits */
    poll_both(w, b, a);
    expect(w, b, WF_EV_UP);
    ev = expect(w, a, WF_EV_UP);
    assert_true(wf_task_same(ev.peer->task, worker3));
    assert_int_equal(ev.peer->pid, 4711);
    poll_both(w, b, a);
    expect_step(w, a, 8);
    say(a, ev.peer, WF_HALT, 9);
    poll_both(w, a, b);
    expect_step(w, b, 9);
    wf_net_free(&a, 0);
    wf_net_free(&b, 0);
}

static void refused(world *w, const wf_net_conf *k, wf_task to, const char *words)
{
    wf_net_conf m = conf_of(w, master, 1);
    wf_peer *to_master = NULL;
    wf_net *a = serve(w, &m, "m"), *b = dial(w, k, to, "m", &to_master);
    wf_event ev;

    poll_both(w, b, a);
    ev = expect(w, b, WF_EV_REFUSED);
    if (!strstr(ev.err.what, words))
        fail_msg("\"%s\" does not say \"%s\"", ev.err.what, words);
    expect_nothing(w, a);
    wf_net_free(&a, 0);
    wf_net_free(&b, 0);
}

static void another_cluster_is_refused_with_both_names(void **state)
{
    world *w = *state;
    wf_net_conf k = conf_of(w, worker3, 2);

    k.cluster = "other";
    refused(w, &k, master,
            "worker/3 belongs to cluster \"other\", master here to cluster \"demo\"");
}

static void who_dials_another_task_is_told_whom_it_reached(void **state)
{
    world *w = *state;
    wf_net_conf k = conf_of(w, worker3, 2);

    refused(w, &k, ps0, "worker/3 dialled ps 0 and reached master");
}

static wf_status only_worker_0(void *arg, const wf_hello *hello, wf_err *err)
{
    (void)arg;
    if (hello->task.index == 0)
        return WF_OK;
    return wf_fail(err, WF_MISMATCH, NULL, "there is no worker %u", hello->task.index);
}

static void the_role_has_the_last_word(void **state)
{
    world *w = *state;
    wf_net_conf m = conf_of(w, master, 1), k = conf_of(w, worker3, 2);
    wf_peer *to_master = NULL;
    wf_net *a, *b;
    wf_event ev;

    m.admit = only_worker_0;
    a = serve(w, &m, "m");
    b = dial(w, &k, master, "m", &to_master);
    poll_both(w, b, a);
    ev = expect(w, b, WF_EV_REFUSED);
    assert_string_equal(ev.err.what, "there is no worker 3");
    assert_int_equal(ev.err.status, WF_MISMATCH);
    wf_net_free(&a, 0);
    wf_net_free(&b, 0);
}

/* A hello made by hand, from a release of another time. */
static void hello_by_hand(world *w, uint32_t least, uint32_t most, uint32_t role, wf_err *err)
{
    Weft__Hello body = WEFT__HELLO__INIT;
    Weft__Refuse *answer = NULL;
    wf_net_conf m = conf_of(w, master, 1);
    wf_net *a = serve(w, &m, "m");
    wf_stranger stranger;
    wf_msg *msg;

    body.version_least = least;
    body.version_most = most;
    body.cluster = "demo";
    body.role = role;
    body.peer_role = WF_ROLE_MASTER;
    body.release = "9.1";
    wf_stranger_dial(&stranger, &w->nets, "m");
    wf_stranger_send(&stranger, WF_HELLO, 5, 6, &body.base);
    wf_net_poll(a, w->now_ns);
    expect_nothing(w, a);
    msg = wf_stranger_receive(&stranger);
    assert_non_null(msg);
    assert_int_equal(msg->head.kind, WF_REFUSE);
    assert_int_equal(wf_control_get(msg, &weft__refuse__descriptor, &answer, NULL), WF_OK);
    wf_fail(err, (wf_status)answer->status, answer->hint, "%s", answer->what);
    wf_control_free(&answer);
    wf_msg_free(&stranger.pool, &msg);
    wf_stranger_close(&stranger);
    wf_net_free(&a, 0);
}

static void another_protocol_is_told_which_side_to_upgrade(void **state)
{
    wf_err err;

    hello_by_hand(*state, 7, 9, WF_ROLE_WORKER, &err);
    assert_non_null(strstr(err.what, "worker/0 (weft 9.1) speaks protocol 7 to 9, master (weft "));
    assert_string_equal(err.hint, "upgrade the master");
    hello_by_hand(*state, 0, 0, WF_ROLE_WORKER, &err);
    assert_string_equal(err.hint, "upgrade worker/0");
}

static void a_role_that_never_dials_is_refused(void **state)
{
    wf_err err;

    hello_by_hand(*state, 1, 1, WF_ROLE_MASTER, &err);
    assert_non_null(strstr(err.what, "role number 1"));
    hello_by_hand(*state, 1, 1, 31, &err);
    assert_non_null(strstr(err.what, "role number 31"));
    hello_by_hand(*state, 1, 1, UINT32_MAX, &err);
    assert_non_null(strstr(err.what, "role number 4294967295"));
}

static void a_new_life_of_a_served_task_is_a_fresh_link(void **state)
{
    world *w = *state;
    wf_net_conf m = conf_of(w, master, 1), k = conf_of(w, worker3, 2);
    wf_peer *to_master = NULL;
    wf_net *a = serve(w, &m, "m"), *b = dial(w, &k, master, "m", &to_master);

    expect_link(w, b, a);
    wf_net_free(&a, 0);
    m.incarnation = 77;
    a = serve(w, &m, "m");
    say(b, to_master, WF_SPLIT_WANT, 1); /* of the old link: it must not arrive on the new one */
    w->now_ns += 1500 * MS;
    poll_both(w, b, a);
    w->now_ns += 1500 * MS;
    poll_both(w, b, a);
    expect(w, b, WF_EV_DOWN);
    expect(w, b, WF_EV_UP);
    assert_int_equal(to_master->incarnation, 77);
    expect(w, a, WF_EV_UP);
    expect_nothing(w, a);
    wf_net_free(&a, 0);
    wf_net_free(&b, 0);
}

static void who_is_forgotten_hears_of_it_and_comes_again(void **state)
{
    world *w = *state;
    wf_net_conf m = conf_of(w, master, 1), k = conf_of(w, worker3, 2);
    wf_peer *to_master = NULL;
    wf_net *a = serve(w, &m, "m"), *b = dial(w, &k, master, "m", &to_master);

    expect_link(w, b, a);
    w->now_ns += 6000 * MS; /* b stands still */
    wf_net_poll(a, w->now_ns);
    expect_nothing(w, a);
    w->now_ns += 30000 * MS;
    wf_net_poll(a, w->now_ns);
    expect(w, a, WF_EV_DOWN);
    expect_nothing(w, a);
    say(b, to_master, WF_SPLIT_WANT, 1);
    expect_fresh_link(w, b, a);
    wf_net_free(&a, 0);
    wf_net_free(&b, 0);
}

/* Its hellos name the link that it believes in: with a new link of the same start, messages of the
 * old one would be waited for that nobody sends any more. */
static void a_link_that_one_side_forgot_is_made_anew_by_itself(void **state)
{
    world *w = *state;
    wf_net_conf m = conf_of(w, master, 1), k = conf_of(w, worker3, 2);
    wf_peer *to_master = NULL;
    wf_net *a = serve(w, &m, "m"), *b = dial(w, &k, master, "m", &to_master);

    say(b, to_master, WF_SPLIT_WANT, 1);
    expect_link(w, b, a);
    expect_step(w, a, 1);
    w->now_ns += 40000 * MS;
    wf_net_poll(a, w->now_ns);
    expect(w, a, WF_EV_DOWN);
    expect_nothing(w, a);
    expect_fresh_link(w, b, a);
    say(b, to_master, WF_SPLIT_WANT, 2);
    poll_both(w, b, a);
    expect_step(w, a, 2);
    wf_net_free(&a, 0);
    wf_net_free(&b, 0);
}

static void who_closes_its_net_leaves_at_once(void **state)
{
    world *w = *state;
    wf_net_conf m = conf_of(w, master, 1), k = conf_of(w, worker3, 2);
    wf_peer *to_master = NULL;
    wf_net *a = serve(w, &m, "m"), *b = dial(w, &k, master, "m", &to_master);

    expect_link(w, b, a);
    assert_int_equal(wf_net_accepted_of(a, WF_ROLE_WORKER), 1);
    wf_net_free(&b, 100);
    wf_net_poll(a, w->now_ns);
    expect(w, a, WF_EV_DOWN);
    expect_nothing(w, a);
    assert_int_equal(wf_net_accepted_of(a, WF_ROLE_WORKER), 0);
    wf_net_free(&a, 0);
}

static void what_the_grammar_does_not_allow_is_counted_and_dropped(void **state)
{
    world *w = *state;
    wf_net_conf m = conf_of(w, master, 1), k = conf_of(w, worker3, 2);
    wf_peer *to_master = NULL;
    wf_net *a = serve(w, &m, "m"), *b = dial(w, &k, master, "m", &to_master);

    expect_link(w, b, a);
    say(b, to_master, WF_SETUP_OK, 1); /* a worker's word it is not */
    poll_both(w, b, a);
    expect_nothing(w, a);
    assert_true(wf_net_bad_messages(a) > 0);
    wf_net_free(&a, 0);
    wf_net_free(&b, 0);
}

/* ---- a late hello ---- */

typedef struct keeper {
    world *w;
    wf_packet kept;
    bool keep; /* the next hello */
} keeper;

static void carry(void *arg, const wf_packet *packet)
{
    keeper *k = arg;
    wf_packet p = *packet;

    if (k->keep && p.msg->head.kind == WF_HELLO &&
        wf_mem_repeat(k->w->nets.mem, &p, &k->kept, NULL) == WF_OK)
        k->keep = false;
    wf_mem_deliver(k->w->nets.mem, &p);
}

static void a_late_hello_does_not_replace_a_newer_link(void **state)
{
    world *w = *state;
    keeper k = {.w = w, .keep = true};
    wf_net_conf m = conf_of(w, master, 1), c = conf_of(w, worker3, 2);
    wf_peer *to_master = NULL;
    wf_net *a = serve(w, &m, "m"), *b;

    wf_mem_set_carrier(w->nets.mem, carry, &k);
    b = dial(w, &c, master, "m", &to_master);
    expect_link(w, b, a);
    assert_false(k.keep);    /* one is kept */
    w->now_ns += 40000 * MS; /* the link is lost, and a new one made */
    wf_net_poll(a, w->now_ns);
    expect(w, a, WF_EV_DOWN);
    say(b, to_master, WF_SPLIT_WANT, 1);
    expect_fresh_link(w, b, a);
    wf_mem_deliver(w->nets.mem, &k.kept);
    poll_both(w, b, a);
    expect_nothing(w, a);
    say(b, to_master, WF_SPLIT_WANT, 2);
    poll_both(w, b, a);
    expect_step(w, a, 2);
    wf_net_free(&a, 0);
    wf_net_free(&b, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hello_opens_a_link_both_ways, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_cluster_is_refused_with_both_names, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_dials_another_task_is_told_whom_it_reached, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_role_has_the_last_word, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_protocol_is_told_which_side_to_upgrade, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_role_that_never_dials_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_new_life_of_a_served_task_is_a_fresh_link, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_is_forgotten_hears_of_it_and_comes_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_link_that_one_side_forgot_is_made_anew_by_itself, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_closes_its_net_leaves_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_grammar_does_not_allow_is_counted_and_dropped,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_hello_does_not_replace_a_newer_link, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
