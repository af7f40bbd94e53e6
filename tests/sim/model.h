/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/model.h - the ledger model as a compiled job. */
#ifndef WF_TESTS_SIM_MODEL_H
#define WF_TESTS_SIM_MODEL_H

#include "master/master.h"
#include "tests/sim/sim.h"

enum { WF_MODEL_STEPS = 0, WF_MODEL_RECORDS = 1, WF_MODEL_STEP_SLICES = 2 };

/* The loss after an epoch, from 0; and how early stopping judges these: the last epoch that is
 * trained, and the best. */
double wf_model_loss(const wf_sim_spec *spec, uint32_t epoch);
void wf_model_epochs(const wf_sim_spec *spec, uint32_t *last, uint32_t *best);

/* What wf_master_ops.prepare gives in the simulator. */
WF_MUST_USE wf_status wf_model_prepare(const wf_sim_spec *spec, const char *job, wf_prepared **out,
                                       wf_err *err);

#endif
