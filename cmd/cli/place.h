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
/* A job by the path of its file, or by its name when it was submitted here before: weft keeps a
 * copy in STATE/jobs/NAME/. Gives the path of its file, and the text, which is empty before and the
 * caller's. Errors: WF_NOTFOUND; those of wf_job_read. */
WF_MUST_USE wf_status wf_place_job(const wf_cluster_conf *conf, const char *word,
                                   char path[PATH_MAX], wf_bytes *text, wf_err *err);
/* Keeps that copy: the text, and the absolute path that relative ones in it are relative to. `weft
 * submit` calls it when the master has taken the job. Errors: WF_IO, WF_NOMEM. */
WF_MUST_USE wf_status wf_place_keep_job(const wf_cluster_conf *conf, const char *name,
                                        const char *text, size_t size, const char *path,
                                        wf_err *err);
/* The path of a program of weft's ("weft-ps"): beside the running executable. Errors: WF_NOTFOUND,
 * with the folders looked in. */
WF_MUST_USE wf_status wf_place_program(const char *name, char *path, size_t size, wf_err *err);

#endif
