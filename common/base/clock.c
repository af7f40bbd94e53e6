/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/clock.c */
#include "common/base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * WF_NS_PER_S + ts.tv_nsec;
}

int64_t wf_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t wf_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}
