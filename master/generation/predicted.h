/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation/predicted.h - a request for a prediction by a model that is divided among
 * workers: the stages of its forward pass. For prepare.c. */
#ifndef WF_MASTER_GENERATION_PREDICTED_H
#define WF_MASTER_GENERATION_PREDICTED_H

#include "common/compile/compile.h"
#include "common/session/prediction.h"
#include "master/master.h"

/* Puts the stages, their variables and the outputs into the start, if the request's job divides its
 * model: micro-batches are its batches. Nothing of another. Errors: those of the job, of the
 * compiler, and of wf_stages_of_job; WF_NOMEM. */
WF_MUST_USE wf_status wf_predicted_fill(wf_prepared *p, const wf_prediction_ask *ask,
                                        const wf_stage_workers *of, wf_err *err);

#endif
