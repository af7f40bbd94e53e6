/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/strategies/hybrid.c - tables lie on the parameter servers, and each worker holds
 * all other variables: a step moves few rows of a table, and all of a dense variable (Kim et al.
 * 2019, "Parallax", section 3). Its graph is that of parameter_server.
 */
#include "common/compile/compile.h"
#include "common/compile/pass.h"

const wf_strategy wf_strategy_hybrid = {
    .name = "hybrid",
    .means = "tables on parameter servers; a replica of all other variables on each worker",
    .ps_least = 1,
    .ps_most = WF_COMPILE_PS_MOST,
    .workers_most = UINT32_MAX,
    .on_worker = true,
    .sends = true,
    .tables_on_ps = true,
    .rewrite = wf_rewrite_to_ports,
};
