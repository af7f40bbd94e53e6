/* SPDX-License-Identifier: Apache-2.0 */
/* lib/session.h - what the files of sessions share. */
#ifndef WF_LIB_SESSION_H
#define WF_LIB_SESSION_H

#include "common/session/remote.h"
#include "common/wire/variables.h"
#include "lib/client.h"
#include "lib/lib.h"

#include <pthread.h>
#include <sys/types.h>

enum { WF_LIB_SESSION_RUNS = 32 }; /* that are kept compiled */

/* A run that was compiled: of the same fetches, targets and shapes of feeds. */
typedef struct wf_lib_prepared {
    char *key;
    wf_remote *remote; /* NULL: a free place */
    uint32_t handle;
    bool is_sent;  /* to the worker */
    uint64_t used; /* when last, to make room */
} wf_lib_prepared;

struct weft_session {
    pthread_mutex_t lock; /* of all that follows */
    pid_t pid;            /* of the process that opened it */
    wf_client *client;
    char *container;
    uint64_t id, sequence; /* of the last change: it was sent, or given up */
    int64_t timeout_ms;
    wf_graph *graph; /* NULL: it was not extended yet */
    wf_lib_prepared prepared[WF_LIB_SESSION_RUNS];
    uint32_t worker, handles; /* that computes; handles that were given */
    uint64_t runs;
    bool worker_is_away; /* it did not answer the last call */
};

/* Frees what runs have left. */
void wf_lib_session_close_runs(weft_session *s);

/* Begins a call: the session is the caller's until wf_lib_session_leave. Errors: WF_INVALID in
 * another process than the one that opened it. */
WF_MUST_USE wf_status wf_lib_session_enter(weft_session *s, wf_err *err);
void wf_lib_session_leave(weft_session *s);

/* Has the ps of a variable carry out an action. `content` comes with those that bring a tensor;
 * *value, if it is not NULL, is the caller's. Errors: what the ps says; those of wf_client_call. */
WF_MUST_USE wf_status wf_lib_variable(weft_session *s, wf_variable_action action, const char *name,
                                      const wf_tensor *content, wf_tensor **value, wf_err *err);

#endif
