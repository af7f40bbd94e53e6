/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/sessions.h - the thread of a worker that computes what clients' sessions ask for, while the
 * main thread trains. It listens at the worker's address. */
#ifndef WF_CMD_SESSIONS_H
#define WF_CMD_SESSIONS_H

#include "cmd/shell.h"

typedef struct wf_session_server wf_session_server;

/* Starts it, unless workers have links with each other: their main threads listen then. A worker
 * that cannot serve sessions says so in its log, and trains; *out is NULL. The shell is borrowed
 * until the server stops. */
void wf_session_server_start(wf_shell *s, wf_session_server **out);
/* Ends it, when the run that it computes is over; NULL is fine. */
void wf_session_server_stop(wf_session_server **s);

#endif
