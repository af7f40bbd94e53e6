/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/weights.h - the weights of a job's checkpoint, by name, for commands that use them here.
 */
#ifndef WF_CMD_CLI_WEIGHTS_H
#define WF_CMD_CLI_WEIGHTS_H

#include "common/base/status.h"
#include "common/ckpt/ckpt.h"
#include "common/compile/compile.h"
#include "common/conf/conf.h"
#include <stddef.h>

typedef struct wf_weights {
    wf_named_tensor *named; /* [n]; names are borrowed from the checkpoint, tensors are owned */
    size_t n;
} wf_weights;

/* Opens the newest checkpoint that verifies (telling on stderr which it passes over), or the one of
 * step `from` (NULL or "latest": the newest; "best": the one that a callback has chosen), and reads
 * all its variables. *c and *w are the caller's, also after a failure. Errors: WF_NOTFOUND,
 * WF_CORRUPT, WF_MISMATCH for another model's.
 */
WF_MUST_USE wf_status wf_weights_read(const wf_cluster_conf *conf, const wf_job_conf *job,
                                      const char *from, wf_ckpt **c, wf_weights *w, wf_err *err);
void wf_weights_close(wf_weights *w);

#endif
