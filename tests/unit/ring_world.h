/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ring_world.h - three workers that add up their gradients over nets in memory, with
 * variables on the host or on a GPU, and what their weights have to be, in double precision. For
 * the tests of exchange/ring. */
#ifndef WF_TESTS_RING_WORLD_H
#define WF_TESTS_RING_WORLD_H

#include "common/base/size.h"
#include "common/ckpt/initial.h"
#include "common/ckpt/shard.h"
#include "common/wire/parts.h"
#include "tests/cuda/host.h"
#include "tests/kit/memdisk.h"
#include "tests/kit/memnet.h"
#include "worker/exchange/ring_state.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The kernel is longer than a bucket. */
enum { WORKERS = 3, N = 4, KERNEL = WF_RING_BUCKET + 12345, MEAN = 7, TABLE = 5, BIAS = 3 };
enum { GENERATION = 4, MS = 1000000 };

static const uint64_t counts[N] = {KERNEL, MEAN, TABLE, BIAS};

typedef struct worker {
    wf_net *net;
    wf_exchange *exchange;
    wf_peer *peers[WORKERS]; /* that are up */
    wf_status says;          /* to the messages so far: after an error it takes none, */
    wf_err why;              /* why */
    uint32_t step;           /* its own */
} worker;

typedef struct world {
    wf_memnet nets;
    wf_memdisk *disk;
    worker workers[WORKERS];
    Weft__Start start;
    Weft__Option options[2], *option_list[2];
    Weft__Variable rows[N], *list[N];
    Weft__Slice slices[N], *slice_list[N];
    Weft__View view;
    Weft__Member members[WORKERS], *member_list[WORKERS];
    char addresses[WORKERS][32];
    int64_t dims[N], now_ns;
    bool are_apart;        /* each on a host of its own: they add up in a ring, else directly */
    bool on_gpu[WORKERS];  /* its variables are */
    bool done_is_lost;     /* nobody hears that another has applied a step */
    bool values_are_lost;  /* worker 1 does not get them */
    bool weights_are_lost; /* worker 0 does not hear of what others have updated */
    bool given_is_lost;    /* worker 1 does not hear that another has given its part */
} world;

static world w;
/* The weights and their momentum by double precision. */
static double want[N][KERNEL], want_momentum[N][KERNEL];

static inline float first_value(uint32_t variable, uint64_t i)
{
    return (float)(variable + 1) * 0.5F + (float)(i % 97) * 0.01F;
}

static inline float gradient_value(uint32_t who, uint32_t variable, uint32_t step, uint64_t i)
{
    return (float)((i * 7 + step * 13 + variable + who * 5) % 31) * 0.02F - 0.3F;
}

/* Whether a variable's sums travel in halves. */
static inline wf_coding coding_of(uint32_t variable)
{
    return (wf_coding)w.rows[variable].push_coding;
}

static inline void write_first_values(void)
{
    wf_disk *disk = wf_memdisk_disk(w.disk);
    wf_shard_tensor tensors[N];
    wf_shard_writer *writer = NULL;
    char sum[WF_SUM_TEXT];
    uint64_t bytes;
    wf_err err;

    for (uint32_t v = 0; v < N; v++)
        tensors[v] = (wf_shard_tensor){
            .name = w.rows[v].name, .dtype = WF_F32, .rank = 1, .dims = {w.dims[v]}};
    assert_int_equal(wf_disk_make_dirs(disk, "/ckpt/j", &err), WF_OK);
    assert_int_equal(
        wf_shard_create(disk, "/ckpt/j/" WF_INITIAL_NAME, tensors, N, NULL, 0, &writer, &err),
        WF_OK);
    for (uint32_t v = 0; v < N; v++)
        for (uint64_t i = 0; i < counts[v]; i++) {
            float value = first_value(v, i);

            want[v][i] = value;
            assert_int_equal(wf_shard_write(writer, &value, sizeof value, &err), WF_OK);
        }
    assert_int_equal(wf_shard_finish(&writer, &bytes, sum, &err), WF_OK);
}

static inline void make_start(void)
{
    static const uint32_t kinds[N] = {WF_KIND_TRAINABLE, WF_KIND_STATISTIC, WF_KIND_FROZEN,
                                      WF_KIND_TRAINABLE};
    static char *const names[N] = {"kernel", "mean", "table", "bias"};

    weft__start__init(&w.start);
    weft__view__init(&w.view);
    for (uint32_t v = 0; v < N; v++) {
        weft__variable__init(&w.rows[v]);
        w.dims[v] = (int64_t)counts[v];
        w.rows[v].name = names[v];
        w.rows[v].dtype = WF_F32;
        w.rows[v].kind = kinds[v];
        w.rows[v].momentum = v == 1 ? 0.9 : 0;
        w.rows[v].dims = &w.dims[v];
        w.rows[v].n_dims = 1;
        w.list[v] = &w.rows[v];
        weft__slice__init(&w.slices[v]);
        w.slices[v].variable = v;
        w.slices[v].count = counts[v];
        w.slice_list[v] = &w.slices[v];
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        weft__member__init(&w.members[i]);
        w.members[i].role = WF_ROLE_WORKER;
        w.members[i].index = 10 + i;
        w.members[i].incarnation = 100 + i;
        snprintf(w.addresses[i], sizeof w.addresses[i], "tcp://host-%u:1", w.are_apart ? i : 0);
        w.members[i].address = w.addresses[i];
        w.member_list[WORKERS - 1 - i] = &w.members[i];
    }
    w.view.members = w.member_list;
    w.view.n_members = WORKERS;
    w.start.job = "j";
    w.start.checkpoint_dir = "/ckpt";
    w.start.strategy = "multi_worker_mirrored";
    for (int i = 0; i < 2; i++) {
        weft__option__init(&w.options[i]);
        w.options[i].name = i ? "momentum" : "learning_rate";
        w.options[i].value = i ? 0.5 : 0.25;
        w.option_list[i] = &w.options[i];
    }
    w.start.rule = "sgd";
    w.start.options = w.option_list;
    w.start.n_options = 2;
    w.start.initial = true;
    w.start.learning_rate = 0.25;
    w.start.variables = w.list;
    w.start.n_variables = N;
    w.start.slices = w.slice_list;
    w.start.n_slices = N;
}

static inline void open_exchange(uint32_t i, bool joins)
{
    const wf_device *gpu = w.on_gpu[i] ? cuda_host_gpu((int)(i % 2)) : NULL;
    wf_err err;

    w.start.joins = joins;
    assert_int_equal(
        wf_exchange_open(&(wf_exchange_conf){.start = &w.start,
                                             .net = w.workers[i].net,
                                             .generation = GENERATION,
                                             .checksums = true,
                                             .incarnation = 100 + i,
                                             .disk = wf_memdisk_disk(w.disk),
                                             .place = {.device = gpu,
                                                       .updates = gpu ? wf_updates_of(gpu) : NULL}},
                         &w.workers[i].exchange, &err),
        WF_OK);
}

static inline void open_worker(uint32_t i)
{
    wf_task self = {WF_ROLE_WORKER, 10 + i};
    wf_net_conf conf = wf_memnet_conf(&w.nets, self, 100 + i);
    char address[32];

    w.workers[i].net = wf_memnet_new(&conf);
    snprintf(address, sizeof address, "mem://worker-%u", i);
    wf_memnet_listen(&w.nets, w.workers[i].net, address);
    for (uint32_t k = 0; k < i; k++) {
        snprintf(address, sizeof address, "mem://worker-%u", k);
        wf_memnet_dial(&w.nets, w.workers[i].net, (wf_task){WF_ROLE_WORKER, 10 + k}, address);
    }
    open_exchange(i, false);
}

/* Tells a view of the workers in `members`, a bit each, to `to`. */
static inline void tell_one(uint32_t to, uint32_t number, uint32_t members)
{
    worker *it = &w.workers[to];

    w.view.n_members = 0;
    for (uint32_t i = WORKERS; i > 0; i--)
        if (members >> (i - 1) & 1)
            w.member_list[w.view.n_members++] = &w.members[i - 1];
    assert_int_equal(wf_exchange_on_view(it->exchange, &w.view, number, NULL), WF_OK);
    for (uint32_t i = 0; i < WORKERS; i++)
        if (it->peers[i])
            assert_int_equal(wf_exchange_on_up(it->exchange, it->peers[i], NULL), WF_OK);
}

static inline void tell(uint32_t number, uint32_t members)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        if (members >> i & 1)
            tell_one(i, number, members);
}

/* on_gpus: whose variables are on one, a bit for each worker. */
static inline int begin_at(bool apart, wf_coding coding, bool divides, uint32_t on_gpus)
{
    w = (world){.disk = wf_memdisk_new(), .are_apart = apart};
    for (uint32_t i = 0; i < WORKERS; i++)
        w.on_gpu[i] = on_gpus >> i & 1;
    memset(want_momentum, 0, sizeof want_momentum);
    wf_memnet_init(&w.nets, "ring");
    make_start();
    w.rows[0].push_coding = coding;
    w.start.shard_optimizer = divides;
    write_first_values();
    for (uint32_t i = 0; i < WORKERS; i++)
        open_worker(i);
    tell(1, (1u << WORKERS) - 1);
    return 0;
}

/* On one host. */
static inline int begin_as(wf_coding coding, bool divides, uint32_t on_gpus)
{
    return begin_at(false, coding, divides, on_gpus);
}

static inline int begin(void **state)
{
    (void)state;
    return begin_as(WF_CODING_F32, false, 0);
}

static inline int begin_apart(void **state)
{
    (void)state;
    return begin_at(true, WF_CODING_F32, false, 0);
}

static inline int begin_gpus(void **state)
{
    (void)state;
    return begin_as(WF_CODING_F32, false, 7);
}

static inline int begin_gpus_apart(void **state)
{
    (void)state;
    return begin_at(true, WF_CODING_F32, false, 7);
}

/* The second has a GPU. */
static inline int begin_one_gpu(void **state)
{
    (void)state;
    return begin_as(WF_CODING_F32, false, 2);
}

/* Each has the optimizer's state of a share. */
static inline int begin_divided(void **state)
{
    (void)state;
    return begin_as(WF_CODING_F32, true, 0);
}

static inline int begin_divided_apart(void **state)
{
    (void)state;
    return begin_at(true, WF_CODING_F32, true, 0);
}

static inline int begin_divided_gpus(void **state)
{
    (void)state;
    return begin_as(WF_CODING_F32, true, 7);
}

static inline int begin_bf16(void **state)
{
    (void)state;
    return begin_as(WF_CODING_BF16, false, 0);
}

static inline int begin_bf16_apart(void **state)
{
    (void)state;
    return begin_at(true, WF_CODING_BF16, false, 0);
}

static inline int begin_f16_apart(void **state)
{
    (void)state;
    return begin_at(true, WF_CODING_F16, false, 0);
}

static inline int begin_f16(void **state)
{
    (void)state;
    return begin_as(WF_CODING_F16, false, 0);
}

static inline int end(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORKERS; i++) {
        wf_exchange_free(&w.workers[i].exchange);
        wf_net_free(&w.workers[i].net, 0);
    }
    wf_memnet_close(&w.nets);
    wf_memdisk_free(&w.disk);
    return 0;
}

/* As a process that has just begun: it has no values. */
static inline void open_again(uint32_t i)
{
    wf_exchange_free(&w.workers[i].exchange);
    open_exchange(i, true);
    w.workers[i].step = 0;
}

static inline bool is_lost(const worker *to, uint16_t kind)
{
    return (w.done_is_lost && kind == WF_RING_DONE) ||
           (w.values_are_lost && kind == WF_RING_VALUES && to == &w.workers[1]) ||
           (w.given_is_lost && kind == WF_RING_GIVEN && to == &w.workers[1]) ||
           (w.weights_are_lost && kind == WF_RING_WEIGHTS && to == &w.workers[0]);
}

static inline void run_worker(worker *it)
{
    wf_event ev;

    wf_net_poll(it->net, w.now_ns);
    while (wf_net_event(it->net, w.now_ns, &ev)) {
        if (ev.kind == WF_EV_UP) {
            assert_int_equal(wf_exchange_on_up(it->exchange, ev.peer, NULL), WF_OK);
            it->peers[ev.peer->task.index - 10] = ev.peer;
        }
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        if (it->says == WF_OK && !is_lost(it, ev.msg->head.kind))
            it->says = wf_exchange_on_message(it->exchange, ev.peer, ev.msg, w.now_ns, &it->why);
        wf_net_free_msg(it->net, &ev.msg);
    }
    wf_net_flush(it->net, w.now_ns);
}

/* `but`: one that does not look at its messages. */
static inline void turn(uint32_t but)
{
    for (int k = 0; k < 30; k++) {
        for (uint32_t i = 0; i < WORKERS; i++)
            if (i != but)
                run_worker(&w.workers[i]);
        w.now_ns += 2 * MS;
    }
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_int_equal(w.workers[i].says, WF_OK);
}

/* A step of a worker, with gradients of so many records; 0: it drops them. As a plan's, its run has
 * waited for the update before it ends, and not before it writes a gradient that needs no weight.
 */
static inline void make_step(uint32_t who, uint32_t records)
{
    worker *it = &w.workers[who];
    uint32_t step = ++it->step;

    assert_int_equal(wf_exchange_want(it->exchange, (int)(step % WF_STEP_SETS), step, NULL), WF_OK);
    assert_true(wf_exchange_ready(it->exchange, (int)(step % WF_STEP_SETS)));
    wf_exchange_begin_step(it->exchange, step, WF_MAX(records, 1u));
    for (uint32_t v = 0; v < N; v++) {
        float *g = v == 2 ? NULL : wf_exchange_gradient(it->exchange, step, v);

        for (uint64_t i = 0; g && i < counts[v]; i++)
            g[i] = records ? gradient_value(who, v, step, i) : NAN;
    }
    if (w.on_gpu[who])
        assert_int_equal(wf_device_event_wait(it->exchange->written, NULL), WF_OK);
    for (uint32_t v = 0; records && v < N; v++)
        if (v != 2)
            assert_int_equal(wf_exchange_push(it->exchange, step, v, NULL), WF_OK);
    if (!records)
        assert_int_equal(wf_exchange_drop_step(it->exchange, step, NULL), WF_OK);
    assert_int_equal(wf_exchange_end_step(it->exchange, step, NULL), WF_OK);
}

/* A step of each of the first `workers`, with gradients of so many records; -1: it has no step to
 * make. */
static inline void make_steps(const int records[WORKERS], uint32_t workers)
{
    for (uint32_t k = 0; k < workers; k++)
        if (records[k] >= 0)
            make_step(k, (uint32_t)records[k]);
        else
            assert_int_equal(wf_exchange_leave(w.workers[k].exchange, NULL), WF_OK);
}

/* All workers' parts of a common step: records, or -1 for one that is idle. */
static inline void want_step(const int records[WORKERS])
{
    double total = 0;

    for (uint32_t k = 0; k < WORKERS; k++)
        total += WF_MAX(records[k], 0);
    for (uint32_t v = 0; v < N && total > 0; v++)
        for (uint64_t i = 0; v != 2 && i < counts[v]; i++) {
            double mean = 0;

            for (uint32_t k = 0; k < WORKERS; k++)
                if (records[k] > 0)
                    mean += records[k] / total * gradient_value(k, v, w.workers[k].step, i);
            if (v == 1) {
                want[v][i] = 0.9 * want[v][i] + 0.1 * mean;
                continue;
            }
            want_momentum[v][i] = 0.5 * want_momentum[v][i] - 0.25 * mean;
            want[v][i] += want_momentum[v][i];
        }
}

/* A step of all, which the first applies, and the second does not. */
static inline void make_step_of_first(const int records[WORKERS])
{
    make_steps(records, WORKERS);
    w.given_is_lost = true;
    turn(WORKERS);
    w.given_is_lost = false;
    want_step(records);
    assert_int_equal(((wf_ring *)w.workers[0].exchange)->clock, 1);
    assert_int_equal(((wf_ring *)w.workers[1].exchange)->clock, 0);
}

/* The weights of a variable in memory of the host; of a GPU: in `copy` [KERNEL]. */
static inline const float *weights_of(uint32_t who, uint32_t v, float copy[])
{
    wf_exchange *x = w.workers[who].exchange;
    const float *at = wf_exchange_weights(x, 0, v);

    if (!w.on_gpu[who])
        return at;
    assert_int_equal(wf_device_event_wait(x->written, NULL), WF_OK);
    assert_int_equal(wf_device_read(x->written->device, copy, at, counts[v] * sizeof *copy, NULL),
                     WF_OK);
    return copy;
}

/* Those of the first are as they have to be, and those of others have the same bits. */
static inline void check_weights_of(uint32_t workers)
{
    static float one[KERNEL], other[KERNEL];

    for (uint32_t v = 0; v < N; v++) {
        const float *first = weights_of(0, v, one);

        /* of halves: the rounding of a few sums, all steps together */
        for (uint64_t i = 0; i < counts[v]; i++)
            assert_true(fabs(want[v][i] - first[i]) < (coding_of(v) ? 5e-3 : 2e-6));
        for (uint32_t k = 1; k < workers; k++)
            assert_memory_equal(weights_of(k, v, other), first, counts[v] * sizeof(float));
    }
}

static inline void check_weights(void)
{
    check_weights_of(WORKERS);
}

#endif
