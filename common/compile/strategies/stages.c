/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/strategies/stages.c - the model is divided among workers and their devices: each
 * stage holds its variables and applies their updates. The graph is that of `local`, until stages.c
 * cuts it.
 */
#include "common/compile/compile.h"
#include "common/compile/pass.h"

const wf_strategy wf_strategy_stages = {
    .name = "stages",
    .means = "each worker or device holds a part of the model, as `place` says; micro-batches pass "
             "through all",
    .workers_most = WF_STAGES_MOST,
    .on_worker = true,
    .divides = true,
    .rewrite = wf_rewrite_to_ports,
};
