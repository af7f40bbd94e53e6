/* SPDX-License-Identifier: Apache-2.0 */
/* worker/diagnosis.h - a step that made NaN or an infinity, in one sentence with its source and its
 * records, and kept so that it can be run again. */
#ifndef WF_WORKER_DIAGNOSIS_H
#define WF_WORKER_DIAGNOSIS_H

#include "common/base/status.h"
#include "common/exec/exec.h"
#include "worker/side.h"
#include "worker/worker.h"
#include <stdbool.h>
#include <stdint.h>

/* The step, and which of its outputs is bad. */
typedef struct wf_bad_step {
    uint32_t worker, step;
    wf_batch_id id;
    const wf_side *side;
    const wf_batch *batch;
    const wf_exchange *exchange; /* with the weights of `set` */
    int set;
    const char *label;    /* of the loss or metric, or the variable whose gradient it is */
    uint32_t output;      /* of the plan: the bad one */
    bool is_loss, is_nan; /* is_loss: else a gradient; is_nan: else infinite */
    const char *jobs_dir; /* the step is kept in JOBS_DIR/RUN; NULL: nowhere */
    const char *host;     /* where that is; NULL: where everybody is */
} wf_bad_step;

/* Finds the source by running the plan again, with its inputs as they are bound (wf_plan_blame; the
 * outputs are written), and names it in *err, with the command that runs the step again. Always
 * fails: WF_NUMERIC, or a kernel's error. */
WF_MUST_USE wf_status wf_diagnose(wf_plan *p, const wf_step_key *key, const wf_bad_step *bad,
                                  wf_err *err);

#endif
