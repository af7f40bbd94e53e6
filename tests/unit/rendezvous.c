/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/rendezvous.c - values that are sent and received under keys: in order, once, bounded,
 * asked for again, and dropped in time. */
#include "worker/sessions/rendezvous.h"
#include "common/base/clock.h"
#include "common/base/size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { VALUES = 4, BYTES = 64, WAIT_NS = 1000 };

static const int64_t GONE_NS = WAIT_NS + WF_RENDEZVOUS_GIVEN_S * WF_NS_PER_S;

static wf_err err;
static int users[3]; /* who waits */

static int begin(void **state)
{
    return wf_rendezvous_new(&(wf_rendezvous_limits){BYTES, VALUES}, (wf_rendezvous **)state, NULL);
}

static int end(void **state)
{
    wf_rendezvous_free((wf_rendezvous **)state);
    return 0;
}

/* Run `run` of session 1 sends n float32 that begin with x, to worker 2. */
static wf_status send_many(wf_rendezvous *r, const char *key, uint64_t run, uint32_t number,
                           float x, int64_t n)
{
    wf_rendezvous_name name = {"", key, 2};
    wf_rendezvous_id id = {1, run, number};
    wf_tensor *t = NULL;
    wf_status rc;

    assert_int_equal(wf_tensor_new(WF_F32, 1, &n, &t, NULL), WF_OK);
    wf_f32_mut(t)[0] = x;
    rc = wf_rendezvous_put(r, &name, &id, t, 0, &err);
    wf_tensor_free(&t);
    return rc;
}

static wf_status send(wf_rendezvous *r, const char *key, uint64_t run, float x)
{
    return send_many(r, key, run, 0, x, 1);
}

/* Run `run` of session 5 receives n numbers as worker `to`; *x is -1 when it waits. */
static wf_status receive_as(wf_rendezvous *r, const char *container, const char *key, uint32_t to,
                            uint64_t run, int64_t n, float *x)
{
    wf_rendezvous_want want = {.name = {container, key, to},
                               .id = {5, run, 0},
                               .dtype = WF_F32,
                               .rank = 1,
                               .dims = &n,
                               .user = &users[run % 3],
                               .request = (uint32_t)run,
                               .until_ns = WAIT_NS};
    wf_tensor *t = NULL;
    wf_status rc = wf_rendezvous_take(r, &want, &t, &err);

    *x = t ? wf_f32(t)[0] : -1;
    wf_tensor_free(&t);
    return rc;
}

static float receive(wf_rendezvous *r, const char *key, uint64_t run)
{
    float x;

    assert_int_equal(receive_as(r, "", key, 2, run, 1, &x), WF_OK);
    return x;
}

static void values_come_in_the_order_in_which_they_were_sent(void **state)
{
    wf_rendezvous *r = *state;

    assert_int_equal(send(r, "k", 1, 10), WF_OK);
    assert_int_equal(send(r, "other", 2, 99), WF_OK);
    assert_int_equal(send(r, "k", 3, 11), WF_OK);
    assert_true(receive(r, "k", 1) == 10);
    assert_true(receive(r, "k", 2) == 11);
    assert_true(receive(r, "k", 3) == -1);
    assert_true(receive(r, "other", 4) == 99);
}

static void a_name_is_container_key_and_receiver(void **state)
{
    wf_rendezvous *r = *state;
    float x;

    assert_int_equal(send(r, "k", 1, 10), WF_OK);
    assert_int_equal(receive_as(r, "else", "k", 2, 1, 1, &x), WF_OK);
    assert_true(x == -1);
    assert_int_equal(receive_as(r, "", "k", 3, 2, 1, &x), WF_OK);
    assert_true(x == -1);
    assert_int_equal(receive_as(r, "", "K", 2, 3, 1, &x), WF_OK);
    assert_true(x == -1);
    assert_true(receive(r, "k", 4) == 10);
}

/* Those who wait are served in the order in which they came. */
static void what_waits_is_told(void **state)
{
    wf_rendezvous *r = *state;
    wf_rendezvous_end e;

    assert_true(receive(r, "k", 1) == -1);
    assert_true(receive(r, "k", 2) == -1);
    assert_false(wf_rendezvous_next(r, &e));
    assert_int_equal(send(r, "k", 1, 10), WF_OK);
    assert_true(wf_rendezvous_next(r, &e));
    assert_ptr_equal(e.user, &users[1]);
    assert_int_equal(e.request, 1);
    assert_int_equal(e.id.run, 1);
    assert_true(wf_f32(e.value)[0] == 10);
    wf_tensor_free(&e.value);
    assert_false(wf_rendezvous_next(r, &e));
    wf_rendezvous_forget(r, &users[2]);
    assert_int_equal(send(r, "k", 2, 11), WF_OK);
    assert_false(wf_rendezvous_next(r, &e));
    assert_true(receive(r, "k", 3) == 11);
}

/* The value stays for a Recv that wants it as it is. */
static void another_shape_is_an_error_of_the_recv(void **state)
{
    wf_rendezvous *r = *state;
    wf_rendezvous_end e;
    float x;

    assert_int_equal(send(r, "k", 1, 10), WF_OK);
    assert_int_equal(receive_as(r, "", "k", 2, 1, 3, &x), WF_SHAPE);
    assert_string_equal(err.what,
                        "what was sent under key \"k\" is float32 [1], and the Recv wants "
                        "float32 [3]");
    assert_true(receive(r, "k", 2) == 10);
    assert_int_equal(receive_as(r, "", "k", 2, 3, 3, &x), WF_OK); /* the same of one that waits */
    assert_true(receive(r, "k", 4) == -1);
    assert_int_equal(send(r, "k", 2, 11), WF_OK);
    assert_true(wf_rendezvous_next(r, &e));
    assert_null(e.value);
    assert_int_equal(e.request, 3);
    assert_int_equal(e.why.status, WF_SHAPE);
    assert_true(wf_rendezvous_next(r, &e));
    assert_int_equal(e.request, 4);
    assert_true(wf_f32(e.value)[0] == 11);
    wf_tensor_free(&e.value);
}

static void values_and_bytes_have_limits(void **state)
{
    wf_rendezvous *r = *state;

    for (uint64_t run = 1; run <= VALUES; run++)
        assert_int_equal(send(r, "k", run, (float)run), WF_OK);
    assert_int_equal(send(r, "k", 9, 9), WF_FULL);
    assert_string_equal(err.what, "4 values were sent and not received; 4 may be");
    assert_int_equal(wf_rendezvous_count(r), VALUES);
    assert_true(receive(r, "k", 1) == 1); /* which is kept for one that asks again */
    assert_int_equal(wf_rendezvous_count(r), VALUES);
    assert_int_equal(send(r, "k", 9, 9), WF_OK); /* unless the room is needed */
    assert_int_equal(wf_rendezvous_count(r), VALUES);
    for (uint64_t run = 2; run <= VALUES; run++)
        assert_true(receive(r, "k", run) == (float)run);
    assert_int_equal(send_many(r, "big", 10, 0, 1, 1 + BYTES / 4), WF_FULL);
    assert_true(strstr(err.what, "and 68 more are to be; 64 may be"));
    assert_int_equal(send_many(r, "big", 11, 0, 1, 15), WF_OK);
    assert_int_equal(wf_rendezvous_bytes(r), BYTES);
    assert_int_equal(send(r, "k", 12, 1), WF_FULL);
    assert_true(receive(r, "k", 9) == 9);
}

/* A run that is asked for again neither sends twice nor takes a second value. */
static void a_run_that_comes_again_sends_and_receives_once(void **state)
{
    wf_rendezvous *r = *state;

    assert_int_equal(send(r, "k", 1, 10), WF_OK);
    assert_int_equal(send(r, "k", 1, 10), WF_OK);
    assert_int_equal(send_many(r, "k", 1, 1, 11, 1), WF_OK); /* another Send of the run */
    assert_int_equal(wf_rendezvous_count(r), 2);
    assert_true(receive(r, "k", 1) == 10);
    assert_true(receive(r, "k", 1) == 10);
    assert_true(receive(r, "k", 2) == 11);
    assert_int_equal(wf_rendezvous_count(r), 1); /* that of run 1 is done with */
    assert_int_equal(send(r, "k", 3, 12), WF_OK);
    assert_int_equal(send(r, "k", 2, 13), WF_OK); /* given up before run 3 began */
    assert_true(receive(r, "k", 3) == 12);
    assert_true(receive(r, "k", 4) == -1);
    assert_true(receive(r, "k", 4) == -1);
    assert_int_equal(send(r, "k", 5, 14), WF_OK);
    assert_int_equal(send(r, "k", 6, 15), WF_OK);
    assert_true(receive(r, "k", 4) == 14); /* its one wait got one value */
    assert_true(receive(r, "k", 5) == 15);
}

/* A Recv that was given a value and has ended without it: the next one gets it, in its order. */
static void what_is_given_up_is_the_next_ones(void **state)
{
    wf_rendezvous *r = *state;
    wf_rendezvous_end e;

    assert_int_equal(send(r, "k", 1, 10), WF_OK);
    assert_int_equal(send(r, "k", 2, 11), WF_OK);
    assert_true(receive(r, "k", 1) == 10);
    wf_rendezvous_give_up(r, &(wf_rendezvous_id){5, 1, 1}); /* another Recv */
    wf_rendezvous_give_up(r, &(wf_rendezvous_id){6, 1, 0});
    wf_rendezvous_give_up(r, &(wf_rendezvous_id){5, 1, 0});
    assert_true(receive(r, "k", 2) == 10);
    assert_true(receive(r, "k", 3) == 11);
    assert_true(receive(r, "k", 4) == -1);
    assert_true(receive(r, "k", 5) == -1);
    assert_int_equal(send(r, "k", 3, 12), WF_OK);
    wf_rendezvous_forget(r, &users[4 % 3]); /* before it was told */
    assert_true(wf_rendezvous_next(r, &e));
    assert_int_equal(e.request, 5);
    assert_true(wf_f32(e.value)[0] == 12);
    wf_tensor_free(&e.value);
    wf_rendezvous_advance(r, GONE_NS);
    assert_int_equal(wf_rendezvous_count(r), 0);
    assert_int_equal(send(r, "k", 4, 13), WF_OK);
    assert_true(receive(r, "k", 6) == 13);
    wf_rendezvous_advance(r, GONE_NS - 1); /* the run ends by its time, and says so late */
    wf_rendezvous_give_up(r, &(wf_rendezvous_id){5, 6, 0});
    wf_rendezvous_advance(r, GONE_NS); /* it has its hour again */
    assert_int_equal(wf_rendezvous_count(r), 1);
}

static void time_ends_waits_and_values(void **state)
{
    wf_rendezvous *r = *state;
    wf_rendezvous_end e;

    assert_true(wf_rendezvous_deadline(r) == INT64_MAX);
    assert_true(receive(r, "k", 1) == -1);
    assert_true(wf_rendezvous_deadline(r) == WAIT_NS);
    wf_rendezvous_advance(r, WAIT_NS - 1);
    assert_true(wf_rendezvous_deadline(r) == WAIT_NS);
    wf_rendezvous_advance(r, WAIT_NS);
    assert_true(wf_rendezvous_deadline(r) == INT64_MAX);
    assert_int_equal(send(r, "k", 1, 10), WF_OK);
    assert_false(wf_rendezvous_next(r, &e));
    assert_int_equal(send(r, "k", 2, 11), WF_OK);
    assert_true(receive(r, "k", 2) == 10);
    assert_true(wf_rendezvous_deadline(r) == GONE_NS);
    wf_rendezvous_advance(r, GONE_NS - 1);
    assert_int_equal(wf_rendezvous_count(r), 2);
    wf_rendezvous_advance(r, GONE_NS); /* what was given */
    assert_int_equal(wf_rendezvous_count(r), 1);
    wf_rendezvous_advance(r, WF_RENDEZVOUS_REST_S * WF_NS_PER_S - 1);
    assert_int_equal(wf_rendezvous_count(r), 1);
    wf_rendezvous_advance(r, WF_RENDEZVOUS_REST_S * WF_NS_PER_S);
    assert_int_equal(wf_rendezvous_count(r), 0);
    assert_int_equal(wf_rendezvous_bytes(r), 0);
    assert_int_equal(send(r, "k", 3, 12), WF_OK);
    assert_int_equal(wf_rendezvous_count(r), 1);
}

static void names_and_numbers_are_looked_at(void **state)
{
    wf_rendezvous *r = *state;
    char key[WF_RENDEZVOUS_KEY + 2];
    float x;

    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    assert_int_equal(send(r, key, 1, 1), WF_INVALID);
    assert_int_equal(send(r, "", 1, 1), WF_INVALID);
    assert_int_equal(receive_as(r, "", key, 2, 1, 1, &x), WF_INVALID);
    assert_int_equal(receive_as(r, key, "k", 2, 1, 1, &x), WF_INVALID);
    assert_int_equal(send_many(r, "k", 1, WF_RENDEZVOUS_NUMBERS, 1, 1), WF_PROTO);
    assert_int_equal(wf_rendezvous_count(r), 0);
}

static void waits_and_senders_have_limits(void **state)
{
    wf_rendezvous *r = *state;
    float x;

    for (uint64_t run = 1; run <= WF_RENDEZVOUS_WAITS; run++)
        assert_true(receive(r, "k", run) == -1);
    assert_int_equal(receive_as(r, "", "k", 2, 0, 1, &x), WF_FULL);
    for (uint64_t client = 1; client <= WF_RENDEZVOUS_CLIENTS + 10; client++) {
        wf_rendezvous_name name = {"", "k", 2};
        wf_rendezvous_id id = {client, 1, 0};
        wf_rendezvous_end e;
        int64_t one = 1;
        wf_tensor *t = NULL;

        assert_int_equal(wf_tensor_new(WF_F32, 1, &one, &t, NULL), WF_OK);
        assert_int_equal(wf_rendezvous_put(r, &name, &id, t, 0, &err), WF_OK);
        wf_tensor_free(&t);
        if (wf_rendezvous_next(r, &e))
            wf_tensor_free(&e.value);
        else
            assert_true(receive(r, "k", 100000 + client) != -1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_come_in_the_order_in_which_they_were_sent),
        TEST(a_name_is_container_key_and_receiver),
        TEST(what_waits_is_told),
        TEST(another_shape_is_an_error_of_the_recv),
        TEST(values_and_bytes_have_limits),
        TEST(a_run_that_comes_again_sends_and_receives_once),
        TEST(what_is_given_up_is_the_next_ones),
        TEST(time_ends_waits_and_values),
        TEST(names_and_numbers_are_looked_at),
        TEST(waits_and_senders_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
