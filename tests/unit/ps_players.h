/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ps_players.h - a ps between a master and workers played by hand, over a transport in
 * memory. */
#ifndef WF_TESTS_PS_PLAYERS_H
#define WF_TESTS_PS_PLAYERS_H

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
#include <time.h>

#include <cmocka.h>

#define MS WF_NS_PER_MS
enum { SLICES = 16, ELEMENTS = 256 << 10, ROOM = 4 << 20, JOB = 3, GENERATION = 2, VIEW = 5 };

typedef struct player {
    wf_net *net;
    wf_peer *to_ps; /* NULL for the master, which is dialled */
    wf_peer *from_ps;
    wf_msg *got[256];
    uint32_t n, slice; /* the first that it lists, and that push_value is of */
    bool deaf;         /* polls nothing */
    wf_err refused;
} player;

typedef struct world {
    wf_memnet nets;
    wf_memdisk *disk;
    wf_net *net;
    wf_ps *ps;
    player master, workers[4];
    int64_t now_ns;
    const char *slice_kind; /* of the variable; NULL: none is named */
    uint32_t bounded;       /* of the job: 1 + the staleness; 0: none */
    bool together;          /* its workers make steps together, */
    uint32_t backups;       /* and need not wait for so many of them */
    uint32_t first_on;      /* the ps that has the first slice */
    bool staleness_aware;
    uint32_t pull_coding; /* of the variable */
} world;

static const double rate = 0.01; /* that of sgd */

static inline wf_status admit(void *arg, const wf_hello *hello, wf_err *err)
{
    return wf_ps_admit(((world *)arg)->ps, hello, err);
}

/* ---- everybody's turn ---- */

static inline void run_ps(world *w)
{
    wf_event ev;
    wf_err err;

    wf_net_poll(w->net, w->now_ns);
    while (wf_net_event(w->net, w->now_ns, &ev))
        assert_int_equal(wf_ps_on_event(w->ps, &ev, w->now_ns, &err), WF_OK);
    assert_int_equal(wf_ps_advance(w->ps, w->now_ns, &err), WF_OK);
    wf_net_flush(w->net, w->now_ns);
}

static inline void run_player(world *w, player *p)
{
    wf_event ev;

    if (!p->net || p->deaf)
        return;
    wf_net_poll(p->net, w->now_ns);
    while (wf_net_event(p->net, w->now_ns, &ev)) {
        if (ev.kind == WF_EV_UP)
            p->from_ps = ev.peer;
        if (ev.kind == WF_EV_DOWN)
            p->from_ps = NULL;
        if (ev.kind == WF_EV_REFUSED)
            p->refused = ev.err;
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        assert_true(p->n < 256);
        p->got[p->n++] = ev.msg;
    }
    wf_net_flush(p->net, w->now_ns);
}

static inline void turn(world *w, int64_t ms)
{
    for (int64_t k = 0; k <= ms / 10; k++) {
        for (int i = 0; i < 4; i++) {
            run_player(w, &w->master);
            for (int at = 0; at < 4; at++)
                run_player(w, &w->workers[at]);
            run_ps(w);
        }
        w->now_ns += 10 * MS;
    }
}

static inline void forget(player *p)
{
    for (; p->n > 0; p->n--)
        wf_net_free_msg(p->net, &p->got[p->n - 1]);
}

static inline uint32_t count(const player *p, uint16_t kind)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n; i++)
        n += p->got[i]->head.kind == kind;
    return n;
}

/* ---- what the master and workers send ---- */

/* As a member of the view, with the job and map that the ps has. */
static inline void send_stamped(player *p, wf_lane lane, uint64_t key, wf_msg *m)
{
    m->head.job = JOB;
    m->head.generation = GENERATION;
    m->head.map = GENERATION;
    m->head.view = VIEW;
    assert_int_equal(wf_net_send(p->net, p->from_ps, lane, key, &m, NULL), WF_OK);
}

static inline void send(player *p, uint16_t kind, const ProtobufCMessage *body, uint32_t request)
{
    wf_msg *m = NULL;

    assert_non_null(p->from_ps);
    assert_int_equal(wf_net_msg(p->net, kind, &m, NULL), WF_OK);
    if (body)
        assert_int_equal(wf_control_put(m, body, NULL), WF_OK);
    m->head.request = request;
    send_stamped(p, WF_LANE_CONTROL, 0, m);
}

static inline void fill_view(Weft__View *view, Weft__Member rows[], Weft__Member *list[],
                             const uint64_t incarnations[], size_t n)
{
    weft__view__init(view);
    for (size_t i = 0; i < n; i++) {
        weft__member__init(&rows[i]);
        rows[i].role = WF_ROLE_WORKER;
        rows[i].index = (uint32_t)i;
        rows[i].incarnation = incarnations[i];
        list[i] = &rows[i];
    }
    view->members = list;
    view->n_members = n;
}

static inline void set_up_job(world *w, const uint64_t incarnations[], size_t n_workers)
{
    Weft__Member members[4], *list[4];
    Weft__View view;
    wf_ps_job job;

    fill_view(&view, members, list, incarnations, n_workers);
    wf_ps_job_init(&job, SLICES, ELEMENTS, "sgd");
    if (w->slice_kind)
        job.variable.slice_kind = (char *)w->slice_kind;
    job.variable.pull_coding = w->pull_coding;
    job.rows[0].ps = w->first_on;
    job.setup.view = &view;
    job.setup.bounded = w->bounded;
    job.setup.together = w->together;
    job.setup.backups = w->backups;
    job.setup.staleness_aware = w->staleness_aware;
    send(&w->master, WF_SETUP, &job.setup.base, 0);
    turn(w, 20);
    assert_int_equal(count(&w->master, WF_SETUP_OK), 1);
}

static inline void say_view(world *w, uint32_t number, const uint64_t incarnations[], size_t n)
{
    Weft__Member *members = calloc(n, sizeof *members), **list = calloc(n, sizeof(*list));
    Weft__View view;
    wf_msg *m = NULL;

    fill_view(&view, members, list, incarnations, n);
    assert_int_equal(wf_net_msg(w->master.net, WF_VIEW, &m, NULL), WF_OK);
    assert_int_equal(wf_control_put(m, &view.base, NULL), WF_OK);
    m->head.view = number;
    assert_int_equal(wf_net_send(w->master.net, w->master.from_ps, WF_LANE_CONTROL, 0, &m, NULL),
                     WF_OK);
    turn(w, 20);
    free(members);
    free(list);
}

static inline void enter(world *w, uint32_t at, uint32_t index, uint64_t incarnation)
{
    wf_net_conf c = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_WORKER, index}, incarnation);
    player *p = &w->workers[at];

    p->net = wf_memnet_new(&c);
    p->to_ps = wf_memnet_dial(&w->nets, p->net, (wf_task){WF_ROLE_PS, 0}, "p");
    turn(w, 20);
}

/* The first slice that it names is `first`. */
static inline void send_list_from(player *p, uint32_t first)
{
    Weft__List body = WEFT__LIST__INIT;
    uint32_t ids[SLICES];

    for (uint32_t i = 0; i < SLICES; i++)
        ids[i] = i ? i : first;
    body.slices = ids;
    body.n_slices = SLICES;
    send(p, WF_LIST, &body.base, 0);
}

static inline void send_list(player *p)
{
    send_list_from(p, 0);
}

static inline void send_pull_at(player *p, uint32_t request, uint32_t step, uint32_t clock)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(p->net, WF_PULL, &m, NULL), WF_OK);
    assert_int_equal(wf_pull_put(m, (wf_pull_body){.clock = clock}, NULL, 0, NULL), WF_OK);
    m->head.request = request;
    m->head.step = step;
    send_stamped(p, WF_LANE_DATA, 1, m);
}

static inline void send_pull(player *p, uint32_t request)
{
    send_pull_at(p, request, 1, 0);
}

static inline void list_one_slice(player *p)
{
    Weft__List body = WEFT__LIST__INIT;

    body.slices = &p->slice;
    body.n_slices = 1;
    send(p, WF_LIST, &body.base, 0);
}

/* It joins with a step, or leaves after that of a clock. */
static inline void send_clock(player *p, wf_clock_state state, uint32_t step, uint32_t last)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(p->net, WF_CLOCK, &m, NULL), WF_OK);
    assert_int_equal(wf_clock_put(m, (wf_clock_body){state, last}, NULL), WF_OK);
    m->head.step = step;
    send_stamped(p, WF_LANE_DATA, 1, m);
}

/* The clock that the ps gives to the worker's step. */
static inline uint32_t join(world *w, player *p, uint32_t step)
{
    wf_clock_body body = {0};

    send_clock(p, WF_CLOCK_JOINS, step, 0);
    turn(w, 20);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->got[i]->head.kind == WF_CLOCK_OK)
            assert_int_equal(wf_clock_get(p->got[i], &body, NULL), WF_OK);
    forget(p);
    return body.clock;
}

/* A part as it is given, whose bytes are zeros. */
static inline void push_part(player *p, uint32_t step, wf_part part)
{
    wf_buf *b = wf_buf_new(ELEMENTS * sizeof(float));
    wf_msg *m = NULL;

    memset(b->data, 0, b->bytes);
    assert_int_equal(wf_net_msg(p->net, WF_PUSH, &m, NULL), WF_OK);
    assert_int_equal(wf_msg_add_frame(m, b, b->data, b->bytes, NULL), WF_OK);
    part.checksum = wf_part_checksum(b->data, part.bytes);
    assert_int_equal(wf_parts_put(m, &part, 1, NULL), WF_OK);
    m->head.step = step;
    send_stamped(p, WF_LANE_DATA, 2, m);
    wf_buf_unref(&b);
}

static inline void push_coded(player *p, uint32_t step, uint32_t slice, uint64_t bytes,
                              uint8_t codec)
{
    push_part(p, step, (wf_part){.slice = slice, .codec = codec, .bytes = bytes});
}

static inline void push(player *p, uint32_t step, uint32_t slice, uint64_t bytes)
{
    push_coded(p, step, slice, bytes, WF_CODEC_F32);
}

/* A gradient of the player's slice whose elements are all the same; one of no records is dropped.
 */
static inline void push_value_from(player *p, uint32_t step, uint64_t version, wf_push_body body,
                                   float value)
{
    wf_buf *b = wf_buf_new(ELEMENTS * sizeof(float));
    wf_part part = {.slice = p->slice,
                    .codec = body.records ? WF_CODEC_F32 : WF_CODEC_NONE,
                    .version = version};
    wf_msg *m = NULL;

    for (uint32_t i = 0; i < ELEMENTS; i++)
        ((float *)b->data)[i] = value;
    assert_int_equal(wf_net_msg(p->net, WF_PUSH, &m, NULL), WF_OK);
    assert_int_equal(wf_msg_add_frame(m, b, b->data, b->bytes, NULL), WF_OK);
    part.bytes = body.records ? b->bytes : 0;
    assert_int_equal(wf_push_put(m, body, &part, 1, NULL), WF_OK);
    m->head.step = step;
    send_stamped(p, WF_LANE_DATA, 2, m);
    wf_buf_unref(&b);
}

static inline void push_value(player *p, uint32_t step, uint32_t clock, uint32_t records,
                              float value)
{
    push_value_from(p, step, 0, (wf_push_body){clock, records}, value);
}

/* The first slice has been updated so often, and its elements have come to so much. */
static inline void holds(const world *w, uint64_t updates, double value)
{
    const wf_slice *s = wf_ps_slice_at(w->ps, 0);

    assert_int_equal(s->updates, updates);
    assert_true(wf_slice_values(s)[ELEMENTS - 1] - value < 1e-7);
    assert_true(value - wf_slice_values(s)[ELEMENTS - 1] < 1e-7);
}

/* ---- the stage ---- */

static inline wf_status no_save(void *arg, wf_ps_fork **f, wf_err *err)
{
    (void)arg, (void)f;
    return wf_fail(err, WF_IO, NULL, "no disk");
}

static inline int begin(void **state)
{
    world *w = calloc(1, sizeof *w);
    wf_net_conf m, p;
    wf_peer *master;
    wf_ps_job job;

    w->now_ns = 1000 * MS;
    w->disk = wf_memdisk_new();
    wf_ps_job_init(&job, SLICES, ELEMENTS, "sgd");
    wf_ps_job_write(&job, wf_memdisk_disk(w->disk), NULL);
    wf_memnet_init(&w->nets, "demo");
    m = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_MASTER, 0}, 1);
    w->master.net = wf_memnet_new(&m);
    wf_memnet_listen(&w->nets, w->master.net, "m");
    p = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_PS, 0}, 2);
    p.admit = admit;
    p.admit_arg = w;
    w->net = wf_memnet_new(&p);
    wf_memnet_listen(&w->nets, w->net, "p");
    master = wf_memnet_dial(&w->nets, w->net, (wf_task){WF_ROLE_MASTER, 0}, "m");
    assert_int_equal(wf_ps_new(&(wf_ps_conf){.incarnation = 2,
                                             .disk = wf_memdisk_disk(w->disk),
                                             .ops = {.save = no_save},
                                             .kinds = wf_logged_kinds,
                                             .answer_bytes = ROOM},
                               w->net, master, &w->ps, NULL),
                     WF_OK);
    turn(w, 20);
    *state = w;
    return 0;
}

static inline int end(void **state)
{
    world *w = *state;

    forget(&w->master);
    for (int i = 0; i < 4; i++) {
        if (!w->workers[i].net)
            continue;
        forget(&w->workers[i]);
        wf_net_free(&w->workers[i].net, 0);
    }
    wf_ps_free(&w->ps);
    wf_net_free(&w->net, 0);
    wf_net_free(&w->master.net, 0);
    wf_memnet_close(&w->nets);
    wf_memdisk_free(&w->disk);
    free(w);
    return 0;
}

/* A job of one worker, which has come in. */
static inline player *begin_with_worker(world *w)
{
    set_up_job(w, (uint64_t[]){11}, 1);
    enter(w, 0, 0, 11);
    return &w->workers[0];
}

#endif
