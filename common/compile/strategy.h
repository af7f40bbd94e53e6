/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/strategy.h - where variables live and who applies updates: one row and one file in
 * strategies/ for each.
 */
#ifndef WF_COMPILE_STRATEGY_H
#define WF_COMPILE_STRATEGY_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stdbool.h>
#include <stdint.h>

struct wf_unit;

typedef struct wf_strategy {
    const char *name;           /* of the job file, and of a worker's exchange */
    const char *means;          /* for people */
    uint32_t ps_least, ps_most; /* what it needs of a cluster */
    uint32_t workers_most;
    bool on_worker; /* workers hold the variables whole; otherwise slices of them lie on the ps */
    bool tables_on_ps; /* then: but for the tables, which lie on the ps */
    bool sends;        /* then: gradients leave them, so that their buffers are memory of the host,
                        * wherever variables are */
    bool divides;      /* each worker holds variables of its own, as the job's `place` says */
    /* Puts the ends of the exchange into the graph, in place of variables and gradients. */
    wf_status (*rewrite)(struct wf_unit *u, wf_err *err);
} wf_strategy;

/* Every strategy, in alphabetical order; ends with NULL. */
extern const wf_strategy *const wf_strategies[];

/* The row of that name, or NULL. */
const wf_strategy *wf_strategy_find(const char *name);
/* Fails if the job names a strategy that there is not, or one that does not go with its
 * consistency; one that names none is fine. Errors: WF_USAGE, WF_UNSUPPORTED, with file and line.
 */
WF_MUST_USE wf_status wf_strategy_check_name(const wf_job_conf *job, wf_err *err);
/* The strategy of a job on a cluster of so many ps and workers: the one that the job names, else
 * stages if it has a `place`, parameter_server where there are ps, multi_worker_mirrored where
 * there are several workers alone, and else local. Errors: WF_USAGE, with file and line, for a name
 * that there is not and for a cluster that does not fit; WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_strategy_of_job(const wf_job_conf *job, uint32_t n_ps, uint32_t n_workers,
                                         const wf_strategy **out, wf_err *err);
/* That a step of the job waits for some of so many workers, where its `backup_workers` count.
 * Errors: WF_USAGE, with the file. */
WF_MUST_USE wf_status wf_strategy_check_backups(const wf_job_conf *job, const wf_strategy *s,
                                                uint32_t n_workers, wf_err *err);
/* Whether workers may divide the optimizer's state: several of them hold all variables. */
bool wf_strategy_shards_optimizer(const wf_strategy *s);
/* Among how many holders the variables are divided: the files of a checkpoint. Workers that hold
 * some are one, behind the ps. */
uint32_t wf_strategy_shards(const wf_strategy *s, uint32_t n_ps);
/* Whether a step can have the rows of a variable that it names, and no others. */
bool wf_strategy_has_tables(const wf_strategy *s);

#endif
