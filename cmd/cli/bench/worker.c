/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/worker.c */
#include "cmd/cli/bench/worker.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/wait.h"
#include "worker/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LOOK_MS = 50, LONGEST_S = 30, TURNS = WF_BENCH_BATCHES / WF_BENCH_AT_ONCE };

struct wf_bench_worker {
    const wf_bench_stage *stage;
    const atomic_bool *stop;
    uint32_t index, step;
    wf_wires *wires;
    wf_net *net;
    wf_peer *ps[WF_BENCH_TASKS];
    wf_exchange *exchange;
    wf_spin spin; /* as weft-worker's */
};

void wf_bench_worker_close(wf_bench_worker **w)
{
    if (!*w)
        return;
    wf_exchange_free(&(*w)->exchange);
    wf_net_free(&(*w)->net, 0);
    wf_wires_free(&(*w)->wires);
    free(*w);
    *w = NULL;
}

static wf_status connect_all(wf_bench_worker *w, wf_err *err)
{
    const wf_bench_stage *s = w->stage;
    wf_net_conf conf = wf_net_defaults();

    conf.self = (wf_task){WF_ROLE_WORKER, w->index};
    conf.incarnation = s->incarnation[w->index];
    conf.pid = (uint64_t)getpid();
    conf.cluster = s->conf->name;
    WF_TRY(wf_wires_new(2 * s->of.n_ps, &w->wires, err));
    wf_wires_share(w->wires, s->of.wire->shares);
    WF_TRY(wf_net_new(&conf, &w->net, err));
    for (uint32_t i = 0; i < s->of.n_ps; i++) {
        const char *address = s->conf->ps[i].address;
        wf_transport *t = NULL;

        WF_TRY(wf_wires_dial(w->wires, address, &t, err));
        WF_TRY(wf_net_dial(w->net, (wf_task){WF_ROLE_PS, i}, address, &t, &w->ps[i], err));
    }
    return wf_exchange_open(&(wf_exchange_conf){.start = s->start,
                                                .net = w->net,
                                                .ps = w->ps,
                                                .n_ps = s->of.n_ps,
                                                .job = WF_BENCH_JOB,
                                                .generation = WF_BENCH_GENERATION,
                                                .map = WF_BENCH_GENERATION,
                                                .view = WF_BENCH_VIEW,
                                                .pipeline = s->of.at_once - 1,
                                                .incarnation = conf.incarnation},
                            &w->exchange, err);
}

wf_status wf_bench_worker_open(const wf_bench_stage *s, uint32_t index, const atomic_bool *stop,
                               wf_bench_worker **out, wf_err *err)
{
    wf_bench_worker *w = calloc(1, sizeof *w);

    *out = w;
    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->stage = s;
    w->index = index;
    w->stop = stop;
    return wf_err_wrap(err, connect_all(w, err), "worker %u", index);
}

static wf_status on_event(wf_bench_worker *w, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc = WF_OK;

    if (ev->kind == WF_EV_UP) {
        rc = wf_exchange_on_up(w->exchange, ev->peer, err);
    } else if (ev->kind == WF_EV_REFUSED) {
        *err = ev->err;
        rc = ev->err.status;
    } else if (ev->kind == WF_EV_MESSAGE) {
        rc = wf_exchange_on_message(w->exchange, ev->peer, ev->msg, now_ns, err);
    }
    wf_net_free_msg(w->net, &ev->msg);
    return rc;
}

/* One turn of the loop; waits when nothing has arrived. */
static wf_status turn(wf_bench_worker *w, wf_err *err)
{
    int64_t now_ns = wf_now_ns(), wait_ns;
    bool heard = false;
    wf_transport *const *t;
    wf_event ev;
    size_t n;

    wf_net_poll(w->net, now_ns);
    while (wf_net_event(w->net, now_ns, &ev)) {
        heard = true;
        WF_TRY(on_event(w, &ev, now_ns, err));
    }
    WF_TRY(wf_exchange_retry(w->exchange, now_ns, err));
    wf_net_flush(w->net, now_ns);
    if (heard)
        return WF_OK;
    wait_ns = wf_net_deadline(w->net, now_ns) - now_ns;
    t = wf_net_transports(w->net, &n);
    wf_wait(t, n, -1, WF_MIN(wait_ns / WF_NS_PER_MS + 1, (int64_t)LOOK_MS), &w->spin);
    return WF_OK;
}

/* What is waited for: acknowledgements up to a step, and the weights of some sets, a bit for each.
 */
typedef struct goal {
    uint32_t acked, sets;
} goal;

static bool is_reached(const wf_bench_worker *w, goal g)
{
    bool reached = w->exchange->acked >= g.acked;

    for (uint32_t i = 0; i < w->stage->of.at_once; i++)
        reached = reached && (!(g.sets >> i & 1) || wf_exchange_ready(w->exchange, (int)i));
    return reached;
}

static wf_status is_late(const wf_bench_worker *w, const wf_bench_work *work, wf_err *err)
{
    wf_waiting late = {0};
    char whom[32];

    wf_exchange_name_late(w->exchange, work->pulls ? WF_EXCHANGE_WEIGHTS : WF_EXCHANGE_ACKS,
                          work->pulls ? 0 : w->step, &late);
    return wf_fail(err, WF_TIMEOUT, "look whether the machine is overloaded",
                   "worker %u: %s has not answered a %s within %d s%s", w->index,
                   wf_task_str(late.whom, whom, sizeof whom), work->name, LONGEST_S, late.what);
}

/* A buffer that is new is written once: else its pages would all be the one page of zeroes. */
static void fill(float *gradient, size_t n)
{
    for (size_t i = 0; gradient[n - 1] == 0 && i < n; i++)
        gradient[i] = 1e-3F;
}

static wf_status fill_step(wf_bench_worker *w, uint32_t step, wf_err *err)
{
    const wf_bench_case *of = &w->stage->of;
    size_t n = of->draw ? (size_t)WF_MIN(of->drawn, of->rows) * of->dim : of->bytes / sizeof(float);
    float *gradient = wf_exchange_gradient(w->exchange, step, 0);

    if (!gradient)
        return wf_fail_nomem(err, n * sizeof *gradient);
    fill(gradient, n);
    return WF_OK;
}

/* The rows of a step, into a set of weights. */
static wf_status ask(wf_bench_worker *w, const wf_bench_rows *rows, uint32_t set, uint32_t step,
                     wf_err *err)
{
    if (rows)
        WF_TRY(wf_exchange_name_rows(w->exchange, (int)set, 0, rows->ids, rows->n, err));
    WF_TRY(wf_exchange_want(w->exchange, (int)set, step, err));
    wf_net_flush(w->net, wf_now_ns());
    return WF_OK;
}

/* Its gradients lie in memory that was written before. */
static wf_status push(wf_bench_worker *w, wf_err *err)
{
    uint32_t step = ++w->step;

    WF_TRY(fill_step(w, step, err));
    WF_TRY(wf_exchange_push(w->exchange, step, 0, err));
    return wf_exchange_end_step(w->exchange, step, err);
}

static wf_status finish(wf_bench_worker *w, const wf_bench_work *work, goal g, wf_err *err)
{
    int64_t began_ns = wf_now_ns();

    while (!is_reached(w, g)) {
        WF_TRY(turn(w, err));
        if (atomic_load(w->stop))
            return wf_fail(err, WF_STOPPED, NULL, "the measurement was stopped");
        if (wf_now_ns() - began_ns > LONGEST_S * WF_NS_PER_S)
            return is_late(w, work, err);
    }
    return WF_OK;
}

static goal all_sets(const wf_bench_worker *w)
{
    return (goal){.acked = w->step, .sets = (1u << w->stage->of.at_once) - 1};
}

/* So many batches as may be under way: the rows of the steps that come next. */
static wf_status pull_together(wf_bench_worker *w, const wf_bench_rows rows[], wf_err *err)
{
    static const wf_bench_work pull = {"pull", false, true};

    for (uint32_t i = 0; i < w->stage->of.at_once; i++)
        WF_TRY(ask(w, &rows[i], i, w->step + 1 + i, err));
    return finish(w, &pull, all_sets(w), err);
}

static wf_status push_together(wf_bench_worker *w, const wf_bench_work *work, wf_err *err)
{
    for (uint32_t i = 0; i < w->stage->of.at_once; i++)
        WF_TRY(push(w, err));
    return finish(w, work, (goal){.acked = w->step}, err);
}

/* Batches [n], one behind the other: each as soon as there is a set of weights for it. */
static wf_status pull_in_turn(wf_bench_worker *w, const wf_bench_work *work,
                              const wf_bench_rows rows[], uint32_t n, wf_err *err)
{
    uint32_t sets = w->stage->of.at_once, first = w->step + 1;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t set = i % sets;

        if (i >= sets) /* the push of the batch before the last `sets` is applied then */
            WF_TRY(finish(w, work,
                          (goal){.acked = work->pushes ? w->step + 1 - sets : 0, .sets = 1u << set},
                          err));
        if (work->pushes)
            WF_TRY(push(w, err));
        WF_TRY(
            ask(w, rows ? &rows[i] : NULL, set, work->pushes ? w->step + sets : first + set, err));
    }
    return finish(w, work, all_sets(w), err);
}

uint32_t wf_bench_worker_batches(const wf_bench_worker *w, const wf_bench_work *work)
{
    uint32_t n = w->stage->of.at_once;

    return n > 1 && work->pulls ? TURNS * n : n;
}

wf_status wf_bench_worker_do(wf_bench_worker *w, const wf_bench_work *work,
                             const wf_bench_rows rows[], int64_t *took_ns, wf_err *err)
{
    uint32_t n = wf_bench_worker_batches(w, work);
    int64_t began_ns;

    if (work->pushes)
        WF_TRY(fill_step(w, w->step + 1, err));
    began_ns = wf_now_ns();
    if (work->pulls)
        WF_TRY(pull_in_turn(w, work, rows, n, err));
    else
        WF_TRY(push_together(w, work, err));
    *took_ns = (wf_now_ns() - began_ns) / n;
    /* A push of rows needs a pull of them. */
    return rows && !work->pulls ? pull_together(w, rows, err) : WF_OK;
}
