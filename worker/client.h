/* SPDX-License-Identifier: Apache-2.0 */
/* worker/client.h - a worker's side of the parameter servers: pulls into sets of weights, pushes of
 * gradients, and pushes that are not acknowledged yet.
 *
 * A set of weights holds one buffer for each variable, whole and contiguous, whatever slices it is
 * cut into. Frozen variables, which never change, have one buffer each beside the sets: they are
 * pulled once, by a list of their own. Gradient buffers belong to the client and rotate: a kernel
 * writes straight into one, and it is written again only when every part of it has been
 * acknowledged and has left the transport.
 *
 * Invariants
 *   K1  the pull for step t holds this worker's own pushes up to max(base, t - 1 - pipeline), where
 *       base is the last step before a barrier (start, cut, epoch): exactly up to there. A pull
 *       that is repeated, because its answer was lost with a link, holds them up to t - 1
 *   K2  a gradient buffer is kept until its parts are acknowledged, and sent again over a new link
 *       to the same ps incarnation
 *   K3  over a fresh link, and after a denial, a ps is sent its list alone; pulls and pushes follow
 *       when it has registered it. So a ps that does not admit this worker yet costs a small
 * message now and then, and not all gradients K4  a set is ready only when all frozen weights are
 * in; a fresh link asks for those alone that have not come yet
 */
#ifndef WF_WORKER_CLIENT_H
#define WF_WORKER_CLIENT_H

#include "common/base/status.h"
#include "common/tensor/buf.h"
#include "common/wire/net.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_client wf_client;

enum { WF_MAX_PIPELINE = 1, WF_WEIGHT_SETS = 3, WF_EVAL_SET = 2 };

typedef struct wf_client_variable {
    uint64_t count; /* elements, f32 */
    bool trainable; /* pushed each step: its gradient, or a batch's statistic; otherwise frozen */
} wf_client_variable;

typedef struct wf_client_slice {
    uint32_t variable, ps;
    uint64_t offset, count;
} wf_client_slice;

typedef struct wf_client_conf {
    const wf_client_variable *variables; /* [n_variables], copied */
    uint32_t n_variables;
    const wf_client_slice *slices; /* [n_slices], copied */
    uint32_t n_slices;
    wf_peer *const *ps;              /* [n_ps], copied: dialled peers */
    const uint64_t *ps_incarnations; /* [n_ps], copied: those of the view, which hold the slices */
    uint32_t n_ps;
    uint16_t job, generation;
    uint32_t map, view;
    uint32_t pipeline;
    bool checksums; /* of payloads sent: off on one host */
} wf_client_conf;

/* A client that the caller owns; the net is borrowed. Errors: WF_NOMEM, WF_PROTO for a slice
 * outside its variable. */
WF_MUST_USE wf_status wf_client_new(const wf_client_conf *conf, wf_net *net, wf_client **out,
                                    wf_err *err);
void wf_client_free(wf_client **c);

/* A ps's link is fresh: registers the list; what is not acknowledged follows (K2, K3). */
WF_MUST_USE wf_status wf_client_on_up(wf_client *c, const wf_peer *ps, wf_err *err);

/* Asks for the weights of step t into `set`; its content is lost. */
WF_MUST_USE wf_status wf_client_pull(wf_client *c, int set, uint32_t step, wf_err *err);
/* Forgets a pull: its answers will be dropped. */
void wf_client_drop(wf_client *c, int set);
/* The step whose weights a set holds (whole) or waits for; 0: none. */
uint32_t wf_client_set_step(const wf_client *c, int set);
bool wf_client_set_ready(const wf_client *c, int set);
/* Slices of frozen variables that have not come yet. */
uint32_t wf_client_frozen_left(const wf_client *c);
/* A variable's weights in a set, [count]; valid until the next pull into it. Those of a frozen
 * variable are the same in all sets. */
const float *wf_client_weights(const wf_client *c, int set, uint32_t variable);
/* Weights, an acknowledgement or a denial arrived. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_client_on_message(wf_client *c, const wf_peer *from, const wf_msg *m,
                                           int64_t now_ns, wf_err *err);
/* Asks a ps again that has denied a message: its view may be the older one. First after
 * WF_CLIENT_RETRY_MS, then after twice as long each time, up to WF_CLIENT_RETRY_MOST_MS. */
enum { WF_CLIENT_RETRY_MS = 50, WF_CLIENT_RETRY_MOST_MS = 1000 };
WF_MUST_USE wf_status wf_client_retry(wf_client *c, int64_t now_ns, wf_err *err);

/* For messages: the first ps that owes weights of a set, frozen weights, or acknowledgements of a
 * step; n_ps if none does. And whether a ps has registered this worker's list (K3). */
uint32_t wf_client_late_weights(const wf_client *c, int set);
uint32_t wf_client_late_frozen(const wf_client *c);
uint32_t wf_client_late_acks(const wf_client *c, uint32_t step);
bool wf_client_let_in(const wf_client *c, uint32_t ps);

/* A buffer for the gradient of a variable at `step`, [count] f32, to be written and then pushed;
 * the client's. NULL when there is no memory. */
float *wf_client_gradient(wf_client *c, uint32_t step, uint32_t variable);
/* The gradient of a variable at `step` is final: queues its parts; they leave when enough have
 * gathered, or at wf_client_push_end. */
WF_MUST_USE wf_status wf_client_push(wf_client *c, uint32_t step, uint32_t variable, wf_err *err);
/* Drops a step, none of whose gradients was pushed: its parts are sent empty, so that clocks and
 * pulls go on. wf_client_push_end follows. */
WF_MUST_USE wf_status wf_client_push_nothing(wf_client *c, uint32_t step, wf_err *err);
WF_MUST_USE wf_status wf_client_push_end(wf_client *c, uint32_t step, wf_err *err);

/* All pushes up to this step are acknowledged. */
uint32_t wf_client_acked(const wf_client *c);
/* Pushes not acknowledged: steps begun minus steps acked. */
uint32_t wf_client_in_flight(const wf_client *c);
/* A barrier: later pulls count on all pushes up to `step` (K1). */
void wf_client_set_base(wf_client *c, uint32_t step);
uint32_t wf_client_base(const wf_client *c);

#endif
