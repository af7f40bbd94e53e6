/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/shm_processes.c - messages through shared memory between two processes, either of
 * which may be killed at any moment. */
#include "common/base/clock.h"
#include "common/wire/wait.h"
#include "numbered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start_answering(uint32_t count)
{
    pid_t pid = fork();

    if (pid == 0) {
        side s;

        open_side(&s, true);
        answer(&s, count);
        close_side(&s);
        _exit(0);
    }
    return pid;
}

static void await_listener(void)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;

    while (!wf_wire_kind_ipc.can_reach(NULL, address) && wf_now_ns() < end_ns)
        wf_wait(NULL, 0, -1, 1, NULL);
}

static void two_processes_exchange_messages(void **state)
{
    pid_t pid = start_answering(500);
    int status;
    side s;

    (void)state;
    await_listener();
    open_side(&s, false);
    assert_true(exchange(&s, 1, 500));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close_side(&s);
}

/* Asks until there is the answer to the last question: what was sent before may be lost. */
static void reach(side *s)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_route from = {0};
    uint32_t asked = 7000, heard = 0;

    while (heard != asked && wf_now_ns() < end_ns) {
        int64_t soon_ns = wf_now_ns() + 100 * WF_NS_PER_MS;
        wf_msg *m = make(&s->pool, NULL, ++asked);

        s->t->ops->tend(s->t, wf_now_ns());
        (void)!s->t->ops->send(s->t, &from, m, NULL);
        wf_msg_free(&s->pool, &m);
        while (heard != asked && wf_now_ns() < soon_ns) {
            wf_wait(&s->t, 1, -1, 5, NULL);
            while ((m = s->t->ops->receive(s->t, &s->pool, &from))) {
                heard = m->head.step;
                wf_msg_free(&s->pool, &m);
            }
        }
    }
    assert_int_equal(heard, asked);
}

/* The listener is killed at any moment: the dialler goes on with the next one, and no message is
 * ever torn. */
static void a_listener_may_die_at_any_moment(void **state)
{
    side s;

    (void)state;
    for (uint32_t round = 0; round < 6; round++) {
        pid_t pid = start_answering(UINT32_MAX);
        wf_route from = {0};
        uint64_t bad;
        wf_msg *m;

        await_listener();
        if (round == 0)
            open_side(&s, false);
        reach(&s);
        assert_true(exchange(&s, 1, 5 + round));
        for (uint32_t i = 0; i < 40 + 17 * round; i++) {
            m = make(&s.pool, NULL, 1000 + i);
            (void)!s.t->ops->send(s.t, &from, m, NULL);
            wf_msg_free(&s.pool, &m);
        }
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        for (uint32_t i = 0; (m = s.t->ops->receive(s.t, &s.pool, &from)) && i < 1000; i++) {
            assert_true(is_whole(m, m->head.step));
            wf_msg_free(&s.pool, &m);
        }
        bad = s.t->bad_messages;
        assert_int_equal(bad, 0);
    }
    close_side(&s);
}

/* The dialler is killed in the middle of what it sends; the next one is served. */
static void a_dialler_may_die_at_any_moment(void **state)
{
    uint32_t taken = 0;
    side s;

    (void)state;
    open_side(&s, true);
    for (uint32_t round = 0; round < 6; round++) {
        pid_t pid = fork();

        if (pid == 0) {
            side child;

            open_side(&child, false);
            for (uint32_t i = 0;; i++)
                (void)send_soon(&child, &(wf_route){0}, i);
        }
        for (uint32_t i = 0; i < 50 + 30 * round; i++) {
            wf_route from;
            wf_msg *m = await(&s, &from);

            assert_non_null(m);
            assert_true(is_whole(m, m->head.step));
            wf_msg_free(&s.pool, &m);
            taken++;
        }
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    assert_true(taken > 0);
    assert_int_equal(s.t->bad_messages, 0);
    close_side(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_exchange_messages),
        cmocka_unit_test(a_listener_may_die_at_any_moment),
        cmocka_unit_test(a_dialler_may_die_at_any_moment),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
