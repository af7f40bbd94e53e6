/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/library.c */
#include "cmd/cli/library.h"
#include "cmd/cli/place.h"
#include "cmd/cli/term.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

wf_status wf_library_fail(const weft_error *e, wf_err *err)
{
    wf_status rc = (wf_status)e->code;

    wf_fail(err, rc, e->hint, "%s", e->message);
    return rc;
}

void wf_library_warn(void *arg, const char *sentence)
{
    (void)arg;
    wf_term_print(stderr, "warning: %s\n", sentence);
}

static void tell(void *arg, const char *sentence)
{
    (void)arg;
    wf_term_print(stderr, "%s\n", sentence);
}

wf_status wf_trained_job(const char *cluster, const char *word, wf_trained *t, wf_err *err)
{
    char path[PATH_MAX], job[WF_RUN_NAME];
    wf_bytes text = {0};
    weft_error e;
    wf_status rc;

    WF_TRY(wf_place_cluster(cluster, false, &t->conf, err));
    rc = wf_place_job(t->conf, word, path, t->run, &text, err);
    if (rc == WF_OK && weft_job_parse(wf_bytes_str(&text), text.size, path, &t->job, &e) != WEFT_OK)
        rc = wf_library_fail(&e, err);
    if (rc == WF_OK && t->run[0])
        weft_job_set_run(t->job, wf_run_split(t->run, job));
    wf_bytes_close(&text);
    return rc;
}

wf_status wf_trained_weights(wf_trained *t, const char *from, wf_err *err)
{
    unsigned long long number;
    int64_t step = WEFT_STEP_NEWEST;
    weft_error e;

    if (from && strcmp(from, "best") == 0) {
        step = WEFT_STEP_BEST;
    } else if (from && strcmp(from, "latest") != 0) {
        WF_TRY(wf_arg_u64("--from", from, 0, INT64_MAX, &number, err));
        step = (int64_t)number;
    }
    if (weft_job_weights(t->job, t->conf->checkpoint_dir, step, tell, NULL, &t->weights, &e) !=
        WEFT_OK)
        return wf_library_fail(&e, err);
    return WF_OK;
}

void wf_trained_close(wf_trained *t)
{
    weft_list_free(&t->weights);
    weft_job_free(&t->job);
    wf_cluster_free(&t->conf);
}
