/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/model.h - the ledger model as a compiled job. */
#ifndef WF_TESTS_SIM_MODEL_H
#define WF_TESTS_SIM_MODEL_H

#include "master/master.h"
#include "tests/sim/sim.h"

enum { WF_MODEL_STEPS = 0, WF_MODEL_RECORDS = 1, WF_MODEL_STEP_SLICES = 2 };

/* What wf_master_ops.prepare gives in the simulator. */
WF_MUST_USE wf_status wf_model_prepare(const wf_sim_spec *spec, const char *job, wf_prepared **out,
                                       wf_err *err);

#endif
