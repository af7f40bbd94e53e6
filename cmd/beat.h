/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/beat.h - the sign of life of a task whose main thread may compute for minutes: a thread with
 * a connection of its own sends it to the master.
 *
 * It tells of progress and not of the process: the number of turns of the main loop, and the
 * processor time of the main thread, in one number that only grows. A main thread that is stuck
 * makes it stand still, however regular the beats are: the master gives such a task up, and the
 * thread ends the process, so that whoever started it starts another.
 */
#ifndef WF_CMD_BEAT_H
#define WF_CMD_BEAT_H

#include "common/base/status.h"
#include "common/wire/net.h"
#include "common/wire/waiting.h"
#include "common/wire/wires.h"
#include <stdint.h>

typedef struct wf_beat wf_beat;

typedef struct wf_beat_conf {
    wf_wires *wires; /* borrowed until wf_beat_stop */
    const char *master;
    uint64_t incarnation;
    int64_t every_ns;
    int64_t stuck_ns; /* without progress for a little longer than this the process ends */
} wf_beat_conf;

/* Starts it for the calling thread, which is the one whose progress counts. Errors: WF_NOMEM,
 * WF_IO, WF_INVALID. */
WF_MUST_USE wf_status wf_beat_start(const wf_beat_conf *conf, wf_beat **out, wf_err *err);
/* Ends it; NULL is fine. */
void wf_beat_stop(wf_beat **b);
/* The main loop has turned. */
void wf_beat_turn(wf_beat *b);
/* What the next beats say beside it: what the role tells, and the first 32 peers that were sent
 * bytes twice or have bytes queued. By the thread that owns the net. A job's first staleness is
 * sent at once. */
void wf_beat_tell(wf_beat *b, const wf_vitals *v, const wf_net *net);

#endif
