/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/link.h - one ordered, lossless stream of messages each way between two incarnations.
 *
 * ZeroMQ drops queued messages when a connection breaks, so links provide order and delivery:
 * sequence numbers, cumulative acknowledgements, resends. No socket and no clock: messages and the
 * time go in, messages to be sent come out.
 *
 * Nothing is sent again because time has passed: a peer that computes for a minute reads nothing,
 * and has lost nothing. A connection keeps order, so a ping that names the last message sent before
 * it proves a loss: if that message has not arrived when the ping has, the receiver answers with
 * WF_RESEND, and only then does the sender go back. Each time it goes back it begins a new round; a
 * ping carries the round, a resend request echoes it, and a request of an older round is void.
 *
 * Invariants
 *   L1  messages are taken in the order in which they left the sender's queue, each once
 *   L2  sent and not yet acknowledged bytes never exceed credit_bytes, but for one message that is
 *       larger than the credit by itself; a receiver holds at most twice that in messages that
 *       came early
 *   L3  a message handed to wf_link_send is delivered if the peer's incarnation lives long enough
 *   L4  over a connection that neither breaks nor damages a message, nothing is sent twice
 *
 * The first sequence number of each side is random and told in the hello, so that a message of an
 * older link between the same two is not mistaken for one of this link.
 */
#ifndef WF_WIRE_LINK_H
#define WF_WIRE_LINK_H

#include "common/wire/header.h"
#include "common/wire/msg.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_link wf_link;

typedef struct wf_link_conf {
    uint64_t incarnation;       /* this side's, written into each message */
    uint64_t first, peer_first; /* the sequence numbers before the first message of each side */
    size_t credit_bytes;        /* L2 */
    int64_t probe_ns;           /* a ping follows unacknowledged messages after this time */
    int64_t ack_delay_ns;       /* an acknowledgement waits this long for a message to carry it */
} wf_link_conf;

/* Order of the send queue: lower lane, then lower key, then the order of wf_link_send. */
typedef enum wf_lane { WF_LANE_CONTROL = 0, WF_LANE_DATA = 1 } wf_lane;

/* A link that the caller owns; the pool is borrowed for its life. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_link_new(const wf_link_conf *conf, wf_msg_pool *pool, wf_link **out,
                                  wf_err *err);
/* Sets the conf of a link that has sent and received nothing: messages may be queued on it before
 * the other side is known. */
void wf_link_begin(wf_link *l, const wf_link_conf *conf);
/* Frees *l with all messages in it; NULL is fine. */
void wf_link_free(wf_link **l);

/* Queues a message; takes *m and sets it to NULL. `key` orders the data lane: by step first, so
 * that a pull that counts on a push never overtakes it. Errors: WF_NOMEM (*m stays the caller's).
 */
WF_MUST_USE wf_status wf_link_send(wf_link *l, wf_lane lane, uint64_t key, wf_msg **m, wf_err *err);
/* The next message that may be sent now, borrowed until the next call on the link, with its
 * sequence and acknowledgement set; NULL when there is none (empty, or the credit is used up). */
const wf_msg *wf_link_next(wf_link *l, int64_t now_ns);
/* The transport refused the message that wf_link_next gave last: it is the next one again. */
void wf_link_unsent(wf_link *l);
/* Whether a ping is due: no message has carried an acknowledgement that the peer is owed, or
 * messages in flight have not been acknowledged for a while. */
bool wf_link_ping_due(const wf_link *l, int64_t now_ns);
/* Fills in a ping: the acknowledgement, the last message sent, the round, and whether this side
 * waits for an acknowledgement. */
void wf_link_ping(wf_link *l, int64_t now_ns, wf_header *ping);
/* A ping arrived. True if messages that were sent before it have not: then *resend is the header of
 * a WF_RESEND. wf_link_on_message handles the acknowledgement in the ping. */
bool wf_link_on_ping(wf_link *l, int64_t now_ns, const wf_header *ping, wf_header *resend);
/* A WF_RESEND arrived: goes back to the first message that the peer lacks. */
void wf_link_on_resend(wf_link *l, int64_t now_ns, const wf_header *resend);

/* Whether a message with this sequence can belong to this link: inside the window around the last
 * message taken, or outside the sequence (0). */
bool wf_link_may_hold(const wf_link *l, uint64_t sequence);
/* A message arrived. Its acknowledgement is taken in; if it is in sequence it is kept for
 * wf_link_take. Takes *m (duplicates are freed) and sets it to NULL. */
void wf_link_on_message(wf_link *l, int64_t now_ns, wf_msg **m);
/* The next message in order, which the caller owns then; NULL when there is none. */
wf_msg *wf_link_take(wf_link *l, int64_t now_ns);

/* True when everything sent has been acknowledged and nothing is queued. */
bool wf_link_idle(const wf_link *l);
/* Whether `sequence` is of a message sent on this link and not acknowledged yet. */
bool wf_link_in_flight(const wf_link *l, uint64_t sequence);
/* The time at which a ping is due if nothing else happens; INT64_MAX when never. */
int64_t wf_link_deadline(const wf_link *l);
/* Bytes that wait to be sent and are not in flight: backpressure of a slow peer. */
size_t wf_link_queued_bytes(const wf_link *l);
/* Bytes sent and not acknowledged. */
size_t wf_link_flight_bytes(const wf_link *l);
/* Bytes of all messages that were sent more than once. */
uint64_t wf_link_resent_bytes(const wf_link *l);
/* For tests: messages that lay too far ahead to be kept. */
uint64_t wf_link_out_of_window(const wf_link *l);

#endif
