/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/background.h - what the master's loop must not wait for: two threads, one that syncs the
 * journal and writes events, and one for compilations and checkpoints, which may take minutes.
 *
 * Threading: all functions are for the loop's thread, but for wf_background_append. */
#ifndef WF_RUNTIME_BACKGROUND_H
#define WF_RUNTIME_BACKGROUND_H

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "master/master.h"
#include <stdbool.h>

typedef struct wf_background wf_background;

/* Starts the threads. Errors: WF_IO, WF_NOMEM. */
WF_MUST_USE wf_status wf_background_new(wf_background **out, wf_err *err);
/* Takes work, for wf_master_ops.begin. */
void wf_background_begin(wf_background *b, wf_work *w);
/* Appends a line to a file in a folder that is made if it is not there; behind the sync in hand. A
 * disk that does not answer costs lines, and never memory without bound. */
void wf_background_write(wf_background *b, const char *folder, const char *file, const char *line);
/* The same of bytes, with `head` before them in a file that is empty. Copies both. On any thread.
 */
void wf_background_append(wf_background *b, const char *folder, const char *file,
                          const wf_bytes *head, const wf_bytes *body);
/* Removes a folder and all in it, once the lines before are written; behind the long work in hand.
 * Where there is no memory it stays. */
void wf_background_remove(wf_background *b, const char *folder);
/* Work that is done, which the caller owns; NULL: none now. */
wf_work *wf_background_done(wf_background *b);
/* Readable once there is work that is done. */
int wf_background_fd(const wf_background *b);
/* Ends the threads and frees *b; NULL is fine. False when one is in the middle of long work, unless
 * that is waited for: the thread still reads what it was given, *b among it, so the process must
 * end without freeing that. */
bool wf_background_end(wf_background **b, bool waits);

#endif
