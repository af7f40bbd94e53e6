/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/links.h - a worker's links to others for stages of divided models: it dials those
 * with higher numbers, and is dialled by those with lower ones. Links are kept from job to job.
 * What stages of one process send each other waits in a list. */
#ifndef WF_WORKER_STAGES_LINKS_H
#define WF_WORKER_STAGES_LINKS_H

#include "common/wire/net.h"
#include "common/wire/wires.h"

typedef struct wf_stage_link {
    wf_peer *peer;                  /* dialled or accepted; NULL: neither */
    char address[WF_ADDRESSES_MAX]; /* that was dialled */
} wf_stage_link;

/* {0} but for what is given has none. */
typedef struct wf_stage_links {
    uint32_t self;       /* this worker's number */
    wf_stage_link *rows; /* [n], by the number of a worker */
    uint32_t n;
    wf_status (*dial)(void *arg, wf_task task, const char *address, wf_transport **out,
                      wf_err *err);
    void *dial_arg;
    wf_net *net;          /* of the messages that wait */
    wf_msg *first, *last; /* from a stage of this worker to another, in order */
} wf_stage_links;

/* Does not touch what the net has. */
void wf_stage_links_close(wf_stage_links *l);
/* The link to a worker; NULL: there is none. */
wf_peer *wf_stage_link_to(const wf_stage_links *l, uint32_t worker);
/* Sends a message to a worker, or has it wait for wf_stage_links_next, in one lane: a stage hears
 * of a round before the values of it that come from the same worker. The message is given; one to a
 * worker without a link is dropped, since the loss of a link is an event of its own. Errors: those
 * of the net. */
WF_MUST_USE wf_status wf_stage_links_send(wf_stage_links *l, wf_net *net, uint32_t worker,
                                          wf_msg **m, wf_err *err);
/* The first message that waits, which the caller frees by l->net; NULL: there is none. */
wf_msg *wf_stage_links_next(wf_stage_links *l);
/* Drops those that wait. */
void wf_stage_links_forget(wf_stage_links *l);
/* Dials an incarnation of a worker with a higher number, unless it is dialled at that address.
 * Errors: WF_PROTO, WF_NOMEM; those of dialling. */
WF_MUST_USE wf_status wf_stage_links_dial(wf_stage_links *l, wf_net *net, uint32_t worker,
                                          const char *address, uint64_t incarnation, wf_err *err);
/* A link to a worker is up, or lost. Errors: WF_PROTO, WF_NOMEM. */
WF_MUST_USE wf_status wf_stage_links_on_up(wf_stage_links *l, wf_peer *peer, wf_err *err);
void wf_stage_links_on_down(wf_stage_links *l, const wf_peer *peer);

#endif
