/* SPDX-License-Identifier: Apache-2.0 */
/* master/job/lines.h - a job's newest events, as lines for those who follow it.
 *
 * Of a job whose epochs take milliseconds a follower, who asks some times a second, misses lines.
 * It may miss epochs and checkpoints, and nothing else: these regular lines do not push the others
 * out, nor others them. Each kind has half of the room, and what the other leaves.
 */
#ifndef WF_MASTER_JOB_LINES_H
#define WF_MASTER_JOB_LINES_H

#include <stdbool.h>
#include <stdint.h>

enum { WF_JOB_LINES = 128 };

typedef struct wf_job_line {
    uint64_t number; /* lines of the job before it, those that were dropped included */
    bool is_regular;
    char *text; /* the event's kind, a space, what it says */
} wf_job_line;

/* {0} is empty. */
typedef struct wf_job_lines {
    wf_job_line *kept; /* [n], the newest last */
    uint32_t n;
    uint64_t told;
} wf_job_lines;

/* Adds a line. One for which there is no memory is lost. */
void wf_job_lines_add(wf_job_lines *l, const char *text);
void wf_job_lines_close(wf_job_lines *l);

#endif
