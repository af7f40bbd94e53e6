/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_pool.h - a sender's memory that one peer maps too: what lies there is sent
 * without a copy.
 *
 * Memory is in blocks of powers of two, each a memfd that the peer is sent when the block is made.
 * A block that nobody uses is used again, the last one first, whose bytes a cache still has. Beyond
 * KEEP_BYTES, and beyond what was out at one time in the last seconds, it is given back to the
 * system.
 *
 * Threading: one thread takes; the last reference to a buffer may be dropped on any.
 */
#ifndef WF_WIRE_SHM_POOL_H
#define WF_WIRE_SHM_POOL_H

#include "common/tensor/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_SHM_BLOCKS = 4096,
    WF_SHM_BLOCK_MOST = 512 << 20 /* bytes: the largest control message, as a power of two */
};

typedef struct wf_shm_pool wf_shm_pool;

/* A pool whose blocks are sent over a socket, which stays the caller's; NULL without memory. */
wf_shm_pool *wf_shm_pool_new(int socket);
/* The connection is over: buffers that are out stay memory, and are sent to nobody. Sets *p to
 * NULL; NULL is fine. */
void wf_shm_pool_close(wf_shm_pool **p);
/* A buffer of so many bytes, zeroed or with the content of an earlier use; NULL when there is none
 * now. *failed becomes true when the system refused memory, and not just the socket for now.
 * `several`: peers of other pools of this process may be sent it, too, if that is possible
 * (shm_shared.h). */
wf_buf *wf_shm_pool_take(wf_shm_pool *p, size_t bytes, bool several, bool *failed);
/* To be called now and then: gives back what was not needed for some seconds. */
void wf_shm_pool_tend(wf_shm_pool *p, int64_t now_ns);
/* Whether the buffer is of this pool; then *number and *base are its block. */
bool wf_shm_pool_has(const wf_shm_pool *p, const wf_buf *b, uint32_t *number, const uint8_t **base);
/* Whether the peer maps the buffer's block: the same, or a block of another pool that is taken for
 * several, of which the peer is told now. */
bool wf_shm_pool_lends(wf_shm_pool *p, const wf_buf *b, uint32_t *number, const uint8_t **base);

/* For shm_shared.c. Tells the peer of memory of so many bytes and gives it a number of this pool;
 * false when that is not possible now. */
bool wf_shm_pool_offer(wf_shm_pool *p, int fd, size_t bytes, uint32_t *number);
/* Tells the peer to forget it, unless the connection is over; false when that is not possible now.
 */
bool wf_shm_pool_withdraw(wf_shm_pool *p, uint32_t number);

#endif
