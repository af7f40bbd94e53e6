/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/runs.h - the runs of a job that have left a folder. */
#ifndef WF_SESSION_RUNS_H
#define WF_SESSION_RUNS_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/conf/run.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_runs {
    uint32_t *number; /* [n], the newest first; 0: a folder of the job's name alone */
    size_t n;
} wf_runs;

/* The runs of `job` with a folder in any of `dirs`, which end with NULL; in the arena. A folder
 * that is not there has none. Errors: WF_IO, WF_NOMEM. */
WF_MUST_USE wf_status wf_runs_list(const char *const dirs[], const char *job, wf_arena *arena,
                                   wf_runs *out, wf_err *err);
/* The name of the run that `word` means into `name`: itself if it has a number, else the job's
 * newest run in `dirs`, else itself. The two may be one. Errors as above. */
WF_MUST_USE wf_status wf_runs_find(const char *const dirs[], const char *word,
                                   char name[WF_RUN_NAME], wf_err *err);
/* The name of the run that a job is to be trained as: the newest one when it is resumed, else the
 * one after that. `known` is the newest that the master has, or -1. Errors as above; WF_FULL. */
WF_MUST_USE wf_status wf_runs_choose(const char *const dirs[], const char *job, int64_t known,
                                     bool resume, char name[WF_RUN_NAME], wf_err *err);
/* The runs before `run`, "digits#7", that are to go when `keep` with it are to stay; as
 * wf_runs_list. */
WF_MUST_USE wf_status wf_runs_surplus(const char *const dirs[], const char *run, uint32_t keep,
                                      wf_arena *arena, wf_runs *out, wf_err *err);

#endif
