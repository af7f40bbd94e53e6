/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/clock.h - the real clocks. Only the shells around roles call these; logic is given
 * the time. */
#ifndef WF_BASE_CLOCK_H
#define WF_BASE_CLOCK_H

#include <stdint.h>

#define WF_NS_PER_MS INT64_C(1000000)
#define WF_NS_PER_S INT64_C(1000000000)

/* Monotonic; for all waits, leases and durations. */
int64_t wf_now_ns(void);
/* Seconds and nanoseconds since 1970; for logs, events and files only. */
int64_t wf_wall_ns(void);

#endif
