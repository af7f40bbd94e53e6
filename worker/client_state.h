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
    wf_buf **values; /* [n_variables]; NULL for those of the other kind, frozen or not */
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
    struct ps_door {
        bool open;        /* it has the list: pulls and pushes may be sent */
        int64_t retry_ns; /* when to ask again after a denial; INT64_MAX: not */
        int64_t wait_ns;  /* before that; doubles */
    } * doors;            /* [n_ps] */
    uint16_t job, generation;
    uint32_t map, view, pipeline, base, acked, begun, next_pull;
    bool checksums;
    weight_set sets[WF_WEIGHT_SETS];
    weight_set frozen;     /* K4; step is always 0 */
    uint32_t n_moving;     /* slices of variables that are not frozen */
    uint64_t frozen_bytes; /* received */
    step_push steps[WF_CLIENT_STEPS];
    draft *drafts; /* [n_ps] */
    wf_part parts[WF_MAX_PARTS];
};

/* client.c: sets job, generation, map and view, and sends. While the ps has not registered the list
 * the message is dropped: everything is sent again when it has. Takes *m. */
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
