/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/flat.h - what the machine can do with the rows of a table at most: two flat arrays
 * in this process, values and Adagrad's accumulators, and loops that fetch rows ahead. */
#ifndef WF_CMD_CLI_BENCH_FLAT_H
#define WF_CMD_CLI_BENCH_FLAT_H

#include "cmd/cli/bench/figures.h"
#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_flat wf_flat;

/* A table of zeroes, [rows, dim], accumulators at 0.1, and room for `most` rows of a batch; its
 * loops run on so many threads. The caller owns *out, also on failure. Errors: WF_NOMEM, WF_IO. */
WF_MUST_USE wf_status wf_flat_open(uint64_t rows, uint32_t dim, size_t most, uint32_t threads,
                                   wf_flat **out, wf_err *err);
void wf_flat_close(wf_flat **f);
/* Updates the rows ids [n] with a gradient of 0.001 in each element, copies them out, or both:
 * distinct ids, below the number of rows; n is at most `most`. Returns the last copies, [n, dim],
 * borrowed until the next call. */
const float *wf_flat_do(wf_flat *f, const wf_bench_work *work, const uint64_t ids[], size_t n);

#endif
