/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/wires.h - what a process listens and dials with, by the kind of an address: the first
 * row of the table that knows its scheme.
 *
 *   mem://NAME        memory of this process (mem.h): among those that share a wf_wires
 *   ipc:///PATH       a socket of this host, over ZeroMQ (zeromq.h)
 *   tcp://HOST:PORT   TCP, over ZeroMQ
 *
 * Where both ends of one of the last two are on this host, messages go through memory that the two
 * processes share (shm.h), without a word in the address.
 *
 * Several addresses of one task are one text: "tcp://h1:7711|ipc:///run/ps-0".
 * It listens at all of them, and who dials it takes the nearest that can be reached: the kinds
 * stand in this order.
 *
 * A kind's library is opened with its first address. To add a kind: its row and file, named in
 * common/wire/meson.build and in the table of wires.c.
 *
 * Threading: any thread may listen and dial; a transport belongs to the thread that polls it.
 */
#ifndef WF_WIRE_WIRES_H
#define WF_WIRE_WIRES_H

#include "common/base/status.h"
#include "common/wire/transport.h"
#include <stdbool.h>
#include <stdint.h>

enum { WF_ADDRESSES_MAX = 512 /* bytes of a task's addresses, with the zero behind them */ };

typedef struct wf_wires wf_wires;

typedef struct wf_wire_kind {
    const char *scheme; /* "tcp://" */
    bool crosses;       /* from process to process: shared memory may carry what goes there */
    const char *form;   /* of an address, for messages: "tcp://HOST:PORT" */
    /* Opens the library for so many connections at one time, and ends it once all its transports
     * are closed. */
    wf_status (*open)(uint32_t connections, void **library, wf_err *err);
    void (*close)(void *library);
    wf_status (*listen)(void *library, const char *address, wf_transport **out, wf_err *err);
    wf_status (*dial)(void *library, const char *address, wf_transport **out, wf_err *err);
    /* Whether somebody listens there now whom a dial would reach; NULL: that takes a dial. */
    bool (*can_reach)(void *library, const char *address);
} wf_wire_kind;

extern const wf_wire_kind wf_wire_kind_mem, wf_wire_kind_ipc, wf_wire_kind_tcp;

/* For so many connections at one time; opens nothing yet. The caller owns *out. Errors: WF_NOMEM.
 */
WF_MUST_USE wf_status wf_wires_new(uint32_t connections, wf_wires **out, wf_err *err);
/* With false, what is listened at and dialled from now on shares no memory; as with WEFT_SHM=0 in
 * the environment. */
void wf_wires_share(wf_wires *w, bool shares);
/* With false, it makes no TCP connections of stream.h's; as with WEFT_STREAMS=0 in the environment.
 */
void wf_wires_stream(wf_wires *w, bool streams);
/* Ends what was opened, once all transports are closed; NULL is fine. */
void wf_wires_free(wf_wires **w);

/* Listens at an address. Errors: WF_INVALID for one of no kind; WF_EXISTS when it is in use, naming
 * the process if /proc shows it; those of the kind's library. */
WF_MUST_USE wf_status wf_wires_listen(wf_wires *w, const char *address, wf_transport **out,
                                      wf_err *err);
/* Dials the nearest of a task's addresses that can be reached, or the first when none can; again
 * and again until the transport is closed. Returns at once. Errors: WF_INVALID; those of the kind's
 * library. */
WF_MUST_USE wf_status wf_wires_dial(wf_wires *w, const char *addresses, wf_transport **out,
                                    wf_err *err);
/* The next address of *addresses, which moves on; false at the end, and for one that is too long.
 */
bool wf_wires_next(const char **addresses, char one[WF_ADDRESSES_MAX]);

#endif
