/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/report_rows.h - what `weft bench --table` found, as a table and as JSON. */
#ifndef WF_CMD_CLI_BENCH_REPORT_ROWS_H
#define WF_CMD_CLI_BENCH_REPORT_ROWS_H

#include "cmd/cli/bench/rounds.h"

/* As wf_bench_print_table and wf_bench_print_json, of cases that are tables. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_bench_print_rows(const wf_bench_case cases[], wf_bench_result results[],
                                          size_t n, wf_err *err);
WF_MUST_USE wf_status wf_bench_print_rows_json(const wf_bench_case cases[],
                                               wf_bench_result results[], size_t n, wf_err *err);

#endif
