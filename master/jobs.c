/* SPDX-License-Identifier: Apache-2.0 */
/* master/jobs.c - a job on the list, with its cut and its epoch. */
#include "master/top.h"

#include <stdlib.h>

static void free_job(wf_job **j)
{
    if (!*j)
        return;
    if ((*j)->epoch) {
        wf_ledger_close(&(*j)->epoch->ledger);
        wf_evaluation_close(&(*j)->epoch->evaluation);
        wf_near_close(&(*j)->epoch->near);
        wf_shards_close(&(*j)->epoch->shards);
        wf_measures_close((*j)->epoch->trained, (*j)->epoch->n_trained);
    }
    free((*j)->epoch);
    free((*j)->cut);
    wf_job_delete(j);
}

void wf_master_remove_last_job(wf_master *m)
{
    free_job(&m->jobs[--m->n_jobs]);
}

void wf_master_free_jobs(wf_master *m)
{
    while (m->n_jobs > 0)
        wf_master_remove_last_job(m);
    free(m->jobs);
}

wf_status wf_master_add_job(wf_master *m, const char *name, const char *text, const char *path,
                            wf_job **out, wf_err *err)
{
    WF_TRY(wf_job_add(m, name, text, path, out, err));
    (*out)->cut = calloc(1, sizeof *(*out)->cut);
    (*out)->epoch = calloc(1, sizeof *(*out)->epoch);
    if ((*out)->cut && (*out)->epoch)
        return WF_OK;
    wf_master_remove_last_job(m);
    *out = NULL;
    return wf_fail_nomem(err, sizeof *(*out)->epoch);
}
