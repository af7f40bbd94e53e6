/* SPDX-License-Identifier: Apache-2.0 */
/* lib/client.h - a session's connections to the tasks of a cluster: one is dialled by the address
 * that the user gives, and tells of the others, which are dialled when they are first asked.
 *
 * A call sends one request and waits for its answer. It is sent again over each fresh link, so a
 * task that is away for less than the timeout is not noticed.
 *
 * Threading: one thread at a time.
 */
#ifndef WF_LIB_CLIENT_H
#define WF_LIB_CLIENT_H

#include "common/base/status.h"
#include "common/wire/net.h"
#include <stdint.h>

typedef struct wf_client wf_client;

/* Dials a task of a cluster at "HOST:PORT", "tcp://HOST:PORT" or "ipc://PATH", and asks it for the
 * others. The caller owns *out. Errors: WF_INVALID for an address that is none; WF_TIMEOUT when
 * nobody answers; what the task refuses; WF_NOMEM. */
WF_MUST_USE wf_status wf_client_open(const char *address, int64_t timeout_ms, wf_client **out,
                                     wf_err *err);
/* Closes *c and sets it to NULL; NULL is fine. */
void wf_client_close(wf_client **c);

/* The task at the address that was given; how many there are of a role. */
wf_task wf_client_entry(const wf_client *c);
uint32_t wf_client_count(const wf_client *c, wf_role role);
/* "ps 1 at tcp://h1:7711" into text (cut to fit), which is returned. */
const char *wf_client_name(const wf_client *c, wf_task task, char *text, size_t size);

/* A message of `kind`, to be filled; and its end. */
WF_MUST_USE wf_status wf_client_msg(wf_client *c, uint16_t kind, wf_msg **out, wf_err *err);
void wf_client_free_msg(wf_client *c, wf_msg **m);
/* Sends *m to a ps or worker, takes it, and waits for the answer, which is the caller's to give
 * back. Errors: WF_TIMEOUT, naming the task: whether it has carried out the request is not known;
 * what the task refuses a connection for; WF_NOMEM. */
WF_MUST_USE wf_status wf_client_call(wf_client *c, wf_task to, wf_msg **m, wf_msg **answer,
                                     wf_err *err);

#endif
