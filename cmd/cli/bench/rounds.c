/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/rounds.c - a thread for each worker; this thread is the master meanwhile. */
#include "cmd/cli/bench/rounds.h"
#include "cmd/cli/bench/bare.h"
#include "cmd/cli/bench/flat.h"
#include "cmd/cli/bench/ids.h"
#include "cmd/cli/bench/job.h"
#include "cmd/cli/bench/worker.h"
#include "common/base/cache_line.h"
#include "common/base/clock.h"
#include "common/base/pages.h"
#include "common/base/size.h"
#include "common/compile/compile.h"
#include "common/kernels/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Gradients of a worker are in turn in four buffers, all of which are touched before it counts; a
 * turn moves about TURN_BYTES, so that the clock and the gate are small beside it. */
enum { WARM_UPS = 2, LEAST_ROUNDS = 8, LEAST_OF_LARGE = 2, MOST_A_TURN = 64, TURN_BYTES = 4 << 20 };
enum { BATCHES = 64 }; /* of ids, which come again and again */
static const size_t LEAST_COPIED = 64 << 10, MOST_COPIED = 64 << 20; /* more than caches hold */

typedef struct rounds {
    const wf_bench_stage *stage;
    wf_bench_result *out;
    int64_t end_ns; /* of rounds without a number of steps */
    atomic_bool stop;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t all_here;
    uint32_t here, passed, ended; /* at the gate; gates so far; threads that are done */
    bool goes_on;
    wf_status rc; /* the first failure, and its sentence */
    wf_err err;
} rounds;

typedef struct member {
    rounds *r;
    uint32_t index;
    pthread_t thread;
    wf_bench_worker *worker;
    wf_bare *bare;    /* of a dense variable, */
    wf_bench_ids ids; /* of a table */
    uint64_t batch;   /* the next of them, and of those that the flat loops go through */
    uint64_t flat_batch;
    wf_flat *flat; /* of the first member */
    wf_samples weft[WF_BENCH_WORKS], echo[WF_BENCH_WORKS];
    uint64_t steps; /* of each kind of work */
    /* of the first, which copies */
    wf_pool *pool;
    uint8_t *from, *to; /* one allocation */
} member;

static void stop_all(rounds *r, wf_status rc, const wf_err *why)
{
    pthread_mutex_lock(&r->lock);
    if (r->rc == WF_OK) {
        r->rc = rc;
        r->err = *why;
    }
    atomic_store(&r->stop, true);
    pthread_cond_broadcast(&r->all_here);
    pthread_mutex_unlock(&r->lock);
}

/* Nobody passes before all are there. False: the measurement is stopped. */
static bool gate(rounds *r)
{
    uint32_t number;

    pthread_mutex_lock(&r->lock);
    number = r->passed;
    if (++r->here == r->stage->of.n_workers) {
        r->here = 0;
        r->passed++;
        pthread_cond_broadcast(&r->all_here);
    }
    while (r->passed == number && !atomic_load(&r->stop))
        pthread_cond_wait(&r->all_here, &r->lock);
    pthread_mutex_unlock(&r->lock);
    return !atomic_load(&r->stop);
}

/* ---- memory ---- */

static void copy_range(void *arg, int64_t begin, int64_t end)
{
    const member *m = arg;

    memcpy(m->to + begin, m->from + begin, (size_t)(end - begin));
}

static void copy(member *m, uint64_t times)
{
    wf_bench_result *out = m->r->out;

    for (uint64_t i = 0; i < times; i++) {
        int64_t n = (int64_t)out->copied, began_ns = wf_now_ns(), between_ns;

        copy_range(m, 0, n);
        between_ns = wf_now_ns();
        wf_samples_add(&out->copy_one, between_ns - began_ns);
        wf_pool_for(m->pool, n, 1, copy_range, m);
        wf_samples_add(&out->copy_all, wf_now_ns() - between_ns);
    }
}

/* Both a whole number of pages apart: at a few bytes more, each load waits for a store before it.
 */
static wf_status prepare_copies(member *m, wf_err *err)
{
    enum { PAGE = 4096 };
    size_t apart = wf_align_up(m->r->out->copied, PAGE);

    m->from = wf_pages_alloc(2 * apart);
    if (!m->from)
        return wf_fail_nomem(err, 2 * apart);
    memset(m->from, 1, 2 * apart);
    m->to = m->from + apart;
    return wf_pool_new(m->r->out->threads, &m->pool, err);
}

/* ---- a worker's thread ---- */

static wf_status open_bare(member *m, wf_err *err)
{
    const wf_bench_stage *s = m->r->stage;
    const char *addresses[WF_BENCH_TASKS];

    for (uint32_t i = 0; i < s->of.n_ps; i++)
        addresses[i] = s->conf->ps[s->of.n_ps + i].address;
    return wf_bare_open(addresses, s->of.n_ps, s->of.bytes, WF_SLICE_BYTES, &m->r->stop, &m->bare,
                        err);
}

static wf_status open_dense(member *m, wf_err *err)
{
    WF_TRY(open_bare(m, err));
    return m->index == 0 ? prepare_copies(m, err) : WF_OK;
}

/* Batches name so many rows together that caches do not hold what they are in. */
static wf_status open_table(member *m, wf_err *err)
{
    const wf_bench_case *of = &m->r->stage->of;
    size_t n = BATCHES, most = (size_t)WF_MIN(of->drawn, of->rows);

    WF_TRY(wf_bench_ids_make(of->draw, of->rows, of->drawn, n, m->index, &m->ids, err));
    if (m->index > 0)
        return WF_OK;
    m->r->out->named = (double)m->ids.first[n] / (double)n;
    return of->is_apart ? WF_OK : wf_flat_open(of->rows, of->dim, most, of->n_ps, &m->flat, err);
}

/* An optimizer makes no difference to a pull alone. */
static bool is_measured(const rounds *r, const wf_bench_work *work)
{
    return work->pushes || r->out->slots == 0 || r->stage->of.draw;
}

static wf_status do_weft(member *m, const wf_bench_work *work, int64_t *took_ns, wf_err *err)
{
    wf_bench_rows rows[WF_BENCH_BATCHES];
    uint32_t n = wf_bench_worker_batches(m->worker, work);

    if (!m->r->stage->of.draw)
        return wf_bench_worker_do(m->worker, work, NULL, took_ns, err);
    for (uint32_t i = 0; i < n; i++)
        rows[i].ids = wf_bench_ids_of(&m->ids, m->batch++, &rows[i].n);
    return wf_bench_worker_do(m->worker, work, rows, took_ns, err);
}

/* Of a table the first member does it for all. */
static bool is_beside(const member *m)
{
    return m->bare || m->flat;
}

static wf_status do_beside(member *m, const wf_bench_work *work, int64_t *took_ns, wf_err *err)
{
    const uint64_t *ids;
    int64_t began_ns;
    size_t n;

    if (m->bare)
        return wf_bare_do(m->bare, work, took_ns, err);
    ids = wf_bench_ids_of(&m->ids, m->flat_batch++, &n);
    began_ns = wf_now_ns();
    (void)wf_flat_do(m->flat, work, ids, n);
    *took_ns = wf_now_ns() - began_ns;
    return WF_OK;
}

static wf_status warm_up(member *m, wf_err *err)
{
    static const wf_bench_work pull = {"pull", false, true};
    int64_t took_ns;

    if (m->r->stage->of.draw) /* a push is of rows that were pulled */
        WF_TRY(do_weft(m, &pull, &took_ns, err));
    for (int i = 0; i < WARM_UPS; i++)
        for (size_t k = 0; k < WF_BENCH_WORKS; k++) {
            if (!is_measured(m->r, &wf_bench_works[k]) || (i > 0 && !wf_bench_works[k].pushes))
                continue;
            WF_TRY(do_weft(m, &wf_bench_works[k], &took_ns, err));
            if (i == 0 && is_beside(m))
                WF_TRY(do_beside(m, &wf_bench_works[k], &took_ns, err));
        }
    return WF_OK;
}

/* So many times one kind of work, over weft and then by what stands beside it. */
static wf_status take_turns(member *m, size_t k, uint64_t times, bool *goes_on, wf_err *err)
{
    const wf_bench_work *work = &wf_bench_works[k];
    int64_t took_ns;

    *goes_on = gate(m->r);
    for (uint64_t i = 0; *goes_on && i < times; i++) {
        WF_TRY(do_weft(m, work, &took_ns, err));
        wf_samples_add(&m->weft[k], took_ns);
    }
    *goes_on = *goes_on && gate(m->r);
    for (uint64_t i = 0; *goes_on && is_beside(m) && i < times; i++) {
        WF_TRY(do_beside(m, work, &took_ns, err));
        wf_samples_add(&m->echo[k], took_ns);
    }
    return WF_OK;
}

/* Of a push: the variable, or the rows of a table that a batch may name. */
static size_t sent_bytes(const rounds *r)
{
    const wf_bench_case *of = &r->stage->of;

    return of->draw ? of->drawn * of->dim * sizeof(float) : of->bytes;
}

/* The first thread decides for all. */
static bool go_on(member *m, uint64_t round)
{
    rounds *r = m->r;

    if (m->index == 0) {
        uint64_t steps = r->stage->of.steps,
                 least = sent_bytes(r) > TURN_BYTES ? LEAST_OF_LARGE : LEAST_ROUNDS;

        r->goes_on = steps ? m->steps < steps : round < least || wf_now_ns() < r->end_ns;
    }
    return gate(r) && r->goes_on;
}

static wf_status make_rounds(member *m, wf_err *err)
{
    uint64_t steps = m->r->stage->of.steps,
             times = WF_MIN(WF_MAX(TURN_BYTES / sent_bytes(m->r), (size_t)1), (size_t)MOST_A_TURN);
    bool goes_on = true;

    for (uint64_t round = 0; goes_on && go_on(m, round); round++) {
        if (steps)
            times = WF_MIN(times, steps - m->steps);
        for (size_t k = 0; goes_on && k < WF_BENCH_WORKS; k++)
            if (is_measured(m->r, &wf_bench_works[k]))
                WF_TRY(take_turns(m, k, times, &goes_on, err));
        m->steps += times;
        goes_on = goes_on && gate(m->r);
        if (goes_on && m->from)
            copy(m, times);
    }
    return WF_OK;
}

static void *be_worker(void *arg)
{
    member *m = arg;
    wf_err err = {0};
    wf_status rc = wf_bench_worker_open(m->r->stage, m->index, &m->r->stop, &m->worker, &err);

    if (rc == WF_OK && m->r->stage->of.draw)
        rc = open_table(m, &err);
    else if (rc == WF_OK)
        rc = open_dense(m, &err);
    if (rc == WF_OK)
        rc = warm_up(m, &err);
    if (rc == WF_OK && gate(m->r))
        rc = make_rounds(m, &err);
    if (rc != WF_OK)
        stop_all(m->r, rc, &err);
    wf_bench_worker_close(&m->worker);
    wf_bare_close(&m->bare);
    wf_bench_ids_close(&m->ids);
    wf_flat_close(&m->flat);
    wf_pool_free(&m->pool);
    free(m->from);
    pthread_mutex_lock(&m->r->lock);
    m->r->ended++;
    pthread_mutex_unlock(&m->r->lock);
    return NULL;
}

/* ---- flat loops by themselves ---- */

/* Where the memory does not do for the ps and the flat arrays at one time: before the ps start, for
 * half of the time. */
static wf_status do_flat_apart(rounds *r, const wf_bench_case *of, bool (*stopped)(void),
                               wf_err *err)
{
    int64_t end_ns = wf_now_ns() + of->budget_ns / 2;
    member m = {.r = r};
    wf_status rc = wf_bench_ids_make(of->draw, of->rows, of->drawn, BATCHES, 0, &m.ids, err);

    if (rc == WF_OK)
        rc = wf_flat_open(of->rows, of->dim, (size_t)WF_MIN(of->drawn, of->rows), of->n_ps, &m.flat,
                          err);
    for (uint64_t round = 0; rc == WF_OK && (round < LEAST_ROUNDS || wf_now_ns() < end_ns); round++)
        for (size_t k = 0; rc == WF_OK && k < WF_BENCH_WORKS; k++) {
            int64_t took_ns;

            rc = stopped() ? wf_fail(err, WF_STOPPED, NULL, "the measurement was stopped")
                           : do_beside(&m, &wf_bench_works[k], &took_ns, err);
            if (rc == WF_OK && round > 0) /* the first touches what is read again */
                wf_samples_add(&r->out->bare[k], took_ns);
        }
    wf_flat_close(&m.flat);
    wf_bench_ids_close(&m.ids);
    return rc;
}

/* ---- this thread ---- */

static bool all_ended(rounds *r, uint32_t n)
{
    bool all;

    pthread_mutex_lock(&r->lock);
    all = r->ended == n;
    pthread_mutex_unlock(&r->lock);
    return all;
}

static void be_master(rounds *r, wf_bench_stage *s, uint32_t n, bool (*stopped)(void))
{
    while (!all_ended(r, n)) {
        wf_err err = {0};
        wf_status rc = wf_bench_stage_turn(s, &err);

        if (rc == WF_OK && stopped())
            rc = wf_fail(&err, WF_STOPPED, NULL, "the measurement was stopped");
        if (rc != WF_OK && !atomic_load(&r->stop))
            stop_all(r, rc, &err);
    }
}

static wf_status run_members(rounds *r, wf_bench_stage *s, bool (*stopped)(void), wf_err *err)
{
    member *members = calloc(s->of.n_workers, sizeof *members);
    uint32_t n = 0;

    if (!members)
        return wf_fail_nomem(err, s->of.n_workers * sizeof *members);
    for (; n < s->of.n_workers; n++) {
        int why;

        members[n] = (member){.r = r, .index = n};
        why = pthread_create(&members[n].thread, NULL, be_worker, &members[n]);
        if (why) {
            wf_err said;
            wf_status rc = wf_fail_errno(&said, why, NULL, "cannot start a thread");

            stop_all(r, rc, &said);
            break;
        }
    }
    be_master(r, s, n, stopped);
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(members[i].thread, NULL);
        for (size_t k = 0; k < WF_BENCH_WORKS; k++) {
            wf_samples_merge(&r->out->weft[k], &members[i].weft[k]);
            wf_samples_merge(&r->out->bare[k], &members[i].echo[k]);
            wf_samples_close(&members[i].weft[k]);
            wf_samples_close(&members[i].echo[k]);
        }
    }
    free(members);
    if (r->rc != WF_OK)
        *err = r->err;
    return r->rc;
}

wf_status wf_bench_rounds(const wf_bench_case *of, bool (*stopped)(void), wf_bench_result *out,
                          wf_err *err)
{
    rounds r = {
        .out = out, .lock = PTHREAD_MUTEX_INITIALIZER, .all_here = PTHREAD_COND_INITIALIZER};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    wf_bench_stage *s = NULL;
    wf_status rc = of->is_apart ? do_flat_apart(&r, of, stopped, err) : WF_OK;

    out->line_ns = wf_cache_line_ns();
    if (rc == WF_OK)
        rc = wf_bench_stage_open(of, stopped, &s, err);
    if (rc == WF_OK) {
        r.stage = s;
        out->slots = wf_opt_n_slots(&s->opt);
        out->threads = (uint32_t)WF_MIN(WF_MAX(processors, 1L), (long)WF_POOL_MAX);
        out->copied = WF_MIN(WF_MAX(of->bytes, LEAST_COPIED), MOST_COPIED);
        rc = run_members(&r, s, stopped, err);
    }
    wf_bench_stage_close(&s);
    return wf_err_wrap(err, rc, "%s, %s, %s", of->wire->name, of->draw ? of->draw->name : of->size,
                       of->rule);
}

void wf_bench_result_close(wf_bench_result *r)
{
    for (size_t k = 0; k < WF_BENCH_WORKS; k++) {
        wf_samples_close(&r->weft[k]);
        wf_samples_close(&r->bare[k]);
    }
    wf_samples_close(&r->copy_one);
    wf_samples_close(&r->copy_all);
}
