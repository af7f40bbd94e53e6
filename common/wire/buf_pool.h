/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/buf_pool.h - buffers of messages that are used again, so that a step neither zeroes
 * memory nor has the system make new pages.
 *
 * Threading: buffers may be taken and let go of on any thread.
 */
#ifndef WF_WIRE_BUF_POOL_H
#define WF_WIRE_BUF_POOL_H

#include "common/tensor/buf.h"
#include <stddef.h>

typedef struct wf_buf_pool wf_buf_pool;

/* A pool that keeps up to `most` bytes which nobody uses; the caller owns it. NULL without memory.
 */
wf_buf_pool *wf_buf_pool_new(size_t most);
/* Buffers that are out stay valid until they are let go of. NULL is fine. */
void wf_buf_pool_close(wf_buf_pool **p);
/* A buffer with one reference, aligned to 64: zeroed, or with the content of an earlier use. NULL
 * without memory. */
wf_buf *wf_buf_pool_take(wf_buf_pool *p, size_t bytes);

#endif
