/* SPDX-License-Identifier: Apache-2.0 */
/* bench/in_step.c - what a machine leaves to two workers that make each step together, without
 * processes, messages or a master: two threads on two processors train the MLP 784-128-10 with
 * batch 128 and adam, by the kernels and update rules of a worker.
 *
 *   bench_in_step [TURNS [STEPS]]
 *
 * In turns of so many steps each: one thread; both, each for itself; both, where each waits after
 * its gradients until the other has its own, and nothing is exchanged; and both with the mean of
 * their gradients, as worker/exchange/ring.c makes it: a thread copies its gradients to where the
 * other reads them, raises a flag, waits for the other's, and both make the same update; and both
 * where each updates half of the weights and takes the other half from the other thread, which a
 * worker does not do: each would have slots that the other lacks. Two threads go at the pace of the
 * slower. Prints the medians of examples/s, of their multiples of the one thread's, and of the time
 * that a step waits.
 */
#include "common/base/cc.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/base/subnormal.h"
#include "common/exec/exec.h"
#include "common/optim/rule.h"
#include "mlp_graph.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 128,
    LINE = 64,      /* bytes; as many floats begin a variable in an array of all of them */
    ARRAY = 102016, /* floats: all variables */
    HALF = ARRAY / 2 / LINE * LINE,
    PIECE = 4096, /* floats whose mean stays in the first cache, as in a worker */
    SLOTS = 2,    /* adam's */
    SENT = 2,     /* arrays in turns: the other may still read the last step's */
    WARM = 20,
    TURNS_MOST = 1000,
    STEPS_MOST = 1000000,
};

typedef enum how { ALONE, WAITING, EXCHANGING, HALVING } how;

static const struct way {
    const char *name;
    how how;
    int n;
} ways[] = {{"one", ALONE, 1},
            {"two, each for itself", ALONE, 2},
            {"two in step, nothing exchanged", WAITING, 2},
            {"two in step, gradients exchanged", EXCHANGING, 2},
            {"two in step, each updates half", HALVING, 2}};

typedef struct side {
    _Alignas(2 * LINE) _Atomic uint64_t given;   /* the last step whose gradients are there */
    _Alignas(2 * LINE) _Atomic uint64_t updated; /* and whose half of the weights is */
    _Alignas(2 * LINE) int processor;
    const struct side *other;
    how how;
    wf_plan *plan;
    wf_opt opt;
    float *x, *weights, *gradients, *slots[SLOTS], *sent[SENT], loss;
    int64_t *labels;
    uint64_t updates;
    int64_t took_ns, waited_ns; /* of a turn */
} side;

static side sides[2];
static const float *records; /* [MLP_RECORDS][MLP_IN] */
static pthread_barrier_t together;

static void must(bool fine, const char *why)
{
    if (fine)
        return;
    fprintf(stderr, "bench_in_step: %s\n", why);
    exit(1);
}

static void *new_array(size_t bytes)
{
    void *a = aligned_alloc(4096, wf_align_up(bytes, 4096));

    must(a, "memory is short");
    memset(a, 0, bytes);
    return a;
}

/* ---- a step ---- */

static void read_batch(side *s, uint64_t step)
{
    for (uint64_t i = 0; i < BATCH; i++) {
        wf_rng_key key = {1, (uint64_t)s->processor};
        uint64_t at = wf_rng_below(key, step * BATCH + i, MLP_RECORDS);

        memcpy(s->x + i * MLP_IN, records + at * MLP_IN, MLP_IN * sizeof(float));
        s->labels[i] = (int64_t)(at % MLP_OUT);
    }
}

WF_MULTIVERSION static void mean(const float *restrict x, const float *restrict y, uint64_t n,
                                 float *restrict to)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = x[i] * 0.5f + y[i] * 0.5f;
}

/* Elements [at, end) by the own gradients, or the mean of them and others'. */
static void update(side *s, uint64_t at, uint64_t end, const float *own, const float *others)
{
    float means[PIECE] WF_ALIGNED(LINE);

    for (uint64_t n; at < end; at += n) {
        float *slots[WF_MAX_SLOTS] = {s->slots[0] + at, s->slots[1] + at};

        n = WF_MIN(end - at, (uint64_t)PIECE);
        if (others)
            mean(own + at, others + at, n, means);
        wf_opt_apply(&s->opt, s->updates, n, s->weights + at, others ? means : own + at, slots);
    }
}

static void await_other(side *s, const _Atomic uint64_t *of, uint64_t step)
{
    int64_t from_ns = wf_now_ns();

    while (atomic_load_explicit(of, memory_order_acquire) < step)
        ;
    s->waited_ns += wf_now_ns() - from_ns;
}

/* Gradients lie where the other reads them. */
static void update_half(side *s, uint64_t step)
{
    uint64_t from = s == &sides[0] ? 0 : HALF, to = s == &sides[0] ? HALF : ARRAY;
    uint64_t others = s == &sides[0] ? HALF : 0, n = ARRAY - (to - from);

    update(s, from, to, s->sent[step % SENT], s->other->sent[step % SENT]);
    atomic_store_explicit(&s->updated, step, memory_order_release);
    await_other(s, &s->other->updated, step);
    memcpy(s->weights + others, s->other->weights + others, n * sizeof(float));
}

static void bind_gradients(side *s, float *to)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < MLP_VARIABLES; i++) {
        wf_plan_bind_output(s->plan, 1 + i, to + at);
        at += wf_align_up((uint64_t)wf_plan_output(s->plan, 1 + i)->elems, LINE / sizeof(float));
    }
    must(at <= ARRAY, "the variables are larger than their arrays");
}

static void make_step(side *s, uint64_t step)
{
    uint32_t slot = step % SENT;
    wf_err err;

    read_batch(s, step);
    bind_gradients(s, s->how == HALVING ? s->sent[slot] : s->gradients);
    must(wf_plan_run(s->plan, &(wf_step_key){.seed = 1}, NULL, NULL, &err) == WF_OK, err.what);
    s->updates++;
    if (s->how == EXCHANGING)
        memcpy(s->sent[slot], s->gradients, ARRAY * sizeof(float));
    if (s->how != ALONE) {
        atomic_store_explicit(&s->given, step, memory_order_release);
        await_other(s, &s->other->given, step);
    }
    if (s->how == HALVING)
        update_half(s, step);
    else
        update(s, 0, ARRAY, s->gradients, s->how == EXCHANGING ? s->other->sent[slot] : NULL);
}

/* ---- turns ---- */

static int64_t steps;

static void *make_steps(void *arg)
{
    side *s = arg;
    int64_t from_ns;
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((size_t)s->processor, &one);
    must(sched_setaffinity(0, sizeof one, &one) == 0, "a thread cannot stay on a processor");
    wf_flush_subnormals();
    for (uint64_t k = 1; k <= WARM; k++)
        make_step(s, k);
    s->waited_ns = 0;
    pthread_barrier_wait(&together);
    from_ns = wf_now_ns();
    for (uint64_t k = WARM + 1; k <= WARM + (uint64_t)steps; k++)
        make_step(s, k);
    s->took_ns = wf_now_ns() - from_ns;
    return NULL;
}

typedef struct figures {
    double rates[TURNS_MOST], multiples[TURNS_MOST], waits[TURNS_MOST];
} figures;

static void take_turn(const struct way *way, int turn, figures *f)
{
    int64_t took_ns = 0, waited_ns = 0;
    pthread_t threads[2];

    must(pthread_barrier_init(&together, NULL, (unsigned)way->n) == 0, "there is no barrier");
    for (int i = 0; i < way->n; i++) {
        sides[i].how = way->how;
        atomic_store(&sides[i].given, 0);
        atomic_store(&sides[i].updated, 0);
    }
    for (int i = 0; i < way->n; i++)
        must(pthread_create(&threads[i], NULL, make_steps, &sides[i]) == 0, "there is no thread");
    for (int i = 0; i < way->n; i++) {
        pthread_join(threads[i], NULL);
        took_ns = WF_MAX(took_ns, sides[i].took_ns);
        waited_ns += sides[i].waited_ns;
    }
    pthread_barrier_destroy(&together);
    f->rates[turn] = (double)(way->n * steps * BATCH) * 1e9 / (double)took_ns;
    f->waits[turn] = (double)waited_ns / 1e3 / (double)(way->n * steps);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double of[], int n)
{
    qsort(of, (size_t)n, sizeof of[0], by_size);
    return of[n / 2];
}

/* ---- beginning ---- */

/* Each variable's weights in the array of all, behind those before. */
static void bind(side *s)
{
    uint64_t at = 0;

    wf_plan_bind_input(s->plan, 0, s->x);
    wf_plan_bind_input(s->plan, 1, s->labels);
    wf_plan_bind_output(s->plan, 0, &s->loss);
    for (uint32_t i = 0; i < MLP_VARIABLES; i++) {
        wf_plan_bind_input(s->plan, 2 + i, s->weights + at);
        at += wf_align_up((uint64_t)wf_plan_input(s->plan, 2 + i)->elems, LINE / sizeof(float));
    }
}

static void open_side(side *s, int processor, const side *other)
{
    float **const arrays[] = {&s->weights,  &s->gradients, &s->slots[0],
                              &s->slots[1], &s->sent[0],   &s->sent[1]};
    wf_graph *g = NULL;
    wf_err err;

    s->processor = processor;
    s->other = other;
    must(mlp_graph_make(BATCH, &g, &err) == WF_OK, err.what);
    must(wf_plan_new(g, &(wf_plan_options){0}, &s->plan, &err) == WF_OK, err.what);
    must(wf_opt_init(&s->opt, "adam", 0, NULL, NULL, &err) == WF_OK, err.what);
    wf_graph_free(&g);
    s->x = new_array((size_t)BATCH * MLP_IN * sizeof(float));
    s->labels = new_array(BATCH * sizeof(int64_t));
    for (size_t k = 0; k < WF_COUNT(arrays); k++)
        *arrays[k] = new_array(ARRAY * sizeof(float));
    for (uint64_t i = 0; i < ARRAY; i++)
        s->weights[i] = (wf_rng_f32((wf_rng_key){1, 0}, i) - 0.5f) * 0.1f;
    bind(s);
}

static float *make_records(void)
{
    size_t n = (size_t)MLP_RECORDS * MLP_IN;
    float *of = new_array(n * sizeof(float));

    for (size_t i = 0; i < n; i++)
        of[i] = (float)(i * 31 % 256) / 255.0f;
    return of;
}

static void open_sides(void)
{
    cpu_set_t all;
    int n = 0;

    must(sched_getaffinity(0, sizeof all, &all) == 0, "the processors are not known");
    records = make_records();
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET((size_t)i, &all)) {
            open_side(&sides[n], i, &sides[1 - n]);
            n++;
        }
    must(n == 2, "two processors are needed");
}

int main(int argc, char **argv)
{
    static figures f[WF_COUNT(ways)];
    long turns = argc > 1 ? strtol(argv[1], NULL, 10) : 9;

    steps = argc > 2 ? strtol(argv[2], NULL, 10) : 1000;
    must(turns >= 1 && turns <= TURNS_MOST && steps >= 1 && steps <= STEPS_MOST,
         "usage: bench_in_step [TURNS (1 to 1000) [STEPS (1 to 1000000)]]");
    open_sides();
    for (int t = 0; t < turns; t++)
        for (size_t i = 0; i < WF_COUNT(ways); i++) {
            take_turn(&ways[i], t, &f[i]);
            f[i].multiples[t] = f[i].rates[t] / f[0].rates[t];
        }
    for (size_t i = 0; i < WF_COUNT(ways); i++)
        printf("%-34s %7.0f examples/s, %.2f of one's, waits %.0f us a step\n", ways[i].name,
               median(f[i].rates, (int)turns), median(f[i].multiples, (int)turns),
               median(f[i].waits, (int)turns));
    return 0;
}
