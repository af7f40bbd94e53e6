/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/strategies/parameter_server.c - variables are cut into slices, which lie on the
 * parameter servers; workers pull weights and push gradients, each at its own pace (Dean et al.
 * 2012, "Large Scale Distributed Deep Networks", section 4.1). */
#include "common/compile/compile.h"
#include "common/compile/pass.h"

const wf_strategy wf_strategy_parameter_server = {
    .name = "parameter_server",
    .means = "variables on parameter servers; workers push gradients to them, asynchronously",
    .ps_least = 1,
    .ps_most = WF_COMPILE_PS_MOST,
    .workers_most = UINT32_MAX,
    .rewrite = wf_rewrite_to_ports,
};
