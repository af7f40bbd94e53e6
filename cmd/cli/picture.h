/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/picture.h - the picture of a cluster for people: what the master tells (master/status.c),
 * or what its runs have left, where no cluster is up. */
#ifndef WF_CMD_CLI_PICTURE_H
#define WF_CMD_CLI_PICTURE_H

#include "cmd/cli/table.h"
#include "common/base/status.h"
#include "common/conf/conf.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* A text of an object, borrowed: "-" where there is none. And a number: 0. */
static inline const char *wf_text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s && s[0] ? s : "-";
}
static inline double wf_number_of(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* past.c: the jobs as the files of their runs show them, those whose last event is the newest last:
 * {"tasks": [], "jobs": [...]}, with the keys of the master's picture as far as files tell. *out is
 * the caller's. Errors: WF_IO, WF_NOMEM. */
WF_MUST_USE wf_status wf_past_picture(const wf_cluster_conf *conf, json_t **out, wf_err *err);

/* Adds what a master does not know of jobs that had ended before it started. Errors as above. */
WF_MUST_USE wf_status wf_past_complete(const wf_cluster_conf *conf, json_t *picture, wf_err *err);

/* The tables of tasks and jobs; with `all` also jobs that ended long ago. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_picture_tasks(FILE *f, const json_t *picture, wf_err *err);
WF_MUST_USE wf_status wf_picture_jobs(FILE *f, const json_t *picture, bool all, wf_err *err);
/* Rows "training" and "evaluation" of a job's numbers. */
void wf_picture_metrics(wf_rows *t, const json_t *job);
/* All that is known of one job of a picture, and its last epochs. Errors: as of wf_curves_read. */
WF_MUST_USE wf_status wf_picture_job(FILE *f, const wf_cluster_conf *conf, const json_t *job,
                                     wf_err *err);

/* What the master tells of the placement of a job (master/placement/shown.c). Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_picture_placement(FILE *f, const json_t *picture, wf_err *err);

#endif
