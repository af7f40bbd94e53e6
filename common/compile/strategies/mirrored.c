/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/strategies/mirrored.c - each device of the one worker has a replica of the model
 * and computes with a share of each batch; gradients are added up between them, and all replicas
 * apply the same update. Its graph is that of `local`: a replica is the worker's matter, not the
 * graph's.
 */
#include "common/compile/pass.h"

const wf_strategy wf_strategy_mirrored = {
    .name = "mirrored",
    .means = "a replica of the model on each device of the one worker, kept in step",
    .workers_most = 1,
    .on_worker = true,
    .rewrite = wf_rewrite_to_ports,
};
