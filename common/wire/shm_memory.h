/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_memory.h - pieces of memory that two processes of one host map: each is a memfd
 * that can neither shrink nor grow, so that no access to a mapping can fail.
 *
 * A mapping is counted, because a received frame may outlive the connection that it came by.
 */
#ifndef WF_WIRE_SHM_MEMORY_H
#define WF_WIRE_SHM_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_shm_memory {
    uint8_t *at;
    size_t bytes;
    bool pinned; /* by a device (pinned.h) */
    atomic_uint refs;
} wf_shm_memory;

/* Makes zeroed memory, with one reference, and gives its descriptor, which the caller sends and
 * closes; -1 with errno when the system or a limit refuses. */
int wf_shm_memory_make(size_t bytes, wf_shm_memory **out);
/* Maps what a peer has sent, if it is sealed and has exactly so many bytes; NULL when not. The
 * descriptor stays the caller's. */
wf_shm_memory *wf_shm_memory_map(int fd, size_t bytes);
wf_shm_memory *wf_shm_memory_ref(wf_shm_memory *m);
/* One reference less, on any thread, and sets *m to NULL; NULL is fine. */
void wf_shm_memory_unref(wf_shm_memory **m);

#endif
