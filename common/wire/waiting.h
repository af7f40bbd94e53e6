/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/waiting.h - what a role waits for: from whom, what, since when.
 *
 * Every long wait is visible: a log line names it after 5 s, and again after twice as long each
 * time; each heartbeat reports it to the master, which shows it, with what else a role tells there.
 */
#ifndef WF_WIRE_WAITING_H
#define WF_WIRE_WAITING_H

#include "common/base/histogram.h"
#include "common/wire/task.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_waiting {
    wf_task whom;   /* role NONE: nothing is waited for */
    char what[200]; /* "weights of step 12 (no connection)" */
    int64_t since_ns;
} wf_waiting;

/* What a role tells with its signs of life. */
typedef struct wf_vitals {
    wf_waiting waits;
    uint64_t updates, held_bytes;        /* of a ps */
    uint64_t disk_bytes;                 /* of a ps: in files beside memory */
    uint64_t contained, contained_bytes; /* of a ps: variables of sessions */
    uint32_t job;                        /* of a ps: the last that was set up; 0: none */
    wf_histogram staleness;              /* of a ps: of the pushes of that job */
    uint64_t left_out;                   /* of them: parts that came too late for their step */
} wf_vitals;

/* When the current wait began, and when it is logged next. */
typedef struct wf_waiting_log {
    int64_t since_ns, next_ns;
} wf_waiting_log;

/* Writes a line for a wait that has lasted for 5, 10, 20... seconds, and one when it is over. */
void wf_waiting_note(wf_waiting_log *log, const wf_waiting *w, int64_t now_ns);

#endif
