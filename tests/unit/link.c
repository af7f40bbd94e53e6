/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/link.c - two ends of a link, and between them a channel that loses, repeats and
 * reorders by a seed. */
#include "common/wire/link.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/wire/grammar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 4096, MS = WF_NS_PER_MS };
#define FIRST_A UINT64_C(0x7000000000000000)
#define FIRST_B UINT64_C(5)

typedef struct end {
    wf_link *link;
    wf_msg *arriving[MOST];
    size_t n;
} end;

typedef struct channel {
    wf_msg_pool pool;
    end a, b;
    uint64_t seed, draws;
    uint32_t drop_percent, dup_percent;
    int64_t now_ns;
} channel;

static uint64_t below(channel *c, uint64_t n)
{
    return wf_rng_below((wf_rng_key){c->seed, 1}, c->draws++, n);
}

static void open_channel(channel *c, uint64_t seed, size_t credit_bytes)
{
    wf_link_conf conf = {.incarnation = 11,
                         .first = FIRST_A,
                         .peer_first = FIRST_B,
                         .credit_bytes = credit_bytes,
                         .probe_ns = 100 * MS,
                         .ack_delay_ns = 5 * MS};

    memset(c, 0, sizeof *c);
    c->seed = seed;
    assert_int_equal(wf_link_new(&conf, &c->pool, &c->a.link, NULL), WF_OK);
    conf.incarnation = 22;
    conf.first = FIRST_B;
    conf.peer_first = FIRST_A;
    assert_int_equal(wf_link_new(&conf, &c->pool, &c->b.link, NULL), WF_OK);
}

static void close_channel(channel *c)
{
    for (size_t i = 0; i < c->a.n; i++)
        wf_msg_free(&c->pool, &c->a.arriving[i]);
    for (size_t i = 0; i < c->b.n; i++)
        wf_msg_free(&c->pool, &c->b.arriving[i]);
    wf_link_free(&c->a.link);
    wf_link_free(&c->b.link);
    wf_msg_pool_close(&c->pool);
}

static void push(channel *c, end *to, const wf_msg *m)
{
    wf_msg *copy = NULL;

    if (below(c, 100) < c->drop_percent)
        return;
    assert_true(to->n < MOST);
    assert_int_equal(wf_msg_copy(&c->pool, m, &copy, NULL), WF_OK);
    to->arriving[to->n++] = copy;
}

static void ping(channel *c, end *from, end *to)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_msg_new(&c->pool, WF_PING, &m, NULL), WF_OK);
    wf_link_ping(from->link, c->now_ns, &m->head);
    push(c, to, m);
    wf_msg_free(&c->pool, &m);
}

static void send_due(channel *c, end *from, end *to)
{
    const wf_msg *m;

    while ((m = wf_link_next(from->link, c->now_ns))) {
        push(c, to, m);
        if (below(c, 100) < c->dup_percent)
            push(c, to, m);
    }
    if (wf_link_ping_due(from->link, c->now_ns))
        ping(c, from, to);
}

/* What a net does with a message of a link. */
static void hand_over(channel *c, end *to, end *from, wf_msg *m)
{
    wf_msg *resend = NULL;
    wf_header head;

    if (m->head.kind == WF_RESEND) {
        wf_link_on_resend(to->link, c->now_ns, &m->head);
        wf_msg_free(&c->pool, &m);
        return;
    }
    if (m->head.kind == WF_PING && wf_link_on_ping(to->link, c->now_ns, &m->head, &head)) {
        assert_int_equal(wf_msg_new(&c->pool, WF_RESEND, &resend, NULL), WF_OK);
        resend->head.ack = head.ack;
        resend->head.step = head.step;
        push(c, from, resend);
        wf_msg_free(&c->pool, &resend);
    }
    wf_link_on_message(to->link, c->now_ns, &m);
}

/* Any of those that are on their way arrives next. */
static void arrive(channel *c, end *to, end *from)
{
    for (size_t n = to->n; n > 0; n--) {
        size_t at = below(c, to->n);
        wf_msg *m = to->arriving[at];

        to->arriving[at] = to->arriving[--to->n];
        hand_over(c, to, from, m);
    }
}

/* All that is on its way arrives, in order. */
static void arrive_in_order(channel *c, end *to, end *from)
{
    size_t n = to->n;

    for (size_t i = 0; i < n; i++)
        hand_over(c, to, from, to->arriving[i]);
    memmove(to->arriving, to->arriving + n, (to->n - n) * sizeof(*to->arriving));
    to->n -= n;
}

static void say(channel *c, end *from, wf_lane lane, uint64_t key, uint32_t number)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_msg_new(&c->pool, WF_PUSH, &m, NULL), WF_OK);
    m->head.step = number;
    assert_int_equal(wf_link_send(from->link, lane, key, &m, NULL), WF_OK);
    assert_null(m);
}

static uint32_t take_all(channel *c, end *at, uint32_t next)
{
    wf_msg *m;

    while ((m = wf_link_take(at->link, c->now_ns))) {
        assert_int_equal(m->head.step, next);
        next++;
        wf_msg_free(&c->pool, &m);
    }
    return next;
}

static void lossy(uint64_t seed)
{
    uint32_t said = 0, at_a = 1, at_b = 1;
    const uint32_t all = 300;
    channel *c = test_malloc(sizeof *c);

    open_channel(c, seed, 4096);
    c->drop_percent = (uint32_t)(seed % 40);
    c->dup_percent = (uint32_t)(seed % 23);
    for (int round = 0; round < 20000 && (at_a <= all || at_b <= all); round++) {
        for (uint64_t k = below(c, 6); k > 0 && said < all; k--) {
            said++;
            say(c, &c->a, WF_LANE_CONTROL, 0, said);
            say(c, &c->b, WF_LANE_CONTROL, 0, said);
        }
        send_due(c, &c->a, &c->b);
        send_due(c, &c->b, &c->a);
        c->now_ns += (int64_t)below(c, 30) * MS;
        arrive(c, &c->a, &c->b);
        arrive(c, &c->b, &c->a);
        at_a = take_all(c, &c->a, at_a);
        at_b = take_all(c, &c->b, at_b);
    }
    assert_int_equal(at_a, all + 1);
    assert_int_equal(at_b, all + 1);
    close_channel(c);
    test_free(c);
}

static void each_message_is_taken_once_and_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        lossy(seed);
}

static void unacknowledged_bytes_stay_within_the_credit(void **state)
{
    static channel c;
    const wf_msg *m;
    size_t flying = 0;

    (void)state;
    open_channel(&c, 1, 10 * WF_HEADER_BYTES);
    for (uint32_t i = 1; i <= 50; i++)
        say(&c, &c.a, WF_LANE_CONTROL, 0, i);
    while ((m = wf_link_next(c.a.link, 0)))
        flying += wf_msg_bytes(m);
    assert_int_equal(flying, 10 * WF_HEADER_BYTES);
    assert_false(wf_link_idle(c.a.link));
    close_channel(&c);
}

static void a_message_larger_than_the_credit_goes_by_itself(void **state)
{
    static channel c;

    (void)state;
    open_channel(&c, 1, WF_HEADER_BYTES / 2);
    say(&c, &c.a, WF_LANE_CONTROL, 0, 1);
    say(&c, &c.a, WF_LANE_CONTROL, 0, 2);
    assert_non_null(wf_link_next(c.a.link, 0));
    assert_null(wf_link_next(c.a.link, 0));
    close_channel(&c);
}

static void control_goes_first_then_lower_keys_then_what_came_first(void **state)
{
    static channel c;
    static const uint32_t order[] = {5, 6, 2, 4, 1, 3};

    (void)state;
    open_channel(&c, 1, 1 << 20);
    say(&c, &c.a, WF_LANE_DATA, 9, 1);
    say(&c, &c.a, WF_LANE_DATA, 4, 2);
    say(&c, &c.a, WF_LANE_DATA, 9, 3);
    say(&c, &c.a, WF_LANE_DATA, 4, 4);
    say(&c, &c.a, WF_LANE_CONTROL, 0, 5);
    say(&c, &c.a, WF_LANE_CONTROL, 0, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(wf_link_next(c.a.link, 0)->head.step, order[i]);
    close_channel(&c);
}

static void what_cannot_be_of_the_link_is_known_as_such(void **state)
{
    static channel c;

    (void)state;
    open_channel(&c, 1, 1 << 20);
    assert_true(wf_link_may_hold(c.b.link, 0));
    assert_true(wf_link_may_hold(c.b.link, FIRST_A + 1));
    assert_true(wf_link_may_hold(c.b.link, FIRST_A));
    assert_false(wf_link_may_hold(c.b.link, FIRST_A + 100000));
    assert_false(wf_link_may_hold(c.b.link, 17));
    say(&c, &c.a, WF_LANE_CONTROL, 0, 1);
    assert_false(wf_link_in_flight(c.a.link, FIRST_A + 1));
    assert_non_null(wf_link_next(c.a.link, 0));
    assert_true(wf_link_in_flight(c.a.link, FIRST_A + 1));
    assert_false(wf_link_in_flight(c.a.link, FIRST_A + 2));
    close_channel(&c);
}

static void an_acknowledgement_of_another_link_changes_nothing(void **state)
{
    static channel c;
    wf_msg *m = NULL;

    (void)state;
    open_channel(&c, 1, 1 << 20);
    say(&c, &c.a, WF_LANE_CONTROL, 0, 1);
    assert_non_null(wf_link_next(c.a.link, 0));
    assert_int_equal(wf_msg_new(&c.pool, WF_PING, &m, NULL), WF_OK);
    m->head.ack = 12345;
    wf_link_on_message(c.a.link, 0, &m);
    assert_false(wf_link_idle(c.a.link));
    assert_int_equal(wf_msg_new(&c.pool, WF_PING, &m, NULL), WF_OK);
    m->head.ack = FIRST_A + 1;
    wf_link_on_message(c.a.link, 0, &m);
    assert_true(wf_link_idle(c.a.link));
    close_channel(&c);
}

/* A worker computes for a minute and reads nothing: that is no loss. */
static void what_is_not_read_is_not_sent_again(void **state)
{
    static channel c;

    (void)state;
    open_channel(&c, 1, 1 << 20);
    for (uint32_t i = 1; i <= 20; i++)
        say(&c, &c.a, WF_LANE_CONTROL, 0, i);
    for (int k = 0; k < 600; k++, c.now_ns += 100 * MS)
        send_due(&c, &c.a, &c.b);
    arrive_in_order(&c, &c.b, &c.a); /* 20 messages, and the pings behind them */
    assert_int_equal(c.a.n, 0);
    assert_int_equal(take_all(&c, &c.b, 1), 21);
    assert_int_equal(wf_link_resent_bytes(c.a.link), 0);
    close_channel(&c);
}

/* Those that lay in a connection when it broke. */
static void a_loss_is_found_by_the_next_ping_and_sent_again_once(void **state)
{
    static channel c;
    size_t bytes = 0;

    (void)state;
    open_channel(&c, 1, 1 << 20);
    c.drop_percent = 100;
    for (uint32_t i = 1; i <= 5; i++)
        say(&c, &c.a, WF_LANE_CONTROL, 0, i);
    send_due(&c, &c.a, &c.b);
    c.drop_percent = 0;
    ping(&c, &c.a, &c.b);
    ping(&c, &c.a, &c.b); /* each is answered by a request; the second is of a round gone by */
    arrive_in_order(&c, &c.b, &c.a);
    assert_int_equal(c.a.n, 2);
    arrive_in_order(&c, &c.a, &c.b);
    send_due(&c, &c.a, &c.b);
    assert_int_equal(c.b.n, 5);
    for (size_t i = 0; i < 5; i++)
        bytes += wf_msg_bytes(c.b.arriving[i]);
    arrive_in_order(&c, &c.b, &c.a);
    assert_int_equal(take_all(&c, &c.b, 1), 6);
    assert_int_equal(wf_link_resent_bytes(c.a.link), bytes);
    close_channel(&c);
}

static void what_the_transport_refused_is_the_next_message_again(void **state)
{
    static channel c;

    (void)state;
    open_channel(&c, 1, 1 << 20);
    say(&c, &c.a, WF_LANE_CONTROL, 0, 1);
    say(&c, &c.a, WF_LANE_CONTROL, 0, 2);
    assert_int_equal(wf_link_next(c.a.link, 0)->head.step, 1);
    wf_link_unsent(c.a.link);
    assert_int_equal(wf_link_next(c.a.link, 0)->head.step, 1);
    assert_int_equal(wf_link_next(c.a.link, 0)->head.step, 2);
    wf_link_unsent(c.a.link);
    assert_int_equal(wf_link_next(c.a.link, 0)->head.step, 2);
    assert_null(wf_link_next(c.a.link, 0));
    assert_int_equal(wf_link_resent_bytes(c.a.link), 0);
    close_channel(&c);
}

static void a_request_to_send_what_was_never_sent_changes_nothing(void **state)
{
    static channel c;
    wf_header head = {.kind = WF_RESEND};

    (void)state;
    open_channel(&c, 1, 1 << 20);
    for (uint32_t i = 1; i <= 3; i++)
        say(&c, &c.a, WF_LANE_CONTROL, 0, i);
    assert_non_null(wf_link_next(c.a.link, 0));
    for (uint64_t ack = 0; ack < 3000; ack++) {
        head.ack = ack < 1000 ? ack : FIRST_A - 1001 + ack; /* around the link's, and anywhere */
        if (head.ack == FIRST_A)
            continue;
        wf_link_on_resend(c.a.link, 0, &head);
    }
    assert_int_equal(wf_link_next(c.a.link, 0)->head.step, 2);
    close_channel(&c);
}

/* A peer that sends far beyond its credit, all but the next in order. */
static void what_comes_early_is_held_up_to_twice_the_credit(void **state)
{
    enum { CREDIT = 4096, EACH = 1000 };
    static channel c;
    uint32_t next = 1;
    wf_msg *m = NULL;

    (void)state;
    open_channel(&c, 1, CREDIT);
    for (uint32_t i = 100; i > 0; i--) {
        assert_int_equal(wf_msg_new(&c.pool, WF_PUSH, &m, NULL), WF_OK);
        assert_non_null(wf_msg_control(m, EACH));
        m->head.sequence = FIRST_A + i;
        m->head.step = i;
        wf_link_on_message(c.b.link, 0, &m);
        assert_null(m);
    }
    assert_int_equal(wf_link_out_of_window(c.b.link), 100 - 1 - 2 * CREDIT / (EACH + 64));
    next = take_all(&c, &c.b, next);
    assert_int_equal(next, 2); /* the next in order is let in, whatever is held */
    close_channel(&c);
}

/* A sender that waits for credit must not wait for the delay of an acknowledgement as well. */
static void the_acknowledgement_is_due_at_once_when_a_quarter_of_the_credit_is_taken(void **state)
{
    enum { CREDIT = 4096, EACH = 400 };
    static channel c;
    size_t taken = 0;
    wf_msg *m = NULL;

    (void)state;
    open_channel(&c, 1, CREDIT);
    for (uint32_t i = 1; taken <= CREDIT / 4; i++) {
        assert_true(wf_link_deadline(c.b.link) > c.now_ns);
        assert_false(wf_link_ping_due(c.b.link, c.now_ns));
        assert_int_equal(wf_msg_new(&c.pool, WF_PUSH, &m, NULL), WF_OK);
        assert_non_null(wf_msg_control(m, EACH));
        m->head.sequence = FIRST_A + i;
        wf_link_on_message(c.b.link, c.now_ns, &m);
        m = wf_link_take(c.b.link, c.now_ns);
        assert_non_null(m);
        taken += wf_msg_bytes(m);
        wf_msg_free(&c.pool, &m);
    }
    assert_true(wf_link_deadline(c.b.link) <= c.now_ns);
    assert_true(wf_link_ping_due(c.b.link, c.now_ns));
    ping(&c, &c.b, &c.a);
    assert_true(wf_link_deadline(c.b.link) > c.now_ns);
    close_channel(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_early_is_held_up_to_twice_the_credit),
        cmocka_unit_test(each_message_is_taken_once_and_in_order),
        cmocka_unit_test(the_acknowledgement_is_due_at_once_when_a_quarter_of_the_credit_is_taken),
        cmocka_unit_test(unacknowledged_bytes_stay_within_the_credit),
        cmocka_unit_test(a_message_larger_than_the_credit_goes_by_itself),
        cmocka_unit_test(control_goes_first_then_lower_keys_then_what_came_first),
        cmocka_unit_test(what_cannot_be_of_the_link_is_known_as_such),
        cmocka_unit_test(an_acknowledgement_of_another_link_changes_nothing),
        cmocka_unit_test(what_is_not_read_is_not_sent_again),
        cmocka_unit_test(a_loss_is_found_by_the_next_ping_and_sent_again_once),
        cmocka_unit_test(what_the_transport_refused_is_the_next_message_again),
        cmocka_unit_test(a_request_to_send_what_was_never_sent_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
