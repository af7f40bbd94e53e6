/* SPDX-License-Identifier: Apache-2.0 */
/* bench/scale_master.c - what the master costs as the number of tasks grows: a master and N players
 * that speak to it over a transport in memory, in one process and one thread.
 *
 *     bench_scale_master [N ...]
 *
 * A tenth of the players, at most 32, are ps. They register and set up, workers start, report
 * progress, and finish splits; a last checkpoint ends the job. Times are the processor's in the
 * master's own functions, by the event that it took, with its turn after every 64 at most; the
 * net's are not in them, nor is what the process does on other threads. Memory is what the master
 * takes when it begins.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "master/master.h"
#include "tests/kit/memdisk.h"
#include "tests/kit/memnet.h"
#include "tests/kit/model.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MOST_PS = 32,
    BATCH = 64,    /* events between two calls of wf_master_advance */
    PROGRESS = 20, /* reports of each worker */
    SPLITS = 20,   /* of each worker */
    TURN_MS = 1,
    MOST_TURNS = 2000000
};

typedef struct player {
    wf_task task;
    wf_net *net;
    wf_peer *to_master;
    uint16_t job, generation;
    uint32_t finished;
    bool started;
} player;

typedef struct phase {
    const char *name;
    uint64_t events;
    int64_t ns, most_ns; /* all; of one batch */
} phase;

typedef struct bench {
    wf_memnet nets;
    wf_memdisk *disk;
    wf_net *net;
    wf_master *master;
    player *players;
    wf_model_spec model;
    phase *phase;
    uint32_t n, n_ps;
    wf_work *sync, *slow; /* begun */
    int64_t now_ns;
} bench;

static void must(wf_status rc, const wf_err *err)
{
    if (rc == WF_OK)
        return;
    fprintf(stderr, "bench_scale_master: %s\n", err->what);
    exit(1);
}

static wf_status prepare(void *arg, const char *job, const char *text, const char *path,
                         wf_prepared **out, wf_err *err)
{
    (void)text, (void)path;
    return wf_model_prepare(&((bench *)arg)->model, job, out, err);
}

static wf_net *make_net(bench *b, wf_task self, uint64_t incarnation)
{
    wf_net_conf c = wf_memnet_conf(&b->nets, self, incarnation);

    c.pid = incarnation;
    c.ack_delay_ns = 0;
    if (self.role == WF_ROLE_MASTER) {
        c.admit = wf_master_admit;
        c.admit_arg = b->master;
    }
    return wf_memnet_new(&c);
}

/* ---- the master, measured ---- */

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * WF_NS_PER_S + t.tv_nsec;
}

static void count(bench *b, int64_t began_ns, uint64_t events)
{
    int64_t ns = cpu_ns() - began_ns;

    b->phase->events += events;
    b->phase->ns += ns;
    b->phase->most_ns = WF_MAX(b->phase->most_ns, ns);
}

static void begin_work(void *arg, wf_work *w)
{
    bench *b = arg;

    *(wf_work_is_sync(w) ? &b->sync : &b->slow) = w;
}

/* What the master's process does on other threads. */
static bool finish_work(bench *b, wf_work **w)
{
    int64_t began_ns;
    wf_err err;

    if (!*w)
        return false;
    wf_work_run(*w);
    began_ns = cpu_ns();
    must(wf_master_on_work(b->master, w, b->now_ns, &err), &err);
    count(b, began_ns, 0);
    return true;
}

static void take(bench *b, wf_event events[], uint32_t n)
{
    int64_t began_ns = cpu_ns();
    wf_err err;

    for (uint32_t i = 0; i < n; i++)
        must(wf_master_on_event(b->master, &events[i], b->now_ns, &err), &err);
    must(wf_master_advance(b->master, b->now_ns, &err), &err);
    count(b, began_ns, n);
}

static bool lead(bench *b)
{
    wf_event events[BATCH];
    bool busy = false;
    uint32_t n;

    wf_net_poll(b->net, b->now_ns);
    do {
        for (n = 0; n < BATCH && wf_net_event(b->net, b->now_ns, &events[n]);)
            n++;
        take(b, events, n);
        busy |= n > 0;
        busy |= finish_work(b, &b->sync);
        busy |= finish_work(b, &b->slow);
    } while (n == BATCH);
    wf_net_flush(b->net, b->now_ns);
    return busy;
}

/* ---- players ---- */

static void send(player *p, wf_msg **m, const ProtobufCMessage *body)
{
    wf_err err;

    if (body)
        must(wf_control_put(*m, body, &err), &err);
    must(wf_net_send(p->net, p->to_master, WF_LANE_CONTROL, 0, m, &err), &err);
}

static void report(player *p, uint16_t kind, const ProtobufCMessage *body)
{
    wf_msg *m = NULL;
    wf_err err;

    must(wf_net_msg(p->net, kind, &m, &err), &err);
    m->head.job = p->job;
    m->head.generation = p->generation;
    send(p, &m, body);
}

static void on_begin(player *p, const wf_msg *m, uint64_t records)
{
    Weft__Outcome body = WEFT__OUTCOME__INIT;
    bool ps = p->task.role == WF_ROLE_PS;
    wf_msg *ok = NULL;
    wf_err err;

    p->job = m->head.job;
    p->generation = m->head.generation;
    p->started = true;
    body.train_records = records;
    must(wf_net_msg(p->net, ps ? WF_SETUP_OK : WF_START_OK, &ok, &err), &err);
    ok->head.job = p->job;
    ok->head.generation = p->generation;
    ok->head.view = m->head.view;
    send(p, &ok, &body.base);
}

static void on_split(player *p, const wf_msg *m)
{
    Weft__SplitDone done = WEFT__SPLIT_DONE__INIT;
    Weft__Split *split = NULL;
    wf_err err;

    must(wf_control_get(m, &weft__split__descriptor, &split, &err), &err);
    done.splits = &split;
    done.n_splits = 1;
    done.steps = ++p->finished;
    report(p, WF_SPLIT_DONE, &done.base);
    wf_control_free(&split);
}

static void say_of_cut(player *p, uint16_t kind, uint32_t cut, const ProtobufCMessage *body)
{
    wf_msg *m = NULL;
    wf_err err;

    must(wf_net_msg(p->net, kind, &m, &err), &err);
    m->head.job = p->job;
    m->head.generation = p->generation;
    m->head.cut = cut;
    send(p, &m, body);
}

static void on_cut(player *p, const wf_msg *m)
{
    Weft__CutReport report = WEFT__CUT_REPORT__INIT;
    Weft__CutDone done = WEFT__CUT_DONE__INIT;
    Weft__Cut *cut = NULL;
    wf_err err;

    must(wf_control_get(m, &weft__cut__descriptor, &cut, &err), &err);
    report.index = p->task.index;
    say_of_cut(p, WF_CUT_REPORT, m->head.cut, &report.base);
    if (p->task.index == 0) { /* the chief */
        done.step = 1;
        say_of_cut(p, WF_CUT_FORKED, m->head.cut, NULL);
        say_of_cut(p, WF_CUT_COMMIT, m->head.cut, NULL);
        say_of_cut(p, WF_CUT_DONE, m->head.cut, &done.base);
    }
    wf_control_free(&cut);
}

static void on_message(bench *b, player *p, const wf_msg *m)
{
    wf_msg *ok = NULL;
    wf_err err;

    if (m->head.kind == WF_SETUP || m->head.kind == WF_START) {
        on_begin(p, m, b->model.records);
    } else if (m->head.kind == WF_VIEW) {
        must(wf_net_msg(p->net, WF_VIEW_OK, &ok, &err), &err);
        ok->head.view = m->head.view;
        send(p, &ok, NULL);
    } else if (m->head.kind == WF_CUT_OPEN) {
        on_cut(p, m);
    } else if (m->head.kind == WF_SPLIT) {
        on_split(p, m);
    } else if (m->head.kind == WF_SPLIT_DONE_OK && p->finished < SPLITS) {
        report(p, WF_SPLIT_WANT, NULL);
    }
}

static bool play(bench *b, player *p)
{
    Weft__Register held = WEFT__REGISTER__INIT;
    bool busy = false;
    wf_event ev;

    if (!p->net)
        return false;
    wf_net_poll(p->net, b->now_ns);
    while (wf_net_event(p->net, b->now_ns, &ev)) {
        busy = true;
        if (ev.kind == WF_EV_UP)
            report(p, WF_REGISTER, &held.base);
        if (ev.kind == WF_EV_MESSAGE) {
            on_message(b, p, ev.msg);
            wf_net_free_msg(p->net, &ev.msg);
        }
    }
    wf_net_flush(p->net, b->now_ns);
    return busy;
}

/* Runs all players and the master until no message is left. */
static void settle(bench *b)
{
    for (int quiet = 0, turns = 0; quiet < 2 && turns < MOST_TURNS; turns++) {
        bool busy = false;

        for (uint32_t i = 0; i < b->n; i++)
            busy |= play(b, &b->players[i]);
        busy |= lead(b);
        quiet = busy ? 0 : quiet + 1;
        b->now_ns += TURN_MS * WF_NS_PER_MS;
    }
}

/* ---- one number of tasks ---- */

static void begin_master(bench *b)
{
    wf_master_task *tasks = calloc(b->n, sizeof *tasks);
    wf_err err;

    wf_assert(tasks);
    for (uint32_t i = 0; i < b->n; i++)
        tasks[i] = (wf_master_task){b->players[i].task, "tcp://127.0.0.1:7000"};
    must(
        wf_master_new(&(wf_master_conf){.incarnation = 1,
                                        .session = "bench",
                                        .tasks = tasks,
                                        .n_tasks = b->n,
                                        .disk = wf_memdisk_disk(b->disk),
                                        .journal_dir = "/state",
                                        .checkpoint_dir = "/ckpt",
                                        .dead_ns = 3600 * WF_NS_PER_S,
                                        .cut_ns = 3600 * WF_NS_PER_S,
                                        .ops = {.arg = b, .begin = begin_work, .prepare = prepare}},
                      b->now_ns, &b->master, &err),
        &err);
    b->net = make_net(b, (wf_task){WF_ROLE_MASTER, 0}, 1);
    wf_memnet_listen(&b->nets, b->net, "master");
    wf_master_set_net(b->master, b->net);
    free(tasks);
}

static void enter(bench *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        player *p = &b->players[i];

        p->net = make_net(b, p->task, 1000 + i);
        p->to_master = wf_memnet_dial(&b->nets, p->net, (wf_task){WF_ROLE_MASTER, 0}, "master");
    }
}

static void begin(bench *b, uint32_t n)
{
    *b = (bench){.n = n, .n_ps = WF_MIN(WF_MAX(n / 10, 1U), (uint32_t)MOST_PS)};
    b->now_ns = WF_NS_PER_S;
    b->model = (wf_model_spec){.seed = 1,
                               .ps = b->n_ps,
                               .records = (n - b->n_ps) * SPLITS * 2,
                               .batch = 1,
                               .epochs = 1,
                               .keep = 1};
    b->players = calloc(n, sizeof *b->players);
    b->disk = wf_memdisk_new();
    wf_assert(b->players && b->disk);
    wf_memnet_init(&b->nets, "bench");
    for (uint32_t i = 0; i < n; i++)
        b->players[i].task =
            i < b->n_ps ? (wf_task){WF_ROLE_PS, i} : (wf_task){WF_ROLE_WORKER, i - b->n_ps};
}

static void end(bench *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        wf_net_free(&b->players[i].net, 0);
    wf_net_free(&b->net, 0);
    wf_master_free(&b->master);
    wf_memdisk_free(&b->disk);
    wf_memnet_close(&b->nets);
    free(b->players);
}

static void say_progress(bench *b)
{
    for (uint32_t k = 0; k < PROGRESS; k++) {
        for (uint32_t i = b->n_ps; i < b->n; i++) {
            Weft__Progress body = WEFT__PROGRESS__INIT;

            body.steps = k;
            body.samples = k;
            report(&b->players[i], WF_PROGRESS, &body.base);
        }
        settle(b);
    }
}

static void finish_splits(bench *b)
{
    for (uint32_t i = b->n_ps; i < b->n; i++)
        report(&b->players[i], WF_SPLIT_WANT, NULL);
    settle(b);
}

static void ask_status(bench *b)
{
    int64_t began_ns = cpu_ns();
    char *text = wf_master_status(b->master, b->now_ns);

    count(b, began_ns, 1);
    free(text);
}

static double each_us(const phase *p)
{
    return p->events ? (double)p->ns / (double)p->events / 1e3 : 0;
}

static void measure(uint32_t n)
{
    phase phases[] = {{.name = "register"},
                      {.name = "start"},
                      {.name = "progress"},
                      {.name = "split"},
                      {.name = "status"}};
    size_t before, journal = 0;
    struct mallinfo2 heap;
    wf_err err;
    bench b;

    begin(&b, n);
    before = mallinfo2().uordblks;
    begin_master(&b);
    heap = mallinfo2();
    enter(&b);
    b.phase = &phases[0];
    settle(&b);
    b.phase = &phases[1];
    must(wf_master_submit(b.master, "one", "ledger", "", false, &err), &err);
    settle(&b);
    b.phase = &phases[2];
    say_progress(&b);
    b.phase = &phases[3];
    finish_splits(&b);
    b.phase = &phases[4];
    ask_status(&b);
    wf_memdisk_bytes(b.disk, "/state/journal", &journal);
    printf("%6u", n);
    for (size_t i = 0; i < WF_COUNT(phases); i++)
        printf("  %8.2f %7.1f", each_us(&phases[i]), (double)phases[i].most_ns / 1e6);
    printf("  %8.0f  %8.0f  %s\n", (double)(heap.uordblks - before) / 1024, (double)journal / 1024,
           wf_master_job_state(b.master, "one"));
    fflush(stdout);
    end(&b);
}

int main(int argc, char *argv[])
{
    static const uint32_t usual[] = {10, 100, 500, 1000, 2000};

    printf("microseconds of the master for an event, and the longest batch in ms\n"
           " tasks          register            start         progress            split"
           "           status  KiB heap  KiB journal\n");
    for (size_t i = 0; argc < 2 && i < WF_COUNT(usual); i++)
        measure(usual[i]);
    for (int i = 1; i < argc; i++)
        measure((uint32_t)WF_MAX(strtoul(argv[i], NULL, 10), 3UL));
    return 0;
}
