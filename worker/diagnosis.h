/* SPDX-License-Identifier: Apache-2.0 */
/* worker/diagnosis.h - a step that made NaN or an infinity, in one sentence with its source. */
#ifndef WF_WORKER_DIAGNOSIS_H
#define WF_WORKER_DIAGNOSIS_H

#include "common/base/status.h"
#include "common/exec/exec.h"
#include "worker/worker.h"
#include <stdbool.h>
#include <stdint.h>

/* The step, and which of its outputs is bad. */
typedef struct wf_bad_step {
    uint32_t worker, step;
    wf_batch_id batch;
    const char *label;    /* of the loss or metric, or the variable whose gradient it is */
    uint32_t output;      /* of the plan: the bad one */
    bool is_loss, is_nan; /* is_loss: else a gradient; is_nan: else infinite */
} wf_bad_step;

/* Finds the source by running the plan again, with its inputs as they are bound (wf_plan_blame; the
 * outputs are written), and names it in *err. Always fails: WF_NUMERIC, or a kernel's error. */
WF_MUST_USE wf_status wf_diagnose(wf_plan *p, const wf_step_key *key, const wf_bad_step *bad,
                                  wf_err *err);

#endif
