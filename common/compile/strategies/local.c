/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/strategies/local.c - one worker holds the variables and applies its own updates.
 * Its graph is that of a worker with parameter servers: Pull and Push are ends of an exchange, and
 * where that brings them is no matter of the graph. */
#include "common/compile/pass.h"

const wf_strategy wf_strategy_local = {
    .name = "local",
    .means = "variables in the one worker, which applies its own updates",
    .workers_most = 1,
    .on_worker = true,
    .rewrite = wf_rewrite_to_ports,
};
