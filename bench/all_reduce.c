/* SPDX-License-Identifier: Apache-2.0 */
/* bench/all_reduce.c - steps of workers that add up their gradients (worker/exchange/ring.c)
 * between processes of one host, and copies through memory that as many processes share.
 *
 *     bench_all_reduce MEMBERS BYTES ROUNDS
 *
 * A step: each of MEMBERS processes gives a gradient of so many BYTES, and has the mean applied to
 * its variable by sgd. Alone: the same steps of as many processes that do not know of each other,
 * which is the update. Copy: each process copies so many bytes from its neighbour's part of shared
 * memory into its own, all at a time. Medians of ROUNDS, in ms, of the first process; steps, lone
 * steps and copies take turns. Prints the three numbers.
 */
#include "common/base/clock.h"
#include "common/base/disk.h"
#include "common/base/size.h"
#include "common/tensor/tensor.h"
#include "common/wire/net.h"
#include "common/wire/wait.h"
#include "common/wire/wires.h"
#include "worker/exchange/ring_state.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_MEMBERS = 64, MOST_ROUNDS = 1001, WARM = 3 };

/* What all processes share. */
typedef struct common {
    _Atomic uint32_t arrived; /* at barriers, in all */
} common;

static common *all;
static uint8_t *shared; /* [members][bytes] */
static uint32_t members;
static size_t bytes;
static int rounds;

static void must(wf_status rc, const wf_err *err)
{
    if (rc == WF_OK)
        return;
    fprintf(stderr, "bench_all_reduce: %s; %s\n", err->what, err->hint);
    kill(0, SIGKILL);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double of[], int n)
{
    qsort(of, (size_t)n, sizeof *of, by_size);
    return of[n / 2];
}

/* ---- one member ---- */

typedef struct side {
    wf_wires *wires;
    wf_net *net;
    wf_spin spin;
    wf_exchange *exchange;
    uint32_t step;
} side;

typedef struct start {
    Weft__Start start;
    Weft__Variable variable, *variables[1];
    Weft__Slice slice, *slices[1];
    Weft__Option rate, *options[1];
    Weft__View view;
    Weft__Member rows[MOST_MEMBERS], *list[MOST_MEMBERS];
    int64_t count;
} start;

static void make_start(start *s, uint32_t n, uint32_t first)
{
    memset(s, 0, sizeof *s);
    weft__start__init(&s->start);
    weft__variable__init(&s->variable);
    weft__slice__init(&s->slice);
    weft__option__init(&s->rate);
    weft__view__init(&s->view);
    s->count = (int64_t)(bytes / sizeof(float));
    s->variable.name = "w";
    s->variable.dtype = WF_F32;
    s->variable.kind = WF_KIND_TRAINABLE;
    s->variable.dims = &s->count;
    s->variable.n_dims = 1;
    s->slice.count = (uint64_t)s->count;
    s->rate.name = "learning_rate";
    s->rate.value = 0.01;
    s->variables[0] = &s->variable;
    s->slices[0] = &s->slice;
    s->options[0] = &s->rate;
    s->start.job = "bench";
    s->start.strategy = "multi_worker_mirrored";
    s->start.rule = "sgd";
    s->start.joins = true;
    s->start.variables = s->variables;
    s->start.slices = s->slices;
    s->start.options = s->options;
    s->start.n_variables = s->start.n_slices = s->start.n_options = 1;
    for (uint32_t i = 0; i < n; i++) {
        weft__member__init(&s->rows[i]);
        s->rows[i].role = WF_ROLE_WORKER;
        s->rows[i].index = first + i;
        s->rows[i].incarnation = 1 + first + i;
        s->list[i] = &s->rows[i];
    }
    s->view.members = s->list;
    s->view.n_members = n;
}

static void address_of(uint32_t i, char *text, size_t size)
{
    snprintf(text, size, "ipc:///tmp/weft-bench-all-reduce-%d-%u", (int)getpgrp(), i);
}

static void meet(side *s);

static void open_net(side *s, uint32_t me)
{
    wf_net_conf conf = wf_net_defaults();
    wf_transport *t = NULL;
    char address[96];
    wf_err err;

    conf.self = (wf_task){WF_ROLE_WORKER, me};
    conf.incarnation = 1 + me;
    conf.cluster = "bench";
    must(wf_wires_new(4, &s->wires, &err), &err);
    must(wf_net_new(&conf, &s->net, &err), &err);
    address_of(me, address, sizeof address);
    must(wf_wires_listen(s->wires, address, &t, &err), &err);
    wf_net_listen(s->net, &t);
    meet(NULL); /* all listen */
    for (uint32_t i = 0; i < me; i++) {
        wf_peer *peer = NULL;

        address_of(i, address, sizeof address);
        t = NULL;
        must(wf_wires_dial(s->wires, address, &t, &err), &err);
        must(wf_net_dial(s->net, (wf_task){WF_ROLE_WORKER, i}, address, &t, &peer, &err), &err);
    }
}

static void open_exchange(side *s, const start *from, uint32_t me)
{
    wf_err err;

    must(wf_exchange_open(&(wf_exchange_conf){.start = &from->start,
                                              .net = s->net,
                                              .incarnation = 1 + me,
                                              .disk = wf_disk_posix()},
                          &s->exchange, &err),
         &err);
    ((wf_ring *)s->exchange)->has_values = true; /* zeros will do */
    must(wf_exchange_on_view(s->exchange, &from->view, 1, &err), &err);
}

static void turn(side *s, bool waits)
{
    int64_t now_ns = wf_now_ns();
    bool heard = false;
    wf_event ev;
    wf_err err;

    wf_net_poll(s->net, now_ns);
    while (wf_net_event(s->net, now_ns, &ev)) {
        heard = true;
        if (ev.kind == WF_EV_UP)
            must(wf_exchange_on_up(s->exchange, ev.peer, &err), &err);
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        must(wf_exchange_on_message(s->exchange, ev.peer, ev.msg, now_ns, &err), &err);
        wf_net_free_msg(s->net, &ev.msg);
    }
    wf_net_flush(s->net, wf_now_ns());
    if (!heard && waits) {
        size_t n;
        wf_transport *const *t = wf_net_transports(s->net, &n);
        int64_t wait_ns = wf_net_deadline(s->net, now_ns) - now_ns;

        wf_wait(t, n, -1, WF_MAX(wait_ns, (int64_t)0) / WF_NS_PER_MS, &s->spin);
    }
}

static void wait_for_weights(side *s, uint32_t step)
{
    wf_err err;

    must(wf_exchange_want(s->exchange, (int)(step % WF_STEP_SETS), step, &err), &err);
    while (!wf_exchange_ready(s->exchange, (int)(step % WF_STEP_SETS)))
        turn(s, true);
}

/* All are here; links go on meanwhile. */
static void meet(side *s)
{
    static uint32_t so_far;

    so_far += members;
    atomic_fetch_add(&all->arrived, 1);
    while (atomic_load(&all->arrived) < so_far) {
        if (s)
            turn(s, false);
        sched_yield();
    }
}

/* From the gradients' being there to the weights of the next step. */
static double step_ms(side *s, side *links)
{
    uint32_t step = ++s->step;
    int64_t began_ns;
    wf_err err;

    wait_for_weights(s, step);
    wf_exchange_begin_step(s->exchange, step, 1);
    if (step <= WARM) /* pages are there, as kernels write them */
        memset(wf_exchange_gradient(s->exchange, step, 0), 0, bytes);
    meet(links);
    began_ns = wf_now_ns();
    must(wf_exchange_push(s->exchange, step, 0, &err), &err);
    must(wf_exchange_end_step(s->exchange, step, &err), &err);
    wf_net_flush(s->net, wf_now_ns());
    wait_for_weights(s, step + 1);
    return (double)(wf_now_ns() - began_ns) / 1e6;
}

static double copy_ms(side *s, uint32_t me)
{
    uint8_t *own = shared + me * bytes, *other = shared + (me + 1) % members * bytes;
    int64_t began_ns;

    meet(s);
    began_ns = wf_now_ns();
    memcpy(own, other, bytes);
    return (double)(wf_now_ns() - began_ns) / 1e6;
}

static int member(uint32_t me)
{
    static double steps[MOST_ROUNDS], alone[MOST_ROUNDS], copies[MOST_ROUNDS];
    static start together, lone;
    side s = {0}, l = {0};

    memset(shared + me * bytes, 1, bytes);
    make_start(&together, members, 0);
    make_start(&lone, 1, me);
    open_net(&s, me);
    open_exchange(&s, &together, me);
    l.net = s.net;
    open_exchange(&l, &lone, me);
    for (int i = -WARM; i < rounds; i++) {
        double a = step_ms(&s, &s), b = step_ms(&l, &s), c = copy_ms(&s, me);

        if (i >= 0) {
            steps[i] = a;
            alone[i] = b;
            copies[i] = c;
        }
    }
    meet(&s);
    if (me == 0)
        printf("%.6f %.6f %.6f\n", median(steps, rounds), median(alone, rounds),
               median(copies, rounds));
    wf_exchange_free(&l.exchange);
    wf_exchange_free(&s.exchange);
    wf_net_free(&s.net, 0);
    wf_wires_free(&s.wires);
    return 0;
}

/* ---- all of them ---- */

static void *share(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static int run_all(void)
{
    char address[96];
    int status, rc = 0;

    for (uint32_t i = 1; i < members; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(member(i));
        }
    rc = member(0);
    while (wait(&status) > 0)
        rc |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    for (uint32_t i = 0; i < members; i++) {
        address_of(i, address, sizeof address);
        unlink(address + strlen("ipc://"));
    }
    return rc;
}

int main(int argc, char *argv[])
{
    if (argc == 4) {
        members = (uint32_t)strtoul(argv[1], NULL, 10);
        bytes = strtoull(argv[2], NULL, 10) / 64 * 64;
        rounds = (int)strtol(argv[3], NULL, 10);
    }
    if (members < 2 || members > MOST_MEMBERS || bytes == 0 || bytes > 1u << 30 || rounds < 1 ||
        rounds > MOST_ROUNDS) {
        fprintf(stderr,
                "usage: bench_all_reduce MEMBERS BYTES ROUNDS, 2 to %d, 64 to 2^30, 1 to %d\n",
                MOST_MEMBERS, MOST_ROUNDS);
        return 2;
    }
    setpgid(0, 0);
    all = share(sizeof *all);
    shared = share(members * bytes);
    if (!all || !shared) {
        fprintf(stderr, "bench_all_reduce: no memory for %u times %zu bytes\n", members, bytes);
        return 1;
    }
    return run_all();
}
