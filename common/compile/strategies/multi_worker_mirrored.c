/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/strategies/multi_worker_mirrored.c - each worker holds the variables and computes
 * with batches of its own; gradients are added up between the workers, and all apply the same
 * update. Its graph is that of `local`.
 */
#include "common/compile/pass.h"

const wf_strategy wf_strategy_multi_worker_mirrored = {
    .name = "multi_worker_mirrored",
    .means = "a replica of the model on each worker, kept in step without parameter servers",
    .workers_most = UINT32_MAX,
    .on_worker = true,
    .sends = true,
    .rewrite = wf_rewrite_to_ports,
};
