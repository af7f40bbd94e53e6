/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/pool.h - weft's own threads, which split one kernel's work.
 *
 * It lives here and not in common/exec because kernels use it and exec sits above them. Work is cut
 * into equal ranges by (n, grain, threads) alone, so what each range covers never depends on
 * timing; kernels cut along outputs only, so results do not depend on the number of threads either.
 *
 * Waiting threads spin for some microseconds and then sleep on a futex: a wake-up costs 30 us on a
 * virtual machine, a spin 0.1 us. A pool serves one caller at a time: one thread runs a plan.
 */
#ifndef WF_KERNELS_POOL_H
#define WF_KERNELS_POOL_H

#include "common/base/status.h"
#include <stdint.h>

enum { WF_POOL_MAX = 256 };

typedef struct wf_pool wf_pool;

/* Does elements [begin, end) of what arg says. Must not call wf_pool_for on the same pool. */
typedef void wf_pool_fn(void *arg, int64_t begin, int64_t end);

/* A pool of `threads` in all, the caller's among them: 1 starts none and runs everything inline.
 * The caller owns *out. Errors: WF_INVALID for 0 or more than WF_POOL_MAX; WF_NOMEM; WF_IO when the
 * system gives no thread. */
WF_MUST_USE wf_status wf_pool_new(uint32_t threads, wf_pool **out, wf_err *err);
/* Ends its threads, frees *p and sets it to NULL; NULL is fine. */
void wf_pool_free(wf_pool **p);

/* 1 for NULL. */
uint32_t wf_pool_threads(const wf_pool *p);

/* Calls fn over ranges that cover [0, n) once, each of at least `grain` elements (but the last),
 * and returns when all are done. A NULL pool runs inline. */
void wf_pool_for(wf_pool *p, int64_t n, int64_t grain, wf_pool_fn *fn, void *arg);

#endif
