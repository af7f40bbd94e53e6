/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/shm.c - messages through memory that two ends share: whole and in order whatever their
 * sizes, without a copy where they were born there, and never out of bounds, whatever the other end
 * writes or when it dies. */
#include "common/wire/shm.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/wire/grammar.h"
#include "common/wire/parts.h"
#include "common/wire/shm_conn.h"
#include "common/wire/shm_note.h"
#include "common/wire/wait.h"
#include "common/wire/wires.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEADLINE_S = 30, MESSAGES = 4000, BIG = 300 << 10 };

typedef struct ends {
    wf_shm_conn *a, *b; /* a has asked */
    wf_msg_pool pool;
    uint64_t bad;
} ends;

static void open_ends(ends *e)
{
    const char *why = NULL;
    int fd[2];

    *e = (ends){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), 0);
    e->a = wf_shm_conn_ask(fd[0], 0, &why);
    e->b = wf_shm_conn_await(fd[1], 0);
    assert_non_null(e->a);
    assert_non_null(e->b);
    wf_shm_conn_look(e->b);
    wf_shm_conn_look(e->a);
    assert_int_equal(e->a->state, WF_SHM_UP);
    assert_int_equal(e->b->state, WF_SHM_UP);
}

static void close_ends(ends *e)
{
    wf_shm_conn_free(&e->a);
    wf_shm_conn_free(&e->b);
    wf_msg_pool_close(&e->pool);
}

/* ---- messages that tell their own content ---- */

static void fill(uint8_t *data, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

static bool is_filled(const uint8_t *data, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        if (data[i] != (uint8_t)(seed * 31 + i * 7 + (i >> 8)))
            return false;
    return true;
}

/* How large frame f of message i is; most are small, and some lie in blocks. */
static size_t frame_bytes(uint32_t i, uint32_t f)
{
    uint32_t r = (i * 2654435761u + f * 40503u) >> 4;

    return sizeof(float) * (r % 16 == 0 ? r % (BIG / 4) : r % 4 == 0 ? r % 8192 : r % 64);
}

/* Message i: its frames, one part for each; frames of `own`, where that gives memory. */
static wf_msg *make(wf_msg_pool *pool, wf_shm_pool *own, uint32_t i)
{
    wf_part parts[WF_MAX_FRAMES];
    uint32_t n = i % 5;
    wf_msg *m = NULL;

    assert_int_equal(wf_msg_new(pool, WF_PUSH, &m, NULL), WF_OK);
    m->head.step = i;
    m->head.incarnation = 9;
    for (uint32_t f = 0; f < n; f++) {
        size_t bytes = frame_bytes(i, f);
        bool failed;
        wf_buf *b = own && (i + f) % 3 == 0 ? wf_shm_pool_take(own, bytes, &failed) : NULL;

        if (!b)
            b = wf_buf_new(bytes);
        assert_non_null(b);
        fill(b->data, bytes, i + f);
        parts[f] = (wf_part){.slice = f, .frame = (uint8_t)f, .bytes = bytes};
        parts[f].codec = (i + f) % 7 == 0 ? WF_CODEC_BYTES : WF_CODEC_F32;
        assert_int_equal(wf_msg_add_frame(m, b, b->data, bytes, NULL), WF_OK);
        wf_buf_unref(&b);
    }
    assert_int_equal(wf_parts_put(m, parts, n, NULL), WF_OK);
    return m;
}

static bool is_whole(const wf_msg *m, uint32_t i)
{
    bool whole = m->head.kind == WF_PUSH && m->head.step == i && m->n_frames == i % 5 &&
                 wf_parts_verify(m, NULL) == WF_OK;

    for (uint32_t f = 0; whole && f < m->n_frames; f++)
        whole = m->frames[f].bytes == frame_bytes(i, f) &&
                is_filled(m->frames[f].data, m->frames[f].bytes, i + f);
    return whole;
}

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
    b = wf_shm_pool_take(e.a->pool, BIG, &failed);
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
            for (uint32_t i = 0; i < 64; i++) {
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

/* ---- two threads, two processes ---- */

static char folder[] = "/tmp/weft-shm-XXXXXX", address[64];

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(address, sizeof address, "ipc://%s/socket", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(address + strlen("ipc://"));
    return rmdir(folder);
}

typedef struct side {
    wf_wires *w;
    wf_transport *t;
    wf_msg_pool pool;
} side;

static void open_side(side *s, bool listens)
{
    *s = (side){0};
    assert_int_equal(wf_wires_new(4, &s->w, NULL), WF_OK);
    assert_int_equal(listens ? wf_wires_listen(s->w, address, &s->t, NULL)
                             : wf_wires_dial(s->w, address, &s->t, NULL),
                     WF_OK);
}

static void close_side(side *s)
{
    s->t->ops->close(s->t, 0);
    wf_msg_pool_close(&s->pool);
    wf_wires_free(&s->w);
}

/* The next message, or NULL after the deadline. */
static wf_msg *await(side *s, wf_route *from)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_msg *m;

    while (!(m = s->t->ops->receive(s->t, &s->pool, from)) && wf_now_ns() < end_ns) {
        s->t->ops->tend(s->t, wf_now_ns());
        wf_wait(&s->t, 1, -1, 100, NULL);
    }
    return m;
}

/* Sends message i, again until it goes. */
static bool send_soon(side *s, const wf_route *to, uint32_t i)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_msg *m = make(&s->pool, NULL, i);

    while (s->t->ops->send(s->t, to, m, NULL) != WF_OK && wf_now_ns() < end_ns) {
        s->t->ops->tend(s->t, wf_now_ns());
        wf_wait(&s->t, 1, -1, 20, NULL);
    }
    wf_msg_free(&s->pool, &m);
    return wf_now_ns() < end_ns;
}

/* Sends messages from first on, and takes each back. */
static bool exchange(side *s, uint32_t first, uint32_t count)
{
    wf_route from = {0};

    for (uint32_t i = first; i < first + count; i++) {
        wf_msg *m = send_soon(s, &from, i) ? await(s, &from) : NULL;
        bool whole = m && is_whole(m, i);

        wf_msg_free(&s->pool, &m);
        if (!whole)
            return false;
    }
    return true;
}

/* Answers every message with the same, until one of step UINT32_MAX or for ever. */
static void answer(side *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        wf_route from = {0};
        wf_msg *m = await(s, &from);
        wf_status rc = WF_FULL;

        if (!m)
            return;
        for (int64_t end_ns = wf_now_ns() + WF_NS_PER_S; rc == WF_FULL && wf_now_ns() < end_ns;)
            rc = s->t->ops->send(s->t, &from, m, NULL);
        wf_msg_free(&s->pool, &m);
    }
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_any_size_come_whole_and_in_order),
        cmocka_unit_test(a_frame_that_was_born_in_shared_memory_is_not_copied),
        cmocka_unit_test(a_frame_outlives_its_connection),
        cmocka_unit_test(whatever_the_writer_writes_nothing_is_read_out_of_bounds),
        cmocka_unit_test(memory_that_may_shrink_is_not_taken),
        cmocka_unit_test(notes_that_cannot_be_right_end_the_connection),
        cmocka_unit_test(two_processes_exchange_messages),
        cmocka_unit_test(a_listener_may_die_at_any_moment),
        cmocka_unit_test(a_dialler_may_die_at_any_moment),
        cmocka_unit_test(two_threads_exchange_messages),
        cmocka_unit_test(a_full_ring_wakes_its_writer),
        cmocka_unit_test(either_side_may_do_without),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
