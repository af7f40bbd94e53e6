/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/shm.c - shared memory in front of another transport: used where both sides have it,
 * and no message is slept through, also for want of room. */
#include "common/base/clock.h"
#include "common/wire/shm_name.h"
#include "common/wire/shm_ring.h"
#include "common/wire/shm_state.h"
#include "common/wire/wait.h"
#include "numbered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MESSAGES = 4000 };

static void *run_answers(void *arg)
{
    answer(arg, MESSAGES);
    return NULL;
}

static void two_threads_exchange_messages(void **state)
{
    pthread_t thread;
    side near, other;

    (void)state;
    open_side(&near, true);
    open_side(&other, false);
    assert_int_equal(pthread_create(&thread, NULL, run_answers, &near), 0);
    assert_true(exchange(&other, 0, MESSAGES));
    pthread_join(thread, NULL);
    close_side(&other);
    close_side(&near);
}

/* A writer that found the ring full sleeps until there is room. */
static void a_full_ring_wakes_its_writer(void **state)
{
    wf_route from = {0};
    side near, other;
    wf_msg *m;
    uint32_t sent = 0;

    (void)state;
    open_side(&near, true);
    open_side(&other, false);
    m = make(&other.pool, NULL, 5);
    while (other.t->ops->send(other.t, &from, m, NULL) != WF_OK) {
        near.t->ops->tend(near.t, wf_now_ns());
        wf_wait(&other.t, 1, -1, 20, NULL);
    }
    while (other.t->ops->send(other.t, &from, m, NULL) == WF_OK)
        sent++;
    assert_in_range(sent, 100, WF_RING_BYTES / 64);
    wf_msg_free(&other.pool, &m);
    other.t->ops->tend(other.t, wf_now_ns());
    assert_false(other.t->ops->arm(other.t));
    for (uint32_t i = 0; i < 10; i++) {
        m = await(&near, &from);
        assert_non_null(m);
        wf_msg_free(&near.pool, &m);
    }
    wf_wait(&other.t, 1, -1, 1000 * DEADLINE_S, NULL); /* ends by the bell */
    assert_true(other.t->ops->ready(other.t));
    close_side(&other);
    close_side(&near);
}

/* Without shared memory on either side, messages go by the other transport. */
static void either_side_may_do_without(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        pthread_t thread;
        side near, other;

        near = other = (side){0};
        assert_int_equal(wf_wires_new(4, &near.w, NULL), WF_OK);
        assert_int_equal(wf_wires_new(4, &other.w, NULL), WF_OK);
        wf_wires_share(near.w, k == 1);
        wf_wires_share(other.w, k == 2);
        assert_int_equal(wf_wires_listen(near.w, address, &near.t, NULL), WF_OK);
        assert_int_equal(wf_wires_dial(other.w, address, &other.t, NULL), WF_OK);
        assert_int_equal(pthread_create(&thread, NULL, run_answers, &near), 0);
        assert_true(exchange(&other, 0, MESSAGES));
        pthread_join(thread, NULL);
        close_side(&other);
        close_side(&near);
    }
}

/* Rings, or later blocks, that the system refuses: the other transport takes what they would have.
 */
static void where_memory_is_refused_messages_go_by_the_other_transport(void **state)
{
    struct rlimit before, low;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = 4096;
    for (uint32_t first = 0; first <= 20; first += 20) {
        pthread_t thread;
        side near, other;

        open_side(&near, true);
        if (first == 0)
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
        open_side(&other, false);
        assert_int_equal(pthread_create(&thread, NULL, run_answers, &near), 0);
        assert_true(exchange(&other, 0, first));
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
        assert_true(exchange(&other, first, MESSAGES - first));
        pthread_join(thread, NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        close_side(&other);
        close_side(&near);
    }
}

static int knock(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    wf_shm_name name;

    assert_true(fd >= 0);
    assert_true(wf_shm_name_of(address, &name));
    assert_int_equal(connect(fd, (const struct sockaddr *)&name.at, name.size), 0);
    return fd;
}

/* Without a descriptor for whoever connects, no wait may end at once again and again. */
static void a_door_without_descriptors_is_closed_and_opened_again(void **state)
{
    shm_transport *s;
    struct rlimit before, none;
    side near, other;
    pthread_t thread;
    int stranger;

    (void)state;
    open_side(&near, true);
    s = (shm_transport *)near.t;
    stranger = knock();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)dup(stranger); /* the lowest number that was free */
    close((int)none.rlim_cur);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    wf_shm_look(s);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(s->door, -1);
    assert_int_equal(s->n, 0);
    close(stranger);
    wf_wait(&near.t, 1, -1, 0, NULL);
    assert_false(near.t->ops->arm(near.t));

    near.t->ops->tend(near.t, wf_now_ns());
    assert_int_equal(s->door, -1); /* not at once */
    near.t->ops->tend(near.t, wf_now_ns() + 10 * WF_NS_PER_S);
    assert_true(s->door >= 0);
    open_side(&other, false);
    assert_int_equal(pthread_create(&thread, NULL, run_answers, &near), 0);
    assert_true(exchange(&other, 0, MESSAGES));
    pthread_join(thread, NULL);
    assert_int_equal(s->n, 1);
    close_side(&other);
    close_side(&near);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads_exchange_messages),
        cmocka_unit_test(a_full_ring_wakes_its_writer),
        cmocka_unit_test(either_side_may_do_without),
        cmocka_unit_test(where_memory_is_refused_messages_go_by_the_other_transport),
        cmocka_unit_test(a_door_without_descriptors_is_closed_and_opened_again),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
