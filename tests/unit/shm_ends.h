/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/shm_ends.h - both ends of a connection through shared memory, in one process. Behind
 * cmocka.h. */
#ifndef WF_TESTS_SHM_ENDS_H
#define WF_TESTS_SHM_ENDS_H

#include "common/wire/shm_conn.h"
#include <sys/socket.h>

typedef struct ends {
    wf_shm_conn *a, *b; /* a has asked */
    wf_msg_pool pool;
    uint64_t bad;
} ends;

static inline void open_ends(ends *e)
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

static inline void close_ends(ends *e)
{
    wf_shm_conn_free(&e->a);
    wf_shm_conn_free(&e->b);
    wf_msg_pool_close(&e->pool);
}

/* How many the other side has been told of, and not told to forget. */
static inline uint32_t count_blocks(wf_shm_conn *c)
{
    uint32_t n = 0;

    wf_shm_conn_look(c);
    for (uint32_t i = 0; i < WF_SHM_BLOCKS; i++)
        n += c->blocks[i] != NULL;
    return n;
}

#endif
