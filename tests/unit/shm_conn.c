/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/shm_conn.c - a connection through memory that two ends share: messages come whole and
 * in order whatever their sizes, without a copy where they were born there, and nothing is read out
 * of bounds, whatever the other end writes. */
#include "common/wire/shm_conn.h"
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
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shm_ends.h"

enum { MESSAGES = 4000 };

static void messages_of_any_size_come_whole_and_in_order(void **state)
{
    wf_msg *held[64] = {0};
    uint32_t taken = 0;
    ends e;

    (void)state;
    open_ends(&e);
    for (uint32_t i = 0; taken < MESSAGES;) {
        wf_msg *m = NULL;

        /* The writer runs ahead until the ring is full, or for a while; frames are held for long.
         */
        for (uint32_t most = 1 + i % 97; i < MESSAGES && most > 0; most--) {
            wf_status rc;

            m = make(&e.pool, e.a->pool, i);
            rc = wf_shm_conn_send(e.a, m, NULL);
            wf_msg_free(&e.pool, &m);
            if (rc != WF_OK) {
                assert_int_equal(rc, WF_FULL);
                break;
            }
            i++;
        }
        for (uint32_t most = 1 + taken % 89; most > 0; most--) {
            m = wf_shm_conn_receive(e.b, &e.pool, &e.bad);
            if (!m)
                break;
            assert_true(is_whole(m, taken));
            wf_msg_free(&e.pool, &held[taken % WF_COUNT(held)]);
            held[taken++ % WF_COUNT(held)] = m;
        }
        for (uint32_t k = 0; k < WF_COUNT(held); k++) /* what is held is not written over */
            if (held[k] && held[k]->n_frames)
                assert_true(is_whole(held[k], held[k]->head.step));
    }
    assert_int_equal(e.bad, 0);
    for (uint32_t k = 0; k < WF_COUNT(held); k++)
        wf_msg_free(&e.pool, &held[k]);
    wf_shm_conn_reap(e.a);
    assert_int_equal(e.a->n_busy, 0);
    close_ends(&e);
}

static void a_frame_that_was_born_in_shared_memory_is_not_copied(void **state)
{
    wf_msg *m = NULL, *got;
    bool failed;
    wf_buf *b;
    ends e;

    (void)state;
    open_ends(&e);
    b = wf_shm_pool_take(e.a->pool, BIG, false, &failed);
    assert_non_null(b);
    fill(b->data, BIG, 1);
    assert_int_equal(wf_msg_new(&e.pool, WF_PUSH, &m, NULL), WF_OK);
    assert_int_equal(wf_msg_add_frame(m, b, b->data, BIG, NULL), WF_OK);
    assert_int_equal(wf_parts_put(m, &(wf_part){.bytes = BIG}, 1, NULL), WF_OK);
    assert_int_equal(wf_shm_conn_send(e.a, m, NULL), WF_OK);
    wf_msg_free(&e.pool, &m);
    got = wf_shm_conn_receive(e.b, &e.pool, &e.bad);
    assert_non_null(got);
    assert_true(is_filled(got->frames[0].data, BIG, 1));
    ((uint8_t *)b->data)[7] ^= 1; /* one and the same memory */
    assert_false(is_filled(got->frames[0].data, BIG, 1));
    wf_shm_conn_reap(e.a);
    assert_int_equal(wf_buf_refs(b), 2); /* until the reader has done with it */
    wf_msg_free(&e.pool, &got);
    wf_shm_conn_reap(e.a);
    assert_int_equal(wf_buf_refs(b), 1);
    wf_shm_conn_free(&e.a); /* the memory outlives the connection */
    ((uint8_t *)b->data)[8] = 3;
    wf_buf_unref(&b);
    close_ends(&e);
}

static void a_frame_outlives_its_connection(void **state)
{
    wf_msg *m, *got[8] = {0};
    ends e;

    (void)state;
    open_ends(&e);
    for (uint32_t i = 0; i < WF_COUNT(got); i++) {
        m = make(&e.pool, NULL, 100 + i);
        assert_int_equal(wf_shm_conn_send(e.a, m, NULL), WF_OK);
        wf_msg_free(&e.pool, &m);
    }
    wf_shm_conn_free(&e.a);
    wf_shm_conn_look(e.b);
    assert_int_equal(e.b->state, WF_SHM_OVER);
    for (uint32_t i = 0; i < WF_COUNT(got); i++) { /* what was sent before is still there */
        got[i] = wf_shm_conn_receive(e.b, &e.pool, &e.bad);
        assert_non_null(got[i]);
    }
    wf_shm_conn_free(&e.b);
    for (uint32_t i = 0; i < WF_COUNT(got); i++) {
        assert_true(is_whole(got[i], 100 + i));
        wf_msg_free(&e.pool, &got[i]);
    }
    close_ends(&e);
}

/* ---- liars ---- */

/* A word of a ring or of a record is written over; nothing may be read out of bounds, and what
 * comes out is a sound message, or nothing and an end. */
static void whatever_the_writer_writes_nothing_is_read_out_of_bounds(void **state)
{
    static const uint64_t words[] = {0,
                                     1,
                                     63,
                                     64,
                                     0x7fffffff,
                                     0x80000000,
                                     0x80000040,
                                     UINT32_MAX,
                                     UINT64_MAX,
                                     UINT64_MAX - 63,
                                     (uint64_t)1 << 40};
    enum { WORDS = (8 + 5 * 24 + 96) / 4 };
    uint64_t drawn = 7;

    (void)state;
    for (uint32_t at = 0; at < WORDS + 2; at++) {
        for (uint32_t k = 0; k < WF_COUNT(words) + 4; k++) {
            uint64_t word =
                k < WF_COUNT(words) ? words[k] : (drawn = drawn * 6364136223846793005u + 1);
            wf_msg *m;
            ends e;

            open_ends(&e);
            for (uint32_t i = 4; i < 64; i += 5) {
                m = make(&e.pool, e.a->pool, i);
                assert_int_equal(wf_shm_conn_send(e.a, m, NULL), WF_OK);
                wf_msg_free(&e.pool, &m);
            }
            if (at < WORDS)
                memcpy(e.a->out.ring->bytes + at * sizeof(uint32_t), &word, sizeof word);
            else if (at == WORDS)
                atomic_store(&e.a->out.ring->head, word);
            else
                atomic_store(&e.a->in.ring->tail, word); /* b's own messages come to nothing */
            for (uint32_t i = 0; i < 16; i++) {
                m = wf_shm_conn_receive(e.b, &e.pool, &e.bad);
                if (m && wf_parts_verify(m, NULL) == WF_OK && m->n_frames)
                    (void)is_whole(m, m->head.step);
                wf_msg_free(&e.pool, &m);
                m = make(&e.pool, e.b->pool, i);
                (void)!wf_shm_conn_send(e.b, m, NULL);
                wf_msg_free(&e.pool, &m);
            }
            close_ends(&e);
        }
    }
}

/* Memory that could shrink under the reader, or of another size, is not taken. */
static void memory_that_may_shrink_is_not_taken(void **state)
{
    static const struct {
        int seals;
        int64_t more;
        uint32_t version;
        bool none;
    } rows[] = {
        {F_SEAL_GROW, 0, WF_SHM_VERSION, false},
        {F_SEAL_SHRINK | F_SEAL_GROW, 4096, WF_SHM_VERSION, false},
        {F_SEAL_SHRINK | F_SEAL_GROW, 0, WF_SHM_VERSION + 1, false},
        {0, 0, WF_SHM_VERSION, true},
    };
    size_t bytes = 2 * sizeof(wf_ring);

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        wf_shm_conn *c;
        int pair[2], fd = memfd_create("liar", MFD_ALLOW_SEALING | MFD_CLOEXEC);

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
        assert_int_equal(ftruncate(fd, (off_t)bytes + rows[i].more), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, rows[i].seals), 0);
        c = wf_shm_conn_await(pair[1], 0);
        assert_true(wf_shm_note_send(pair[0], &(wf_shm_note){WF_NOTE_ASK, rows[i].version, bytes},
                                     rows[i].none ? -1 : fd));
        wf_shm_conn_look(c);
        assert_int_equal(c->state, WF_SHM_OVER);
        wf_shm_conn_free(&c);
        close(pair[0]);
        close(fd);
    }
}

static void notes_that_cannot_be_right_end_the_connection(void **state)
{
    static const wf_shm_note rows[] = {
        {WF_NOTE_ASK, WF_SHM_VERSION, 2 * sizeof(wf_ring)},
        {WF_NOTE_TAKEN, 0, 0},
        {WF_NOTE_BLOCK, 1, 65536},
        {WF_NOTE_FORGET, WF_SHM_BLOCKS, 0},
        {99, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        ends e;

        open_ends(&e);
        assert_true(wf_shm_note_send(e.a->fd, &rows[i], -1));
        wf_shm_conn_look(e.b);
        assert_int_equal(e.b->state, WF_SHM_OVER);
        close_ends(&e);
    }
}

/* Two blocks that together are beyond what is kept in any case. */
static void take_two(const ends *e, wf_buf *two[2], const void *at[2])
{
    bool failed;

    for (int i = 0; i < 2; i++) {
        two[i] = wf_shm_pool_take(e->a->pool, (size_t)128 << 20, false, &failed);
        assert_non_null(two[i]);
        at[i] = two[i]->data;
    }
}

static void large_blocks_are_kept_while_they_are_taken_again(void **state)
{
    const void *first[2], *again[2];
    wf_buf *two[2];
    ends e;

    (void)state;
    open_ends(&e);
    take_two(&e, two, first);
    wf_shm_pool_tend(e.a->pool, WF_NS_PER_S);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 2; i++)
            wf_buf_unref(&two[i]);
        take_two(&e, two, again);
        assert_true((again[0] == first[0] && again[1] == first[1]) ||
                    (again[0] == first[1] && again[1] == first[0]));
        assert_int_equal(count_blocks(e.b), 2);
    }
    for (int i = 0; i < 2; i++)
        wf_buf_unref(&two[i]);
    wf_shm_pool_tend(e.a->pool, 20 * WF_NS_PER_S);
    wf_shm_pool_tend(e.a->pool, 29 * WF_NS_PER_S);
    assert_int_equal(count_blocks(e.b), 2);
    wf_shm_pool_tend(e.a->pool, 31 * WF_NS_PER_S);
    assert_int_equal(count_blocks(e.b), 1);
    close_ends(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_blocks_are_kept_while_they_are_taken_again),
        cmocka_unit_test(messages_of_any_size_come_whole_and_in_order),
        cmocka_unit_test(a_frame_that_was_born_in_shared_memory_is_not_copied),
        cmocka_unit_test(a_frame_outlives_its_connection),
        cmocka_unit_test(whatever_the_writer_writes_nothing_is_read_out_of_bounds),
        cmocka_unit_test(memory_that_may_shrink_is_not_taken),
        cmocka_unit_test(notes_that_cannot_be_right_end_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
