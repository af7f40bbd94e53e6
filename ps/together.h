/* SPDX-License-Identifier: Apache-2.0 */
/* ps/together.h - steps that workers make together: bulk synchronous parallel (Valiant, "A Bridging
 * Model for Parallel Computation", CACM 33(8), 1990), with backup workers (Chen, Pan, Monga, Bengio
 * and Jozefowicz, "Revisiting Distributed Synchronous SGD", 2016, section 3).
 *
 * The steps of one clock (clocks.h) are one update of each slice: the mean of their gradients,
 * weighted by the records of each, in the order of the workers. A slice holds the parts of a push
 * until the step is complete, and acknowledges them when it is applied.
 *
 * Without backups a step is complete when every worker that is in has made it, or left. Each ps
 * sees that by itself: a worker joins at one clock on all ps, and leaves between two steps.
 * With backups b a step is complete when all but b have made it. Who they are has to be the same
 * everywhere, so the ps with the clock slice, the first one that is trained, decides it by the
 * parts which have come there. It tells the workers, and each of them tells the other ps. The step
 * of a worker that was too late is acknowledged and left out, and the worker goes on with the clock
 * that the others are at.
 *
 * Invariants
 *   T1  a slice applies clocks in rising order
 *   T2  no part is held that nobody is left to complete: a worker that a view removes is not waited
 *       for, and what it has pushed is given back
 */
#ifndef WF_PS_TOGETHER_H
#define WF_PS_TOGETHER_H

#include "common/wire/decisions.h"
#include "ps/held.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct wf_together {
    bool on;
    uint32_t backups, clock_slice;
    wf_decisions decisions; /* where there are backups */
    wf_held taken;          /* the parts of the steps in hand */
    float *mean;            /* [mean_room]: their means */
    size_t mean_room;
} wf_together;

#endif
