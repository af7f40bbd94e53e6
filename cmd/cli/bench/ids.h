/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/ids.h - the rows of a table that batches name, as a worker names them: drawn by
 * some distribution, each once, in rising order. */
#ifndef WF_CMD_CLI_BENCH_IDS_H
#define WF_CMD_CLI_BENCH_IDS_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { WF_BENCH_ROWS_MOST = 1000000000 };

/* How ids are drawn: the k-th most frequent of n with a probability that is proportional to
 * k^-exponent, uniformly for 0. A row with a NULL name ends them. */
typedef struct wf_bench_draw {
    const char *name;
    double exponent;
} wf_bench_draw;
extern const wf_bench_draw wf_bench_draws[];

/* Batches of ids. */
typedef struct wf_bench_ids {
    uint64_t *ids;
    size_t *first; /* [n + 1]: where those of each batch begin */
    size_t n;
} wf_bench_ids;

/* Draws n batches of `drawn` ids each, from rows 0 to rows - 1 (WF_BENCH_ROWS_MOST at most). Rows
 * that are named alike often lie anywhere in the table. Close it after an error as well. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_bench_ids_make(const wf_bench_draw *draw, uint64_t rows, size_t drawn,
                                        size_t n, uint64_t seed, wf_bench_ids *out, wf_err *err);
void wf_bench_ids_close(wf_bench_ids *b);
/* The ids of batch `at` modulo their number, and how many they are. */
const uint64_t *wf_bench_ids_of(const wf_bench_ids *b, uint64_t at, size_t *n);

#endif
