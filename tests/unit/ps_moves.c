/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ps_moves.c - a slice goes from one ps to another: with all its state, to one owner, or
 * not at all. Two ps between a master and a worker played by hand, over a transport in memory. */
#include "common/base/clock.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/parts.h"
#include "ps/ps.h"
#include "tests/kit/logged.h"
#include "tests/kit/memdisk.h"
#include "tests/kit/memnet.h"
#include "tests/kit/ps_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS WF_NS_PER_MS
enum {
    N_PS = 2,
    SLICES = 4,
    ELEMENTS = 10,
    JOB = 3,
    GENERATION = 2,
    VIEW = 5,
    WORKER = 11,
    MOST = 64
};

static const char *const addresses[N_PS] = {"p0", "p1"};

typedef struct player {
    wf_net *net;
    wf_peer *ps[N_PS]; /* links to the ps; NULL: down */
    wf_msg *got[MOST];
    uint32_t n;
} player;

typedef struct world {
    wf_memnet nets;
    wf_memdisk *disk;
    struct server {
        struct world *w;
        wf_net *net;
        wf_ps *ps;
        bool stands_still;
    } servers[N_PS];
    player master, worker;
    int64_t now_ns;
    uint32_t lost_words; /* state_ok that get lost on their way, with the link */
} world;

/* ---- everybody's turn ---- */

static void run_server(struct server *s)
{
    wf_event ev;
    wf_err err;

    if (s->stands_still)
        return;
    wf_net_poll(s->net, s->w->now_ns);
    while (wf_net_event(s->net, s->w->now_ns, &ev))
        assert_int_equal(wf_ps_on_event(s->ps, &ev, s->w->now_ns, &err), WF_OK);
    assert_int_equal(wf_ps_advance(s->ps, s->w->now_ns, &err), WF_OK);
    wf_net_flush(s->net, s->w->now_ns);
}

static void run_player(world *w, player *p)
{
    wf_event ev;

    wf_net_poll(p->net, w->now_ns);
    while (wf_net_event(p->net, w->now_ns, &ev)) {
        if (ev.kind == WF_EV_UP)
            p->ps[ev.peer->task.index] = ev.peer;
        if (ev.kind == WF_EV_MESSAGE) {
            assert_true(p->n < MOST);
            p->got[p->n++] = ev.msg;
        }
    }
    wf_net_flush(p->net, w->now_ns);
}

static void turn(world *w, int64_t ms)
{
    for (int64_t k = 0; k <= ms / 10; k++) {
        for (int i = 0; i < 4; i++) {
            run_player(w, &w->master);
            if (w->worker.net)
                run_player(w, &w->worker);
            for (int at = 0; at < N_PS; at++)
                run_server(&w->servers[at]);
        }
        w->now_ns += 10 * MS;
    }
}

static void forget(player *p)
{
    for (; p->n > 0; p->n--)
        wf_net_free_msg(p->net, &p->got[p->n - 1]);
}

static const wf_msg *newest(const player *p, uint16_t kind)
{
    for (uint32_t i = p->n; i > 0; i--)
        if (p->got[i - 1]->head.kind == kind)
            return p->got[i - 1];
    return NULL;
}

/* ---- what the master and the worker send ---- */

static void send_message(player *p, uint32_t ps, wf_msg *m, uint32_t map)
{
    assert_non_null(p->ps[ps]);
    m->head.job = JOB;
    m->head.generation = GENERATION;
    m->head.map = map;
    m->head.view = VIEW;
    assert_int_equal(wf_net_send(p->net, p->ps[ps], WF_LANE_CONTROL, 0, &m, NULL), WF_OK);
}

static void send_body(player *p, uint32_t ps, uint16_t kind, const ProtobufCMessage *body)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(p->net, kind, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, body, NULL), WF_OK);
    send_message(p, ps, m, GENERATION);
}

/* All slices are on ps 0; the rule has a slot. */
static void set_up(world *w, uint32_t ps)
{
    Weft__Member rows[] = {WEFT__MEMBER__INIT, WEFT__MEMBER__INIT, WEFT__MEMBER__INIT};
    Weft__Member *members[] = {&rows[0], &rows[1], &rows[2]};
    Weft__View view = WEFT__VIEW__INIT;
    wf_ps_job job;

    for (uint32_t i = 0; i < N_PS; i++) {
        rows[i].role = WF_ROLE_PS;
        rows[i].index = i;
        rows[i].incarnation = 20 + i;
    }
    rows[N_PS].role = WF_ROLE_WORKER;
    rows[N_PS].incarnation = WORKER;
    view.members = members;
    view.n_members = N_PS + 1;
    wf_ps_job_init(&job, SLICES, ELEMENTS, "momentum");
    job.variable.slice_kind = "logged";
    job.setup.view = &view;
    send_body(&w->master, ps, WF_SETUP, &job.setup.base);
    turn(w, 20);
    assert_int_equal(wf_ps_generation(w->servers[ps].ps), GENERATION);
}

static void order_move_to(world *w, uint32_t slice, uint32_t to, uint32_t version,
                          const char *address)
{
    Weft__Move body = WEFT__MOVE__INIT;
    Weft__Member member = WEFT__MEMBER__INIT;

    member.role = WF_ROLE_PS;
    member.index = to;
    member.incarnation = 20 + to;
    member.address = (char *)address;
    body.slice = slice;
    body.to = &member;
    body.version = version;
    send_body(&w->master, 1 - to, WF_MOVE, &body.base);
}

static void order_move(world *w, uint32_t slice, uint32_t to, uint32_t version)
{
    order_move_to(w, slice, to, version, addresses[to]);
}

/* The status of the newest answer to a move. */
static wf_status moved(const world *w)
{
    const wf_msg *m = newest(&w->master, WF_MOVED);
    Weft__Moved *body = NULL;
    wf_status rc;

    assert_non_null(m);
    assert_int_equal(wf_control_get(m, &weft__moved__descriptor, &body, NULL), WF_OK);
    rc = (wf_status)body->status;
    wf_control_free(&body);
    return rc;
}

static void push(world *w, uint32_t ps, uint32_t slice, uint32_t step, uint32_t map)
{
    wf_buf *b = wf_buf_new(ELEMENTS * sizeof(float));
    wf_part part = {.slice = slice, .codec = WF_CODEC_F32, .bytes = b->bytes};
    wf_msg *m = NULL;

    for (uint32_t i = 0; i < ELEMENTS; i++)
        ((float *)b->data)[i] = (float)step;
    assert_int_equal(wf_net_msg(w->worker.net, WF_PUSH, &m, NULL), WF_OK);
    assert_int_equal(wf_msg_add_frame(m, b, b->data, b->bytes, NULL), WF_OK);
    assert_int_equal(wf_parts_put(m, &part, 1, NULL), WF_OK);
    m->head.step = step;
    send_message(&w->worker, ps, m, map);
    wf_buf_unref(&b);
    turn(w, 30);
}

static uint32_t acks(const world *w)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->worker.n; i++)
        n += w->worker.got[i]->head.kind == WF_PUSH_OK;
    return n;
}

/* The worker lists slices of a ps. */
static void list(world *w, uint32_t ps, uint32_t slices[], uint32_t n, uint32_t map)
{
    Weft__List body = WEFT__LIST__INIT;
    wf_msg *m = NULL;

    body.slices = slices;
    body.n_slices = n;
    assert_int_equal(wf_net_msg(w->worker.net, WF_LIST, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    send_message(&w->worker, ps, m, map);
    turn(w, 30);
    assert_non_null(newest(&w->worker, WF_LIST_OK));
}

/* Slice 1 has come to a ps, where the worker lists it. */
static void list_moved(world *w, uint32_t ps, uint32_t map)
{
    list(w, ps, (uint32_t[]){1}, 1, map);
}

/* Requires that the newest denial is of that map, and says where a slice is since `version`. */
static void assert_told(const world *w, uint32_t map, uint32_t version, uint32_t slice, uint32_t ps)
{
    const wf_msg *m = newest(&w->worker, WF_DENIED);
    Weft__Denied *body = NULL;

    assert_non_null(m);
    assert_int_equal(m->head.map, map);
    assert_int_equal(wf_control_get(m, &weft__denied__descriptor, &body, NULL), WF_OK);
    assert_int_equal(body->n_moved, 1);
    assert_int_equal(body->moved[0]->slice, slice);
    assert_int_equal(body->moved[0]->ps, ps);
    assert_int_equal(body->moved[0]->version, version);
    wf_control_free(&body);
}

static const wf_slice *find(const world *w, uint32_t ps, uint32_t slice)
{
    const wf_slice *s;

    for (uint32_t i = 0; (s = wf_ps_slice_at(w->servers[ps].ps, i)); i++)
        if (s->id == slice)
            return s;
    return NULL;
}

/* ---- the stage ---- */

static void write_initial(world *w)
{
    float values[SLICES * ELEMENTS];
    wf_ps_job job;

    for (int i = 0; i < SLICES * ELEMENTS; i++)
        values[i] = (float)i;
    wf_ps_job_init(&job, SLICES, ELEMENTS, "momentum");
    wf_ps_job_write(&job, wf_memdisk_disk(w->disk), values);
}

static wf_status no_save(void *arg, wf_ps_fork **f, wf_err *err)
{
    (void)arg, (void)f;
    return wf_fail(err, WF_IO, NULL, "no disk");
}

static wf_status dial(void *arg, wf_task task, const char *address, wf_transport **out, wf_err *err)
{
    (void)task;
    return wf_mem_dial(((world *)arg)->nets.mem, address, out, err);
}

static wf_status admit(void *arg, const wf_hello *hello, wf_err *err)
{
    return wf_ps_admit(((struct server *)arg)->ps, hello, err);
}

static void begin_server(world *w, uint32_t at)
{
    struct server *s = &w->servers[at];
    wf_net_conf conf = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_PS, at}, 20 + at);
    wf_peer *master;

    s->w = w;
    conf.admit = admit;
    conf.admit_arg = s;
    s->net = wf_memnet_new(&conf);
    wf_memnet_listen(&w->nets, s->net, addresses[at]);
    master = wf_memnet_dial(&w->nets, s->net, (wf_task){WF_ROLE_MASTER, 0}, "m");
    assert_int_equal(wf_ps_new(&(wf_ps_conf){.index = at,
                                             .incarnation = 20 + at,
                                             .disk = wf_memdisk_disk(w->disk),
                                             .kinds = wf_logged_kinds,
                                             .checksums = true,
                                             .ops = {.save = no_save, .dial = dial, .dial_arg = w}},
                               s->net, master, &s->ps, NULL),
                     WF_OK);
}

/* A worker that has pushed steps 1 and 2 of slice 1 to ps 0. Ps 1 is set up too, if it is to be. */
static world *begin_job(void **state, uint32_t n_set_up)
{
    world *w = *state;
    wf_net_conf conf = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_WORKER, 0}, WORKER);

    for (uint32_t i = 0; i < n_set_up; i++)
        set_up(w, i);
    w->worker.net = wf_memnet_new(&conf);
    for (uint32_t i = 0; i < N_PS; i++)
        wf_memnet_dial(&w->nets, w->worker.net, (wf_task){WF_ROLE_PS, i}, addresses[i]);
    turn(w, 100);
    push(w, 0, 1, 1, GENERATION);
    push(w, 0, 1, 2, GENERATION);
    assert_int_equal(acks(w), 2);
    return w;
}

static int begin(void **state)
{
    world *w = calloc(1, sizeof *w);
    wf_net_conf m;

    w->now_ns = 1000 * MS;
    w->disk = wf_memdisk_new();
    write_initial(w);
    wf_memnet_init(&w->nets, "demo");
    m = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_MASTER, 0}, 1);
    w->master.net = wf_memnet_new(&m);
    wf_memnet_listen(&w->nets, w->master.net, "m");
    for (uint32_t i = 0; i < N_PS; i++)
        begin_server(w, i);
    turn(w, 50);
    *state = w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;

    forget(&w->master);
    if (w->worker.net)
        forget(&w->worker);
    wf_net_free(&w->worker.net, 0);
    for (int i = 0; i < N_PS; i++) {
        wf_ps_free(&w->servers[i].ps);
        wf_net_free(&w->servers[i].net, 0);
    }
    wf_net_free(&w->master.net, 0);
    wf_memnet_close(&w->nets);
    wf_memdisk_free(&w->disk);
    free(w);
    return 0;
}

/* ---- tests ---- */

static void a_slice_moves_with_its_slots_its_log_and_what_it_has_seen(void **state)
{
    world *w = begin_job(state, 2);
    uint64_t digest = find(w, 0, 1)->ops->digest(find(w, 0, 1));

    order_move(w, 1, 1, 7);
    turn(w, 200);
    assert_int_equal(moved(w), WF_OK);
    assert_null(find(w, 0, 1));
    assert_non_null(find(w, 1, 1));
    assert_int_equal(find(w, 1, 1)->updates, 2);
    assert_int_equal(find(w, 1, 1)->ops->digest(find(w, 1, 1)), digest);
    list_moved(w, 1, 7);
    push(w, 1, 1, 2, 7); /* its acknowledgement was lost, for all that the worker knows */
    assert_int_equal(acks(w), 3);
    assert_int_equal(find(w, 1, 1)->updates, 2);
    push(w, 1, 1, 3, 7);
    assert_int_equal(acks(w), 4);
    assert_int_equal(find(w, 1, 1)->updates, 3);
}

/* The worker lists all slices of ps 0 but slice 1, which is on its way or gone. */
static void list_others(world *w, uint32_t map)
{
    list(w, 0, (uint32_t[]){0, 2, 3}, 3, map);
}

/* Two slices are on their way in turn. The word of the second has a newer map than the giver of the
 * first, whose own word is late. */
static void nothing_counts_before_a_new_list_by_whatever_map(void **state)
{
    world *w = begin_job(state, 2);

    order_move(w, 1, 1, 7);
    turn(w, 200);
    push(w, 0, 2, 3, 7); /* the map is an old one */
    push(w, 0, 2, 4, 99);
    push(w, 1, 1, 4, 99);
    assert_int_equal(acks(w), 2);
    assert_int_equal(find(w, 0, 2)->updates, 0);
    list_others(w, 99);
    push(w, 0, 2, 3, 99);
    push(w, 0, 2, 4, 99);
    assert_int_equal(acks(w), 4);
    assert_int_equal(find(w, 0, 2)->updates, 2);
}

static void a_worker_with_an_older_map_is_told_where_the_slice_is(void **state)
{
    world *w = begin_job(state, 2);

    order_move(w, 1, 1, 7);
    turn(w, 200);
    assert_told(w, 8, 7, 1, 1); /* without having asked */
    forget(&w->worker);
    push(w, 0, 2, 3, GENERATION); /* of a slice that has not moved */
    assert_told(w, 8, 7, 1, 1);
    forget(&w->worker);
    push(w, 0, 1, 3, 9); /* by a map that is newer for another slice's sake */
    assert_told(w, 8, 7, 1, 1);
    assert_int_equal(acks(w), 0);
    forget(&w->worker);
    push(w, 0, 2, 3, 7); /* as the taker has told it, before the giver's lists have ended */
    assert_told(w, 8, 7, 1, 1);
    list_others(w, 8);
    push(w, 0, 2, 3, 8);
    assert_int_equal(acks(w), 1);
}

/* A worker may hear of a generation before the ps does; it drops what is of another one. */
static void a_worker_of_another_generation_is_answered_in_its_own(void **state)
{
    world *w = begin_job(state, 2);
    Weft__List list = WEFT__LIST__INIT;
    const wf_msg *said;
    wf_msg *m = NULL;

    order_move(w, 1, 1, 7);
    turn(w, 200);
    forget(&w->worker);
    assert_int_equal(wf_net_msg(w->worker.net, WF_LIST, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &list.base, NULL), WF_OK);
    m->head.job = JOB;
    m->head.generation = GENERATION + 1;
    m->head.map = GENERATION + 1;
    assert_int_equal(wf_net_send(w->worker.net, w->worker.ps[0], WF_LANE_CONTROL, 0, &m, NULL),
                     WF_OK);
    turn(w, 100);
    said = newest(&w->worker, WF_DENIED);
    assert_non_null(said);
    assert_int_equal(said->head.job, JOB);
    assert_int_equal(said->head.generation, GENERATION + 1);
    assert_int_equal(said->head.request, GENERATION + 1);
    assert_int_equal(said->head.map, 0); /* moves of this generation are none of that one */
}

/* A carrier that loses the taker's word some times. */
static void lose_word(void *arg, const wf_packet *packet)
{
    world *w = arg;
    wf_packet p = *packet;

    if (p.msg->head.kind == WF_STATE_OK && w->lost_words > 0) {
        w->lost_words--;
        wf_mem_drop(w->nets.mem, &p);
        return;
    }
    wf_mem_deliver(w->nets.mem, &p);
}

static void a_slice_on_its_way_is_not_changed(void **state)
{
    world *w = begin_job(state, 2);

    w->lost_words = UINT32_MAX;
    wf_mem_set_carrier(w->nets.mem, lose_word, w);
    order_move(w, 1, 1, 7);
    turn(w, 100);
    push(w, 0, 1, 3, GENERATION);
    assert_int_equal(acks(w), 2);
    assert_non_null(newest(&w->worker, WF_DENIED));
    assert_int_equal(find(w, 0, 1)->updates, 2);
    push(w, 0, 2, 3, GENERATION); /* nor what was pushed behind what was denied */
    assert_int_equal(acks(w), 2);
    list_others(w, GENERATION);
    push(w, 0, 2, 3, GENERATION); /* others are */
    assert_int_equal(acks(w), 3);
    order_move(w, 2, 1, 9); /* one at a time */
    turn(w, 50);
    assert_int_equal(moved(w), WF_AGAIN);
    order_move(w, 1, 1, 7); /* the same again, as after a lost link */
    w->lost_words = 0;
    turn(w, 3000);
    assert_int_equal(moved(w), WF_OK);
    assert_non_null(find(w, 1, 1));
    order_move(w, 1, 1, 7); /* and once more */
    turn(w, 50);
    assert_int_equal(moved(w), WF_OK);
}

static void a_slice_that_the_other_ps_refuses_stays(void **state)
{
    world *w = begin_job(state, 1);
    Weft__View view = WEFT__VIEW__INIT;
    Weft__Member row = WEFT__MEMBER__INIT, *members[] = {&row};
    wf_msg *m = NULL;

    row.role = WF_ROLE_PS; /* it is let in there, where no job is set up */
    row.incarnation = 20;
    view.members = members;
    view.n_members = 1;
    assert_int_equal(wf_net_msg(w->master.net, WF_VIEW, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &view.base, NULL), WF_OK);
    send_message(&w->master, 1, m, 0);
    turn(w, 50);
    order_move(w, 1, 1, 7);
    turn(w, 2000);
    assert_int_equal(moved(w), WF_AGAIN);
    push(w, 0, 1, 3, GENERATION);
    assert_int_equal(acks(w), 3);
    assert_int_equal(find(w, 0, 1)->updates, 3);
    assert_null(find(w, 1, 1));
}

static void a_move_that_cannot_be_is_refused(void **state)
{
    world *w = begin_job(state, 2);

    order_move(w, SLICES, 1, 7); /* no such slice */
    turn(w, 50);
    assert_int_equal(moved(w), WF_NOTFOUND);
    order_move(w, 1, 1, GENERATION); /* not newer */
    turn(w, 50);
    assert_int_equal(moved(w), WF_INVALID);
    order_move(w, 1, 0, 7); /* of a slice that the other has */
    turn(w, 50);
    assert_int_equal(moved(w), WF_NOTFOUND);
    assert_int_equal(find(w, 0, 1)->updates, 2);
}

/* Workers do not wait for a taker that is dialled. */
static void a_slice_is_served_until_its_taker_is_reached(void **state)
{
    world *w = begin_job(state, 2);

    w->servers[1].stands_still = true;
    order_move(w, 1, 1, 7);
    turn(w, 100);
    push(w, 0, 1, 3, GENERATION);
    assert_int_equal(acks(w), 3);
    assert_int_equal(find(w, 0, 1)->updates, 3);
    w->servers[1].stands_still = false;
    turn(w, 2000);
    assert_int_equal(moved(w), WF_OK);
    assert_int_equal(find(w, 1, 1)->updates, 3);
    list_moved(w, 1, 7);
    push(w, 1, 1, 4, 7);
    assert_int_equal(find(w, 1, 1)->updates, 4);
}

static void a_taker_that_nobody_reaches_ends_the_move(void **state)
{
    world *w = begin_job(state, 2);

    order_move_to(w, 1, 1, 7, "nowhere");
    turn(w, 6000);
    assert_int_equal(moved(w), WF_TIMEOUT);
    assert_null(newest(&w->worker, WF_DENIED)); /* nobody was asked to wait */
    push(w, 0, 1, 3, GENERATION);
    assert_int_equal(find(w, 0, 1)->updates, 3);
    order_move(w, 1, 1, 8);
    turn(w, 200);
    assert_int_equal(moved(w), WF_OK);
}

/* The master is told what slices cost, and how long nobody served one that moved. */
static Weft__Load *load_of(const world *w, uint32_t ps)
{
    Weft__Load *body = NULL;

    for (uint32_t i = w->master.n; i > 0 && !body; i--) {
        const wf_msg *m = w->master.got[i - 1];

        if (m->head.kind == WF_LOAD && m->head.incarnation == 20 + ps)
            assert_int_equal(wf_control_get(m, &weft__load__descriptor, &body, NULL), WF_OK);
    }
    assert_non_null(body);
    return body;
}

static void what_slices_cost_is_told_each_second(void **state)
{
    world *w = begin_job(state, 2);
    Weft__Load *body;
    uint64_t held = 0;

    turn(w, 1100);
    forget(&w->master);
    push(w, 0, 2, 3, GENERATION);
    push(w, 0, 2, 4, GENERATION);
    push(w, 0, 3, 3, GENERATION);
    turn(w, 1100);
    body = load_of(w, 0);
    assert_int_equal(body->slices, SLICES);
    assert_in_range(body->time_ns / MS, 1000, 1100);
    assert_int_equal(body->parts, 3);
    assert_int_equal(body->pushed_bytes, 3 * ELEMENTS * sizeof(float));
    assert_int_equal(body->pulled_bytes, 0);
    assert_int_equal(body->n_most, SLICES);
    assert_int_equal(body->most[0]->slice, 2);
    assert_int_equal(body->most[0]->pushed_bytes, 2 * ELEMENTS * sizeof(float));
    assert_int_equal(body->most[1]->slice, 3);
    assert_int_equal(body->most[2]->slice, 0); /* equal ones by their number */
    for (size_t i = 0; i < body->n_most; i++)
        held += body->most[i]->held_bytes;
    assert_int_equal(body->held_bytes, held);
    assert_true(held >= SLICES * 2 * ELEMENTS * sizeof(float)); /* values and a slot */
    wf_control_free(&body);
    order_move(w, 2, 1, 7); /* what was counted before means nothing then */
    turn(w, 900);
    forget(&w->master);
    turn(w, 200);
    body = load_of(w, 0);
    assert_int_equal(body->slices, SLICES - 1);
    assert_int_equal(body->parts, 0);
    wf_control_free(&body);
    body = load_of(w, 1);
    assert_int_equal(body->slices, 1);
    assert_int_equal(body->most[0]->slice, 2);
    wf_control_free(&body);
}

/* A master that starts again learns what has moved. */
static void a_ps_registers_with_the_slices_that_came(void **state)
{
    world *w = begin_job(state, 2);
    Weft__Register *body = NULL;
    const wf_msg *m;

    order_move(w, 1, 1, 7);
    turn(w, 200);
    forget(&w->master);
    wf_net_drop(w->master.net, &w->master.ps[1]);
    turn(w, 2000);
    m = newest(&w->master, WF_REGISTER);
    assert_non_null(m);
    assert_int_equal(wf_control_get(m, &weft__register__descriptor, &body, NULL), WF_OK);
    assert_int_equal(body->map, 7); /* the taker's */
    assert_int_equal(body->n_moved, 1);
    assert_int_equal(body->moved[0]->slice, 1);
    assert_int_equal(body->moved[0]->ps, 1);
    assert_int_equal(body->moved[0]->version, 7);
    wf_control_free(&body);
}

static void a_lost_word_of_the_taker_comes_again(void **state)
{
    world *w = begin_job(state, 2);

    w->lost_words = 1;
    wf_mem_set_carrier(w->nets.mem, lose_word, w);
    order_move(w, 1, 1, 7);
    turn(w, 3000);
    assert_int_equal(w->lost_words, 0);
    assert_int_equal(moved(w), WF_OK);
    assert_int_equal(find(w, 1, 1)->updates, 2);
    assert_null(find(w, 0, 1));
}

static void a_slice_comes_back(void **state)
{
    world *w = begin_job(state, 2);

    order_move(w, 1, 1, 7);
    turn(w, 200);
    list_moved(w, 1, 7);
    push(w, 1, 1, 3, 7);
    order_move(w, 1, 0, 8);
    turn(w, 200);
    assert_int_equal(moved(w), WF_OK);
    assert_null(find(w, 1, 1));
    assert_int_equal(find(w, 0, 1)->updates, 3);
    list_moved(w, 0, 8);
    push(w, 0, 1, 3, 8);
    push(w, 0, 1, 4, 8);
    assert_int_equal(find(w, 0, 1)->updates, 4);
}

/* The giver has a view that the taker has not: without a worker that the taker still serves. */
static void who_a_newer_view_has_removed_is_not_applied_twice(void **state)
{
    world *w = begin_job(state, 2);
    Weft__View view = WEFT__VIEW__INIT;
    Weft__Member rows[2] = {WEFT__MEMBER__INIT, WEFT__MEMBER__INIT},
                 *members[] = {&rows[0], &rows[1]};
    wf_msg *m = NULL;

    for (uint32_t i = 0; i < 2; i++) {
        rows[i].role = WF_ROLE_PS;
        rows[i].index = i;
        rows[i].incarnation = 20 + i;
    }
    view.members = members;
    view.n_members = 2;
    assert_int_equal(wf_net_msg(w->master.net, WF_VIEW, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &view.base, NULL), WF_OK);
    m->head.view = VIEW + 1;
    m->head.job = JOB;
    m->head.generation = GENERATION;
    assert_int_equal(wf_net_send(w->master.net, w->master.ps[0], WF_LANE_CONTROL, 0, &m, NULL),
                     WF_OK);
    turn(w, 50);
    order_move(w, 1, 1, 7);
    turn(w, 200);
    if (moved(w) == WF_OK) {
        list_moved(w, 1, 7);
        push(w, 1, 1, 2, 7);
        assert_int_equal(find(w, 1, 1)->updates, 2);
    }
}

static void a_second_move_to_the_same_ps_is_as_quick(void **state)
{
    world *w = begin_job(state, 2);
    int64_t took[2];

    for (uint32_t i = 0; i < 2; i++) {
        int64_t began_ns = w->now_ns;

        order_move(w, 1 + i, 1, 7 + 2 * i);
        while (!find(w, 1, 1 + i) || find(w, 0, 1 + i))
            turn(w, 0);
        took[i] = (w->now_ns - began_ns) / MS;
    }
    assert_in_range(took[1], 0, took[0] + 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_slice_moves_with_its_slots_its_log_and_what_it_has_seen,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_worker_with_an_older_map_is_told_where_the_slice_is,
                                        begin, end),
        cmocka_unit_test_setup_teardown(nothing_counts_before_a_new_list_by_whatever_map, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_worker_of_another_generation_is_answered_in_its_own,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_slice_on_its_way_is_not_changed, begin, end),
        cmocka_unit_test_setup_teardown(a_slice_that_the_other_ps_refuses_stays, begin, end),
        cmocka_unit_test_setup_teardown(a_move_that_cannot_be_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_slice_is_served_until_its_taker_is_reached, begin, end),
        cmocka_unit_test_setup_teardown(a_taker_that_nobody_reaches_ends_the_move, begin, end),
        cmocka_unit_test_setup_teardown(what_slices_cost_is_told_each_second, begin, end),
        cmocka_unit_test_setup_teardown(a_ps_registers_with_the_slices_that_came, begin, end),
        cmocka_unit_test_setup_teardown(a_lost_word_of_the_taker_comes_again, begin, end),
        cmocka_unit_test_setup_teardown(a_slice_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(a_second_move_to_the_same_ps_is_as_quick, begin, end),
        cmocka_unit_test_setup_teardown(who_a_newer_view_has_removed_is_not_applied_twice, begin,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
