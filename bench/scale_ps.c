/* SPDX-License-Identifier: Apache-2.0 */
/* bench/scale_ps.c - what a ps costs as the number of its workers grows: a real weft-ps, and N
 * light clients (bench/ps_stage.h) that speak to it over tcp on this host.
 *
 *     bench_scale_ps WEFT_PS [N ...]
 *
 * A model of 64 KiB in 4 slices, sgd. First nobody does anything: what signs of life cost a second.
 * Then paced: all clients together make 200 steps a second, so that latency is the ps's own and not
 * that of a queue. Then each client begins a step as soon as its last has ended: the rate.
 * Processor time is that of all threads of the ps, ZeroMQ's and the spinning for the next message
 * included; for a push it is what goes beyond the idle one. Beside it stands this process's own,
 * for N clients with a socket each may cost more than one ps.
 */
#include "bench/ps_stage.h"
#include "common/base/clock.h"
#include "common/base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SLICES = 4, ELEMENTS = 4 << 10, PACE = 200, IDLE_S = 3, PACED_S = 4, FLAT_OUT_S = 4 };

typedef struct figures {
    double pushes_per_s, us_per_push, own_us, median_us, p99_us;
} figures;

/* A stretch of time, of processor time of the ps, and of ours. */
typedef struct stretch {
    int64_t wall_ns, ps_ns, own_ns;
} stretch;

static stretch clocks(const stage *s)
{
    struct timespec own;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    return (stretch){wf_now_ns(), stage_ps_ns(s), own.tv_sec * WF_NS_PER_S + own.tv_nsec};
}

static stretch since(const stage *s, stretch then)
{
    stretch now = clocks(s);

    return (stretch){now.wall_ns - then.wall_ns, now.ps_ns - then.ps_ns, now.own_ns - then.own_ns};
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* `idle`: processor time of the ps for a second in which nothing is asked. */
static figures look(stage *s, stretch took, double idle)
{
    double pushes = (double)WF_MAX(s->pushes, UINT64_C(1)), seconds = (double)took.wall_ns / 1e9;
    figures f = {.pushes_per_s = pushes / seconds,
                 .us_per_push = ((double)took.ps_ns / 1e3 - idle * seconds * 1e6) / pushes,
                 .own_us = (double)took.own_ns / 1e3 / pushes};

    qsort(s->pull_ns, s->n_pulls, sizeof *s->pull_ns, by_size);
    if (s->n_pulls == 0)
        return f;
    f.median_us = (double)s->pull_ns[s->n_pulls / 2] / 1e3;
    f.p99_us = (double)s->pull_ns[s->n_pulls * 99 / 100] / 1e3;
    return f;
}

static double idle(stage *s, int64_t seconds)
{
    stretch began = clocks(s), took;

    do {
        stage_turn(s);
        took = since(s, began);
    } while (took.wall_ns < seconds * WF_NS_PER_S);
    return (double)took.ps_ns / (double)took.wall_ns;
}

static figures paced(stage *s, double idle_part)
{
    stretch began = clocks(s);
    uint64_t sent = 0;
    int64_t past_ns;

    stage_measure(s);
    while ((past_ns = wf_now_ns() - began.wall_ns) < PACED_S * WF_NS_PER_S) {
        stage_client *c = &s->clients[sent % s->n];

        if (sent <= (uint64_t)past_ns * PACE / WF_NS_PER_S && c->state == STAGE_IDLE) {
            stage_step(s, c);
            sent++;
        }
        stage_turn(s);
    }
    return look(s, since(s, began), idle_part);
}

static figures flat_out(stage *s, double idle_part)
{
    stretch began = clocks(s);

    stage_measure(s);
    while (wf_now_ns() - began.wall_ns < FLAT_OUT_S * WF_NS_PER_S) {
        for (uint32_t i = 0; i < s->n; i++)
            if (s->clients[i].state == STAGE_IDLE)
                stage_step(s, &s->clients[i]);
        stage_turn(s);
    }
    return look(s, since(s, began), idle_part);
}

/* A view that nobody leaves, from its sending to its acknowledgement. */
static double view_ms(stage *s)
{
    int64_t began_ns = wf_now_ns();

    stage_view(s, 2, s->n);
    return (double)(wf_now_ns() - began_ns) / 1e6;
}

static void measure(const char *weft_ps, uint32_t n)
{
    stage_conf conf = {.weft_ps = weft_ps,
                       .rule = "sgd",
                       .clients = n,
                       .threads = 1,
                       .slices = SLICES,
                       .elements = ELEMENTS,
                       .pulls = true};
    size_t empty, full;
    figures slow, fast;
    double quiet, view;
    stage s;

    stage_begin(&s, &conf);
    empty = stage_ps_bytes(&s);
    stage_enter(&s);
    idle(&s, 1); /* links settle */
    quiet = idle(&s, IDLE_S);
    slow = paced(&s, quiet);
    full = stage_ps_bytes(&s);
    idle(&s, 1);
    view = view_ms(&s);
    fast = flat_out(&s, quiet);
    printf("%7u  %7.1f  %7.0f %7.0f %7.0f  %8.0f %7.0f %7.0f %9.0f  %6.1f %8.0f %8.1f  %5.2f\n", n,
           1e3 * quiet, slow.us_per_push, slow.median_us, slow.p99_us, fast.pushes_per_s,
           fast.us_per_push, fast.own_us, fast.median_us, (double)empty / (1 << 20),
           (double)(full - WF_MIN(full, empty)) / 1024 / n, (double)stage_ps_bytes(&s) / (1 << 20),
           view);
    fflush(stdout);
    stage_end(&s);
}

int main(int argc, char *argv[])
{
    static const uint32_t usual[] = {1, 10, 50, 100, 250, 500};

    if (argc < 2) {
        fprintf(stderr, "usage: bench_scale_ps WEFT_PS [N ...]\n");
        return 2;
    }
    printf("            idle     200 steps a second in all             as fast as it goes         "
           "    memory of the ps, MiB    view\n"
           "clients     ms/s  us/push  median     p99  pushes/s us/push     own    median   "
           "empty KiB each     then     ms\n");
    for (size_t i = 0; argc < 3 && i < WF_COUNT(usual); i++)
        measure(argv[1], usual[i]);
    for (int i = 2; i < argc; i++)
        measure(argv[1], (uint32_t)WF_MAX(strtoul(argv[i], NULL, 10), 1UL));
    return 0;
}
