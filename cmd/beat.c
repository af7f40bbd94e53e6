/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/beat.c */
#include "cmd/beat.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_LINKS = 32 };
static const int64_t FRESH_NS = WF_NS_PER_S;

struct wf_beat {
    pthread_t thread;
    pthread_mutex_t lock; /* of what is below, but for `turns` */
    pthread_cond_t wake;
    bool stop;
    wf_beat_conf conf;
    wf_transport *transport;
    clockid_t main_clock; /* processor time of the main thread */
    atomic_ullong turns;
    wf_vitals vitals;
    int64_t told_ns; /* when the main thread told it */
    uint32_t n_links;
    Weft__LinkState links[MOST_LINKS];
};

/* Ten milliseconds of processor time count as much as a turn of the loop. */
static uint64_t progress(const wf_beat *b)
{
    struct timespec t = {0};

    clock_gettime(b->main_clock, &t);
    return atomic_load(&b->turns) + (uint64_t)t.tv_sec * 100 + (uint64_t)t.tv_nsec / 10000000;
}

/* A copy of what the main thread told, so that a message is made without the lock. */
static void fill(wf_beat *b, Weft__Beat *body, wf_waiting *w, wf_histogram *staleness,
                 Weft__LinkState links[], Weft__LinkState *list[])
{
    pthread_mutex_lock(&b->lock);
    *w = (wf_waiting){0};
    if (wf_now_ns() - b->told_ns < FRESH_NS) /* else it computes since */
        *w = b->vitals.waits;
    body->updates = b->vitals.updates;
    body->held_bytes = b->vitals.held_bytes;
    body->disk_bytes = b->vitals.disk_bytes;
    body->contained = b->vitals.contained;
    body->contained_bytes = b->vitals.contained_bytes;
    body->job = b->vitals.job;
    body->left_out = b->vitals.left_out;
    *staleness = b->vitals.staleness;
    body->n_links = b->n_links;
    memcpy(links, b->links, b->n_links * sizeof *links);
    pthread_mutex_unlock(&b->lock);
    for (size_t i = 0; i < body->n_links; i++)
        list[i] = &links[i];
    body->links = list;
    body->staleness = staleness->n;
    body->n_staleness = body->job ? WF_HISTOGRAM : 0;
    body->progress = progress(b);
    body->waits_role = w->whom.role;
    body->waits_index = w->whom.index;
    body->waits_for = w->what;
    if (w->whom.role)
        body->waits_ms = (uint64_t)WF_MAX(wf_now_ns() - w->since_ns, 0) / WF_NS_PER_MS;
}

static void send_beat(wf_beat *b, wf_msg_pool *pool)
{
    Weft__LinkState links[MOST_LINKS], *list[MOST_LINKS];
    Weft__Beat body = WEFT__BEAT__INIT;
    wf_histogram staleness;
    wf_msg *m = NULL;
    wf_waiting w;

    fill(b, &body, &w, &staleness, links, list);
    if (wf_msg_new(pool, WF_BEAT, &m, NULL) != WF_OK)
        return;
    m->head.incarnation = b->conf.incarnation;
    if (wf_control_put(m, &body.base, NULL) != WF_OK ||
        b->transport->ops->send(b->transport, &(wf_route){0}, m, NULL) != WF_OK)
        WF_LOG_DEBUG("beat.lost", "the master is away");
    wf_msg_free(pool, &m);
}

/* When the number was seen to grow last. Time in which this thread did not run either (the process
 * was stopped) does not count. */
typedef struct growth {
    uint64_t progress;
    int64_t changed_ns, looked_ns;
} growth;

/* A main thread that is stuck can end nothing itself. A little later than the master gives it up,
 * so that the master's reason comes first. */
static void end_if_stuck(const wf_beat *b, growth *g)
{
    int64_t now_ns = wf_now_ns();
    uint64_t p = progress(b);
    bool away = now_ns - g->looked_ns > 2 * b->conf.every_ns + WF_NS_PER_S;

    if (p != g->progress || away)
        g->changed_ns = now_ns;
    g->progress = p;
    g->looked_ns = now_ns;
    if (now_ns - g->changed_ns < b->conf.stuck_ns + b->conf.stuck_ns / 4)
        return;
    WF_LOG_ERROR("task.stuck", "the main thread has stood still for %.1f s; the process ends",
                 (double)(now_ns - g->changed_ns) / 1e9);
    _exit(1);
}

static void *run_beat(void *arg)
{
    wf_beat *b = arg;
    growth g = {.changed_ns = wf_now_ns(), .looked_ns = wf_now_ns()};
    wf_msg_pool pool = {0};
    bool stop = false;

    while (!stop) {
        int64_t until_ns = wf_now_ns() + b->conf.every_ns;
        struct timespec ts = {.tv_sec = until_ns / WF_NS_PER_S, .tv_nsec = until_ns % WF_NS_PER_S};

        b->transport->ops->tend(b->transport, wf_now_ns());
        send_beat(b, &pool);
        end_if_stuck(b, &g);
        pthread_mutex_lock(&b->lock);
        if (!b->stop)
            pthread_cond_timedwait(&b->wake, &b->lock, &ts);
        stop = b->stop;
        pthread_mutex_unlock(&b->lock);
    }
    wf_msg_pool_close(&pool);
    return NULL;
}

static void init_locks(wf_beat *b)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->wake, &attr);
    pthread_condattr_destroy(&attr);
}

static void free_beat(wf_beat *b)
{
    if (b->transport)
        b->transport->ops->close(b->transport, 0);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->wake);
    free(b);
}

wf_status wf_beat_start(const wf_beat_conf *conf, wf_beat **out, wf_err *err)
{
    wf_beat *b = calloc(1, sizeof *b);
    wf_status rc = WF_OK;

    if (!b)
        return wf_fail_nomem(err, sizeof *b);
    b->conf = *conf;
    init_locks(b);
    if (pthread_getcpuclockid(pthread_self(), &b->main_clock) != 0)
        rc = wf_fail(err, WF_IO, NULL, "the system gives no processor time of a thread");
    if (rc == WF_OK)
        rc = wf_wires_dial(conf->wires, conf->master, &b->transport, err);
    if (rc == WF_OK && pthread_create(&b->thread, NULL, run_beat, b) != 0)
        rc =
            wf_fail(err, WF_IO, "raise the limit on processes: ulimit -u", "cannot start a thread");
    if (rc != WF_OK)
        free_beat(b);
    else
        *out = b;
    return rc;
}

void wf_beat_stop(wf_beat **beat)
{
    wf_beat *b = *beat;

    *beat = NULL;
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    free_beat(b);
}

void wf_beat_turn(wf_beat *b)
{
    atomic_fetch_add_explicit(&b->turns, 1, memory_order_relaxed);
}

/* Whether a job has its first pushes: a job of a second would else be over before they are shown.
 */
static bool begins_staleness(const wf_vitals *before, const wf_vitals *now)
{
    bool had = before->job == now->job && wf_histogram_count(&before->staleness) > 0;

    return !had && wf_histogram_count(&now->staleness) > 0;
}

void wf_beat_tell(wf_beat *b, const wf_vitals *v, const wf_net *net)
{
    const wf_peer *p;

    pthread_mutex_lock(&b->lock);
    if (begins_staleness(&b->vitals, v))
        pthread_cond_signal(&b->wake);
    b->vitals = *v;
    b->told_ns = wf_now_ns();
    b->n_links = 0;
    for (size_t i = 0; b->n_links < MOST_LINKS && (p = wf_net_peer_at(net, i)); i++) {
        uint64_t resent = wf_net_resent_bytes(p), queued = wf_net_queued_bytes(p);
        Weft__LinkState *l = &b->links[b->n_links];

        if (!resent && !queued)
            continue;
        weft__link_state__init(l);
        l->role = p->task.role;
        l->index = p->task.index;
        l->resent_bytes = resent;
        l->queued_bytes = queued;
        b->n_links++;
    }
    pthread_mutex_unlock(&b->lock);
}
