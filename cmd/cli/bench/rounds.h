/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/rounds.h - one measurement: workers, bare ZeroMQ and memcpy, or the loops over a
 * flat table, in turns, so that what else the machine does meets all of them alike. */
#ifndef WF_CMD_CLI_BENCH_ROUNDS_H
#define WF_CMD_CLI_BENCH_ROUNDS_H

#include "cmd/cli/bench/figures.h"
#include "cmd/cli/bench/stage.h"

typedef struct wf_bench_result {
    uint32_t slots, threads;         /* of the optimizer; that copy_all used */
    int64_t line_ns;                 /* wf_cache_line_ns, just before */
    wf_samples weft[WF_BENCH_WORKS]; /* of all workers; none for a work that was left out */
    wf_samples bare[WF_BENCH_WORKS]; /* the same over bare ZeroMQ; of a table: by flat loops */
    double named;                    /* of a table: rows of a batch, on average */
    size_t copied;                   /* bytes of a copy */
    wf_samples copy_one, copy_all;   /* memcpy by one thread, and by one for each processor */
} wf_bench_result;

/* Measures a case. The caller owns what *out holds, also on failure. Errors: WF_STOPPED once
 * `stopped` says so; those of the stage, its workers and echoes. */
WF_MUST_USE wf_status wf_bench_rounds(const wf_bench_case *of, bool (*stopped)(void),
                                      wf_bench_result *out, wf_err *err);
void wf_bench_result_close(wf_bench_result *r);

#endif
