/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/requests.h - requests to dialled peers that are sent over each fresh link until they
 * are answered, by whoever has no state with a peer but what it waits for.
 *
 * A request that was under way when a link was lost may have been carried out: what must not happen
 * twice brings a sequence number of its own.
 *
 * Invariants
 *   R1  a request is sent once over each link, in the order of wf_requests_send
 */
#ifndef WF_WIRE_REQUESTS_H
#define WF_WIRE_REQUESTS_H

#include "common/base/status.h"
#include "common/wire/net.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_request {
    uint32_t number; /* in the header of the request and of its answer; never 0 */
    wf_peer *peer;
    wf_msg *msg; /* as it is sent */
    void *user;
    struct wf_request *next;
} wf_request;

/* {.net = net} is empty; the net is borrowed. */
typedef struct wf_requests {
    wf_net *net;
    wf_request *first;
    uint32_t last; /* number that was given */
} wf_requests;

/* Takes *m, also on failure, and sends it now or when the peer is up. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_requests_send(wf_requests *r, wf_peer *to, wf_msg **m, void *user,
                                       uint32_t *number, wf_err *err);
/* The peer is up: it is sent what it has not answered. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_requests_on_up(wf_requests *r, const wf_peer *peer, wf_err *err);
/* An answer: whether it is awaited; then it is not any more, and *user is the request's. */
bool wf_requests_answered(wf_requests *r, const wf_peer *from, uint32_t number, void **user);
/* Nobody waits for that answer any more; or for any of that user's. */
void wf_requests_drop(wf_requests *r, uint32_t number);
void wf_requests_drop_of(wf_requests *r, const void *user);
/* Drops all. */
void wf_requests_close(wf_requests *r);

#endif
