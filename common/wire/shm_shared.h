/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_shared.h - a block of one connection's pool that peers of other connections map
 * too, each under a number of its own pool. So a gradient whose slices go to several ps is read by
 * all of them where it was computed.
 *
 * A peer is told of the block when something that lies in it is first sent to it, and maps it until
 * the block is given back to the system, or the connection ends. Loans hold the buffer, whichever
 * connection they are of: nobody writes to it while one of the peers reads.
 *
 * Threading: any thread. One lock for all shared blocks of the process comes before the pools'
 * locks: no function here may be called with a pool's lock held.
 */
#ifndef WF_WIRE_SHM_SHARED_H
#define WF_WIRE_SHM_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_shm_pool wf_shm_pool;
typedef struct wf_shm_shared wf_shm_shared;

/* Memory of so many bytes, whose descriptor it keeps; the caller's stays the caller's. NULL when
 * there is none, or the process keeps enough of them: the block has one peer then. */
wf_shm_shared *wf_shm_shared_new(int fd, size_t bytes);
/* Withdrawn before, or all pools that know it are closed. Sets *s to NULL; NULL is fine. */
void wf_shm_shared_free(wf_shm_shared **s);
/* The number that the memory has in a pool, whose peer is told of it the first time. False when it
 * cannot be told now, or too many know it. */
bool wf_shm_shared_with(wf_shm_shared *s, wf_shm_pool *p, uint32_t *number);
/* Whether no peer knows it any more: those who do are told to forget it. False when one cannot be
 * told now. */
bool wf_shm_shared_withdraw(wf_shm_shared *s);
/* A pool closes: no block is known in it. */
void wf_shm_shared_leave(const wf_shm_pool *p);

#endif
