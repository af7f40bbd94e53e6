/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_worker.c - a worker is started, trains a split and holds for a checkpoint while
 * memory ends; the gradients of a step are summed; and one is coded for a ps. The master is the
 * test's, and has all the memory that it wants; the job has no variables, and no ps. */
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/wire/coding.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "tests/kit/idle_shell.h"
#include "tests/kit/memnet.h"
#include "tests/unit/nomem.h"
#include "worker/gradients.h"
#include "worker/worker.h"

#define MS WF_NS_PER_MS
enum { JOB = 1, GENERATION = 1, CUT = 7, STEPS = 5, COUNT = 100, BATCHES = 3 };

typedef struct world {
    wf_memnet nets;
    wf_net *master, *net; /* net: the worker's */
    wf_peer *to_worker;
    wf_worker *worker;
    int64_t now_ns;
    wf_idle_shell shell;
    wf_err not_ready; /* what a start came to */
    uint32_t got[WF_N_KINDS];
} world;

/* ---- everybody's turn ---- */

static void note_start(world *w, const wf_msg *m)
{
    Weft__Outcome *body = NULL;

    wf_assert(wf_control_get(m, &weft__outcome__descriptor, &body, NULL) == WF_OK);
    if (body->status != WF_OK)
        wf_fail(&w->not_ready, (wf_status)body->status, NULL, "%s", body->what);
    wf_control_free(&body);
}

static void run_master(world *w)
{
    bool was = wf_nomem_spare(true);
    wf_event ev;

    wf_net_poll(w->master, w->now_ns);
    while (wf_net_event(w->master, w->now_ns, &ev)) {
        w->to_worker = ev.kind == WF_EV_DOWN ? NULL : ev.peer;
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        w->got[ev.msg->head.kind]++;
        if (ev.msg->head.kind == WF_START_OK)
            note_start(w, ev.msg);
        wf_net_free_msg(w->master, &ev.msg);
    }
    wf_net_flush(w->master, w->now_ns);
    wf_nomem_spare(was);
}

static wf_status run_worker(world *w, wf_err *err)
{
    wf_event ev;

    wf_net_poll(w->net, w->now_ns);
    while (wf_net_event(w->net, w->now_ns, &ev))
        WF_TRY(wf_worker_on_event(w->worker, &ev, w->now_ns, err));
    WF_TRY(wf_worker_advance(w->worker, w->now_ns, err));
    WF_TRY(wf_idle_shell_end_step(&w->shell, w->worker, err));
    wf_net_flush(w->net, w->now_ns);
    return WF_OK;
}

static wf_status turn(world *w, wf_err *err)
{
    for (int i = 0; i < 60; i++) {
        WF_TRY(run_worker(w, err));
        run_master(w);
        w->now_ns += 100 * MS;
    }
    return WF_OK;
}

/* Turns until the master has got a message of the kind; when memory is back it must come, unless
 * the worker says that it cannot go on. */
static wf_status await(world *w, uint16_t kind, const char *what, wf_err *err)
{
    WF_TRY(turn(w, err));
    if (w->not_ready.status != WF_OK)
        return wf_fail(err, w->not_ready.status, NULL, "%s", w->not_ready.what);
    if (w->got[kind] == 0 && w->got[WF_FAULT] == 0) {
        wf_nomem_spare(true);
        WF_TRY(turn(w, err));
    }
    if (w->got[WF_FAULT])
        return wf_fail(err, WF_NOMEM, NULL, "the worker tells the master of a fault");
    return w->got[kind] ? WF_OK : wrong(err, "no %s", what);
}

static void say(world *w, uint16_t kind, uint32_t cut, const ProtobufCMessage *body)
{
    bool was = wf_nomem_spare(true);
    wf_msg *m = NULL;

    wf_assert(w->to_worker && wf_net_msg(w->master, kind, &m, NULL) == WF_OK);
    wf_assert(wf_control_put(m, body, NULL) == WF_OK);
    m->head.job = JOB;
    m->head.generation = GENERATION;
    m->head.cut = cut;
    wf_assert(wf_net_send(w->master, w->to_worker, WF_LANE_CONTROL, 0, &m, NULL) == WF_OK);
    wf_nomem_spare(was);
}

static wf_status open_worker(world *w, wf_err *err)
{
    wf_net_conf c = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_WORKER, 0}, 2);
    wf_worker_conf conf = {.incarnation = 2,
                           .ops = wf_idle_shell_ops(&w->shell),
                           .progress_ns = 1000 * MS,
                           .session = ""};
    wf_transport *t = NULL;
    wf_peer *master = NULL;

    WF_TRY(wf_net_new(&c, &w->net, err));
    WF_TRY(wf_mem_dial(w->nets.mem, "m", &t, err));
    WF_TRY(wf_net_dial(w->net, (wf_task){WF_ROLE_MASTER, 0}, "m", &t, &master, err));
    return wf_worker_new(&conf, w->net, master, &w->worker, err);
}

static wf_status play(world *w, wf_err *err)
{
    Weft__Start body = WEFT__START__INIT;
    Weft__View view = WEFT__VIEW__INIT;
    Weft__Split split = WEFT__SPLIT__INIT;
    Weft__Cut cut = WEFT__CUT__INIT;
    body.job = (char *)"one";
    body.strategy = (char *)"parameter_server";
    body.view = &view;
    split.end = STEPS;
    cut.chief = 99; /* another worker */
    WF_TRY(open_worker(w, err));
    WF_TRY(await(w, WF_REGISTER, "register", err));
    say(w, WF_START, 0, &body.base);
    WF_TRY(await(w, WF_SPLIT_WANT, "wish for a split", err));
    say(w, WF_SPLIT, 0, &split.base);
    WF_TRY(await(w, WF_SPLIT_DONE, "end of the split", err));
    if (w->shell.steps != STEPS)
        return wrong(err, "%u steps of %d", w->shell.steps, STEPS);
    say(w, WF_CUT_OPEN, CUT, &cut.base);
    return await(w, WF_CUT_REPORT, "report for the checkpoint", err);
}

static wf_status train(void *unused, wf_err *err)
{
    world w = {.now_ns = 1000 * MS, .shell.records = STEPS};
    bool was = wf_nomem_spare(true);
    wf_net_conf c;
    wf_status rc;

    (void)unused;
    wf_memnet_init(&w.nets, "demo");
    c = wf_memnet_conf(&w.nets, (wf_task){WF_ROLE_MASTER, 0}, 1);
    w.master = wf_memnet_new(&c);
    wf_memnet_listen(&w.nets, w.master, "m");
    wf_nomem_spare(was);
    rc = play(&w, err);
    wf_nomem_spare(was); /* it may have been spared from some point on */
    wf_worker_free(&w.worker);
    wf_net_free(&w.net, 0);
    wf_net_free(&w.master, 0);
    wf_memnet_close(&w.nets);
    return rc;
}

/* ---- gradients ---- */

static wf_status leave(void *arg, uint32_t variable, wf_err *err)
{
    (void)variable, (void)err;
    ++*(int *)arg;
    return WF_OK;
}

/* A step of three batches, all of ones. */
static wf_status sum_batches(wf_gradients *g, float push[2][COUNT], wf_err *err)
{
    int left = 0;

    for (int b = 0; b < BATCHES; b++) {
        wf_gradients_begin(g, &(uint64_t){1}, BATCHES, b == 0, b == BATCHES - 1);
        for (uint32_t v = 0; v < 2; v++) {
            float *to = wf_gradients_into(g, 0, v, push[v]);

            if (!to)
                return wf_fail_nomem(err, COUNT * sizeof *to);
            for (int i = 0; i < COUNT; i++)
                to[i] = 1;
            left += wf_gradients_take(g, v);
        }
    }
    WF_TRY(wf_gradients_end(g, leave, &left, err));
    return left == 2 ? WF_OK : wrong(err, "%d variables left", left);
}

static wf_status make_gradients(void *of, wf_err *err)
{
    static const wf_gradients_variable rows[] = {{COUNT, true}, {COUNT, false}};
    float push[2][COUNT] = {{0}};
    wf_gradients *g = NULL;
    wf_pool *pool = NULL;
    wf_status rc = wf_pool_new(1, &pool, err);

    if (rc == WF_OK)
        rc = wf_gradients_new(
            &(wf_gradients_conf){.opt = of, .variables = rows, .n = 2, .pool = pool}, &g, err);
    if (rc == WF_OK)
        rc = sum_batches(g, push, err);
    for (int i = 0; rc == WF_OK && i < COUNT; i++)
        if (push[0][i] < 0.999f || push[0][i] > 1.001f)
            rc = wrong(err, "the mean of ones is %g", (double)push[0][i]);
    wf_gradients_free(&g);
    wf_pool_free(&pool);
    return rc;
}

/* ---- codings ---- */

enum { NUMBERS = 2 * WF_CODING_LEAST };

static wf_status push_steps(wf_exchange *x, wf_err *err)
{
    for (uint32_t step = 1; step <= 2; step++) {
        float *g = wf_exchange_gradient(x, step, 0);

        if (!g)
            return wf_fail_nomem(err, NUMBERS * sizeof *g);
        for (int i = 0; i < NUMBERS; i++)
            g[i] = 1;
        WF_TRY(wf_exchange_push(x, step, 0, err));
        WF_TRY(wf_exchange_end_step(x, step, err));
    }
    return x->pushed_bytes * 3 < x->plain_bytes ? WF_OK : wrong(err, "nothing was saved");
}

/* Of the exchange with a ps that does not answer, and a job of one variable in two slices. */
static wf_status code_gradients(void *unused, wf_err *err)
{
    int64_t dims[] = {NUMBERS};
    Weft__Variable v = WEFT__VARIABLE__INIT, *variables[] = {&v};
    Weft__Slice a = WEFT__SLICE__INIT, b = WEFT__SLICE__INIT, *slices[] = {&a, &b};
    Weft__Start start = WEFT__START__INIT;
    wf_peer *ps = NULL, *list[1];
    wf_exchange *x = NULL;
    wf_memnet nets;
    wf_net *net = NULL;
    wf_net_conf c;
    wf_status rc;
    bool was = wf_nomem_spare(true);

    (void)unused;
    wf_memnet_init(&nets, "demo");
    c = wf_memnet_conf(&nets, (wf_task){WF_ROLE_WORKER, 0}, 2);
    net = wf_memnet_new(&c);
    ps = wf_memnet_dial(&nets, net, (wf_task){WF_ROLE_PS, 0}, "p");
    wf_nomem_spare(was);
    v.kind = WF_KIND_TRAINABLE;
    v.dims = dims;
    v.n_dims = 1;
    v.push_coding = WF_CODING_INT8;
    a.count = b.count = b.offset = NUMBERS / 2;
    start.strategy = (char *)"parameter_server";
    start.variables = variables;
    start.n_variables = 1;
    start.slices = slices;
    start.n_slices = 2;
    list[0] = ps;
    rc = wf_exchange_open(&(wf_exchange_conf){.start = &start, .net = net, .ps = list, .n_ps = 1},
                          &x, err);
    if (rc == WF_OK)
        rc = push_steps(x, err);
    wf_exchange_free(&x);
    wf_net_free(&net, 0);
    wf_memnet_close(&nets);
    return rc;
}

static void a_split_is_trained(void **state)
{
    (void)state;
    assert_survives(train, NULL);
}

static void gradients_of_batches_are_summed(void **state)
{
    static const char *const clip[] = {"clipnorm"};
    static const double most[] = {1000};
    wf_opt opt;

    (void)state;
    assert_int_equal(wf_opt_init(&opt, "sgd", 1, clip, most, NULL), WF_OK);
    assert_survives(make_gradients, &opt);
}

static void gradients_are_coded(void **state)
{
    (void)state;
    assert_survives(code_gradients, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_is_trained),
        cmocka_unit_test(gradients_of_batches_are_summed),
        cmocka_unit_test(gradients_are_coded),
    };

    wf_log_init("", (wf_log_level)(WF_ERROR + 1));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
