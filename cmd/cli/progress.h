/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/progress.h - how far a job is: a bar that redraws itself on a terminal, and elsewhere
 * plain lines, one each 10 s or 5 %, whichever comes first, so that a log stays short. */
#ifndef WF_CMD_CLI_PROGRESS_H
#define WF_CMD_CLI_PROGRESS_H

#include "cmd/cli/term.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct wf_progress {
    FILE *f;
    wf_term term;
    bool drawn;       /* a bar stands on the current line */
    int64_t last_ns;  /* of the last plain line or redraw; 0: none yet */
    double last_part; /* the part done then */
} wf_progress;

/* On stderr as a rule. */
wf_progress wf_progress_new(FILE *f);
/* `part` in [0, 1] of all that is to do; `label` stands before the bar ("epoch 3/10"), `facts`
 * behind it ("31 200 examples/s  loss 0.0812  ETA 0:14"). Draws at most 10 times a second. */
void wf_progress_show(wf_progress *p, int64_t now_ns, double part, const char *label,
                      const char *facts);
/* Takes the bar away, so that another line can be printed; the next show draws it anew. */
void wf_progress_clear(wf_progress *p);

#endif
