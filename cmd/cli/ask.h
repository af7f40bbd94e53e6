/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/ask.h - questions to the master of a cluster, and its answers. */
#ifndef WF_CMD_CLI_ASK_H
#define WF_CMD_CLI_ASK_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/net.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_ask wf_ask;

/* How a master is reached that is not at the address of a cluster. */
typedef struct wf_ask_way {
    void *arg;
    wf_status (*dial)(void *arg, wf_transport **out, wf_err *err);
    /* Waits until `net` may have a message, for `ms` at most. */
    wf_status (*wait)(void *arg, wf_net *net, int64_t ms, wf_err *err);
    bool here; /* the cluster is in this process: its answer comes */
} wf_ask_way;

/* Dials the master; nothing is awaited. *out is the caller's. Errors: WF_NOMEM, WF_IO. */
WF_MUST_USE wf_status wf_ask_open(const wf_cluster_conf *conf, wf_ask **out, wf_err *err);
/* The same for a master that is reached another way. */
WF_MUST_USE wf_status wf_ask_open_by(const wf_cluster_conf *conf, const wf_ask_way *way,
                                     wf_ask **out, wf_err *err);
/* Lets time pass. Errors: those of the way. */
WF_MUST_USE wf_status wf_ask_pass(wf_ask *a, int64_t ms, wf_err *err);
/* Closes *a and sets it to NULL; NULL is fine. */
void wf_ask_close(wf_ask **a);
/* Waits end with WF_STOPPED once `enough` says so; NULL: never. */
void wf_ask_until(wf_ask *a, bool (*enough)(void));
/* Asks and waits. *answer is the picture of the cluster that comes with every answer, the caller's
 * (json_decref); NULL is allowed. Errors: WF_TIMEOUT naming the master and its address; what the
 * master answered; what it refused the dialling for. */
WF_MUST_USE wf_status wf_ask_send(wf_ask *a, const Weft__Ask *ask, int64_t timeout_ms,
                                  json_t **answer, wf_err *err);
/* The net and the master of `a`, borrowed for its life: for a role that speaks over them. */
wf_net *wf_ask_net(wf_ask *a, wf_peer **master);

/* The run of that name in a picture, or the newest run of the job of that name, borrowed; NULL when
 * there is none. */
json_t *wf_ask_job(json_t *picture, const char *name);

/* Whether a job of a picture is over: done, failed, stopped or interrupted. */
bool wf_ask_is_over(const json_t *job);

#endif
