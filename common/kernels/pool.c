/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/pool.c - one job at a time: the caller publishes it by raising `round`, takes the
 * first range itself, and waits until `left` is zero. Worker i does range i.
 *
 * A sleeper says so in `sleepers` before it looks at `round` a last time inside the futex call, and
 * the caller raises `round` before it looks at `sleepers`: one of the two sees the other.
 */
#include "common/kernels/pool.h"
#include "common/base/size.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS = 2000 }; /* of 15 to 50 ns: longer than the gap between two kernels of a step */

struct wf_pool {
    uint32_t threads; /* the caller's too */
    uint32_t started;
    pthread_t *ids;
    bool ending;
    /* the job */
    wf_pool_fn *fn;
    void *arg;
    int64_t n, share;
    uint32_t ranges;
    _Atomic uint32_t round, sleepers, left, caller_sleeps;
};

typedef struct worker {
    wf_pool *pool;
    uint32_t index; /* 1.. */
} worker;

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

static void do_range(const wf_pool *p, uint32_t i)
{
    int64_t begin = (int64_t)i * p->share;

    if (i < p->ranges)
        p->fn(p->arg, begin, WF_MIN(begin + p->share, p->n));
}

/* The next round after `seen`, spinning first. */
static uint32_t await_round(wf_pool *p, uint32_t seen)
{
    for (int i = 0; i < SPINS; i++) {
        uint32_t now = atomic_load_explicit(&p->round, memory_order_acquire);

        if (now != seen)
            return now;
        pause_cpu();
    }
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->round) == seen)
        futex_wait(&p->round, seen);
    atomic_fetch_sub(&p->sleepers, 1);
    return atomic_load(&p->round);
}

static void *work(void *arg)
{
    worker w = *(worker *)arg;
    uint32_t seen = 0;

    free(arg);
    for (;;) {
        seen = await_round(w.pool, seen);
        if (w.pool->ending)
            return NULL;
        do_range(w.pool, w.index);
        if (atomic_fetch_sub(&w.pool->left, 1) == 1 && atomic_load(&w.pool->caller_sleeps))
            futex_wake(&w.pool->left, 1);
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
        pause_cpu();
    }
    atomic_store(&p->caller_sleeps, 1);
    while ((left = atomic_load(&p->left)) != 0)
        futex_wait(&p->left, left);
    atomic_store(&p->caller_sleeps, 0);
}

static wf_status start(wf_pool *p, uint32_t index, wf_err *err)
{
    worker *w = malloc(sizeof *w);
    int rc;

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    *w = (worker){p, index};
    rc = pthread_create(&p->ids[p->started], NULL, work, w);
    if (rc != 0) {
        free(w);
        return wf_fail_errno(err, rc, "lower \"threads\"", "starting thread %u of %u", index + 1,
                             p->threads);
    }
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
    (*p)->ending = true;
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
    p->ranges = (uint32_t)((n + p->share - 1) / p->share);
    atomic_store(&p->left, p->threads - 1);
    publish(p);
    do_range(p, 0);
    await_all(p);
}
