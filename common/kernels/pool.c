/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/pool.c - one job at a time: the caller publishes it by raising `round`, takes
 * ranges itself, and waits until `left` is zero. Each thread begins with the range of its own
 * number, so that what one kernel wrote the next one finds in the cache of the same processor.
 * Whoever is free then takes what is left: on a machine with other work the caller does what a
 * thread without a processor would do, in place of waiting for it.
 *
 * A free range has the round in `open`, so that a thread which comes late takes nothing of a later
 * job by the round of an earlier one. A job's fields are read only by who holds one of its ranges:
 * until that is done the job is not over.
 *
 * A sleeper says so in `sleepers` before it looks at `round` a last time inside the futex call, and
 * the caller raises `round` before it looks at `sleepers`: one of the two sees the other.
 */
#include "common/kernels/pool.h"
#include "common/base/clock.h"
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
    SPINS = 2000, /* of 15 to 50 ns: longer than the gap between two large kernels of most steps */
    SPINS_MOST = 16000 /* of a helper that was woken again soon: there are gaps of small kernels */
};
static const int64_t SOON_NS = 3 * WF_NS_PER_MS / 10; /* from falling asleep to the next round */

typedef struct helper {
    wf_pool *pool;
    uint32_t number; /* from 1: the caller is 0 */
    pthread_t id;
} helper;

struct wf_pool {
    uint32_t threads; /* the caller's too */
    uint32_t started;
    helper *helpers; /* [threads], the first unused */
    atomic_bool ending;
    /* the job */
    wf_pool_fn *fn;
    void *arg;
    int64_t n, share;
    _Atomic uint64_t *open;       /* [threads], by range: open_in(round) if it is free, 0 */
    _Atomic uint32_t round, left; /* left: ranges that are not done */
    _Atomic uint32_t sleepers, caller_sleeps;
};

/* Never 0. */
static uint64_t open_in(uint32_t round)
{
    return (uint64_t)round << 1 | 1;
}

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

/* All ranges of a round that are free for thread `number`, its own first. */
static void do_ranges(wf_pool *p, uint32_t round, uint32_t number)
{
    for (uint32_t k = 0; k < p->threads; k++) {
        uint32_t i = (number + k) % p->threads;
        uint64_t free_one = open_in(round);
        int64_t begin;

        if (atomic_load(&p->open[i]) != free_one ||
            !atomic_compare_exchange_strong(&p->open[i], &free_one, 0))
            continue;
        begin = (int64_t)i * p->share;
        p->fn(p->arg, begin, WF_MIN(begin + p->share, p->n));
        if (atomic_fetch_sub(&p->left, 1) == 1 && atomic_load(&p->caller_sleeps))
            futex_wake(&p->left, 1);
    }
}

/* The next round after `seen`, spinning first. Waking up takes longer than many kernels, so *spins
 * doubles where sleep was short, and halves where it was long. */
static uint32_t await_round(wf_pool *p, uint32_t seen, int *spins)
{
    int64_t slept_ns;

    for (int i = 0; i < *spins; i++) {
        uint32_t now = atomic_load_explicit(&p->round, memory_order_acquire);

        if (now != seen)
            return now;
        rest(i);
    }
    slept_ns = wf_now_ns();
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->round) == seen)
        futex_wait(&p->round, seen);
    atomic_fetch_sub(&p->sleepers, 1);
    slept_ns = wf_now_ns() - slept_ns;
    *spins = slept_ns < SOON_NS ? WF_MIN(*spins * 2, SPINS_MOST) : WF_MAX(*spins / 2, SPINS);
    return atomic_load(&p->round);
}

static void *work(void *arg)
{
    const helper *h = arg;
    uint32_t seen = 0;
    int spins = SPINS;

    for (;;) {
        seen = await_round(h->pool, seen, &spins);
        if (atomic_load(&h->pool->ending))
            return NULL;
        do_ranges(h->pool, seen, h->number);
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
    helper *h = &p->helpers[index];
    int rc;

    *h = (helper){.pool = p, .number = index};
    rc = pthread_create(&h->id, NULL, work, h);

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
    p->helpers = calloc(threads, sizeof *p->helpers);
    p->open = calloc(threads, sizeof *p->open);
    if (!p->helpers || !p->open) {
        rc = wf_fail_nomem(err, threads * sizeof *p->helpers);
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
    for (uint32_t i = 1; i <= (*p)->started; i++)
        pthread_join((*p)->helpers[i].id, NULL);
    free((*p)->helpers);
    free((*p)->open);
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
    uint32_t round;

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
    round = atomic_load(&p->round) + 1;
    for (int64_t i = 0; i < ranges; i++)
        atomic_store(&p->open[i], open_in(round));
    publish(p);
    do_ranges(p, round, 0);
    await_all(p);
}
