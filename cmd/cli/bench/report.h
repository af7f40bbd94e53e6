/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/report.h - what `weft bench` found, as a table and as JSON. */
#ifndef WF_CMD_CLI_BENCH_REPORT_H
#define WF_CMD_CLI_BENCH_REPORT_H

#include "cmd/cli/bench/rounds.h"

typedef char wf_bench_cell[32];
/* A duration in microseconds or milliseconds, in `text`. */
const char *wf_bench_time_text(double ns, wf_bench_cell text);

/* Prints n cases with their results, [n] each, whose durations it sorts. Errors: WF_NOMEM. */
/* Prints a line: how far the processors were from each other meanwhile. */
void wf_bench_print_lines(const wf_bench_result results[], size_t n);
WF_MUST_USE wf_status wf_bench_print_table(const wf_bench_case cases[], wf_bench_result results[],
                                           size_t n, wf_err *err);
WF_MUST_USE wf_status wf_bench_print_json(const wf_bench_case cases[], wf_bench_result results[],
                                          size_t n, wf_err *err);

#endif
