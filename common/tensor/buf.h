/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/buf.h - counted storage under tensors and messages.
 *
 * The one kind of thing in weft that is shared: the last one out frees it. A buffer may be memory
 * of our own, or memory that someone else lends until `release` is called (a received frame). It
 * lies on a device; only where that is the host may `data` be read and written (device.h).
 */
#ifndef WF_TENSOR_BUF_H
#define WF_TENSOR_BUF_H

#include "common/tensor/device.h"
#include <stddef.h>
#include <stdint.h>

enum { WF_BUF_ALIGN = 64 };

typedef struct wf_buf {
    const wf_device *device;
    void *data;
    size_t bytes;
    uint32_t refs; /* atomic */
    void (*release)(void *data, void *hint);
    void *hint;
} wf_buf;

/* Zeroed host memory aligned to 64 bytes, with one reference; NULL when there is none. */
wf_buf *wf_buf_new(size_t bytes);
/* The same of undefined content, for who writes all of it. */
wf_buf *wf_buf_new_raw(size_t bytes);
/* As wf_buf_new on a device: zeroed if that is a host, else of undefined content. The last
 * reference is dropped when no queued work uses it any more. */
wf_buf *wf_buf_new_on(const wf_device *d, size_t bytes);
/* Host memory of undefined content, for copies to and from memory of the device: pinned, where the
 * device has such memory and some is left, so that they run beside the host. Other memory works as
 * well. */
wf_buf *wf_buf_new_pinned(const wf_device *d, size_t bytes);
/* Wraps host memory of another owner; release(data, hint) runs once, on the thread that lets go
 * last. NULL when there is no memory; release has not run then. */
wf_buf *wf_buf_wrap(void *data, size_t bytes, void (*release)(void *data, void *hint), void *hint);
/* One more reference; returns b. */
wf_buf *wf_buf_ref(wf_buf *b);
/* One reference less, and sets *b to NULL; NULL is fine. */
void wf_buf_unref(wf_buf **b);
/* The references that are out now: 1 means that the caller holds the only one. */
uint32_t wf_buf_refs(const wf_buf *b);

#endif
