/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_ps.c - what a worker's exchange sends to a ps that does not let it in, and
 * how it comes to frozen weights. The ps is played by hand, over a transport in memory. */
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

static uint32_t bounded; /* of the start that begin_with makes */

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
} world;

static wf_net *new_net(world *w, wf_task self, uint64_t incarnation)
{
    wf_net_conf c = wf_memnet_conf(&w->nets, self, incarnation);

    return wf_memnet_new(&c);
}

static void answer(world *w, const wf_msg *m)
{
    wf_msg *reply = NULL;

    if (w->silent || (!w->denies && m->head.kind != WF_LIST))
        return;
    assert_int_equal(wf_net_msg(w->ps, w->denies ? WF_DENIED : WF_LIST_OK, &reply, NULL), WF_OK);
    reply->head.generation = GENERATION;
    reply->head.request = w->denies ? m->head.generation : m->head.request;
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_CONTROL, 0, &reply, NULL), WF_OK);
}

static void note_list(world *w, const wf_msg *m)
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

static void note_pull(world *w, const wf_msg *m)
{
    wf_pull_body body;

    assert_int_equal(wf_pull_get(m, &body, NULL), WF_OK);
    assert_in_range(body.list, MOVING_LIST, FROZEN_LIST);
    w->n_pulls[body.list]++;
    w->request[body.list] = m->head.request;
    w->clock = body.clock;
}

static void note_clock(world *w, const wf_msg *m)
{
    wf_clock_body body;

    assert_int_equal(wf_clock_get(m, &body, NULL), WF_OK);
    w->joins += body.state == WF_CLOCK_JOINS;
    w->clock_asked = m->head.request;
    w->step_asked = m->head.step;
}

/* The ps whose word counts answers with a clock. */
static void give_clock(world *w, uint32_t clock)
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
static void give(world *w, uint32_t list, uint32_t slice, uint32_t count, float value)
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
static void give_nothing(world *w, uint32_t list, uint32_t slice)
{
    wf_part part = {.slice = slice, .codec = WF_CODEC_NONE, .frame = 200};
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(w->ps, WF_WEIGHTS, &m, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = w->request[list];
    assert_int_equal(wf_parts_put(m, &part, 1, NULL), WF_OK);
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_DATA, 0, &m, NULL), WF_OK);
}

static void run_ps(world *w)
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
        answer(w, ev.msg);
        wf_net_free_msg(w->ps, &ev.msg);
    }
    wf_net_flush(w->ps, w->now_ns);
}

static void run_worker(world *w)
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

static void turn(world *w, int64_t ms)
{
    for (int64_t k = 0; k <= ms / 10; k++) {
        for (int i = 0; i < 3; i++) {
            run_worker(w);
            run_ps(w);
        }
        w->now_ns += 10 * MS;
    }
}

static int begin_with(void **state, uint32_t n_variables, uint32_t n_slices, uint32_t first_ps)
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

static int begin(void **state)
{
    return begin_with(state, 1, 1, 0);
}

/* Workers wait for each other. */
static int begin_bounded(void **state)
{
    bounded = 1;
    begin_with(state, 1, 1, 0);
    bounded = 0;
    return 0;
}

static int begin_frozen(void **state)
{
    return begin_with(state, 2, 3, 0);
}

/* One of the slices has no elements. */
static int begin_empty(void **state)
{
    return begin_with(state, 2, 4, 0);
}

static int end(void **state)
{
    world *w = *state;

    wf_exchange_free(&w->exchange);
    wf_net_free(&w->worker, 0);
    wf_net_free(&w->ps, 0);
    wf_memnet_close(&w->nets);
    return 0;
}

static void push(world *w, uint32_t step)
{
    memset(wf_exchange_gradient(w->exchange, step, 0), 0, ELEMENTS * sizeof(float));
    assert_int_equal(wf_exchange_push(w->exchange, step, 0, NULL), WF_OK);
    assert_int_equal(wf_exchange_end_step(w->exchange, step, NULL), WF_OK);
}

static void a_ps_that_denies_costs_a_small_message_now_and_then(void **state)
{
    world *w = *state;

    w->denies = true;
    turn(w, 100);
    push(w, 1);
    turn(w, 10000);
    assert_int_equal(w->got[WF_PUSH], 0); /* nothing but the list, before the list is registered */
    assert_in_range(w->got[WF_LIST], 8, 20);
    w->denies = false;
    turn(w, 1500);
    assert_int_equal(w->got[WF_PUSH], 1);
}

static void after_a_denial_all_is_sent_again_once_the_list_is_registered(void **state)
{
    world *w = *state;

    turn(w, 100);
    assert_int_equal(w->got[WF_LIST], 1);
    w->denies = true; /* its view has not this worker any more, for a while */
    push(w, 1);
    push(w, 2);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 3, NULL), WF_OK);
    turn(w, 3000);
    assert_int_equal(w->got[WF_PUSH], 2);
    w->denies = false;
    turn(w, 1500);
    assert_int_equal(w->got[WF_PUSH], 4);
    assert_int_equal(w->got[WF_PULL], 2);
}

static void frozen_weights_are_pulled_once_and_before_the_first_step(void **state)
{
    world *w = *state;
    wf_waiting late = {0};

    turn(w, 100);
    assert_int_equal(w->n_listed[MOVING_LIST], 1);
    assert_int_equal(w->n_listed[FROZEN_LIST], 2);
    assert_int_equal(w->n_pulls[FROZEN_LIST], 1); /* nobody has asked for a step yet */
    assert_int_equal(wf_exchange_want(w->exchange, 1, 1, NULL), WF_OK);
    turn(w, 20);
    give(w, MOVING_LIST, 0, ELEMENTS, 0);
    turn(w, 20);
    assert_false(wf_exchange_ready(w->exchange, 1)); /* K4 */
    wf_exchange_name_late(w->exchange, WF_EXCHANGE_FROZEN, 0, &late);
    assert_int_equal(late.whom.role, WF_ROLE_PS);
    assert_int_equal(late.whom.index, 0);
    give(w, FROZEN_LIST, 1, 10, 3);
    give(w, FROZEN_LIST, 2, FROZEN - 10, 4);
    turn(w, 20);
    assert_true(wf_exchange_ready(w->exchange, 1));
    for (int set = 0; set < WF_WEIGHT_SETS; set++)
        for (uint32_t i = 0; i < FROZEN; i++)
            assert_true(wf_exchange_weights(w->exchange, set, 1)[i] == (i < 10 ? 3 : 4));
    assert_int_equal(wf_exchange_want(w->exchange, 0, 2, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->n_pulls[MOVING_LIST], 2);
    assert_int_equal(w->n_pulls[FROZEN_LIST], 1);
}

static void a_pull_waits_until_this_worker_has_joined(void **state)
{
    world *w = *state;

    turn(w, 20);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 41, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->joins, 1);
    assert_int_equal(w->step_asked, 41);
    assert_int_equal(w->n_pulls[MOVING_LIST], 0);
    give_clock(w, 7);
    turn(w, 20);
    assert_int_equal(w->n_pulls[MOVING_LIST], 1);
    assert_int_equal(w->clock, 7);
    push(w, 1);
    assert_int_equal(wf_exchange_want(w->exchange, 0, 42, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->clock, 8);
    /* An evaluation is nobody's step. */
    assert_int_equal(wf_exchange_want(w->exchange, WF_EVAL_SET, 42, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->clock, 0);
    assert_int_equal(wf_exchange_leave(w->exchange, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->got[WF_CLOCK], 2);
    assert_false(wf_exchange_ready(w->exchange, 0));
    assert_int_equal(wf_exchange_leave(w->exchange, NULL), WF_OK);
    give_clock(w, 100); /* an answer that comes too late */
    turn(w, 20);
    assert_int_equal(w->got[WF_CLOCK], 2);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 43, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->joins, 2);
    give_clock(w, 9);
    turn(w, 20);
    assert_int_equal(w->clock, 9);
}

static void what_a_clock_said_is_said_again_once_the_ps_lets_this_worker_in(void **state)
{
    world *w = *state;

    w->denies = true;
    turn(w, 20);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 1, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->got[WF_CLOCK], 0);
    w->denies = false;
    turn(w, 1500);
    assert_int_equal(w->joins, 1);
    assert_int_equal(wf_exchange_leave(w->exchange, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(w->got[WF_CLOCK], 2);
}

static void a_fresh_link_asks_for_the_frozen_slices_that_have_not_come(void **state)
{
    world *w = *state;

    turn(w, 100);
    give(w, FROZEN_LIST, 1, 10, 3);
    turn(w, 20);
    assert_int_equal(wf_exchange_frozen_left(w->exchange), 1);
    assert_int_equal(wf_exchange_on_up(w->exchange, w->to_ps, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->n_pulls[FROZEN_LIST], 2);
    assert_int_equal(w->n_listed[FROZEN_LIST], 1);
    assert_int_equal(w->listed[FROZEN_LIST][0], 2);
    give(w, FROZEN_LIST, 2, FROZEN - 10, 4);
    turn(w, 20);
    assert_int_equal(wf_exchange_frozen_left(w->exchange), 0);
    assert_int_equal(wf_exchange_on_up(w->exchange, w->to_ps, NULL), WF_OK);
    turn(w, 100);
    assert_int_equal(w->n_pulls[FROZEN_LIST], 2); /* all are here */
}

static void a_part_without_a_codec_is_no_weights(void **state)
{
    world *w = *state;

    turn(w, 100);
    w->says = WF_PROTO;
    give_nothing(w, FROZEN_LIST, 3);
    turn(w, 20);
    assert_int_equal(wf_exchange_frozen_left(w->exchange), 3);
}

/* ---- slices that move ---- */

static uint32_t late_with_acks(const world *w, uint32_t step)
{
    wf_waiting late = {0};

    wf_exchange_name_late(w->exchange, WF_EXCHANGE_ACKS, step, &late);
    assert_int_equal(late.whom.role, WF_ROLE_PS);
    return late.whom.index;
}

/* The ps that the worker believes to have slice 0. */
static uint32_t place_of_slice(const world *w)
{
    return ((const wf_client *)w->exchange)->slices[0].ps;
}

/* What was denied was sent by the map `of`; slice 0 has moved to a ps at the version `map`. */
static void deny(world *w, uint32_t map, uint32_t of, uint32_t ps)
{
    Weft__Denied body = WEFT__DENIED__INIT;
    Weft__MapChange change = WEFT__MAP_CHANGE__INIT, *moved[] = {&change};
    wf_msg *m = NULL;

    change.ps = ps;
    change.version = map;
    body.map = of;
    body.moved = moved;
    body.n_moved = 1;
    assert_int_equal(wf_net_msg(w->ps, WF_DENIED, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = GENERATION;
    m->head.map = map;
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_CONTROL, 0, &m, NULL), WF_OK);
}

static void send_push_ok(world *w, uint32_t step)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(w->ps, WF_PUSH_OK, &m, NULL), WF_OK);
    assert_int_equal(wf_slices_put(m, (uint32_t[]){0}, 1, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.step = step;
    assert_int_equal(wf_net_send(w->ps, w->to_worker, WF_LANE_CONTROL, 0, &m, NULL), WF_OK);
    turn(w, 20);
}

static void a_newer_map_is_taken_over_at_once_and_all_is_sent_again_by_it(void **state)
{
    world *w = *state;

    turn(w, 100);
    push(w, 1);
    turn(w, 20);
    assert_int_equal(w->got[WF_PUSH], 1);
    assert_int_equal(w->map, GENERATION);
    deny(w, 9, 0, 0);
    turn(w, 20); /* sooner than a denial is answered */
    assert_int_equal(w->got[WF_LIST], 2);
    assert_int_equal(w->got[WF_PUSH], 2);
    assert_int_equal(w->map, 9);
    deny(w, 9, GENERATION, 0); /* of the push, which has been sent again since */
    turn(w, 200);
    assert_int_equal(w->got[WF_LIST], 2);
    deny(w, 9, 9, 0); /* of something that was sent by the newest map */
    turn(w, 200);
    assert_int_equal(w->got[WF_LIST], 3);
    send_push_ok(w, 1);
    assert_int_equal(wf_exchange_in_flight(w->exchange), 0);
}

static void what_the_old_ps_says_of_a_moved_slice_counts_for_nothing(void **state)
{
    world *w = *state;

    turn(w, 100);
    push(w, 1);
    assert_int_equal(wf_exchange_want(w->exchange, 1, 2, NULL), WF_OK);
    turn(w, 20);
    assert_int_equal(late_with_acks(w, 1), 0);
    deny(w, 9, 0, 1);
    turn(w, 20);
    assert_int_equal(place_of_slice(w), 1);
    assert_int_equal(w->n_listed[MOVING_LIST], 0);
    assert_int_equal(w->got[WF_PUSH], 1); /* it belongs to the other, which is away */
    send_push_ok(w, 1);
    give(w, MOVING_LIST, 0, ELEMENTS, 5);
    turn(w, 20);
    assert_int_equal(wf_exchange_in_flight(w->exchange), 1);
    assert_int_equal(late_with_acks(w, 1), 1);
    assert_false(wf_exchange_ready(w->exchange, 1));
    deny(w, 8, 0, 0); /* of an older place */
    turn(w, 20);
    assert_int_equal(place_of_slice(w), 1);
    deny(w, 10, 0, 0); /* it comes back */
    turn(w, 20);
    assert_int_equal(w->got[WF_PUSH], 2);
    send_push_ok(w, 1);
    assert_int_equal(wf_exchange_in_flight(w->exchange), 0);
}

static void a_slice_does_not_move_to_a_ps_that_is_not_known(void **state)
{
    world *w = *state;

    turn(w, 100);
    w->says = WF_PROTO;
    deny(w, 9, 0, 2);
    turn(w, 20);
    assert_int_equal(place_of_slice(w), 0);
}

/* A denial counts as a whole: a row that cannot be undoes the one before it. */
static void a_denial_with_a_bad_row_moves_nothing(void **state)
{
    world *w = *state;
    Weft__Denied body = WEFT__DENIED__INIT;
    Weft__MapChange rows[2] = {WEFT__MAP_CHANGE__INIT, WEFT__MAP_CHANGE__INIT};
    Weft__MapChange *moved[] = {&rows[0], &rows[1]};
    wf_msg *m = NULL;

    turn(w, 100);
    rows[0].ps = 1;
    rows[0].version = rows[1].version = 9;
    rows[1].slice = 99;
    body.moved = moved;
    body.n_moved = 2;
    assert_int_equal(wf_net_msg(w->worker, WF_DENIED, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = GENERATION;
    m->head.map = 9;
    assert_int_equal(wf_exchange_on_message(w->exchange, w->to_ps, m, w->now_ns, NULL), WF_PROTO);
    wf_net_free_msg(w->worker, &m);
    assert_int_equal(place_of_slice(w), 0);
}

static int begin_back(void **state)
{
    return begin_with(state, 2, 3, 1);
}

/* Slice 0 was on ps 1 at the set-up, went to ps 0 and came back before this worker began. */
static void a_list_denied_after_another_ps_told_the_moves_is_sent_again(void **state)
{
    world *w = *state;
    Weft__Denied body = WEFT__DENIED__INIT;
    Weft__MapChange change = WEFT__MAP_CHANGE__INIT, *moved[] = {&change};
    wf_msg *m = NULL;

    w->silent = true;
    turn(w, 100);
    assert_int_equal(w->got[WF_LIST], 2);
    change.ps = 1;
    change.version = 11;
    body.map = GENERATION;
    body.moved = moved;
    body.n_moved = 1;
    assert_int_equal(wf_net_msg(w->worker, WF_DENIED, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    m->head.generation = GENERATION;
    m->head.request = GENERATION;
    m->head.map = 11;
    assert_int_equal(wf_exchange_on_message(w->exchange, w->to_other, m, w->now_ns, NULL), WF_OK);
    wf_net_free_msg(w->worker, &m);
    deny(w, 11, GENERATION, 1); /* ps 0's answer to the two lists */
    deny(w, 11, GENERATION, 1);
    w->silent = false;
    turn(w, 20000);
    assert_in_range(w->got[WF_LIST], 3, 100);
}

static uint8_t own[ELEMENTS * sizeof(float)] __attribute__((aligned(64)));

static void keep(void *data, void *hint)
{
    (void)data, (void)hint;
}

static wf_buf *own_buf(wf_transport *t, const wf_route *to, size_t bytes)
{
    (void)t, (void)to;
    return wf_buf_wrap(own, bytes, keep, NULL);
}

static void a_gradient_is_born_in_memory_of_the_transport_to_its_ps(void **state)
{
    static wf_transport_ops ops;
    world *w = *state;
    size_t n;

    ops = *wf_net_transports(w->worker, &n)[0]->ops; /* to the ps that has the variable */
    ops.buf = own_buf;
    wf_net_transports(w->worker, &n)[0]->ops = &ops;
    assert_ptr_equal(wf_exchange_gradient(w->exchange, 1, 0), own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_gradient_is_born_in_memory_of_the_transport_to_its_ps,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_ps_that_denies_costs_a_small_message_now_and_then, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            after_a_denial_all_is_sent_again_once_the_list_is_registered, begin, end),
        cmocka_unit_test_setup_teardown(frozen_weights_are_pulled_once_and_before_the_first_step,
                                        begin_frozen, end),
        cmocka_unit_test_setup_teardown(a_pull_waits_until_this_worker_has_joined, begin_bounded,
                                        end),
        cmocka_unit_test_setup_teardown(
            what_a_clock_said_is_said_again_once_the_ps_lets_this_worker_in, begin_bounded, end),
        cmocka_unit_test_setup_teardown(a_fresh_link_asks_for_the_frozen_slices_that_have_not_come,
                                        begin_frozen, end),
        cmocka_unit_test_setup_teardown(
            a_newer_map_is_taken_over_at_once_and_all_is_sent_again_by_it, begin, end),
        cmocka_unit_test_setup_teardown(what_the_old_ps_says_of_a_moved_slice_counts_for_nothing,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_slice_does_not_move_to_a_ps_that_is_not_known, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_denial_with_a_bad_row_moves_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_part_without_a_codec_is_no_weights, begin_empty, end),
        cmocka_unit_test_setup_teardown(a_list_denied_after_another_ps_told_the_moves_is_sent_again,
                                        begin_back, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
