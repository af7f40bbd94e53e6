/* SPDX-License-Identifier: Apache-2.0 */
/* bench/wires.c - what it costs to send between two processes of one host: through shared memory,
 * over ZeroMQ's ipc, over its tcp, and the bare work in one process beside them.
 *
 *     bench_wires [ROUNDS]
 *
 * Trip: the round trip of a push of 4 KiB, of single ones one after the other. Push: 100 MB in
 * parts of 1 MiB, each copied from a gradient into a buffer of the link's, and added to weights by
 * the receiver. Push and pull: the receiver answers each part with its weights, which the sender
 * copies out. The kinds take turns, round by round; medians of the rounds. The limit is the same
 * copies and additions in one thread, and nothing else.
 */
#include "common/wire/wires.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/net.h"
#include "common/wire/parts.h"
#include "common/wire/wait.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PART = 1 << 20, PARTS = 100, SMALL = 4096, TRIPS = 1000, MOST_ROUNDS = 101 };

/* In the header's `request` of a push. */
enum { NO_ANSWER, ECHO, WEIGHTS, LAST };

static const wf_task ps0 = {WF_ROLE_PS, 0}, worker0 = {WF_ROLE_WORKER, 0};
static float *gradient, *weights, *pulled;

typedef struct side {
    wf_wires *wires;
    wf_net *net;
    wf_spin spin;
} side;

static void must(wf_status rc, const wf_err *err)
{
    if (rc == WF_OK)
        return;
    fprintf(stderr, "bench_wires: %s; %s\n", err->what, err->hint);
    exit(1);
}

static void open_side(side *s, wf_task self, bool shares)
{
    wf_net_conf conf = wf_net_defaults();
    wf_err err;

    conf.self = self;
    conf.incarnation = (uint64_t)wf_now_ns();
    conf.cluster = "bench";
    must(wf_wires_new(4, &s->wires, &err), &err);
    wf_wires_share(s->wires, shares);
    must(wf_net_new(&conf, &s->net, &err), &err);
}

static void close_side(side *s)
{
    wf_net_free(&s->net, 0);
    wf_wires_free(&s->wires);
}

static void add(float *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] -= 0.001f * from[i];
}

static void send_part(wf_net *n, wf_peer *to, uint16_t kind, uint32_t request, wf_buf *b)
{
    wf_msg *m = NULL;
    wf_err err;

    must(wf_net_msg(n, kind, &m, &err), &err);
    m->head.request = request;
    must(wf_msg_add_frame(m, b, b->data, b->bytes, &err), &err);
    must(wf_parts_put(m, &(wf_part){.bytes = b->bytes}, 1, &err), &err);
    must(wf_net_send(n, to, WF_LANE_DATA, 0, &m, &err), &err);
    wf_net_flush(n, wf_now_ns());
}

/* The next message; messages that may leave do so meanwhile. */
static wf_msg *await(side *s, wf_peer **from)
{
    wf_net *n = s->net;

    for (;;) {
        wf_transport *const *t;
        int64_t now_ns = wf_now_ns();
        wf_event ev;
        size_t count;

        wf_net_poll(n, now_ns);
        while (wf_net_event(n, now_ns, &ev)) {
            if (ev.kind == WF_EV_UP)
                return NULL;
            if (ev.kind != WF_EV_MESSAGE)
                continue;
            if (from)
                *from = ev.peer;
            return ev.msg;
        }
        t = wf_net_transports(n, &count);
        wf_wait(t, count, -1, 50, &s->spin);
    }
}

/* ---- the ps ---- */

static void serve(const char *address, bool shares)
{
    wf_transport *t = NULL;
    uint32_t at = 0;
    wf_err err;
    side s;

    open_side(&s, ps0, shares);
    must(wf_wires_listen(s.wires, address, &t, &err), &err);
    wf_net_listen(s.net, &t);
    for (;;) {
        wf_peer *from;
        wf_msg *m = await(&s, &from);
        wf_buf *whole;
        const wf_frame *f;

        if (!m)
            continue;
        f = &m->frames[0];
        if (m->head.request != ECHO)
            add(weights + at * (PART / sizeof *weights), (const float *)(const void *)f->data,
                f->bytes / sizeof(float));
        if (m->head.request == WEIGHTS) {
            whole = wf_buf_wrap(weights + at * (PART / sizeof *weights), PART, NULL, NULL);
            send_part(s.net, from, WF_WEIGHTS, WEIGHTS, whole);
            wf_buf_unref(&whole);
        } else if (m->head.request != NO_ANSWER) {
            whole = wf_buf_wrap(gradient, SMALL, NULL, NULL);
            memcpy(gradient, f->data, SMALL);
            send_part(s.net, from, WF_WEIGHTS, LAST, whole);
            wf_buf_unref(&whole);
        }
        at = (at + 1) % PARTS;
        wf_net_free_msg(s.net, &m);
    }
}

/* ---- the worker ---- */

typedef struct figures {
    double trip_us, push_gb, both_gb;
} figures;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double of[], size_t n)
{
    qsort(of, n, sizeof *of, by_size);
    return of[n / 2];
}

static double trips(side *s, wf_peer *ps)
{
    double us[TRIPS];

    for (int i = 0; i < TRIPS; i++) {
        int64_t began_ns = wf_now_ns();
        wf_buf *b = wf_net_buf(ps, SMALL);
        wf_msg *m;

        memcpy(b->data, gradient, SMALL);
        send_part(s->net, ps, WF_PUSH, ECHO, b);
        wf_buf_unref(&b);
        m = await(s, NULL);
        wf_net_free_msg(s->net, &m);
        us[i] = (double)(wf_now_ns() - began_ns) / 1e3;
    }
    return median(us, TRIPS);
}

static double push_all(side *s, wf_peer *ps, bool pulls)
{
    int64_t began_ns = wf_now_ns();
    uint32_t back = 0, sent = 0, answers = pulls ? PARTS : 1;
    const size_t n = PART / sizeof *gradient;

    while (back < answers) {
        wf_msg *m;

        if (sent < PARTS && sent < back + 16 * (pulls ? 1 : PARTS)) {
            wf_buf *b = wf_net_buf(ps, PART);
            uint32_t ask = pulls ? WEIGHTS : sent + 1 == PARTS ? LAST : NO_ANSWER;

            memcpy(b->data, gradient + sent++ * n, PART);
            send_part(s->net, ps, WF_PUSH, ask, b);
            wf_buf_unref(&b);
            wf_net_poll(s->net, wf_now_ns());
            continue;
        }
        m = await(s, NULL);
        if (m && pulls)
            memcpy(pulled + back * n, m->frames[0].data, PART);
        wf_net_free_msg(s->net, &m);
        back++;
    }
    return (double)PARTS * PART * (pulls ? 2 : 1) / (double)(wf_now_ns() - began_ns);
}

/* The same copies and additions in this thread alone. */
static double limit(bool pulls)
{
    static float lent[PART / sizeof(float)];
    const size_t n = PART / sizeof *gradient;
    int64_t began_ns = wf_now_ns();

    for (size_t i = 0; i < PARTS; i++) {
        memcpy(lent, gradient + i * n, PART);
        add(weights + i * n, lent, n);
        if (pulls)
            memcpy(pulled + i * n, weights + i * n, PART);
    }
    return (double)PARTS * PART * (pulls ? 2 : 1) / (double)(wf_now_ns() - began_ns);
}

typedef struct way {
    const char *name, *address;
    bool shares;
    pid_t pid;
    side s;
    wf_peer *ps;
    figures rounds[MOST_ROUNDS];
} way;

static void start(way *w)
{
    wf_transport *t = NULL;
    wf_err err;

    w->pid = fork();
    if (w->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(w->address, w->shares);
    }
    open_side(&w->s, worker0, w->shares);
    must(wf_wires_dial(w->s.wires, w->address, &t, &err), &err);
    must(wf_net_dial(w->s.net, ps0, w->address, &t, &w->ps, &err), &err);
    (void)await(&w->s, NULL);
}

static void stop(way *w)
{
    close_side(&w->s);
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    unlink(w->address + strlen("ipc://")); /* of tcp there is none */
}

static double median_of(const way *w, int rounds, size_t field)
{
    double all[MOST_ROUNDS];

    for (int i = 0; i < rounds; i++)
        memcpy(&all[i], (const char *)&w->rounds[i] + field, sizeof all[i]);
    return median(all, (size_t)rounds);
}

static void print(const way *w, int rounds)
{
    printf("%-16s", w->name);
    if (w->address)
        printf("%10.1f", median_of(w, rounds, offsetof(figures, trip_us)));
    else
        printf("%10s", "-");
    printf("%10.2f%14.2f\n", median_of(w, rounds, offsetof(figures, push_gb)),
           median_of(w, rounds, offsetof(figures, both_gb)));
}

int main(int argc, char *argv[])
{
    static way ways[] = {{"shared memory", "ipc:///tmp/weft-bench-wires-shm", true},
                         {"ipc", "ipc:///tmp/weft-bench-wires-ipc", false},
                         {"tcp", "tcp://127.0.0.1:27411", false},
                         {"bare", NULL, false}};
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;

    if (rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_wires [ROUNDS up to %d]\n", MOST_ROUNDS);
        return 2;
    }
    gradient = calloc(PARTS, PART);
    weights = calloc(PARTS, PART);
    pulled = calloc(PARTS, PART);
    if (!gradient || !weights || !pulled)
        return 1;
    for (size_t i = 0; i < (size_t)PARTS * PART / sizeof *gradient; i++)
        gradient[i] = weights[i] = pulled[i] = (float)(i % 1000);
    for (size_t k = 0; ways[k].address; k++)
        start(&ways[k]);
    for (int i = 0; i < rounds; i++) {
        for (size_t k = 0; k < WF_COUNT(ways); k++) {
            way *w = &ways[k];
            bool real = w->address != NULL;

            w->rounds[i] = (figures){
                .trip_us = real ? trips(&w->s, w->ps) : 0,
                .push_gb = real ? push_all(&w->s, w->ps, false) : limit(false),
                .both_gb = real ? push_all(&w->s, w->ps, true) : limit(true),
            };
        }
    }
    printf("%-16s%10s%10s%14s\n", "", "trip us", "push GB/s", "push+pull GB/s");
    for (size_t k = 0; k < WF_COUNT(ways); k++)
        print(&ways[k], rounds);
    for (size_t k = 0; ways[k].address; k++)
        stop(&ways[k]);
    return 0;
}
