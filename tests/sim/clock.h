/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/clock.h - virtual time: a heap of what will happen, in order of time, then of when it
 * was planned. */
#ifndef WF_TESTS_SIM_CLOCK_H
#define WF_TESTS_SIM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_happening {
    int64_t at_ns;
    uint64_t order;
    int kind;
    uint32_t who;  /* which process, or endpoint */
    uint64_t life; /* of the process: what was planned for an older life does not happen */
    void *what;
    uint64_t number;
} wf_happening;

typedef struct wf_agenda {
    wf_happening *heap;
    size_t n, room;
    uint64_t next_order;
} wf_agenda;

void wf_agenda_add(wf_agenda *a, wf_happening h);
/* The earliest; false when there is none. */
bool wf_agenda_pop(wf_agenda *a, wf_happening *out);
void wf_agenda_close(wf_agenda *a);

#endif
