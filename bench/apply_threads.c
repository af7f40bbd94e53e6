/* SPDX-License-Identifier: Apache-2.0 */
/* bench/apply_threads.c - parameters that a ps updates a second, by its `threads`: a real weft-ps
 * with 200 MiB of weights in slices of 4 MiB, adam, and one client that pushes all of them.
 *
 *     bench_apply_threads WEFT_PS [THREADS ...]
 *
 * The pushes come over tcp from this process, whose threads want processors too. So the second
 * figure is what the updates themselves do: the same rule and chunks on the same threads, without
 * any wire.
 */
#include "bench/ps_stage.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/kernels/pool.h"
#include "ps/slice.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLICES = 50, ELEMENTS = 1 << 20, CHUNK = 16 << 10, STEPS = 8 };

static double over_the_wire(const char *weft_ps, uint32_t threads)
{
    stage_conf conf = {.weft_ps = weft_ps,
                       .rule = "adam",
                       .clients = 1,
                       .threads = threads,
                       .slices = SLICES,
                       .elements = ELEMENTS};
    int64_t began_ns = 0;
    double took_s;
    stage s;

    stage_begin(&s, &conf);
    stage_enter(&s);
    for (uint32_t step = 0; step <= STEPS; step++) { /* the first touches fresh memory */
        if (step == 1)
            began_ns = wf_now_ns();
        stage_step(&s, &s.clients[0]);
        while (s.clients[0].state != STAGE_IDLE)
            stage_turn(&s);
    }
    took_s = (double)(wf_now_ns() - began_ns) / 1e9;
    stage_end(&s);
    return (double)STEPS * SLICES * ELEMENTS / took_s;
}

typedef struct work {
    wf_slice_update update;
    const wf_opt *opt;
} work;

static void update_chunks(void *arg, int64_t begin, int64_t end)
{
    const work *w = arg;

    for (int64_t k = begin; k < end; k++)
        w->update.slice->ops->apply_range(&w->update, w->opt, (uint64_t)k * CHUNK,
                                          (uint64_t)(k + 1) * CHUNK);
}

static void must(wf_status rc, const wf_err *err)
{
    if (rc == WF_OK)
        return;
    fprintf(stderr, "bench_apply_threads: %s\n", err->what);
    exit(1);
}

static double updates_alone(uint32_t threads)
{
    float *gradient = calloc(ELEMENTS, sizeof *gradient);
    wf_slice *slices[SLICES] = {NULL};
    wf_pool *pool = NULL;
    int64_t began_ns = 0, took_ns;
    wf_opt opt;
    wf_err err;

    wf_assert(gradient);
    must(wf_opt_init(&opt, "adam", 0, NULL, NULL, &err), &err);
    must(threads > 1 ? wf_pool_new(threads, &pool, &err) : WF_OK, &err);
    for (uint32_t i = 0; i < SLICES; i++) {
        wf_slice like = {.id = i, .count = ELEMENTS, .trainable = true};

        must(wf_slice_new(&wf_slice_dense, &like, &opt, &slices[i], &err), &err);
    }
    for (uint32_t step = 0; step <= STEPS; step++) {
        if (step == 1)
            began_ns = wf_now_ns();
        for (uint32_t i = 0; i < SLICES; i++) {
            wf_slice_part part = {.values = gradient, .n = ELEMENTS};
            work w = {.opt = &opt};

            must(wf_slice_apply_begin(slices[i], &part, &w.update, &err), &err);
            wf_pool_for(pool, ELEMENTS / CHUNK, 1, update_chunks, &w);
            slices[i]->ops->apply_end(&w.update);
        }
    }
    took_ns = wf_now_ns() - began_ns;
    for (uint32_t i = 0; i < SLICES; i++)
        wf_slice_free(&slices[i]);
    wf_pool_free(&pool);
    free(gradient);
    return (double)STEPS * SLICES * ELEMENTS / ((double)took_ns / 1e9);
}

static void measure(const char *weft_ps, uint32_t threads)
{
    printf("%7u  %17.0f  %14.0f\n", threads, updates_alone(threads) / 1e6,
           over_the_wire(weft_ps, threads) / 1e6);
    fflush(stdout);
}

int main(int argc, char *argv[])
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_apply_threads WEFT_PS [THREADS ...]\n");
        return 2;
    }
    printf("million parameters a second, adam\nthreads  the updates alone  pushed over tcp\n");
    for (uint32_t t = 1; argc < 3 && t <= 2; t++)
        measure(argv[1], t);
    for (int i = 2; i < argc; i++)
        measure(argv[1], (uint32_t)WF_MAX(strtoul(argv[i], NULL, 10), 1UL));
    return 0;
}
