/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/cache_line.h - how far two processors are from each other: for benchmarks, whose
 * figures of two processes depend on it. A virtual machine's processors may share a cache now, and
 * in a minute not. */
#ifndef WF_BASE_CACHE_LINE_H
#define WF_BASE_CACHE_LINE_H

#include <stdint.h>

/* The time in ns in which a cache line goes to another processor and comes back: the median of some
 * rounds, between the first two processors that this process may use. Takes some milliseconds, in
 * which the calling thread is bound to one of them. 0: there is one processor, or no thread. */
int64_t wf_cache_line_ns(void);

#endif
