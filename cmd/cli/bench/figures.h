/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/figures.h - the arithmetic of `weft bench`: what is measured, percentiles, and the
 * bytes that a piece of work must move at the least. No clock, no socket. */
#ifndef WF_CMD_CLI_BENCH_FIGURES_H
#define WF_CMD_CLI_BENCH_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of work of a worker: a push is over when it is acknowledged, a pull when all weights are
 * in, and both together when the weights that hold the push are in. */
typedef struct wf_bench_work {
    const char *name;
    bool pushes, pulls;
} wf_bench_work;

enum { WF_BENCH_WORKS = 3 };
extern const wf_bench_work wf_bench_works[WF_BENCH_WORKS];

/* Durations. `failed`: there was no memory for one of them. */
typedef struct wf_samples {
    int64_t *ns;
    size_t n, room;
    bool failed;
} wf_samples;

void wf_samples_add(wf_samples *s, int64_t ns);
/* Adds all of another's. */
void wf_samples_merge(wf_samples *s, const wf_samples *from);
/* The smallest duration that at least `part` in (0, 1] of them do not exceed (nearest rank); 0 of
 * none. Sorts. */
int64_t wf_samples_at(wf_samples *s, double part);
void wf_samples_close(wf_samples *s);

/* Bytes that one worker sends and receives, of variables of `bytes` in all. */
uint64_t wf_bench_sent(const wf_bench_work *work, uint64_t bytes);
/* Bytes that have to be read and written once whatever carries them: a push reads the gradient,
 * and reads and writes the weights and each of the optimizer's slots; a pull reads the weights. */
uint64_t wf_bench_moved(const wf_bench_work *work, uint64_t bytes, uint32_t slots);
/* Bytes a second; 0 when nothing took place. */
double wf_bench_rate(uint64_t bytes, int64_t ns);

#endif
