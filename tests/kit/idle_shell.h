/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/idle_shell.h - a worker's shell that has no data and computes nothing: each step that
 * is begun has ended by the next wf_idle_shell_end_step. */
#ifndef WF_TESTS_KIT_IDLE_SHELL_H
#define WF_TESTS_KIT_IDLE_SHELL_H

#include "worker/worker.h"

typedef struct wf_idle_shell {
    uint64_t records; /* that it says to have */
    uint32_t steps;   /* begun */
    bool computing;
} wf_idle_shell;

/* The operations for wf_worker_conf; s is borrowed. */
wf_worker_ops wf_idle_shell_ops(wf_idle_shell *s);
/* Tells the worker that the step in hand is computed, if one is. */
WF_MUST_USE wf_status wf_idle_shell_end_step(wf_idle_shell *s, wf_worker *w, wf_err *err);

#endif
