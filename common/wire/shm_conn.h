/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_conn.h - one connection through shared memory: a socket, two rings, and the
 * memory that each side lends the other.
 *
 *   dialler: ASKED --taken--> UP --the socket ends, or the ring is broken--> OVER
 *   acceptor: NEW  --asked--> UP
 *
 * The socket (SOCK_SEQPACKET) brings descriptors and wakes a side that sleeps; its end is the other
 * side's death. Small parts of a message lie in the ring, and are copied at both ends. Others lie
 * in blocks of the sender's pool, where the reader uses them in place: the ring names block, offset
 * and bytes, and a loan, which the reader sets to 0 when it is done. Only then does the sender use
 * that memory for something else.
 *
 * Threading: one thread owns a connection; received frames may be let go of on any, at any time.
 */
#ifndef WF_WIRE_SHM_CONN_H
#define WF_WIRE_SHM_CONN_H

#include "common/base/status.h"
#include "common/wire/msg.h"
#include "common/wire/shm_memory.h"
#include "common/wire/shm_pool.h"
#include "common/wire/shm_ring.h"
#include <stdbool.h>
#include <stdint.h>

typedef enum wf_shm_state { WF_SHM_NEW, WF_SHM_ASKED, WF_SHM_UP, WF_SHM_OVER } wf_shm_state;

typedef struct wf_shm_conn {
    int fd;
    wf_shm_state state;
    const char *why; /* it is over, or NULL: the other side is gone */
    bool refused;    /* the system has refused memory: it would again */
    uint64_t number; /* of the transport, for its routes */
    int64_t since_ns;
    wf_shm_memory *memory; /* of the rings; NULL in NEW */
    wf_ring_writer out;
    wf_ring_reader in;
    wf_shm_pool *pool;
    wf_shm_memory *blocks[WF_SHM_BLOCKS]; /* of the other side's pool */
    /* What is lent to the other side, by the number of the loan. */
    wf_buf *lent[WF_RING_LOANS];
    uint16_t idle[WF_RING_LOANS], busy[WF_RING_LOANS];
    uint32_t n_idle, n_busy;
} wf_shm_conn;

/* Both take the socket, also on failure. */
/* Of one that dials: makes the rings and sends them. NULL with *why when the system refuses. */
wf_shm_conn *wf_shm_conn_ask(int fd, int64_t now_ns, const char **why);
/* Of one that was accepted: waits for the rings. NULL without memory. */
wf_shm_conn *wf_shm_conn_await(int fd, int64_t now_ns);
/* Closes and frees it; NULL is fine. */
void wf_shm_conn_free(wf_shm_conn **c);

/* Takes the notes that have arrived. The state may be OVER then; the ring may still have messages
 * that were sent before. */
void wf_shm_conn_look(wf_shm_conn *c);
/* Wakes the other side. */
void wf_shm_conn_ring(const wf_shm_conn *c);
/* Takes back what the other side has done with. */
void wf_shm_conn_reap(wf_shm_conn *c);
void wf_shm_conn_end(wf_shm_conn *c, const char *why);

/* shm_message.c */
/* Sends a message. Errors: WF_FULL without room for now; WF_NOTFOUND when the connection is over.
 */
WF_MUST_USE wf_status wf_shm_conn_send(wf_shm_conn *c, const wf_msg *m, wf_err *err);
/* The next message, or NULL; counts in *bad what was dropped. A record that cannot be right ends
 * the connection. */
wf_msg *wf_shm_conn_receive(wf_shm_conn *c, wf_msg_pool *pool, uint64_t *bad);

#endif
