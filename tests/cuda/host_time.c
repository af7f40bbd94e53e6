/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_time.c - what time is on the host's GPUs: each stream has a clock, which products
 * and convolutions move on by what their algorithm takes. The seed says what that is; nothing is
 * measured. */
#include "common/base/rng.h"
#include "tests/cuda/host_work.h"

#include <stdlib.h>

enum { BAD_HANDLE = 400 /* cudaErrorInvalidResourceHandle */ };

static uint64_t seed = 1;

void host_time_seed(uint64_t to)
{
    seed = to;
}

double host_time_of(uint64_t algorithm)
{
    return 0.125 + (double)wf_rng_below((wf_rng_key){seed, 0x71AE}, algorithm, 4096) / 4096;
}

void host_time_pass(struct CUstream_st *s, const work *w)
{
    s->clock_ms += w->ms;
    host_counts.ms += w->ms;
}

int host_timer_new(wf_cuda_event **out)
{
    int error = host_begin("timer_new");

    *out = error ? NULL : calloc(1, sizeof **out);
    if (*out)
        (*out)->timed = true;
    host_counts.events += *out != NULL;
    return host_end(error ? error : *out ? 0 : WF_CUDA_NO_MEMORY);
}

static void do_stamp(work *w)
{
    wf_cuda_event *e = w->to;

    e->at_ms = w->other->clock_ms;
}

/* Work that waits for nothing: its stream is there already. */
int host_time_stamp(wf_cuda_event *e, wf_cuda_stream *s)
{
    return e->timed ? host_enqueue(
                          s, &(work){.act = do_stamp, .name = "a timer", .to = e, .other = s}, 0, 0)
                    : 0;
}

int host_timer_ms(float *ms, wf_cuda_event *from, wf_cuda_event *to)
{
    int error = host_begin("timer_ms");

    if (error == 0 && (!from->timed || !to->timed || !from->stream || !to->stream))
        error = BAD_HANDLE;
    else if (error == 0 &&
             (from->stream->finished < from->target || to->stream->finished < to->target))
        error = WF_CUDA_NOT_READY;
    if (error == 0)
        *ms = (float)(to->at_ms - from->at_ms);
    return host_end(error);
}
