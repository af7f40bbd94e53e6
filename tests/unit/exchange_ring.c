/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_ring.c - three workers that add up their gradients over nets in memory: means
 * are weighted by records, whoever is idle or drops its step; all workers have the same bits, also
 * when one is lost in a step, or joins. */
#include "common/base/size.h"
#include "common/ckpt/initial.h"
#include "common/ckpt/shard.h"
#include "common/wire/parts.h"
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
    wf_status says;          /* to the last message */
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
    int64_t dims[N], now_ns;
    bool divides;          /* what begins next divides the optimizer's state */
    bool done_is_lost;     /* nobody hears that another has applied a step */
    bool values_are_lost;  /* worker 1 does not get them */
    bool weights_are_lost; /* worker 0 does not hear of what others have updated */
    bool given_is_lost;    /* worker 1 does not hear that another has given its part */
} world;

static world w;
/* The weights and their momentum by double precision. */
static double want[N][KERNEL], want_momentum[N][KERNEL];

static float first_value(uint32_t variable, uint64_t i)
{
    return (float)(variable + 1) * 0.5F + (float)(i % 97) * 0.01F;
}

static float gradient_value(uint32_t who, uint32_t variable, uint32_t step, uint64_t i)
{
    return (float)((i * 7 + step * 13 + variable + who * 5) % 31) * 0.02F - 0.3F;
}

/* Whether a variable's sums travel in halves. */
static wf_coding coding_of(uint32_t variable)
{
    return (wf_coding)w.rows[variable].push_coding;
}

static void write_first_values(void)
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

static void make_start(void)
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

static void open_exchange(uint32_t i, bool joins)
{
    wf_err err;

    w.start.joins = joins;
    assert_int_equal(wf_exchange_open(&(wf_exchange_conf){.start = &w.start,
                                                          .net = w.workers[i].net,
                                                          .generation = GENERATION,
                                                          .checksums = true,
                                                          .incarnation = 100 + i,
                                                          .disk = wf_memdisk_disk(w.disk)},
                                      &w.workers[i].exchange, &err),
                     WF_OK);
}

static void open_worker(uint32_t i)
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
static void tell_one(uint32_t to, uint32_t number, uint32_t members)
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

static void tell(uint32_t number, uint32_t members)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        if (members >> i & 1)
            tell_one(i, number, members);
}

static int begin_coded(wf_coding coding)
{
    bool divides = w.divides;

    w = (world){.disk = wf_memdisk_new()};
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

static int begin(void **state)
{
    (void)state;
    return begin_coded(WF_CODING_F32);
}

/* Each has the optimizer's state of a share. */
static int begin_divided(void **state)
{
    (void)state;
    w.divides = true;
    begin_coded(WF_CODING_F32);
    w.divides = false;
    return 0;
}

static int begin_bf16(void **state)
{
    (void)state;
    return begin_coded(WF_CODING_BF16);
}

static int begin_f16(void **state)
{
    (void)state;
    return begin_coded(WF_CODING_F16);
}

static int end(void **state)
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

static wf_peer fake_peer(uint32_t index)
{
    return (wf_peer){.task = {WF_ROLE_WORKER, 10 + index},
                     .incarnation = 100 + index,
                     .up = true,
                     .address = ""};
}

/* As a process that has just begun: it has no values. */
static void open_again(uint32_t i)
{
    wf_exchange_free(&w.workers[i].exchange);
    open_exchange(i, true);
    w.workers[i].step = 0;
}

static bool is_lost(const worker *to, uint16_t kind)
{
    return (w.done_is_lost && kind == WF_RING_DONE) ||
           (w.values_are_lost && kind == WF_RING_VALUES && to == &w.workers[1]) ||
           (w.given_is_lost && kind == WF_RING_GIVEN && to == &w.workers[1]) ||
           (w.weights_are_lost && kind == WF_RING_WEIGHTS && to == &w.workers[0]);
}

static void run_worker(worker *it)
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
        if (!is_lost(it, ev.msg->head.kind))
            it->says = wf_exchange_on_message(it->exchange, ev.peer, ev.msg, w.now_ns, NULL);
        wf_net_free_msg(it->net, &ev.msg);
    }
    wf_net_flush(it->net, w.now_ns);
}

/* `but`: one that does not look at its messages. */
static void turn(uint32_t but)
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

/* A step of a worker, with gradients of so many records; 0: it drops them. */
static void make_step(uint32_t who, uint32_t records)
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
    for (uint32_t v = 0; records && v < N; v++)
        if (v != 2)
            assert_int_equal(wf_exchange_push(it->exchange, step, v, NULL), WF_OK);
    if (!records)
        assert_int_equal(wf_exchange_drop_step(it->exchange, step, NULL), WF_OK);
    assert_int_equal(wf_exchange_end_step(it->exchange, step, NULL), WF_OK);
}

/* All workers' parts of a common step: records, or -1 for one that is idle. */
static void want_step(const int records[WORKERS])
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

static void check_weights(void)
{
    for (uint32_t v = 0; v < N; v++) {
        const float *first = wf_exchange_weights(w.workers[0].exchange, 0, v);

        /* of halves: the rounding of a few sums, all steps together */
        for (uint64_t i = 0; i < counts[v]; i++)
            assert_true(fabs(want[v][i] - first[i]) < (coding_of(v) ? 5e-3 : 2e-6));
        for (uint32_t k = 1; k < WORKERS; k++)
            assert_memory_equal(wf_exchange_weights(w.workers[k].exchange, 0, v), first,
                                counts[v] * sizeof(float));
    }
}

static void means_are_weighted_by_records_and_equal_in_all_workers(void **state)
{
    static const int plan[][WORKERS] = {{8, 8, 8},  {8, 4, 1},   {5, -1, 3}, {-1, -1, 7},
                                        {6, 0, 2},  {-1, 3, -1}, {0, 0, 0},  {0, -1, -1},
                                        {1, 9, 32}, {2, -1, 2}};

    (void)state;
    turn(WORKERS);
    for (size_t s = 0; s < WF_COUNT(plan); s++) {
        for (uint32_t k = 0; k < WORKERS; k++)
            if (plan[s][k] >= 0)
                make_step(k, (uint32_t)plan[s][k]);
            else
                assert_int_equal(wf_exchange_leave(w.workers[k].exchange, NULL), WF_OK);
        turn(WORKERS);
        want_step(plan[s]);
        check_weights();
        for (uint32_t k = 0; k < WORKERS; k++)
            assert_int_equal(wf_exchange_in_flight(w.workers[k].exchange), 0);
    }
}

/* All have the bits of the rounded sums, of which a part is left for float32 alone. */
static void sums_may_travel_in_halves(void **state)
{
    static const int all[WORKERS] = {3, 4, 5}, both[WORKERS] = {6, 2, -1};
    const float *kernel;
    double most = 0;

    (void)state;
    turn(WORKERS);
    for (int s = 0; s < 3; s++) {
        for (uint32_t k = 0; k < WORKERS; k++)
            make_step(k, (uint32_t)all[k]);
        turn(WORKERS);
        want_step(all);
        check_weights();
    }
    for (uint32_t k = 0; k < WORKERS; k++) {
        const wf_exchange *x = w.workers[k].exchange;

        assert_true(x->plain_bytes - x->pushed_bytes == 3 * KERNEL * sizeof(uint16_t));
    }
    kernel = wf_exchange_weights(w.workers[0].exchange, 0, 0);
    for (uint64_t i = 0; i < KERNEL; i++)
        most = fmax(most, fabs(want[0][i] - kernel[i]));
    assert_true(most > 1e-6); /* they did */
    tell_one(0, 2, 3);
    tell_one(1, 2, 3);
    turn(2);
    for (int s = 0; s < 2; s++) {
        for (uint32_t k = 0; k < 2; k++)
            make_step(k, (uint32_t)both[k]);
        turn(2);
        want_step(both);
    }
    open_again(2);
    tell(3, 7);
    turn(WORKERS);
    check_weights();
}

/* A range with a number that a coding cannot say goes as it is. */
static void what_halves_cannot_say_travels_as_float32(void **state)
{
    const float *kernel;

    (void)state;
    turn(WORKERS);
    for (uint32_t k = 0; k < WORKERS; k++) {
        worker *it = &w.workers[k];
        float *g;

        it->step = 1;
        assert_int_equal(wf_exchange_want(it->exchange, 1, 1, NULL), WF_OK);
        wf_exchange_begin_step(it->exchange, 1, 1);
        g = wf_exchange_gradient(it->exchange, 1, 0);
        for (uint64_t i = 0; i < KERNEL; i++)
            g[i] = i == 5 ? 1e6F : 0.1F + (float)k;
        assert_int_equal(wf_exchange_push(it->exchange, 1, 0, NULL), WF_OK);
        assert_int_equal(wf_exchange_end_step(it->exchange, 1, NULL), WF_OK);
    }
    turn(WORKERS);
    kernel = wf_exchange_weights(w.workers[0].exchange, 0, 0);
    assert_true(fabs(kernel[5] - (first_value(0, 5) - 0.25 * 1e6)) < 0.1);
    assert_true(fabs(kernel[6] - (first_value(0, 6) - 0.25 * 1.1)) < 5e-3);
    for (uint32_t k = 1; k < WORKERS; k++)
        assert_memory_equal(wf_exchange_weights(w.workers[k].exchange, 0, 0), kernel,
                            KERNEL * sizeof(float));
}

/* While one has not taken its messages no other counts the step as done. */
static void a_step_is_acknowledged_once_all_have_applied_it(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};
    wf_waiting late = {.what = ""};

    (void)state;
    turn(WORKERS);
    for (uint32_t k = 0; k < WORKERS; k++)
        make_step(k, (uint32_t)all[k]);
    turn(2);
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 1);
    wf_exchange_name_late(w.workers[0].exchange, WF_EXCHANGE_ACKS, 1, &late);
    assert_int_equal(late.whom.role, WF_ROLE_WORKER);
    turn(WORKERS);
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 0);
    want_step(all);
    check_weights();
}

/* It is applied, and the next one may begin: what was sent lies in other memory. */
static void a_step_that_another_may_not_have_applied_is_not_acknowledged(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};

    (void)state;
    turn(WORKERS);
    w.done_is_lost = true;
    for (uint32_t k = 0; k < WORKERS; k++)
        make_step(k, (uint32_t)all[k]);
    turn(WORKERS);
    want_step(all);
    check_weights();
    for (uint32_t k = 0; k < WORKERS; k++) {
        assert_int_equal(wf_exchange_in_flight(w.workers[k].exchange), 1);
        make_step(k, (uint32_t)all[k]);
    }
    turn(WORKERS);
    want_step(all);
    check_weights();
    for (uint32_t k = 0; k < WORKERS; k++)
        assert_int_equal(wf_exchange_in_flight(w.workers[k].exchange), 2);
}

/* Two have given their parts, and the third is lost before it gives its own, or has heard theirs:
 * the two make the step without it. */
static void who_is_left_makes_the_step_alone(void **state)
{
    static const int all[WORKERS] = {3, 4, 5}, both[WORKERS] = {3, 4, -1};

    (void)state;
    turn(WORKERS);
    for (uint32_t k = 0; k < WORKERS; k++)
        make_step(k, (uint32_t)all[k]);
    turn(WORKERS);
    want_step(all);
    for (uint32_t k = 0; k < 2; k++)
        make_step(k, (uint32_t)all[k]);
    turn(2);
    tell_one(0, 2, 3);
    turn(2); /* the other has not heard of the view */
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 1);
    tell_one(1, 2, 3);
    turn(2);
    want_step(both);
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 0);
    assert_int_equal(wf_exchange_in_flight(w.workers[1].exchange), 0);
    open_again(2);
    tell(3, 7);
    turn(WORKERS);
    check_weights(); /* it has joined, and has what the others have */
    for (uint32_t k = 0; k < WORKERS; k++)
        make_step(k, (uint32_t)all[k]);
    turn(WORKERS);
    want_step(all);
    check_weights();
}

/* Two have applied a step, and one of them is lost; the other gives the values to one that has not
 * applied it. Its part is in them. */
static void who_is_a_step_behind_gets_the_values(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};

    (void)state;
    turn(WORKERS);
    for (uint32_t k = 0; k < WORKERS; k++)
        make_step(k, (uint32_t)all[k]);
    w.given_is_lost = true;
    turn(WORKERS);
    w.given_is_lost = false;
    want_step(all);
    assert_int_equal(((wf_ring *)w.workers[0].exchange)->clock, 1);
    assert_int_equal(((wf_ring *)w.workers[1].exchange)->clock, 0);
    w.values_are_lost = true;
    tell(2, 3);
    turn(2);
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 1);
    assert_int_equal(wf_exchange_in_flight(w.workers[1].exchange), 1);
    w.values_are_lost = false;
    wf_exchange_on_down(w.workers[0].exchange, w.workers[0].peers[1]);
    assert_int_equal(wf_exchange_on_up(w.workers[0].exchange, w.workers[0].peers[1], NULL), WF_OK);
    turn(2);
    assert_int_equal(wf_exchange_in_flight(w.workers[0].exchange), 0);
    assert_int_equal(wf_exchange_in_flight(w.workers[1].exchange), 0);
    open_again(2);
    tell(3, 7);
    turn(WORKERS);
    check_weights();
}

/* The files that worker 0 knows of: each of another slice, and there. */
static void check_files(const char *const names[], const uint32_t writers[])
{
    const wf_exchange *x = w.workers[0].exchange;
    bool in[N] = {false};
    wf_err err;

    assert_true(wf_exchange_copied(x));
    assert_true(wf_exchange_saved(x));
    assert_int_equal(x->saving.n, WORKERS);
    for (uint32_t i = 0; i < WORKERS; i++) {
        const Weft__Saved *saved = x->saving.shards[i].result;
        wf_disk_file *f = NULL;
        char path[128];
        uint64_t bytes = 0;

        assert_string_equal(saved->what, "");
        assert_string_equal(saved->file, names[i]);
        assert_int_equal(x->saving.shards[i].writer.index, writers[i]);
        for (size_t k = 0; k < saved->n_slices; k++) {
            assert_false(in[saved->slices[k]->slice]);
            in[saved->slices[k]->slice] = true;
        }
        snprintf(path, sizeof path, "/ckpt/j/tmp/%s", saved->file);
        assert_int_equal(wf_disk_open(wf_memdisk_disk(w.disk), path, WF_DISK_READ, &f, &err),
                         WF_OK);
        assert_int_equal(wf_disk_size(f, &bytes, &err), WF_OK);
        assert_int_equal(bytes, saved->bytes);
        assert_int_equal(wf_disk_close(&f, &err), WF_OK);
    }
    for (uint32_t v = 0; v < N; v++)
        assert_true(in[v]);
}

static void begin_save(void)
{
    wf_err err;

    assert_int_equal(wf_disk_make_dirs(wf_memdisk_disk(w.disk), "/ckpt/j/tmp", &err), WF_OK);
    assert_int_equal(wf_exchange_save_begin(w.workers[0].exchange, 7, "/ckpt/j/tmp", &err), WF_OK);
}

static uint64_t slots_of(uint32_t who)
{
    const wf_local *l = &((const wf_ring *)w.workers[who].exchange)->local;
    uint64_t n = 0;

    for (uint32_t v = 0; v < N; v++)
        n += l->variables[v].slots[0] ? counts[v] : 0;
    return n;
}

/* Their slots are each in one worker, which writes them; without it no step can be made. */
static void who_has_a_share_of_the_state_cannot_be_spared(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};
    static const char *const names[] = {"shard-00000-of-00003.safetensors",
                                        "shard-00001-of-00003.safetensors",
                                        "shard-00002-of-00003.safetensors"};
    wf_err err;

    (void)state;
    turn(WORKERS);
    assert_true(slots_of(0) + slots_of(1) + slots_of(2) == KERNEL + BIAS);
    assert_true(slots_of(0) && !slots_of(1) && slots_of(2)); /* worker 1 has the statistic */
    for (uint32_t k = 0; k < WORKERS; k++)
        make_step(k, (uint32_t)all[k]);
    turn(WORKERS);
    want_step(all);
    check_weights();
    begin_save();
    turn(WORKERS);
    check_files(names, (const uint32_t[]){10, 11, 12});
    wf_exchange_save_end(w.workers[0].exchange);
    tell(2, 7); /* nothing has changed */
    turn(WORKERS);
    w.weights_are_lost = true;
    for (uint32_t k = 0; k < WORKERS; k++)
        make_step(k, (uint32_t)all[k]);
    turn(WORKERS);
    assert_int_equal(wf_exchange_in_flight(w.workers[1].exchange), 1);
    /* Its own share is updated once. */
    assert_int_equal(wf_exchange_on_view(w.workers[0].exchange, &w.view, 3, &err), WF_AGAIN);
    w.view.n_members = 2;
    w.member_list[0] = &w.members[1];
    w.member_list[1] = &w.members[2];
    assert_int_equal(wf_exchange_on_view(w.workers[2].exchange, &w.view, 3, &err), WF_AGAIN);
    assert_non_null(strstr(err.what, "a share of the optimizer's state"));
    wf_exchange_on_down(w.workers[1].exchange, w.workers[1].peers[0]);
    assert_int_equal(wf_exchange_on_up(w.workers[1].exchange, w.workers[1].peers[0], &err),
                     WF_AGAIN);
}

static void each_writes_a_file_of_a_checkpoint(void **state)
{
    static const char *const names[] = {"shard-00000-of-00003.safetensors",
                                        "shard-00001-of-00003.safetensors",
                                        "shard-00002-of-00003.safetensors"};

    (void)state;
    turn(WORKERS);
    begin_save();
    assert_false(wf_exchange_copied(w.workers[0].exchange));
    turn(WORKERS);
    check_files(names, (const uint32_t[]){10, 11, 12});
    wf_exchange_save_end(w.workers[0].exchange);
}

/* One is lost before it has written its file, and one has just joined. */
static void whoever_saves_writes_what_another_cannot(void **state)
{
    static const char *const names[] = {"shard-00000-of-00003.safetensors",
                                        "shard-00001-of-00003.safetensors",
                                        "again-shard-00002-of-00003.safetensors"};

    (void)state;
    turn(WORKERS);
    begin_save();
    turn(2);
    assert_false(wf_exchange_saved(w.workers[0].exchange));
    tell_one(0, 2, 3);
    tell_one(1, 2, 3);
    turn(2);
    check_files(names, (const uint32_t[]){10, 11, 10});
    wf_exchange_save_end(w.workers[0].exchange);
    open_again(2);
    tell(3, 7);
    begin_save();
    turn(2); /* who has joined has not the values */
    assert_false(wf_exchange_saved(w.workers[0].exchange));
    turn(WORKERS);
    assert_true(wf_exchange_saved(w.workers[0].exchange));
}

static wf_status hear(uint16_t kind, uint32_t step, uint32_t request, uint32_t control)
{
    worker *it = &w.workers[0];
    wf_peer from = fake_peer(1);
    wf_msg *m = NULL;
    wf_status rc;

    assert_int_equal(wf_net_msg(it->net, kind, &m, NULL), WF_OK);
    m->head.view = 1;
    m->head.step = step;
    m->head.request = request;
    if (kind == WF_RING_SUMS)
        assert_int_equal(wf_parts_put(m, NULL, 0, NULL), WF_OK);
    else if (control)
        memset(wf_msg_control(m, control), 0, control);
    rc = wf_exchange_on_message(it->exchange, &from, m, 0, NULL);
    wf_net_free_msg(it->net, &m);
    return rc;
}

static void nobody_is_left_who_has_the_variables(void **state)
{
    wf_err err;

    (void)state;
    turn(WORKERS);
    open_again(2);
    w.view.n_members = 1;
    w.member_list[0] = &w.members[2];
    assert_int_equal(wf_exchange_on_view(w.workers[2].exchange, &w.view, 2, &err), WF_AGAIN);
    assert_non_null(strstr(err.what, "no worker is left that has the variables"));
}

static void what_no_worker_may_say_is_refused(void **state)
{
    (void)state;
    turn(WORKERS);
    assert_int_equal(hear(WF_RING_SUMS, 3, 0, 0), WF_PROTO); /* two steps ahead at most */
    assert_int_equal(hear(WF_RING_SUMS, 0, 0, 0), WF_PROTO);
    assert_int_equal(hear(WF_RING_SUMS, 1, 99, 0), WF_PROTO); /* no such bucket */
    assert_int_equal(hear(WF_RING_SUMS, 1, 0, 0), WF_PROTO);  /* an empty range of a full one */
    assert_int_equal(hear(WF_RING_GIVEN, 1, 5, 2), WF_PROTO); /* bits of other variables */
    assert_int_equal(hear(WF_RING_GIVEN, 1, 5, 1), WF_OK);
    assert_int_equal(hear(WF_RING_GIVEN, 1, 5, 1), WF_PROTO);
    assert_int_equal(hear(WF_RING_DONE, 2, 0, 0), WF_PROTO);
    assert_int_equal(hear(WF_RING_VALUES, 0, 0, 0), WF_PROTO); /* nobody lacks any */
    assert_int_equal(hear(WF_PUSH, 1, 0, 0), WF_OK); /* not of this exchange: passed over */
}

/* Whatever messages are lost with it, at any time of a step. */
static void a_step_begins_anew_when_a_link_was_lost(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};
    wf_peer stranger = fake_peer(1);

    (void)state;
    turn(WORKERS);
    stranger.incarnation = 7;
    assert_int_equal(wf_exchange_on_up(w.workers[0].exchange, &stranger, NULL), WF_OK);
    for (uint32_t round = 0; round < 8; round++) {
        for (uint32_t k = 0; k < WORKERS; k++)
            make_step(k, (uint32_t)all[k]);
        for (uint32_t i = 0; i < round; i++) {
            run_worker(&w.workers[i % WORKERS]);
            w.now_ns += MS;
        }
        wf_exchange_on_down(w.workers[0].exchange, w.workers[0].peers[1 + round % 2]);
        for (uint32_t i = 0; i < WORKERS; i++)
            run_worker(&w.workers[(i + round) % WORKERS]);
        assert_int_equal(
            wf_exchange_on_up(w.workers[0].exchange, w.workers[0].peers[1 + round % 2], NULL),
            WF_OK);
        turn(WORKERS);
        want_step(all);
        check_weights();
        for (uint32_t k = 0; k < WORKERS; k++)
            assert_int_equal(wf_exchange_in_flight(w.workers[k].exchange), 0);
    }
}

static void nothing_begins_before_all_are_linked(void **state)
{
    (void)state;
    assert_int_equal(wf_exchange_want(w.workers[0].exchange, 1, 1, NULL), WF_OK);
    assert_false(wf_exchange_ready(w.workers[0].exchange, 1));
    turn(2);
    assert_false(wf_exchange_ready(w.workers[0].exchange, 1));
    turn(WORKERS);
    assert_true(wf_exchange_ready(w.workers[0].exchange, 1));
}

#define RING(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RING(means_are_weighted_by_records_and_equal_in_all_workers),
        cmocka_unit_test_setup_teardown(means_are_weighted_by_records_and_equal_in_all_workers,
                                        begin_divided, end),
        cmocka_unit_test_setup_teardown(who_has_a_share_of_the_state_cannot_be_spared,
                                        begin_divided, end),
        cmocka_unit_test_setup_teardown(sums_may_travel_in_halves, begin_bf16, end),
        cmocka_unit_test_setup_teardown(sums_may_travel_in_halves, begin_f16, end),
        cmocka_unit_test_setup_teardown(what_halves_cannot_say_travels_as_float32, begin_f16, end),
        RING(a_step_is_acknowledged_once_all_have_applied_it),
        RING(a_step_that_another_may_not_have_applied_is_not_acknowledged),
        RING(who_is_left_makes_the_step_alone),
        RING(who_is_a_step_behind_gets_the_values),
        RING(each_writes_a_file_of_a_checkpoint),
        RING(whoever_saves_writes_what_another_cannot),
        RING(nobody_is_left_who_has_the_variables),
        RING(what_no_worker_may_say_is_refused),
        RING(a_step_begins_anew_when_a_link_was_lost),
        RING(nothing_begins_before_all_are_linked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
