/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/pool.c - one job at a time: the caller publishes it by raising `round`, takes
 * ranges itself, and waits until `left` is zero. Whoever is free takes the next range: on a machine
 * with other work the caller does what a thread without a processor would do, in place of waiting
 * for it.
 *
 * `claims` has the round, so that a thread which comes late takes nothing of a later job by the
 * numbers of an earlier one. A job's fields are read only by who holds one of its ranges: until
 * that is done the job is not over.
 *
 * A sleeper says so in `sleepers` before it looks at `round` a last time inside the futex call, and
 * the caller raises `round` before it looks at `sleepers`: one of the two sees the other.
 */
#include "common/kernels/pool.h"
#include "common/base/size.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPINS_A_YIELD = 128,
    SPINS = 2000
}; /* of 15 to 50 ns: longer than the gap between two kernels of a step */

struct wf_pool {
    uint32_t threads; /* the caller's too */
    uint32_t started;
    pthread_t *ids;
    atomic_bool ending;
    /* the job */
    wf_pool_fn *fn;
    void *arg;
    int64_t n, share;
    _Atomic uint64_t claims;      /* of a job: its round << 32 | its ranges << 16 | those taken */
    _Atomic uint32_t round, left; /* left: ranges that are not done */
    _Atomic uint32_t sleepers, caller_sleeps;
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, (uint32_t *)word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int n)
{
    syscall(SYS_futex, (uint32_t *)word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Between two looks; whoever else has work goes on. */
static void rest(int i)
{
    pause_cpu();
    if (i % SPINS_A_YIELD == SPINS_A_YIELD - 1)
        sched_yield();
}

/* Takes a range of the job in hand; false: none is left. */
static bool claim(wf_pool *p, uint32_t *range)
{
    uint64_t now = atomic_load(&p->claims);
    uint32_t ranges, taken;

    do {
        ranges = (uint16_t)(now >> 16);
        taken = (uint16_t)now;
        if (taken == ranges)
            return false;
    } while (!atomic_compare_exchange_weak(&p->claims, &now, now + 1));
    *range = taken;
    return true;
}

static void do_ranges(wf_pool *p)
{
    uint32_t i;

    while (claim(p, &i)) {
        int64_t begin = (int64_t)i * p->share;

        p->fn(p->arg, begin, WF_MIN(begin + p->share, p->n));
        if (atomic_fetch_sub(&p->left, 1) == 1 && atomic_load(&p->caller_sleeps))
            futex_wake(&p->left, 1);
    }
}

/* The next round after `seen`, spinning first. */
static uint32_t await_round(wf_pool *p, uint32_t seen)
{
    for (int i = 0; i < SPINS; i++) {
        uint32_t now = atomic_load_explicit(&p->round, memory_order_acquire);

        if (now != seen)
            return now;
        rest(i);
    }
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->round) == seen)
        futex_wait(&p->round, seen);
    atomic_fetch_sub(&p->sleepers, 1);
    return atomic_load(&p->round);
}

static void *work(void *arg)
{
    wf_pool *p = arg;
    uint32_t seen = 0;

    for (;;) {
        seen = await_round(p, seen);
        if (atomic_load(&p->ending))
            return NULL;
        do_ranges(p);
    }
}

static void publish(wf_pool *p)
{
    atomic_fetch_add(&p->round, 1);
    if (atomic_load(&p->sleepers))
        futex_wake(&p->round, INT32_MAX);
}

static void await_all(wf_pool *p)
{
    uint32_t left;

    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&p->left, memory_order_acquire) == 0)
            return;
        rest(i);
    }
    atomic_store(&p->caller_sleeps, 1);
    while ((left = atomic_load(&p->left)) != 0)
        futex_wait(&p->left, left);
    atomic_store(&p->caller_sleeps, 0);
}

static wf_status start(wf_pool *p, uint32_t index, wf_err *err)
{
    int rc = pthread_create(&p->ids[p->started], NULL, work, p);

    if (rc != 0)
        return wf_fail_errno(err, rc, "lower \"threads\"", "starting thread %u of %u", index + 1,
                             p->threads);
    p->started++;
    return WF_OK;
}

wf_status wf_pool_new(uint32_t threads, wf_pool **out, wf_err *err)
{
    wf_status rc = WF_OK;
    wf_pool *p;

    if (threads < 1 || threads > WF_POOL_MAX)
        return wf_fail(err, WF_INVALID, NULL, "%u threads; it must be from 1 to %d", threads,
                       WF_POOL_MAX);
    p = calloc(1, sizeof *p);
    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    p->threads = threads;
    p->ids = calloc(threads, sizeof *p->ids);
    if (!p->ids) {
        rc = wf_fail_nomem(err, threads * sizeof *p->ids);
        goto out;
    }
    for (uint32_t i = 1; i < threads && rc == WF_OK; i++)
        rc = start(p, i, err);
    if (rc != WF_OK)
        goto out;
    *out = p;
    p = NULL;
out:
    wf_pool_free(&p);
    return rc;
}

void wf_pool_free(wf_pool **p)
{
    if (!*p)
        return;
    atomic_store(&(*p)->ending, true);
    publish(*p);
    for (uint32_t i = 0; i < (*p)->started; i++)
        pthread_join((*p)->ids[i], NULL);
    free((*p)->ids);
    free(*p);
    *p = NULL;
}

uint32_t wf_pool_threads(const wf_pool *p)
{
    return p ? p->threads : 1;
}

void wf_pool_for(wf_pool *p, int64_t n, int64_t grain, wf_pool_fn *fn, void *arg)
{
    int64_t ranges = n / WF_MAX(grain, 1);

    if (n <= 0)
        return;
    if (!p || p->threads == 1 || ranges < 2) {
        fn(arg, 0, n);
        return;
    }
    ranges = WF_MIN(ranges, (int64_t)p->threads);
    p->fn = fn;
    p->arg = arg;
    p->n = n;
    p->share = (n + ranges - 1) / ranges;
    ranges = (n + p->share - 1) / p->share;
    atomic_store(&p->left, (uint32_t)ranges);
    atomic_store(&p->claims, (uint64_t)(atomic_load(&p->round) + 1) << 32 | (uint64_t)ranges << 16);
    publish(p);
    do_ranges(p);
    await_all(p);
}
