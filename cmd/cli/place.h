/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/place.h - which cluster a command means: the file named, or cluster.yaml here, or the
 * local cluster that weft made before; and where weft's other programs lie. */
#ifndef WF_CMD_CLI_PLACE_H
#define WF_CMD_CLI_PLACE_H

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/conf/conf.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Loads `path` (--cluster), or ./cluster.yaml, or the local cluster of ./.weft. The last is 1
 * master, 2 ps, 2 workers; it is written to .weft/local.yaml when `make` is set and it is not there
 * yet. *out is the caller's. Errors: WF_NOTFOUND "no cluster.yaml here"; those of wf_cluster_load.
 */
WF_MUST_USE wf_status wf_place_cluster(const char *path, bool make, wf_cluster_conf **out,
                                       wf_err *err);
/* How many workers that cluster has; those of a local one where there is none yet, and 0 where its
 * file cannot be read. *conf is the cluster, which is the caller's; NULL in these two cases. */
uint32_t wf_place_workers(const char *path, wf_cluster_conf **conf);
/* The folders in which a cluster's runs have one each. */
typedef struct wf_place_runs {
    char jobs[PATH_MAX];
    const char *dirs[3]; /* ends with NULL */
} wf_place_runs;
/* Fills it in; it must not move. Errors: WF_INVALID for a path that is too long. */
WF_MUST_USE wf_status wf_place_runs_of(const wf_cluster_conf *conf, wf_place_runs *out,
                                       wf_err *err);
/* The run that a word means, "digits" or "digits#2", into `run`: as wf_runs_find in these folders.
 */
WF_MUST_USE wf_status wf_place_run(const wf_cluster_conf *conf, const char *word,
                                   char run[WF_RUN_NAME], wf_err *err);
/* The copy that was kept of a job: the text, and the path that it was made from. */
WF_MUST_USE wf_status wf_place_read_kept(const char *file, char path[PATH_MAX], wf_bytes *text,
                                         wf_err *err);
/* A job by the path of its file, or by its name when it was submitted here before: weft keeps a
 * copy in STATE/jobs/RUN/. Gives the path of its file, and the text, which is empty before and the
 * caller's, and the run, "" where the word is a path. Errors: WF_NOTFOUND; those of wf_job_read. */
WF_MUST_USE wf_status wf_place_job(const wf_cluster_conf *conf, const char *word,
                                   char path[PATH_MAX], char run[WF_RUN_NAME], wf_bytes *text,
                                   wf_err *err);
/* What is copied: a job's text, `size` bytes, and the path that relative ones in it are relative
 * to.
 */
typedef struct wf_place_copy {
    const char *text;
    size_t size;
    const char *path;
    const char *again; /* the command that goes on with it; NULL: weft recover */
} wf_place_copy;
/* Keeps that copy. `weft submit` calls it when the master has taken the job. Errors: WF_IO,
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_place_keep_job(const wf_cluster_conf *conf, const char *run,
                                        const wf_place_copy *of, wf_err *err);
/* The command that goes on with a run which no cluster has trained; false of others. */
bool wf_place_again(const wf_cluster_conf *conf, const char *run, char again[PATH_MAX]);
/* The path of a program of weft's ("weft-ps"): beside the running executable. Errors: WF_NOTFOUND,
 * with the folders looked in. */
WF_MUST_USE wf_status wf_place_program(const char *name, char *path, size_t size, wf_err *err);

#endif
