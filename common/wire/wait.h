/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/wait.h - waiting for messages, whatever carries them. */
#ifndef WF_WIRE_WAIT_H
#define WF_WIRE_WAIT_H

#include "common/wire/transport.h"
#include <stdint.h>

/* Looking again and again for a moment before the thread sleeps: a wake-up costs 30 us, a look 0.1.
 * It goes on for 200 us at most, which covers the gathering of a batch's rows, and only while it
 * pays: after some that came to nothing, more and more waits sleep at once,
 * until one that sleeps is woken so soon that a look would have found it. All zero at the start.
 */
typedef struct wf_spin {
    uint32_t lost; /* in a row */
    uint32_t rest; /* waits until the next try */
} wf_spin;

/* Waits until one of the n transports has something or timeout_ms has passed; also ends when `fd`
 * (-1: none) is readable. With a spin, looks for a moment first. It may end early; the thread is
 * the one that polls the transports. */
void wf_wait(wf_transport *const t[], size_t n, int fd, int64_t timeout_ms, wf_spin *spin);

#endif
