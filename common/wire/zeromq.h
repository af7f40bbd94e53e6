/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/zeromq.h - messages over ZeroMQ: ROUTER on the serving side, DEALER on the asking
 * side, tcp and ipc.
 *
 * A socket belongs to the thread that polls it. Options and their reasons: RELIABILITY A5.2.
 */
#ifndef WF_WIRE_ZEROMQ_H
#define WF_WIRE_ZEROMQ_H

#include "common/base/status.h"
#include "common/wire/task.h"
#include "common/wire/transport.h"
#include <stdint.h>

typedef struct wf_zmq wf_zmq; /* a process's ZeroMQ context */

/* Also sets malloc to keep large blocks: fresh pages cost four times the copy of what fills them.
 * Errors: WF_IO. */
WF_MUST_USE wf_status wf_zmq_new(wf_zmq **out, wf_err *err);
/* Ends the context once its transports are closed; NULL is fine. */
void wf_zmq_free(wf_zmq **z);

/* Serves at `address` (tcp://host:port or ipc://path). Errors: WF_EXISTS when the address is in
 * use, saying by whom where /proc tells; WF_INVALID. */
WF_MUST_USE wf_status wf_zmq_listen(wf_zmq *z, const char *address, wf_transport **out,
                                    wf_err *err);
/* Dials `address`; the name told to the other side is made of self and incarnation, so that two
 * lives of one task never share it; `channel` (0 to 15) tells several connections of one task to
 * one place apart. Nothing is awaited. Errors: WF_INVALID, WF_IO. */
WF_MUST_USE wf_status wf_zmq_dial(wf_zmq *z, const char *address, wf_task self,
                                  uint64_t incarnation, uint8_t channel, wf_transport **out,
                                  wf_err *err);

/* Waits until one of the n sockets has something or timeout_ms has passed; also ends when `fd`
 * (-1: none) is readable. First spins for spin_us: a wake-up from sleep costs 30 us, a spin 0.1. */
void wf_zmq_wait(wf_transport *const t[], size_t n, int fd, int64_t timeout_ms, int spin_us);

#endif
