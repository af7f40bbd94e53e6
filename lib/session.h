/* SPDX-License-Identifier: Apache-2.0 */
/* lib/session.h - what the files of sessions share. */
#ifndef WF_LIB_SESSION_H
#define WF_LIB_SESSION_H

#include "common/wire/variables.h"
#include "lib/client.h"
#include "lib/lib.h"

#include <pthread.h>
#include <sys/types.h>

struct weft_session {
    pthread_mutex_t lock; /* of all that follows */
    pid_t pid;            /* of the process that opened it */
    wf_client *client;
    char *container;
    uint64_t id, sequence; /* of the next change: an earlier one was sent, or given up */
};

/* Begins a call: the session is the caller's until wf_lib_session_leave. Errors: WF_INVALID in
 * another process than the one that opened it. */
WF_MUST_USE wf_status wf_lib_session_enter(weft_session *s, wf_err *err);
void wf_lib_session_leave(weft_session *s);

/* Has the ps of a variable carry out an action. `content` comes with those that bring a tensor;
 * *value, if it is not NULL, is the caller's. Errors: what the ps says; those of wf_client_call. */
WF_MUST_USE wf_status wf_lib_variable(weft_session *s, wf_variable_action action, const char *name,
                                      const wf_tensor *content, wf_tensor **value, wf_err *err);

#endif
