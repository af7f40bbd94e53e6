/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/worker.h - a worker that computes nothing: its net, and the exchange that real
 * workers have, driven as their main loop drives it (cmd/weft-worker.c).
 *
 * Threading: one thread opens, uses and closes it.
 */
#ifndef WF_CMD_CLI_BENCH_WORKER_H
#define WF_CMD_CLI_BENCH_WORKER_H

#include "cmd/cli/bench/figures.h"
#include "cmd/cli/bench/stage.h"
#include <stdatomic.h>

typedef struct wf_bench_worker wf_bench_worker;

/* Dials the ps of a stage that is open, which is borrowed; *stop is read while it waits. The caller
 * owns *out, also on failure. Errors: those of wires and exchange. */
WF_MUST_USE wf_status wf_bench_worker_open(const wf_bench_stage *s, uint32_t index,
                                           const atomic_bool *stop, wf_bench_worker **out,
                                           wf_err *err);
void wf_bench_worker_close(wf_bench_worker **w);
/* The rows of a table that work is about. */
typedef struct wf_bench_rows {
    const uint64_t *ids; /* [n], distinct and rising; read during the call */
    size_t n;
} wf_bench_rows;

/* How many batches a piece of work is done for at a time: at_once pushes together; and pulls one
 * behind the other, at_once of them under way. WF_BENCH_BATCHES at most. */
uint32_t wf_bench_worker_batches(const wf_bench_worker *w, const wf_bench_work *work);
/* Does a piece of work for so many batches, and says how long each took: from the gradient that is
 * ready. Of a table a pull asks for the rows of each batch, and a push is of the rows that were
 * asked for last; a push by itself asks for `rows` afterwards, in time that does not count. A dense
 * variable has no rows: NULL. Errors: WF_STOPPED; WF_TIMEOUT, with who is late; those of the
 * exchange. */
WF_MUST_USE wf_status wf_bench_worker_do(wf_bench_worker *w, const wf_bench_work *work,
                                         const wf_bench_rows rows[], int64_t *took_ns, wf_err *err);

#endif
