/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/kept_step.h - a step that made NaN, kept in a folder and run again from there:
 *
 *   graph.onnx         the graph that the worker ran
 *   inputs/NAME.npy    the batch, as the graph was fed it
 *   weights/NAME.npy   the weights of the step
 *   step.json          draw of random numbers, bad output, records, and the file of each input
 *
 * The folder appears whole, or not at all.
 */
#ifndef WF_SESSION_KEPT_STEP_H
#define WF_SESSION_KEPT_STEP_H

#include "common/base/status.h"
#include "common/exec/exec.h"
#include "common/kernels/pool.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a run the newest so many are kept; each of at most so many bytes. */
enum { WF_KEPT_STEPS = 3 };
#define WF_KEPT_BYTES ((size_t)1 << 30)

typedef struct wf_kept_step {
    const void *graph; /* [graph_bytes], a ModelProto */
    size_t graph_bytes;
    const wf_plan *plan;       /* of that graph: its ports */
    const void *const *inputs; /* [ports of the plan], in memory of the port's device; NULL: the
                                * graph holds its content */
    wf_step_key key;
    wf_compute compute;
    uint32_t output;         /* of the plan: the bad one */
    const char *what;        /* "the loss is NaN" */
    const uint64_t *records; /* [n_records] of the batch, by their numbers in the data set */
    size_t n_records;
    uint32_t step, worker;
} wf_kept_step;

/* Keeps it as RUN_DIR/nan-STEP, or nan-STEP-WORKER when another worker has that, and writes the
 * path. Older ones beyond WF_KEPT_STEPS go. Errors: WF_FULL, with its size, when it is too large;
 * WF_IO, WF_INVALID, WF_NOMEM. */
WF_MUST_USE wf_status wf_kept_step_write(const wf_kept_step *s, const char *run_dir,
                                         char path[PATH_MAX], wf_err *err);

/* A step that was run again. */
typedef struct wf_replay {
    wf_plan *plan;      /* its outputs are those of the step */
    char said[900];     /* "the loss is NaN; first bad value: ..." */
    wf_tensor **inputs; /* [n_inputs], what the plan is bound to */
    size_t n_inputs;
} wf_replay;

/* Runs a kept step again, here on the cpu, and says where its first bad value comes from. Close it
 * after an error as well. Errors: WF_NOTFOUND for a folder that holds no step; WF_CORRUPT, WF_SHAPE
 * and those of reading for one that is damaged; those of the plan. */
WF_MUST_USE wf_status wf_replay_open(const char *folder, wf_pool *pool, wf_replay *out,
                                     wf_err *err);
void wf_replay_close(wf_replay *r);

#endif
