/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/wait.c */
#include "common/wire/wait.h"
#include "common/base/clock.h"
#include "common/base/size.h"

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>

static bool any_ready(wf_transport *const t[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (t[i]->ops->ready(t[i]))
            return true;
    return false;
}

static const int64_t SPIN_NS = 200000;

enum { LOST_MOST = 4, REST_LOG_MOST = 6 }; /* in a row before it rests; then up to 64 waits */

static bool look_for_a_moment(wf_transport *const t[], size_t n)
{
    int64_t until_ns = wf_now_ns() + SPIN_NS;
    bool something;

    while (!(something = any_ready(t, n)) && wf_now_ns() < until_ns)
        sched_yield(); /* whoever else has work goes on: tasks may outnumber the cores */
    return something;
}

/* Whether a look before sleeping found something. */
static bool spun(wf_spin *s, wf_transport *const t[], size_t n)
{
    if (s->rest > 0) {
        s->rest--;
        return false;
    }
    if (look_for_a_moment(t, n)) {
        s->lost = 0;
        return true;
    }
    if (++s->lost >= LOST_MOST)
        s->rest = 1u << WF_MIN(s->lost - LOST_MOST, (uint32_t)REST_LOG_MOST);
    return false;
}

/* After a sleep: one that was so short would have been found by a look, so the next wait looks. */
static void note_sleep(wf_spin *s, int64_t slept_ns)
{
    if (s->rest == 0 || slept_ns > SPIN_NS)
        return;
    s->rest = 0;
    s->lost = LOST_MOST - 1;
}

static void sleep_until(struct pollfd at[], nfds_t n, int64_t timeout_ms, wf_spin *spin)
{
    int64_t began_ns = spin ? wf_now_ns() : 0;
    int woken = poll(at, n, (int)WF_MIN(WF_MAX(timeout_ms, (int64_t)0), (int64_t)INT_MAX));

    if (spin && woken > 0)
        note_sleep(spin, wf_now_ns() - began_ns);
}

void wf_wait(wf_transport *const t[], size_t n, int fd, int64_t timeout_ms, wf_spin *spin)
{
    enum { FEW = 64 };
    struct pollfd few[FEW], *at = n + 1 <= FEW ? few : calloc(n + 1, sizeof *at);
    bool something = false;
    nfds_t used = 0;

    if (timeout_ms > 0 && spin && spun(spin, t, n)) {
        if (at != few)
            free(at);
        return;
    }
    if (!at) { /* memory is short: what has arrived is looked at every millisecond */
        poll(NULL, 0, 1);
        return;
    }
    for (size_t i = 0; !something && i < n; i++) {
        something = t[i]->ops->arm(t[i]);
        if (t[i]->fd >= 0)
            at[used++] = (struct pollfd){.fd = t[i]->fd, .events = POLLIN};
        else
            timeout_ms = WF_MIN(timeout_ms, (int64_t)1);
    }
    if (fd >= 0)
        at[used++] = (struct pollfd){.fd = fd, .events = POLLIN};
    if (!something)
        sleep_until(at, used, timeout_ms, spin);
    else if (spin)
        note_sleep(spin, 0);
    if (at != few)
        free(at);
}
