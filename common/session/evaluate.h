/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/evaluate.h - loss and metrics of a job on its eval data, in this process. */
#ifndef WF_SESSION_EVALUATE_H
#define WF_SESSION_EVALUATE_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/data/learnt.h"
#include "common/kernels/pool.h"
#include "common/metrics/measure.h"
#include "common/tensor/named.h"
#include <stdint.h>

typedef struct wf_scores {
    uint64_t records;
    uint32_t n;                            /* of measures */
    wf_measure measures[WF_MEASURES_MOST]; /* the loss first; wf_metric_value gives their numbers */
} wf_scores;

/* Evaluates the job with `weights` in place of its first values (NULL: with those), its records
 * mapped by what was learnt with them (NULL: by the training data). *out is all
 * zero before, and to be closed also after a failure. Errors: WF_USAGE for a job without data to
 * evaluate on; those of compiling, data and plans. */
WF_MUST_USE wf_status wf_evaluate(const wf_job_conf *job, const wf_named_list *weights,
                                  const wf_learnt_list *learnt, wf_pool *pool, wf_scores *out,
                                  wf_err *err);
void wf_scores_close(wf_scores *e);

#endif
