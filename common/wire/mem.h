/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/mem.h - a transport within one process: for tests, for the simulator, and for roles
 * that share a process.
 *
 * A switch knows its endpoints by number. A sent message becomes a packet. The carrier, if one is
 * set, decides when, whether and how often a packet is delivered; without a carrier it is delivered
 * at once. Safe to use from several threads when no carrier is set.
 */
#ifndef WF_WIRE_MEM_H
#define WF_WIRE_MEM_H

#include "common/base/status.h"
#include "common/wire/transport.h"
#include <stdint.h>

typedef struct wf_mem wf_mem;

typedef struct wf_packet {
    uint32_t from, to; /* endpoint numbers */
    wf_msg *msg;
} wf_packet;

WF_MUST_USE wf_status wf_mem_new(wf_mem **out, wf_err *err);
/* All its transports must be closed before. NULL is fine. */
void wf_mem_free(wf_mem **m);
/* Errors: WF_EXISTS when the address is served already. */
WF_MUST_USE wf_status wf_mem_listen(wf_mem *m, const char *address, wf_transport **out,
                                    wf_err *err);
/* A message goes to the endpoint that listens at the address when it is sent. */
WF_MUST_USE wf_status wf_mem_dial(wf_mem *m, const char *address, wf_transport **out, wf_err *err);

/* From now on packets go to carry(arg, packet), which owns packet->msg then. */
void wf_mem_set_carrier(wf_mem *m, void (*carry)(void *arg, const wf_packet *packet), void *arg);
/* Delivers a packet; takes its message. It is dropped when the endpoint is closed. */
void wf_mem_deliver(wf_mem *m, wf_packet *packet);
/* A second packet with the same content, for carriers that repeat. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_mem_repeat(wf_mem *m, const wf_packet *packet, wf_packet *out,
                                    wf_err *err);
/* Frees a packet's message undelivered. */
void wf_mem_drop(wf_mem *m, wf_packet *packet);
/* The endpoint number of a transport of this switch. */
uint32_t wf_mem_endpoint(const wf_transport *t);

#endif
