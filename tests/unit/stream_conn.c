/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/stream_conn.c - messages as a stream of bytes: whole and in order whatever the kernel
 * takes and gives at a time; only who knows the token gets in; bytes that are no record end the
 * connection, before anything is allocated for them. */
#include "common/wire/stream_conn.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/grammar.h"
#include "numbered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES = 3000 };
static const uint8_t token[WF_STREAM_TOKEN] = "fifteen letters";

typedef struct ends {
    wf_stream_conn *a, *b; /* a dials */
    wf_buf_pool *bufs;
    wf_msg_pool pool;
    uint64_t bad;
} ends;

static void make_pair(int fd[2], int buffer)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    for (int i = 0; buffer && i < 2; i++)
        assert_int_equal(setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer), 0);
}

/* Ends that are up; the kernel takes about `buffer` bytes at a time, or as usual with 0. */
static void open_ends(ends *e, int buffer)
{
    int fd[2];

    *e = (ends){.bufs = wf_buf_pool_new(1 << 24)};
    make_pair(fd, buffer);
    e->a = wf_stream_conn_new(fd[0], false, token, e->bufs, 1);
    e->b = wf_stream_conn_new(fd[1], true, token, e->bufs, 1);
    wf_stream_conn_look(e->a);
    wf_stream_conn_look(e->b);
    wf_stream_conn_look(e->a);
    assert_int_equal(e->a->state, WF_STREAM_UP);
    assert_int_equal(e->b->state, WF_STREAM_UP);
}

static void close_ends(ends *e)
{
    wf_stream_conn_free(&e->a, &e->pool);
    wf_stream_conn_free(&e->b, &e->pool);
    wf_buf_pool_close(&e->bufs);
    wf_msg_pool_close(&e->pool);
}

static void send_number(ends *e, uint32_t i)
{
    wf_msg *m = make(&e->pool, NULL, i);

    assert_int_equal(wf_stream_conn_send(e->a, m, NULL), WF_OK);
    wf_msg_free(&e->pool, &m);
}

/* The writer runs ahead of the reader by a changing number of messages. */
static void messages_arrive_whole_and_in_order(void **state)
{
    static const int buffers[] = {0, 4096, 100000};

    (void)state;
    for (size_t k = 0; k < WF_COUNT(buffers); k++) {
        uint32_t sent = 0, taken = 0;
        ends e;

        open_ends(&e, buffers[k]);
        while (taken < MESSAGES) {
            for (uint32_t most = 1 + sent % 53; sent < MESSAGES && most > 0; most--)
                send_number(&e, sent++);
            for (uint32_t most = 1 + taken % 47; most > 0; most--) {
                wf_msg *m = wf_stream_conn_receive(e.b, &e.pool, &e.bad);

                if (!m)
                    break;
                assert_true(is_whole(m, taken));
                for (uint32_t f = 0; f < m->n_frames; f++)
                    assert_int_equal((uintptr_t)m->frames[f].data % WF_BUF_ALIGN, 0);
                wf_msg_free(&e.pool, &m);
                taken++;
            }
            wf_stream_conn_look(e.a);
        }
        assert_false(wf_stream_conn_writes(e.a));
        assert_int_equal(e.a->rest_bytes, 0);
        assert_int_equal(e.bad, 0);
        close_ends(&e);
    }
}

/* A kind with a large body, which does not fit into the buffer of what arrives. */
static void long_control_bytes_arrive(void **state)
{
    enum { BYTES = 3 << 20 };
    wf_msg *m = NULL, *got = NULL;
    ends e;

    (void)state;
    open_ends(&e, 8192);
    assert_int_equal(wf_msg_new(&e.pool, WF_LIST, &m, NULL), WF_OK);
    assert_non_null(wf_msg_control(m, BYTES));
    fill(m->control, BYTES, 5);
    assert_int_equal(wf_stream_conn_send(e.a, m, NULL), WF_OK);
    wf_msg_free(&e.pool, &m);
    while (!(got = wf_stream_conn_receive(e.b, &e.pool, &e.bad)))
        wf_stream_conn_look(e.a);
    assert_int_equal(got->head.control_bytes, BYTES);
    assert_true(is_filled(got->control, BYTES, 5));
    wf_msg_free(&e.pool, &got);
    close_ends(&e);
}

static void nobody_gets_in_without_the_token(void **state)
{
    uint8_t greeting[8 + WF_STREAM_TOKEN];
    wf_buf_pool *bufs = wf_buf_pool_new(1 << 20);
    wf_msg_pool pool = {0};

    (void)state;
    for (int k = 0; k < 3; k++) { /* another token, another magic, no version of ours */
        wf_stream_conn *b;
        int fd[2];

        make_pair(fd, 0);
        wf_put_u32(greeting, k == 1 ? 7 : 0x53464557u);
        wf_put_u32(greeting + 4, k == 2 ? 2 : 1);
        memcpy(greeting + 8, token, sizeof token);
        greeting[8] ^= k == 0;
        b = wf_stream_conn_new(fd[1], true, token, bufs, 1);
        assert_int_equal(write(fd[0], greeting, 10), 10);
        wf_stream_conn_look(b);
        assert_int_equal(b->state, WF_STREAM_GREETED);
        assert_int_equal(write(fd[0], greeting + 10, sizeof greeting - 10), sizeof greeting - 10);
        wf_stream_conn_look(b);
        assert_int_equal(b->state, WF_STREAM_OVER);
        assert_string_equal(b->why, "the greeting is wrong");
        assert_int_equal(wf_stream_conn_send(b, &(wf_msg){.head.kind = WF_PING}, NULL),
                         WF_NOTFOUND);
        wf_stream_conn_free(&b, &pool);
        close(fd[0]);
    }
    wf_buf_pool_close(&bufs);
}

/* The bytes of a short message with three frames. */
static size_t short_record(uint8_t record[], size_t room)
{
    ssize_t n = 0;
    ends e;

    open_ends(&e, 0);
    for (uint32_t i = 3; n < 200 || n > 800; i += 5) {
        send_number(&e, i);
        n = recv(e.b->fd, record, room, 0);
        assert_true(n > 0);
        while (recv(e.b->fd, (uint8_t[4096]){0}, 4096, 0) > 0 || wf_stream_conn_writes(e.a))
            wf_stream_conn_look(e.a);
    }
    close_ends(&e);
    return (size_t)n;
}

/* A record with each of its bits flipped in turn: a message, or nothing. */
static void every_flip_is_refused_or_read(void **state)
{
    uint8_t record[4096];
    size_t n = short_record(record, sizeof record);
    uint32_t refused = 0;

    (void)state;
    for (size_t bit = 0; bit < 8 * n; bit++) {
        wf_msg *m;
        ends e;

        open_ends(&e, 0);
        record[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(write(e.a->fd, record, n), n);
        record[bit / 8] ^= (uint8_t)(1 << bit % 8);
        m = wf_stream_conn_receive(e.b, &e.pool, &e.bad);
        if (m)
            assert_int_equal(m->n_frames, 3);
        else if (e.b->state == WF_STREAM_OVER)
            assert_int_equal(e.bad, 1);
        refused += !m;
        wf_msg_free(&e.pool, &m);
        close_ends(&e);
    }
    assert_in_range(refused, 8 * WF_HEADER_BYTES, 8 * n); /* its header has a checksum */
}

static void claims_are_checked_before_memory_is_made(void **state)
{
    static const struct {
        uint32_t n_frames, head_bytes, first_frame;
        uint16_t kind;
    } claims[] = {
        {33, 64, 8, WF_PUSH}, /* more frames than a message has */
        {UINT32_MAX, 64, 8, WF_PUSH},
        {1, UINT32_MAX, 8, WF_PUSH},  /* not what the header says */
        {1, 64, UINT32_MAX, WF_PUSH}, /* a frame of 4 GiB */
        {1, 64, 8, WF_PING},          /* of a kind without payload */
        {0, 64, 0, 999},              /* of no kind */
    };

    (void)state;
    for (size_t k = 0; k < WF_COUNT(claims); k++) {
        uint8_t record[WF_STREAM_PREFIX + WF_HEADER_BYTES] = {0};
        wf_header head = {.version = WF_WIRE_VERSION, .kind = claims[k].kind};
        uint32_t n = WF_MIN(claims[k].n_frames, (uint32_t)WF_MAX_FRAMES);
        ends e;

        open_ends(&e, 0);
        wf_put_u32(record, claims[k].n_frames);
        wf_put_u32(record + 4, claims[k].head_bytes);
        wf_put_u32(record + 8, claims[k].first_frame);
        wf_header_encode(&head, NULL, record + 8 + 4 * n);
        assert_int_equal(write(e.a->fd, record, sizeof record), sizeof record);
        assert_null(wf_stream_conn_receive(e.b, &e.pool, &e.bad));
        assert_int_equal(e.b->state, WF_STREAM_OVER);
        assert_int_equal(e.bad, 1);
        assert_null(e.b->frame);
        assert_null(e.b->long_head);
        close_ends(&e);
    }
}

/* What was sent before the end is taken; a message that was cut short is not. */
static void the_end_loses_only_what_was_not_sent(void **state)
{
    wf_msg *m;
    ends e;

    (void)state;
    open_ends(&e, 0);
    send_number(&e, 0);
    send_number(&e, 1);
    assert_int_equal(write(e.a->fd, "\1\0\0\0\100\0\0\0", 8), 8);
    wf_stream_conn_free(&e.a, &e.pool);
    for (uint32_t i = 0; i < 2; i++) {
        m = wf_stream_conn_receive(e.b, &e.pool, &e.bad);
        assert_non_null(m);
        assert_true(is_whole(m, i));
        wf_msg_free(&e.pool, &m);
    }
    assert_null(wf_stream_conn_receive(e.b, &e.pool, &e.bad));
    assert_int_equal(e.b->state, WF_STREAM_OVER);
    assert_null(e.b->why);
    assert_int_equal(e.bad, 0);
    close_ends(&e);
}

/* A reader that takes nothing has the writer keep references, and then refuse. */
static void what_waits_is_bounded(void **state)
{
    enum { BYTES = 16 << 20 };
    wf_buf *b = wf_buf_new(BYTES);
    wf_status rc = WF_OK;
    uint32_t n = 0;
    wf_msg *m = NULL;
    ends e;

    (void)state;
    open_ends(&e, 4096);
    while (rc == WF_OK && n < 100) {
        assert_int_equal(wf_msg_new(&e.pool, WF_PUSH, &m, NULL), WF_OK);
        assert_int_equal(wf_msg_add_frame(m, b, b->data, BYTES, NULL), WF_OK);
        rc = wf_stream_conn_send(e.a, m, NULL);
        wf_msg_free(&e.pool, &m);
        n += rc == WF_OK;
    }
    assert_int_equal(rc, WF_FULL);
    assert_in_range(n, 8, 17);
    assert_int_equal(wf_buf_refs(b), n + 1); /* nothing was copied */
    wf_stream_conn_end(e.a, "test");
    assert_int_equal(wf_buf_refs(b), 1);
    wf_buf_unref(&b);
    close_ends(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_whole_and_in_order),
        cmocka_unit_test(long_control_bytes_arrive),
        cmocka_unit_test(nobody_gets_in_without_the_token),
        cmocka_unit_test(every_flip_is_refused_or_read),
        cmocka_unit_test(claims_are_checked_before_memory_is_made),
        cmocka_unit_test(the_end_loses_only_what_was_not_sent),
        cmocka_unit_test(what_waits_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
