/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/weights.h - the weights of a job's checkpoint, by name, for whoever uses them
 * beside the cluster. */
#ifndef WF_SESSION_WEIGHTS_H
#define WF_SESSION_WEIGHTS_H

#include "common/base/status.h"
#include "common/ckpt/ckpt.h"
#include "common/conf/conf.h"
#include "common/tensor/named.h"
#include <stdbool.h>
#include <stdint.h>

/* In place of a step. */
enum { WF_STEP_NEWEST = -1, WF_STEP_BEST = -2 };

typedef struct wf_weights {
    wf_named_list list;    /* of all variables that a checkpoint holds, float32; of an unbounded
                              table what wf_compile_spec.rows has */
    wf_learnt_list learnt; /* by map steps; empty in a checkpoint of a weft that did not keep it */
    char from[64];         /* its name: "step-00012000" */
    bool wants_optimizer;  /* set by the caller */
    bool skips_values;     /* set by the caller: list stays empty, and no process has the model */
    wf_named_list optimizer; /* its state, if it is wanted: slots and numbers of updates of
                                variables but unbounded tables, named as in ckpt/initial.h */
} wf_weights;

/* Reads all variables of the checkpoint of `step` of a run of `job`, below `dir`, or of the newest
 * that verifies
 * (`told` of those that it passes over), or of the one that a callback has called the best. *w is
 * all zero before but for wants_optimizer, and the caller's, also after a failure. Errors:
 * WF_NOTFOUND, WF_CORRUPT, WF_MISMATCH for another model's; those of wf_compile. */
WF_MUST_USE wf_status wf_weights_read(const char *dir, const char *run, const wf_job_conf *job,
                                      int64_t step, wf_ckpt_passed_over *told, void *arg,
                                      wf_weights *w, wf_err *err);
/* Reads of the checkpoint of a step what data.map has learnt, and nothing else; as above. */
WF_MUST_USE wf_status wf_weights_read_learnt(const char *dir, const char *run, uint64_t step,
                                             wf_weights *w, wf_err *err);
void wf_weights_close(wf_weights *w);

#endif
