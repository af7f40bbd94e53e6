/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/wait.h - waiting for messages, whatever carries them. */
#ifndef WF_WIRE_WAIT_H
#define WF_WIRE_WAIT_H

#include "common/wire/transport.h"
#include <stdint.h>

/* Waits until one of the n transports has something or timeout_ms has passed; also ends when `fd`
 * (-1: none) is readable. First spins for spin_us: a wake-up from sleep costs 30 us, a spin 0.1. It
 * may end early; the thread is the one that polls the transports. */
void wf_wait(wf_transport *const t[], size_t n, int fd, int64_t timeout_ms, int spin_us);

#endif
