/* SPDX-License-Identifier: Apache-2.0 */
/* worker/client_state.h - what client.c and pushes.c share; nobody else includes it. */
#ifndef WF_WORKER_CLIENT_STATE_H
#define WF_WORKER_CLIENT_STATE_H

#include "common/wire/parts.h"
#include "worker/client.h"

enum { WF_CLIENT_STEPS = WF_MAX_PIPELINE + 3 }; /* gradients in flight, and the one being made */

typedef struct weight_set {
    uint32_t step;   /* 0: none */
    uint32_t pull;   /* the pull's name; answers of another are dropped */
    uint32_t left;   /* slices to come */
    uint8_t *have;   /* [n_slices] */
    wf_buf **values; /* [n_variables] */
} weight_set;

typedef struct step_push {
    uint32_t step;  /* 0: free */
    uint8_t *acked; /* [n_slices]: a part may be sent twice, and counts once */
    uint32_t *left; /* [n_ps]: parts not acknowledged */
    uint32_t parts_left;
    bool *pushed;        /* [n_variables] */
    bool ended, nothing; /* nothing: its parts are empty */
    wf_buf **grads;      /* [n_variables] */
} step_push;

/* A push message being filled, for one ps. */
typedef struct draft {
    wf_msg *msg;
    wf_part parts[WF_MAX_PARTS];
    uint32_t n;
    size_t bytes;
} draft;

struct wf_client {
    wf_net *net;
    wf_client_variable *variables;
    uint32_t n_variables;
    wf_client_slice *slices; /* in the order of the variables, then of offsets */
    uint32_t n_slices;
    uint32_t *first_slice; /* [n_variables + 1] */
    wf_peer **ps;
    uint64_t *ps_incarnation; /* those of the view: another has not the slices */
    uint32_t n_ps;
    int64_t *retry_ns; /* [n_ps]: when to ask again after a denial; INT64_MAX: not */
    uint16_t job, generation;
    uint32_t view, pipeline, base, acked, begun, next_pull;
    bool checksums;
    weight_set sets[WF_WEIGHT_SETS];
    step_push steps[WF_CLIENT_STEPS];
    draft *drafts; /* [n_ps] */
    wf_part parts[WF_MAX_PARTS];
};

/* client.c: stamps job, generation and view. Without a link the message is dropped: all is said
 * again when it is up. Takes *m. */
WF_MUST_USE wf_status wf_client_send(wf_client *c, uint32_t ps, wf_lane lane, uint64_t key,
                                     wf_msg **m, wf_err *err);

/* pushes.c */
WF_MUST_USE wf_status wf_pushes_init(wf_client *c, wf_err *err);
void wf_pushes_close(wf_client *c);
/* An acknowledgement from a ps. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_pushes_on_ok(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err);
/* All parts that a ps has not acknowledged, in the order of their steps (K2). */
WF_MUST_USE wf_status wf_pushes_again(wf_client *c, uint32_t ps, wf_err *err);

#endif
