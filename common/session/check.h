/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/check.h - what can be wrong with a job is said before anything is started for it.
 */
#ifndef WF_SESSION_CHECK_H
#define WF_SESSION_CHECK_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdint.h>

enum { WF_CHECK_METRICS = 64 };

typedef struct wf_checks {
    void (*warn)(void *arg, const char *sentence); /* what the compiler warns of; or NULL */
    void *arg;
    bool data; /* read the data, too, and hold it against the model and its loss */
    const wf_cluster_conf *cluster; /* that will train it: `place` is held against its workers and
                                     * their devices; NULL: it is not known */
} wf_checks;

/* What a check has found out. */
typedef struct wf_job_facts {
    uint64_t variables, parameters;       /* parameters: the elements of all variables */
    uint64_t train_records, eval_records; /* when the data was read */
    uint32_t n_metrics;
    char metrics[WF_CHECK_METRICS][64]; /* of an evaluation, the loss first; cut to fit */
} wf_job_facts;

/* Compiles the model for training and for evaluation, and looks at optimizer, strategy, and the
 * files of its data. Errors: theirs, and those of wf_job_data_open. */
WF_MUST_USE wf_status wf_job_check(const wf_job_conf *job, const wf_checks *checks,
                                   wf_job_facts *facts, wf_err *err);

#endif
