/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/tune/tune.h - which algorithm of a library computes a case: the fastest of
 * the first that its heuristics name. It is found out once for a model of GPU, and kept in a file.
 *
 * Other algorithms give other bits, and what is measured is never the same twice; so the file makes
 * processes equal. The process that writes it first has chosen for all, also for those that
 * measured meanwhile. Where no file can be written nothing is measured, and the first is taken.
 *
 * Threading: any thread may call; one at a time measures on a GPU.
 */
#ifndef WF_KERNELS_CUDA_TUNE_H
#define WF_KERNELS_CUDA_TUNE_H

#include "common/base/status.h"
#include "common/kernels/cuda/calls.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_TUNE_MOST = 4,               /* algorithms that a library is asked for at a time */
    WF_TUNE_RACE = 2 * WF_TUNE_MOST /* candidates of a case: a library may be asked twice */
};

/* What a GPU has chosen so far. */
typedef struct wf_tuned wf_tuned;

/* `calls` and `gpu` (its name) are borrowed. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_tuned_new(const wf_cuda_calls *calls, const char *gpu,
                                   const wf_cuda_properties *has, wf_tuned **out, wf_err *err);
/* Frees *t and sets it to NULL; NULL is fine. */
void wf_tuned_free(wf_tuned **t);

/* What a library calls an algorithm of its: bytes that are the same in each process; and in which
 * of several ways weft uses it. */
typedef struct wf_tune_name {
    unsigned char of[64];
    unsigned char way[8];
} wf_tune_name;

/* What an algorithm is chosen for. */
typedef struct wf_tune_case {
    const char *library;
    uint64_t version; /* of it */
    const void *of;   /* all else that a choice depends on, but the GPU; without gaps */
    size_t bytes;
} wf_tune_case;

/* Algorithms that compute a case, best first. */
typedef struct wf_tune_candidates {
    unsigned n; /* 1 to WF_TUNE_RACE */
    wf_tune_name names[WF_TUNE_RACE];
    unsigned n_tensors;
    const size_t *tensors; /* [n_tensors]: bytes of each */
    size_t workspace;      /* bytes, that the hungriest needs */
    /* Queues candidate i on s, over tensors [n_tensors] of undefined content. Gives the error of a
     * call, or 0. */
    int (*go)(void *arg, unsigned i, const void *const tensors[], void *workspace,
              wf_cuda_stream *s);
    void *arg;
} wf_tune_candidates;

/* Whether candidates can be measured: the table has timers, and a file can be written. */
bool wf_tune_can(const wf_tuned *t);
/* The name that a file has for the case; false: none has. */
bool wf_tune_find(const wf_tuned *t, const wf_tune_case *c, wf_tune_name *out);
/* Which candidate is to be taken: that of the file, or else the fastest, which the file then has.
 * A name that is not among the candidates is dropped. Whatever fails while measuring, the first is
 * taken: if the GPU itself has failed, it says so when it is next used. The calling thread uses
 * this GPU. */
unsigned wf_tune_pick(wf_tuned *t, const wf_tune_case *c, const wf_tune_candidates *of);
/* Counts a case that wf_tune_find has answered. */
void wf_tune_note(wf_tuned *t);
/* Counts algorithms that a library has prepared to choose from, or to run, and the time that it
 * took.
 */
void wf_tune_note_built(wf_tuned *t, unsigned n, int64_t took_ns);
/* Logs what was chosen since the last call, if anything was. */
void wf_tune_say(wf_tuned *t);

/* race.c: measures candidates; *fastest is untouched if that fails. Gives the error of the call
 * that failed, or 0. */
int wf_tune_race(const wf_cuda_calls *calls, const wf_tune_candidates *of, unsigned *fastest);

#endif
