/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/predict_spread.c */
#include "cmd/cli/predict_spread.h"
#include "cmd/cli/ask.h"
#include "cmd/cli/following.h"
#include "cmd/cli/place.h"
#include "cmd/cli/term.h"
#include "cmd/cli/visit.h"
#include "common/session/runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_MS = 10000 };

/* The request's number makes the name: the same request is the same job. */
static void name_job(const wf_prediction *p, char name[WF_RUN_NAME])
{
    snprintf(name, WF_RUN_NAME, "predict-%016" PRIx64, wf_prediction_tag(p));
}

static wf_status submit(const wf_cluster_conf *conf, wf_ask *a, const wf_prediction *p,
                        const char *job, int64_t known, char run[WF_RUN_NAME], wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    wf_place_runs places;
    wf_bytes text = {0};
    wf_status rc;

    WF_TRY(wf_place_runs_of(conf, &places, err));
    WF_TRY(wf_runs_choose(places.dirs, job, known, false, run, err));
    rc = wf_prediction_write(p, &text, err);
    ask.command = "submit";
    ask.job = run;
    ask.text = (char *)wf_bytes_str(&text);
    ask.path = (char *)wf_prediction_parts(p);
    if (rc == WF_OK)
        rc = wf_ask_send(a, &ask, ANSWER_MS, NULL, err);
    wf_bytes_close(&text);
    return rc;
}

/* Nothing of the job is of use when its parts are there. */
static void forget(wf_ask *a, const char *run)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    wf_err why;

    ask.command = "forget";
    ask.job = (char *)run;
    if (wf_ask_send(a, &ask, ANSWER_MS, NULL, &why) != WF_OK)
        wf_term_print(stderr, "warning: job %s stays: %s\n", run, why.what);
}

/* The run of this request that is under way, or a new one. */
static wf_status find_run(const wf_cluster_conf *conf, wf_ask *a, const wf_prediction *p,
                          char run[WF_RUN_NAME], wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    char job[WF_RUN_NAME];
    const json_t *row;
    json_t *picture = NULL;
    wf_status rc;

    name_job(p, job);
    ask.command = "status";
    WF_TRY(wf_ask_send(a, &ask, ANSWER_MS, &picture, err));
    row = wf_ask_job(picture, job);
    if (row && !wf_ask_is_over(row)) {
        snprintf(run, WF_RUN_NAME, "%s", json_string_value(json_object_get(row, "name")));
        rc = WF_OK;
    } else {
        rc = submit(conf, a, p, job, row ? json_integer_value(json_object_get(row, "run")) : -1,
                    run, err);
        if (rc == WF_OK && row) /* this one goes on with its parts */
            forget(a, json_string_value(json_object_get(row, "name")));
    }
    json_decref(picture);
    return rc;
}

static wf_status compute(const wf_cluster_conf *conf, const wf_prediction *p, wf_err *err)
{
    char run[WF_RUN_NAME];
    wf_ask *a = NULL;
    wf_status rc;

    WF_TRY(wf_ask_open(conf, &a, err));
    rc = find_run(conf, a, p, run, err);
    if (rc == WF_OK)
        rc = wf_follow(conf, a, run, NULL, err);
    if (rc == WF_OK)
        forget(a, run);
    wf_ask_close(&a);
    return rc;
}

wf_status wf_predict_spread(const wf_cluster_conf *conf, const wf_prediction *p, wf_err *err)
{
    wf_visit visit = wf_visit_begin(conf);
    wf_status rc;

    rc = wf_visit_start(&visit, conf, err);
    if (rc == WF_OK)
        rc = compute(conf, p, err);
    wf_visit_end(&visit, conf);
    return rc;
}
