/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/run.c */
#include "common/conf/run.h"
#include "common/base/size.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many of its first letters may be a job's name. */
static size_t job_letters(const char *name)
{
    return name[0] == '.' ? 0 : strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-");
}

bool wf_job_name_ok(const char *name)
{
    size_t n = job_letters(name);

    return n > 0 && n <= WF_JOB_NAME_MAX && !name[n];
}

bool wf_run_name_ok(const char *name)
{
    size_t n = job_letters(name);
    const char *number = name + n + 1;

    if (n == 0 || n > WF_JOB_NAME_MAX)
        return false;
    if (!name[n])
        return true;
    return name[n] == '#' && number[0] >= '1' && number[0] <= '9' &&
           strspn(number, "0123456789") == strlen(number) && strlen(number) <= 7;
}

uint32_t wf_run_split(const char *name, char job[WF_RUN_NAME])
{
    size_t n = strcspn(name, "#"), kept = WF_MIN(n, (size_t)WF_RUN_NAME - 1);

    memcpy(job, name, kept);
    job[kept] = 0;
    return name[n] ? (uint32_t)strtoul(name + n + 1, NULL, 10) : 0;
}

const char *wf_run_name(const char *job, uint32_t number, char name[WF_RUN_NAME])
{
    if (number)
        snprintf(name, WF_RUN_NAME, "%.*s#%u", WF_JOB_NAME_MAX, job,
                 number > WF_RUN_MOST ? WF_RUN_MOST : number);
    else
        snprintf(name, WF_RUN_NAME, "%s", job);
    return name;
}
