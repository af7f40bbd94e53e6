/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_values.c - where a worker has the weights that it pulls: in the buffers that
 * they came in, as long as they lie there side by side, else in memory of its own. */
#include "common/base/size.h"
#include "tests/unit/exchange_stage.h"

enum { CUT = 10 /* elements of the first slice of the frozen variable */ };

static wf_buf *new_weights(uint32_t count)
{
    wf_buf *b = wf_buf_new(count * sizeof(float));

    for (uint32_t i = 0; i < count; i++)
        ((float *)b->data)[i] = (float)i;
    return b;
}

/* Answers the last pull of a list with one slice, elements [at, at + count) of a buffer. */
static void lend(world *w, uint32_t list, uint32_t slice, wf_buf *b, uint32_t at, uint32_t count)
{
    wf_part part = {.slice = slice, .codec = WF_CODEC_F32, .bytes = count * sizeof(float)};
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(w->ps, WF_WEIGHTS, &m, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = w->request[list];
    assert_int_equal(wf_msg_add_frame(m, b, (float *)b->data + at, part.bytes, NULL), WF_OK);
    assert_int_equal(wf_parts_put(m, &part, 1, NULL), WF_OK);
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_DATA, 0, &m, NULL), WF_OK);
    turn(w, 1000); /* acknowledged as well, so that nobody but the set has the buffer */
}

static void check_frozen(const world *w)
{
    const float *at = wf_exchange_weights(w->exchange, 0, 1);

    assert_int_equal(wf_exchange_frozen_left(w->exchange), 0);
    for (uint32_t i = 0; i < FROZEN; i++)
        assert_true(at[i] == (float)i);
}

static void slices_side_by_side_are_used_where_they_came(void **state)
{
    world *w = *state;
    wf_buf *b = new_weights(FROZEN);

    turn(w, 100);
    lend(w, FROZEN_LIST, 2, b, CUT, FROZEN - CUT); /* in any order */
    lend(w, FROZEN_LIST, 1, b, 0, CUT);
    check_frozen(w);
    assert_ptr_equal(wf_exchange_weights(w->exchange, 0, 1), b->data);
    assert_int_equal(wf_buf_refs(b), 3);
    wf_exchange_free(&w->exchange);
    assert_int_equal(wf_buf_refs(b), 1);
    wf_buf_unref(&b);
}

static void slices_apart_are_copied(void **state)
{
    world *w = *state;
    wf_buf *first = new_weights(FROZEN), *second = new_weights(FROZEN);

    turn(w, 100);
    lend(w, FROZEN_LIST, 1, first, 0, CUT);
    assert_int_equal(wf_buf_refs(first), 2);
    lend(w, FROZEN_LIST, 2, second, CUT, FROZEN - CUT);
    check_frozen(w);
    assert_ptr_not_equal(wf_exchange_weights(w->exchange, 0, 1), first->data);
    assert_int_equal(wf_buf_refs(first), 1);
    assert_int_equal(wf_buf_refs(second), 1);
    wf_buf_unref(&first);
    wf_buf_unref(&second);
}

static void what_kernels_could_not_read_is_copied(void **state)
{
    world *w = *state;
    wf_buf *b = new_weights(ELEMENTS + 1);
    const float *at;

    assert_int_equal(wf_exchange_want(w->exchange, 0, 1, NULL), WF_OK);
    turn(w, 100);
    lend(w, MOVING_LIST, 0, b, 1, ELEMENTS); /* 4 bytes off */
    assert_true(wf_exchange_ready(w->exchange, 0));
    at = wf_exchange_weights(w->exchange, 0, 0);
    assert_int_equal((uintptr_t)at % WF_BUF_ALIGN, 0);
    assert_true(at[0] == 1 && at[ELEMENTS - 1] == ELEMENTS);
    assert_int_equal(wf_buf_refs(b), 1);
    wf_buf_unref(&b);
}

static void a_set_lets_go_when_it_is_asked_for_other_weights(void **state)
{
    world *w = *state;
    wf_buf *b = new_weights(ELEMENTS), *next = new_weights(ELEMENTS);

    assert_int_equal(wf_exchange_want(w->exchange, 0, 1, NULL), WF_OK);
    turn(w, 100);
    lend(w, MOVING_LIST, 0, b, 0, ELEMENTS);
    assert_ptr_equal(wf_exchange_weights(w->exchange, 0, 0), b->data);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 2, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(wf_buf_refs(b), 2); /* the other set's pull changes nothing here */
    lend(w, MOVING_LIST, 0, next, 0, ELEMENTS);
    assert_ptr_equal(wf_exchange_weights(w->exchange, 1, 0), next->data);
    assert_int_equal(wf_exchange_want(w->exchange, 0, 3, NULL), WF_OK);
    assert_int_equal(wf_buf_refs(b), 1);
    assert_int_equal(wf_buf_refs(next), 2);
    wf_buf_unref(&b);
    wf_exchange_free(&w->exchange);
    wf_buf_unref(&next);
}

/* A transport lends only so much at a time. */
static void with_many_frames_held_the_next_are_copied(void **state)
{
    world *w = *state;
    wf_buf *b = new_weights(ELEMENTS);

    ((wf_client *)w->exchange)->n_frames = WF_VALUES_FRAMES_MOST;
    assert_int_equal(wf_exchange_want(w->exchange, 0, 1, NULL), WF_OK);
    turn(w, 100);
    lend(w, MOVING_LIST, 0, b, 0, ELEMENTS);
    assert_true(wf_exchange_ready(w->exchange, 0));
    assert_ptr_not_equal(wf_exchange_weights(w->exchange, 0, 0), b->data);
    assert_int_equal(wf_buf_refs(b), 1);
    assert_true(wf_exchange_weights(w->exchange, 0, 0)[ELEMENTS - 1] == ELEMENTS - 1);
    wf_buf_unref(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slices_side_by_side_are_used_where_they_came, begin_frozen,
                                        end),
        cmocka_unit_test_setup_teardown(slices_apart_are_copied, begin_frozen, end),
        cmocka_unit_test_setup_teardown(what_kernels_could_not_read_is_copied, begin, end),
        cmocka_unit_test_setup_teardown(a_set_lets_go_when_it_is_asked_for_other_weights, begin,
                                        end),
        cmocka_unit_test_setup_teardown(with_many_frames_held_the_next_are_copied, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
