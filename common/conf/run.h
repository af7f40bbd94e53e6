/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/run.h - names of runs. A run is one training of a job: it is called by the job's name
 * and its number, "digits#2", and its checkpoints and its history lie in folders of that name. */
#ifndef WF_CONF_RUN_H
#define WF_CONF_RUN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WF_JOB_NAME_MAX = 56, /* letters of a job's name */
    WF_RUN_NAME = 65,     /* bytes that hold any run's name */
    WF_RUN_MOST = 9999999
};

/* Whether it is [a-z0-9._-]{1,56}, not beginning with a dot: fit for a folder's name. */
bool wf_job_name_ok(const char *name);
/* Whether it is a job's name, with "#" and a number from 1 or without. */
bool wf_run_name_ok(const char *name);
/* The job's part of a name that is right, into `job`, and the number; 0 when there is none. */
uint32_t wf_run_split(const char *name, char job[WF_RUN_NAME]);
/* The name of run `number` of a job into `name`; 0: the job's name alone. Returns name. */
const char *wf_run_name(const char *job, uint32_t number, char name[WF_RUN_NAME]);

#endif
