/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/cache_line.c */
#include "common/base/cache_line.h"
#include "common/base/cc.h"
#include "common/base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { ROUNDS = 21, TURNS = 1000 /* of a round: there and back */ };

typedef struct line {
    WF_ALIGNED(64) _Atomic uint32_t turn; /* odd: the other thread's */
    WF_ALIGNED(64) int processor;
} line;

static void bind_to(int processor)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((unsigned)processor, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void *send_back(void *arg)
{
    line *l = arg;

    bind_to(l->processor);
    for (uint32_t i = 0; i < ROUNDS * TURNS; i++) {
        while (atomic_load_explicit(&l->turn, memory_order_acquire) != 2 * i + 1)
            continue;
        atomic_store_explicit(&l->turn, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t measure(line *l)
{
    int64_t rounds[ROUNDS];
    uint32_t turn = 0;

    for (int r = 0; r < ROUNDS; r++) {
        int64_t began_ns = wf_now_ns();

        for (int i = 0; i < TURNS; i++, turn += 2) {
            atomic_store_explicit(&l->turn, turn + 1, memory_order_release);
            while (atomic_load_explicit(&l->turn, memory_order_acquire) != turn + 2)
                continue;
        }
        rounds[r] = (wf_now_ns() - began_ns) / TURNS;
    }
    qsort(rounds, ROUNDS, sizeof *rounds, by_value);
    return rounds[ROUNDS / 2];
}

/* The first two processors of a set; false if it has not two. */
static bool find_two(const cpu_set_t *set, int two[2])
{
    int n = 0;

    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET((unsigned)i, set))
            two[n++] = i;
    return n == 2;
}

int64_t wf_cache_line_ns(void)
{
    line l = {.turn = 0};
    cpu_set_t before;
    pthread_t other;
    int64_t ns = 0;
    int two[2];

    if (sched_getaffinity(0, sizeof before, &before) != 0 || !find_two(&before, two))
        return 0;
    l.processor = two[1];
    if (pthread_create(&other, NULL, send_back, &l) != 0)
        return 0;
    bind_to(two[0]);
    ns = measure(&l);
    pthread_join(other, NULL);
    (void)sched_setaffinity(0, sizeof before, &before);
    return ns;
}
