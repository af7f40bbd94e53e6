/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_stage.h - the client of the parameter servers beside a ps played by hand,
 * over a transport in memory. */
#ifndef WF_TESTS_EXCHANGE_STAGE_H
#define WF_TESTS_EXCHANGE_STAGE_H

#include "common/base/clock.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/parts.h"
#include "tests/kit/memnet.h"
#include "worker/exchange.h"
#include "worker/exchange/ps_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS WF_NS_PER_MS
enum { ELEMENTS = 64 << 10, FROZEN = 30, GENERATION = 4, KINDS = WF_N_KINDS };
enum { MOVING_LIST = 0, FROZEN_LIST = 1 };

static uint32_t bounded;      /* of the start that begin_with makes */
static wf_coding push_coding; /* of its first variable, which keeps so much with top-k */
static const double push_kept = 0.01;

typedef struct world {
    wf_memnet nets;
    wf_net *ps, *worker;
    wf_peer *to_ps, *to_worker;
    wf_exchange *exchange;
    wf_peer *to_other; /* another ps, which never answers */
    uint32_t map;      /* in the newest message that the ps has got */
    int64_t now_ns;
    bool denies, silent;   /* the ps: to each message; to none */
    wf_status says;        /* of the worker to each message */
    uint32_t got[KINDS];   /* by the ps */
    uint32_t listed[2][4]; /* the slices of each list that the worker has registered last */
    uint32_t n_listed[2], n_pulls[2], request[2];
    uint32_t clock;       /* of the last pull */
    uint32_t joins;       /* that the ps has got */
    uint32_t clock_asked; /* the request of the last one, and its step */
    uint32_t step_asked;
    wf_part pushed;  /* the last part that the ps has got, */
    uint64_t digest; /* of its bytes */
    double *sums;    /* [ELEMENTS]: of all gradients; NULL: they are not read */
} world;

static inline wf_net *new_net(world *w, wf_task self, uint64_t incarnation)
{
    wf_net_conf c = wf_memnet_conf(&w->nets, self, incarnation);

    return wf_memnet_new(&c);
}

static inline void answer(world *w, const wf_msg *m)
{
    wf_msg *reply = NULL;

    if (w->silent || (!w->denies && m->head.kind != WF_LIST))
        return;
    assert_int_equal(wf_net_msg(w->ps, w->denies ? WF_DENIED : WF_LIST_OK, &reply, NULL), WF_OK);
    reply->head.generation = GENERATION;
    reply->head.request = w->denies ? m->head.generation : m->head.request;
    if (w->denies) {
        Weft__Denied body = WEFT__DENIED__INIT;

        body.map = m->head.map;
        assert_int_equal(wf_control_put(reply, &body.base, NULL), WF_OK);
    }
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_CONTROL, 0, &reply, NULL), WF_OK);
}

static inline void note_list(world *w, const wf_msg *m)
{
    uint32_t list = m->head.request;
    Weft__List *body = NULL;

    assert_in_range(list, MOVING_LIST, FROZEN_LIST);
    assert_int_equal(wf_control_get(m, &weft__list__descriptor, &body, NULL), WF_OK);
    assert_in_range(body->n_slices, 0, 4);
    w->n_listed[list] = (uint32_t)body->n_slices;
    for (size_t i = 0; i < body->n_slices; i++)
        w->listed[list][i] = body->slices[i];
    wf_control_free(&body);
}

static inline void note_pull(world *w, const wf_msg *m)
{
    wf_part rows[WF_MAX_PARTS];
    wf_pull_body body;
    uint32_t n;

    assert_int_equal(wf_pull_get(m, &body, rows, &n, NULL), WF_OK);
    assert_in_range(body.list, MOVING_LIST, FROZEN_LIST);
    w->n_pulls[body.list]++;
    w->request[body.list] = m->head.request;
    w->clock = body.clock;
}

static inline void note_clock(world *w, const wf_msg *m)
{
    wf_clock_body body;

    assert_int_equal(wf_clock_get(m, &body, NULL), WF_OK);
    w->joins += body.state == WF_CLOCK_JOINS;
    w->clock_asked = m->head.request;
    w->step_asked = m->head.step;
}

/* The ps whose word counts answers with a clock. */
static inline void give_clock(world *w, uint32_t clock)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(w->ps, WF_CLOCK_OK, &m, NULL), WF_OK);
    assert_int_equal(wf_clock_put(m, (wf_clock_body){WF_CLOCK_JOINS, clock}, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = w->clock_asked;
    m->head.step = w->step_asked;
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_CONTROL, 0, &m, NULL), WF_OK);
}

/* Answers the last pull of a list with one slice, all of whose elements are `value`. */
static inline void give(world *w, uint32_t list, uint32_t slice, uint32_t count, float value)
{
    wf_buf *weights = wf_buf_new(count * sizeof(float));
    wf_part part = {.slice = slice, .codec = WF_CODEC_F32, .bytes = weights->bytes};
    wf_msg *m = NULL;

    for (uint32_t i = 0; i < count; i++)
        ((float *)weights->data)[i] = value;
    assert_int_equal(wf_net_msg(w->ps, WF_WEIGHTS, &m, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = w->request[list];
    assert_int_equal(wf_msg_add_frame(m, weights, weights->data, weights->bytes, NULL), WF_OK);
    assert_int_equal(wf_parts_put(m, &part, 1, NULL), WF_OK);
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_DATA, 0, &m, NULL), WF_OK);
    wf_buf_unref(&weights);
}

/* A part without a codec, of which nobody has looked at the frame. */
static inline void give_nothing(world *w, uint32_t list, uint32_t slice)
{
    wf_part part = {.slice = slice, .codec = WF_CODEC_NONE, .frame = 200};
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(w->ps, WF_WEIGHTS, &m, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = w->request[list];
    assert_int_equal(wf_parts_put(m, &part, 1, NULL), WF_OK);
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_DATA, 0, &m, NULL), WF_OK);
}

static inline void note_push(world *w, const wf_msg *m)
{
    static float values[ELEMENTS];
    wf_part parts[WF_MAX_PARTS];
    wf_push_body body;
    uint32_t n;

    assert_int_equal(wf_push_get(m, &body, parts, &n, NULL), WF_OK);
    for (uint32_t i = 0; w->sums && i < n; i++) {
        wf_coded c;

        w->pushed = parts[i];
        if (parts[i].codec == WF_CODEC_NONE)
            continue;
        c = wf_part_coded(m, &parts[i]);
        assert_int_equal(c.n, ELEMENTS);
        assert_int_equal(wf_coded_check(&c, NULL), WF_OK);
        w->digest = wf_part_checksum(c.data, c.bytes);
        wf_coded_read(&c, 0, ELEMENTS, values);
        for (uint32_t k = 0; k < ELEMENTS; k++)
            w->sums[k] += (double)values[k];
    }
}

static inline void run_ps(world *w)
{
    wf_event ev;

    wf_net_poll(w->ps, w->now_ns);
    while (wf_net_event(w->ps, w->now_ns, &ev)) {
        w->to_worker = ev.peer;
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        w->got[ev.msg->head.kind]++;
        w->map = ev.msg->head.map;
        if (ev.msg->head.kind == WF_LIST)
            note_list(w, ev.msg);
        if (ev.msg->head.kind == WF_PULL)
            note_pull(w, ev.msg);
        if (ev.msg->head.kind == WF_CLOCK)
            note_clock(w, ev.msg);
        if (ev.msg->head.kind == WF_PUSH)
            note_push(w, ev.msg);
        answer(w, ev.msg);
        wf_net_free_msg(w->ps, &ev.msg);
    }
    wf_net_flush(w->ps, w->now_ns);
}

static inline void run_worker(world *w)
{
    wf_event ev;

    wf_net_poll(w->worker, w->now_ns);
    while (wf_net_event(w->worker, w->now_ns, &ev)) {
        if (ev.kind == WF_EV_UP)
            assert_int_equal(wf_exchange_on_up(w->exchange, ev.peer, NULL), WF_OK);
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        assert_int_equal(wf_exchange_on_message(w->exchange, ev.peer, ev.msg, w->now_ns, NULL),
                         w->says);
        wf_net_free_msg(w->worker, &ev.msg);
    }
    assert_int_equal(wf_exchange_retry(w->exchange, w->now_ns, NULL), WF_OK);
    wf_net_flush(w->worker, w->now_ns);
}

static inline void turn(world *w, int64_t ms)
{
    for (int64_t k = 0; k <= ms / 10; k++) {
        for (int i = 0; i < 3; i++) {
            run_worker(w);
            run_ps(w);
        }
        w->now_ns += 10 * MS;
    }
}

static inline int begin_with(void **state, uint32_t n_variables, uint32_t n_slices,
                             uint32_t first_ps)
{
    static int64_t dims[] = {ELEMENTS, FROZEN};
    static const Weft__Slice places[] = {
        {.count = ELEMENTS},
        {.variable = 1, .count = 10},
        {.variable = 1, .offset = 10, .count = FROZEN - 10},
        {.variable = 1, .offset = FROZEN},
    };
    static Weft__Variable variables[2], *variable_list[2];
    static Weft__Slice slices[4], *slice_list[4];
    static Weft__Member members[2], *member_list[2] = {&members[0], &members[1]};
    static Weft__View view;
    static Weft__Start start;
    static const uint64_t incarnations[] = {2, 4};
    static world w;

    weft__start__init(&start);
    weft__view__init(&view);
    for (uint32_t i = 0; i < 2; i++) {
        weft__member__init(&members[i]);
        members[i].role = WF_ROLE_PS;
        members[i].index = i;
        members[i].incarnation = incarnations[i];
    }
    for (uint32_t i = 0; i < n_variables; i++) {
        weft__variable__init(&variables[i]);
        variables[i].kind = i == 0 ? WF_KIND_TRAINABLE : WF_KIND_FROZEN;
        variables[i].dims = &dims[i];
        variables[i].n_dims = 1;
        variables[i].push_coding = i == 0 ? push_coding : WF_CODING_F32;
        variables[i].push_kept = push_kept;
        variable_list[i] = &variables[i];
    }
    for (uint32_t i = 0; i < n_slices; i++) {
        weft__slice__init(&slices[i]);
        slices[i].variable = places[i].variable;
        slices[i].offset = places[i].offset;
        slices[i].count = places[i].count;
        slices[i].ps = i == 0 ? first_ps : 0;
        slice_list[i] = &slices[i];
    }
    view.members = member_list;
    view.n_members = 2;
    start.strategy = "parameter_server";
    start.variables = variable_list;
    start.n_variables = n_variables;
    start.slices = slice_list;
    start.n_slices = n_slices;
    start.view = &view;
    start.bounded = bounded;
    w = (world){.now_ns = 1000 * MS};
    wf_memnet_init(&w.nets, "demo");
    w.ps = new_net(&w, (wf_task){WF_ROLE_PS, 0}, incarnations[0]);
    wf_memnet_listen(&w.nets, w.ps, "p");
    w.worker = new_net(&w, (wf_task){WF_ROLE_WORKER, 0}, 3);
    w.to_ps = wf_memnet_dial(&w.nets, w.worker, (wf_task){WF_ROLE_PS, 0}, "p");
    w.to_other = wf_memnet_dial(&w.nets, w.worker, (wf_task){WF_ROLE_PS, 1}, "q");
    assert_int_equal(wf_exchange_open(&(wf_exchange_conf){.start = &start,
                                                          .net = w.worker,
                                                          .ps = (wf_peer *[]){w.to_ps, w.to_other},
                                                          .n_ps = 2,
                                                          .job = 1,
                                                          .generation = GENERATION,
                                                          .map = GENERATION},
                                      &w.exchange, NULL),
                     WF_OK);
    *state = &w;
    return 0;
}

static inline int begin(void **state)
{
    return begin_with(state, 1, 1, 0);
}

/* Workers wait for each other. */
static inline int begin_bounded(void **state)
{
    bounded = 1;
    begin_with(state, 1, 1, 0);
    bounded = 0;
    return 0;
}

static inline int begin_frozen(void **state)
{
    return begin_with(state, 2, 3, 0);
}

/* One of the slices has no elements. */
static inline int begin_empty(void **state)
{
    return begin_with(state, 2, 4, 0);
}

static inline int end(void **state)
{
    world *w = *state;

    wf_exchange_free(&w->exchange);
    wf_net_free(&w->worker, 0);
    wf_net_free(&w->ps, 0);
    wf_memnet_close(&w->nets);
    return 0;
}

static inline void send_push_ok(world *w, uint32_t step)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(w->ps, WF_PUSH_OK, &m, NULL), WF_OK);
    assert_int_equal(wf_slices_put(m, (uint32_t[]){0}, 1, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.step = step;
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_CONTROL, 0, &m, NULL), WF_OK);
    turn(w, 20);
}

static inline void push(world *w, uint32_t step)
{
    memset(wf_exchange_gradient(w->exchange, step, 0), 0, ELEMENTS * sizeof(float));
    assert_int_equal(wf_exchange_push(w->exchange, step, 0, NULL), WF_OK);
    assert_int_equal(wf_exchange_end_step(w->exchange, step, NULL), WF_OK);
}

#endif
