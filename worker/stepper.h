/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stepper.h - a thread that computes a step beside the one that exchanges variables. It has
 * one piece of work at a time.
 *
 * Threading: all functions are for one thread, which gives the work and takes it back.
 */
#ifndef WF_WORKER_STEPPER_H
#define WF_WORKER_STEPPER_H

#include "common/base/status.h"
#include <stdbool.h>

typedef struct wf_stepper wf_stepper;

/* Starts the thread. `fd`, an eventfd, is borrowed: it is written to whenever work is done. The
 * caller owns *out. Errors: WF_NOMEM; WF_IO when the system gives no thread. */
WF_MUST_USE wf_status wf_stepper_new(int fd, wf_stepper **out, wf_err *err);
/* Waits for work under way, ends the thread, frees *s and sets it to NULL; NULL is fine. */
void wf_stepper_free(wf_stepper **s);
/* Has fn(arg) called on the thread, which has nothing to do. */
void wf_stepper_give(wf_stepper *s, void (*fn)(void *arg), void *arg);
/* Whether what was given is done; what the thread wrote may be read then. */
bool wf_stepper_is_done(wf_stepper *s);
/* Waits until it is. */
void wf_stepper_wait(wf_stepper *s);

#endif
