/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation/prepare.h - a job's text compiled into what set-ups and starts begin with. */
#ifndef WF_MASTER_GENERATION_PREPARE_H
#define WF_MASTER_GENERATION_PREPARE_H

#include "common/compile/compile.h"
#include "master/master.h"

/* The tasks that a job is compiled for. */
typedef struct wf_master_cluster {
    uint32_t n_ps, n_workers;
    const char *strategy;             /* whatever the job says; NULL: as it says */
    const wf_worker_devices *workers; /* [n_workers]: their devices; NULL: nobody knows */
} wf_master_cluster;

/* Parses and compiles a job for a cluster, as the run of that name; the caller owns *out. Errors:
 * those of the job file, with its line; of a strategy that does not fit the cluster; of the
 * compiler; of the optimizer's options. */
WF_MUST_USE wf_status wf_master_prepare(const char *run, const char *text, const char *path,
                                        const wf_master_cluster *cluster, wf_prepared **out,
                                        wf_err *err);

#endif
