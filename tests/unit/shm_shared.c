/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/shm_shared.c - memory of one connection that the peers of others read where it lies.
 */
#include "common/wire/shm_shared.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/grammar.h"
#include "common/wire/parts.h"
#include "common/wire/shm_note.h"
#include "numbered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shm_ends.h"

enum { PEERS = 3 };

typedef struct world {
    ends of[PEERS];
} world;

static int begin(void **state)
{
    world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    for (int i = 0; i < PEERS; i++)
        open_ends(&w->of[i]);
    *state = w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;

    for (int i = 0; i < PEERS; i++)
        close_ends(&w->of[i]);
    free(w);
    return 0;
}

static wf_buf *take(const ends *e, size_t bytes)
{
    bool failed;
    wf_buf *b = wf_shm_pool_take(e->a->pool, bytes, true, &failed);

    assert_non_null(b);
    return b;
}

/* Sends `bytes` of a buffer from `at` on. */
static void post(ends *e, wf_buf *b, size_t at, size_t bytes)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_msg_new(&e->pool, WF_PUSH, &m, NULL), WF_OK);
    assert_int_equal(wf_msg_add_frame(m, b, (uint8_t *)b->data + at, bytes, NULL), WF_OK);
    assert_int_equal(wf_parts_put(m, &(wf_part){.bytes = bytes}, 1, NULL), WF_OK);
    assert_int_equal(wf_shm_conn_send(e->a, m, NULL), WF_OK);
    wf_msg_free(&e->pool, &m);
}

static wf_msg *receive(ends *e)
{
    wf_msg *m = wf_shm_conn_receive(e->b, &e->pool, &e->bad);

    assert_non_null(m);
    return m;
}

static void let_go(ends *e, wf_msg **m)
{
    wf_msg_free(&e->pool, m);
    wf_shm_conn_reap(e->a);
}

static void each_peer_reads_its_part_where_it_was_written(void **state)
{
    world *w = *state;
    wf_buf *b = take(&w->of[0], PEERS * BIG);
    wf_msg *got[PEERS];

    for (uint32_t i = 0; i < PEERS; i++)
        fill((uint8_t *)b->data + i * BIG, BIG, i);
    for (uint32_t i = 0; i < PEERS; i++)
        post(&w->of[i], b, i * BIG, BIG);
    for (uint32_t i = 0; i < PEERS; i++) {
        got[i] = receive(&w->of[i]);
        assert_true(is_filled(got[i]->frames[0].data, BIG, i));
        ((uint8_t *)b->data)[i * BIG] ^= 1; /* one and the same memory */
        assert_false(is_filled(got[i]->frames[0].data, BIG, i));
        assert_int_equal(count_blocks(w->of[i].b), 1);
    }
    assert_int_equal(wf_buf_refs(b), 1 + PEERS); /* it is nobody's before all have done with it */
    for (uint32_t i = PEERS; i-- > 0;) {
        let_go(&w->of[i], &got[i]);
        assert_int_equal(wf_buf_refs(b), 1 + i);
    }
    wf_buf_unref(&b);
}

static void a_block_is_told_of_once_and_taken_again(void **state)
{
    world *w = *state;

    for (int turn = 0; turn < 5; turn++) {
        wf_buf *b = take(&w->of[0], BIG);

        for (uint32_t i = 0; i < PEERS; i++) {
            wf_msg *got;

            post(&w->of[i], b, 0, BIG);
            got = receive(&w->of[i]);
            let_go(&w->of[i], &got);
            assert_int_equal(count_blocks(w->of[i].b), 1);
        }
        wf_buf_unref(&b);
    }
}

static void memory_that_is_given_back_is_forgotten_by_all(void **state)
{
    enum { LARGE = 128 << 20 };
    world *w = *state;
    wf_buf *two[2];

    for (int k = 0; k < 2; k++) {
        two[k] = take(&w->of[0], LARGE);
        for (uint32_t i = 0; i < PEERS; i++) {
            wf_msg *got;

            post(&w->of[i], two[k], 0, BIG);
            got = receive(&w->of[i]);
            let_go(&w->of[i], &got);
        }
    }
    for (int k = 0; k < 2; k++)
        wf_buf_unref(&two[k]);
    wf_shm_pool_tend(w->of[0].a->pool, 20 * WF_NS_PER_S);
    for (uint32_t i = 0; i < PEERS; i++)
        assert_int_equal(count_blocks(w->of[i].b), 2);
    wf_shm_pool_tend(w->of[0].a->pool, 31 * WF_NS_PER_S);
    for (uint32_t i = 0; i < PEERS; i++)
        assert_int_equal(count_blocks(w->of[i].b), 1);
}

static void a_connection_may_end_while_others_read_of_its_memory(void **state)
{
    world *w = *state;
    wf_buf *b = take(&w->of[0], BIG);
    wf_msg *got;

    fill(b->data, BIG, 7);
    post(&w->of[1], b, 0, BIG);
    wf_shm_conn_free(&w->of[0].a);
    post(&w->of[2], b, 0, BIG); /* who did not know of it may learn of it still */
    got = receive(&w->of[1]);
    assert_true(is_filled(got->frames[0].data, BIG, 7));
    let_go(&w->of[1], &got);
    got = receive(&w->of[2]);
    assert_true(is_filled(got->frames[0].data, BIG, 7));
    let_go(&w->of[2], &got);
    wf_buf_unref(&b);
    for (uint32_t i = 1; i < PEERS; i++)
        assert_int_equal(count_blocks(w->of[i].b), 0);
}

static void a_connection_that_ends_is_told_of_nothing_more(void **state)
{
    world *w = *state;
    wf_buf *b = take(&w->of[0], BIG);
    ends other;

    post(&w->of[1], b, 0, BIG);
    wf_shm_conn_free(&w->of[1].a);
    open_ends(&other); /* its descriptor is another's now */
    wf_shm_conn_free(&w->of[0].a);
    wf_buf_unref(&b);
    assert_int_equal(wf_shm_note_is_end(other.b->fd), false);
    assert_int_equal(count_blocks(other.b), 0);
    close_ends(&other);
}

/* Beyond what a process keeps descriptors for, others are sent a copy. */
static void memory_of_many_blocks_comes_all_the_same(void **state)
{
    enum { BLOCKS = 300 };
    world *w = *state;
    wf_buf *of[BLOCKS];

    for (uint32_t k = 0; k < BLOCKS; k++) {
        of[k] = take(&w->of[0], BIG);
        fill(of[k]->data, BIG, k);
        wf_shm_conn_look(w->of[0].b);
    }
    for (uint32_t k = 0; k < BLOCKS; k++) {
        wf_msg *got;

        post(&w->of[1], of[k], 0, BIG);
        got = receive(&w->of[1]);
        assert_true(is_filled(got->frames[0].data, BIG, k));
        let_go(&w->of[1], &got);
        wf_buf_unref(&of[k]);
    }
}

/* ---- two threads ---- */

typedef struct dropper {
    pthread_t thread;
    wf_buf *buf;
} dropper;

static void *drop(void *arg)
{
    dropper *d = arg;

    wf_buf_unref(&d->buf);
    return NULL;
}

/* The last reference goes on one thread while the pools close on another. */
static void buffers_are_let_go_of_while_connections_end(void **state)
{
    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        enum { BUFS = 4 };
        ends e[2];
        dropper d[BUFS];

        for (int i = 0; i < 2; i++)
            open_ends(&e[i]);
        for (int k = 0; k < BUFS; k++) {
            d[k].buf = take(&e[k % 2], BIG);
            for (int i = 0; i < 2; i++) {
                wf_msg *got;

                post(&e[i], d[k].buf, 0, BIG);
                got = receive(&e[i]);
                let_go(&e[i], &got);
            }
        }
        for (int k = 0; k < BUFS; k++)
            assert_int_equal(pthread_create(&d[k].thread, NULL, drop, &d[k]), 0);
        wf_shm_conn_free(&e[turn % 2].a);
        wf_shm_conn_free(&e[1 - turn % 2].a);
        for (int k = 0; k < BUFS; k++)
            pthread_join(d[k].thread, NULL);
        for (int i = 0; i < 2; i++)
            close_ends(&e[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_peer_reads_its_part_where_it_was_written, begin, end),
        cmocka_unit_test_setup_teardown(a_block_is_told_of_once_and_taken_again, begin, end),
        cmocka_unit_test_setup_teardown(memory_that_is_given_back_is_forgotten_by_all, begin, end),
        cmocka_unit_test_setup_teardown(a_connection_may_end_while_others_read_of_its_memory, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_connection_that_ends_is_told_of_nothing_more, begin, end),
        cmocka_unit_test_setup_teardown(memory_of_many_blocks_comes_all_the_same, begin, end),
        cmocka_unit_test(buffers_are_let_go_of_while_connections_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
