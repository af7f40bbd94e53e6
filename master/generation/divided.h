/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation/divided.h - a job whose model is divided among workers: what of its start says
 * which stages there are. For prepare.c. */
#ifndef WF_MASTER_GENERATION_DIVIDED_H
#define WF_MASTER_GENERATION_DIVIDED_H

#include "common/compile/compile.h"
#include "master/master.h"

/* Puts the workers of the stages into the start. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_divided_stages(wf_prepared *p, const wf_stage_home homes[], uint32_t n,
                                        wf_err *err);
/* Before a graph of the job is compiled: has `spec` divide it among the workers of a cluster of so
 * many; the evaluation's graph as the training's, which is compiled first. Errors: those of
 * wf_stages_of_job; WF_NOMEM. */
WF_MUST_USE wf_status wf_divided_begin(wf_prepared *p, const wf_job_conf *job,
                                       const wf_stage_workers *of, wf_compile_spec *spec,
                                       wf_err *err);
/* After that: puts the parts of the stages, and what goes between them, into the start. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_divided_fill(wf_prepared *p, const wf_compiled *c, bool train,
                                      wf_err *err);

#endif
