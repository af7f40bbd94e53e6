/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/tune/race.c - candidates run in turns, so that a GPU that becomes faster or
 * slower meanwhile does so for all of them; of several turns the fastest counts. The tensors are
 * scratch memory of zeros, which is given back at the end. */
#include "common/base/size.h"
#include "common/kernels/cuda/tune/tune.h"

#include <math.h>
#include <stdlib.h>

enum { TURNS = 2, RUNS = 3 /* of a turn */, ALIGNED = 256, MOST_TENSORS = 16 };

/* The error of a call, if none before it failed. */
#define NEXT(error, call)                                                                          \
    do {                                                                                           \
        if ((error) == 0)                                                                          \
            (error) = (call);                                                                      \
    } while (0)

typedef struct race {
    const wf_cuda_calls *calls;
    const wf_tune_candidates *of;
    unsigned char *memory;
    const void *tensors[MOST_TENSORS];
    void *workspace;
    wf_cuda_stream *stream;
    wf_cuda_event *from, *to;
    float ms[WF_TUNE_RACE]; /* of the fastest turn; NAN: it cannot be queued */
} race;

static int make_room(race *r)
{
    size_t at[MOST_TENSORS + 1], all = 0;
    int error;

    wf_assert(r->of->n_tensors <= MOST_TENSORS && r->of->n <= WF_TUNE_RACE);
    for (unsigned i = 0; i <= r->of->n_tensors; i++) {
        size_t bytes = i < r->of->n_tensors ? r->of->tensors[i] : r->of->workspace;

        at[i] = all;
        if (bytes > SIZE_MAX - ALIGNED ||
            !wf_add_size(all, wf_align_up(bytes, (size_t)ALIGNED), &all))
            return WF_CUDA_NO_MEMORY;
    }
    error = r->calls->alloc((void **)&r->memory, all ? all : 1);
    NEXT(error, r->calls->fill(r->memory, 0, all ? all : 1, r->stream));
    if (error != 0)
        return error;
    for (unsigned i = 0; i < r->of->n_tensors; i++)
        r->tensors[i] = r->memory + at[i];
    r->workspace = r->memory + at[r->of->n_tensors];
    return 0;
}

static int go(race *r, unsigned i)
{
    return r->of->go(r->of->arg, i, r->tensors, r->workspace, r->stream);
}

/* The first run of each makes what a library makes once. */
static int warm_up(race *r)
{
    for (unsigned i = 0; i < r->of->n; i++)
        r->ms[i] = go(r, i) == 0 ? INFINITY : NAN;
    return r->calls->stream_wait(r->stream);
}

static int take_turn(race *r, unsigned i)
{
    float ms = 0;
    int error = r->calls->event_record(r->from, r->stream);

    for (int k = 0; k < RUNS; k++)
        NEXT(error, go(r, i));
    NEXT(error, r->calls->event_record(r->to, r->stream));
    NEXT(error, r->calls->event_wait(r->to));
    NEXT(error, r->calls->timer_ms(&ms, r->from, r->to));
    if (error == 0 && ms < r->ms[i])
        r->ms[i] = ms;
    return error;
}

static int measure(race *r)
{
    int error = r->calls->stream_new(&r->stream);

    NEXT(error, r->calls->timer_new(&r->from));
    NEXT(error, r->calls->timer_new(&r->to));
    NEXT(error, make_room(r));
    NEXT(error, warm_up(r));
    for (int turn = 0; turn < TURNS; turn++)
        for (unsigned i = 0; i < r->of->n; i++)
            if (!isnan(r->ms[i]))
                NEXT(error, take_turn(r, i));
    return error;
}

/* The stream goes first: nothing uses the memory any more. */
static void give_back(race *r)
{
    if (r->stream)
        (void)r->calls->stream_free(r->stream);
    if (r->from)
        (void)r->calls->event_free(r->from);
    if (r->to)
        (void)r->calls->event_free(r->to);
    if (r->memory)
        (void)r->calls->free(r->memory);
}

int wf_tune_race(const wf_cuda_calls *calls, const wf_tune_candidates *of, unsigned *fastest)
{
    race r = {.calls = calls, .of = of};
    int error = measure(&r);
    float least = INFINITY;

    for (unsigned i = 0; i < of->n && error == 0; i++)
        if (r.ms[i] < least) {
            least = r.ms[i];
            *fastest = i;
        }
    give_back(&r);
    return error;
}
