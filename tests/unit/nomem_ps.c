/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_ps.c - a ps is set up, takes a push, answers a pull and copies its slices while
 * memory ends, or gives a slice to another ps and gets it back. It says so to the master, or ends;
 * what it answers is right. And a bucket of an unbounded table takes pushes, and is sent on. The
 * master and the worker are the test's, and have all the memory that
 * they want. Weights travel as bfloat16. */
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/tensor/dtype.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/parts.h"
#include "ps/ps.h"
#include "ps/state.h"
#include "tests/kit/memnet.h"
#include "tests/kit/nomem_disk.h"
#include "tests/kit/ps_job.h"
#include "tests/unit/nomem.h"

#include <math.h>

#define MS WF_NS_PER_MS
enum {
    SLICES = 3,
    ELEMENTS = WF_CODING_LEAST,
    JOB = 3,
    GENERATION = 2,
    VIEW = 5,
    CUT = 7,
    RATE = 2
};
enum { IN_A_CHECKPOINT, IN_NAN, IN_MOVES, TOGETHER };  /* how a world ends */
#define FOLDER "/ckpt/job/.tmp-g2-c7-000000000000000b" /* of that cut, the chief is 11 */

typedef struct player {
    wf_net *net;
    wf_peer *ps; /* its link to the ps; NULL: down */
    wf_err said; /* by the ps: a set-up or a copy that failed */
    bool linked, set_up, pushed, pulled, saved, faulted, moved, taken;
    wf_msg *state;    /* of a slice, as the ps gave it away */
    uint32_t weights; /* slices that came */
    bool wrong;       /* with values that they must not have */
} player;

typedef struct world {
    wf_memnet nets;
    wf_memdisk *disk;
    wf_net *net; /* of the ps, as is what follows */
    wf_ps *ps;
    wf_ps_fork *fork;
    player master, worker;
    player taker, giver; /* the other ps: as it is dialled, and as it dials */
    int64_t now_ns;
    int ends;
} world;

/* ---- the master and the worker ---- */

static void take_weights(player *p, const wf_msg *m)
{
    wf_part parts[WF_MAX_PARTS];
    uint32_t n = 0;

    p->wrong |= wf_parts_get(m, parts, &n, NULL) != WF_OK;
    for (uint32_t i = 0; i < n; i++, p->weights++) {
        wf_coded c = wf_part_coded(m, &parts[i]);
        float w[ELEMENTS];

        p->wrong |= c.coding != WF_CODING_BF16 || c.n != ELEMENTS;
        if (!p->wrong)
            wf_coded_read(&c, 0, ELEMENTS, w);
        for (uint32_t k = 0; !p->wrong && k < ELEMENTS; k++) /* from k, one step along -1 */
            p->wrong |= w[k] != wf_bf16_to_f32(
                                    wf_f32_to_bf16((float)(parts[i].slice * ELEMENTS + k) + RATE));
    }
    p->pulled = p->weights == SLICES;
}

static void take_set_up(player *p, const wf_msg *m)
{
    Weft__Outcome *body = NULL;

    if (wf_control_get(m, &weft__outcome__descriptor, &body, NULL) != WF_OK)
        return;
    p->set_up = body->status == WF_OK;
    if (!p->set_up)
        wf_fail(&p->said, (wf_status)body->status, NULL, "%s", body->what);
    wf_control_free(&body);
}

static void take_saved(player *p, const wf_msg *m)
{
    Weft__Saved *body = NULL;

    if (wf_control_get(m, &weft__saved__descriptor, &body, NULL) != WF_OK)
        return;
    p->saved = body->n_slices == SLICES;
    if (!p->saved)
        wf_fail(&p->said, WF_NOMEM, NULL, "%s", body->what);
    wf_control_free(&body);
}

static void take_moved(player *p, const wf_msg *m)
{
    Weft__Moved *body = NULL;

    if (wf_control_get(m, &weft__moved__descriptor, &body, NULL) != WF_OK)
        return;
    p->moved = body->status == WF_OK;
    if (!p->moved)
        wf_fail(&p->said, (wf_status)body->status, NULL, "%s", body->what);
    wf_control_free(&body);
}

static void take_taken(player *p, const wf_msg *m)
{
    Weft__Outcome *body = NULL;

    if (wf_control_get(m, &weft__outcome__descriptor, &body, NULL) != WF_OK)
        return;
    p->taken = body->status == WF_OK;
    if (!p->taken)
        wf_fail(&p->said, (wf_status)body->status, NULL, "%s", body->what);
    wf_control_free(&body);
}

static void take(player *p, const wf_msg *m)
{
    if (m->head.kind == WF_MOVED)
        take_moved(p, m);
    if (m->head.kind == WF_STATE_OK)
        take_taken(p, m);
    if (m->head.kind == WF_SETUP_OK)
        take_set_up(p, m);
    else if (m->head.kind == WF_PUSH_OK)
        p->pushed = true;
    else if (m->head.kind == WF_WEIGHTS)
        take_weights(p, m);
    else if (m->head.kind == WF_FAULT)
        p->faulted = true;
    else if (m->head.kind == WF_CUT_SAVED)
        take_saved(p, m);
}

/* The other ps takes the slice. */
static void keep_state(player *p, wf_peer *from, wf_msg **state)
{
    Weft__Outcome body = WEFT__OUTCOME__INIT;
    wf_msg *ok = NULL;

    wf_assert(wf_net_msg(p->net, WF_STATE_OK, &ok, NULL) == WF_OK);
    wf_assert(wf_control_put(ok, &body.base, NULL) == WF_OK);
    ok->head.request = (*state)->head.request;
    wf_assert(wf_net_send(p->net, from, WF_LANE_CONTROL, 0, &ok, NULL) == WF_OK);
    wf_net_free_msg(p->net, &p->state);
    p->state = *state;
    *state = NULL;
}

static void run_player(world *w, player *p)
{
    bool was = wf_nomem_spare(true);
    wf_event ev;

    if (p->net)
        wf_net_poll(p->net, w->now_ns);
    while (p->net && wf_net_event(p->net, w->now_ns, &ev)) {
        if (ev.kind == WF_EV_UP || ev.kind == WF_EV_DOWN)
            p->ps = ev.kind == WF_EV_UP ? ev.peer : NULL;
        p->linked = p->ps != NULL;
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        take(p, ev.msg);
        if (ev.msg->head.kind == WF_STATE)
            keep_state(p, ev.peer, &ev.msg);
        wf_net_free_msg(p->net, &ev.msg);
    }
    if (p->net)
        wf_net_flush(p->net, w->now_ns);
    wf_nomem_spare(was);
}

/* A message of the job, with a body or a frame of values. */
static void send(player *p, uint16_t kind, const ProtobufCMessage *body, wf_buf *values)
{
    wf_part parts[SLICES] = {{0}};
    wf_msg *m = NULL;

    wf_assert(p->ps && wf_net_msg(p->net, kind, &m, NULL) == WF_OK);
    if (body)
        wf_assert(wf_control_put(m, body, NULL) == WF_OK);
    for (uint32_t i = 0; values && i < SLICES; i++) {
        parts[i] = (wf_part){.slice = i,
                             .codec = WF_CODEC_F32,
                             .offset = i * ELEMENTS * sizeof(float),
                             .bytes = ELEMENTS * sizeof(float)};
        parts[i].checksum =
            wf_part_checksum((uint8_t *)values->data + parts[i].offset, parts[i].bytes);
    }
    if (values)
        wf_assert(wf_msg_add_frame(m, values, values->data, values->bytes, NULL) == WF_OK &&
                  wf_push_put(m, (wf_push_body){1, 1}, parts, SLICES, NULL) == WF_OK);
    if (kind == WF_PULL)
        wf_assert(wf_pull_put(m, (wf_pull_body){.after = 1}, NULL, 0, NULL) == WF_OK);
    m->head.job = JOB;
    m->head.generation = GENERATION;
    m->head.map = GENERATION;
    m->head.view = VIEW;
    m->head.step = 1;
    m->head.cut = CUT;
    wf_assert(wf_net_send(p->net, p->ps, WF_LANE_CONTROL, 0, &m, NULL) == WF_OK);
}

static void send_set_up(world *w)
{
    Weft__Member member = WEFT__MEMBER__INIT, other = WEFT__MEMBER__INIT;
    Weft__Member *members[] = {&member, &other};
    Weft__Option rate = WEFT__OPTION__INIT, *options[] = {&rate};
    Weft__View view = WEFT__VIEW__INIT;
    wf_ps_job job;

    member.role = WF_ROLE_WORKER;
    member.incarnation = 11;
    other.role = WF_ROLE_PS;
    other.index = 1;
    other.incarnation = 12;
    view.members = members;
    view.n_members = 2;
    rate.name = (char *)"learning_rate";
    rate.value = RATE;
    wf_ps_job_init(&job, SLICES, ELEMENTS, "sgd");
    job.variable.pull_coding = WF_CODING_BF16;
    job.setup.options = options;
    job.setup.n_options = 1;
    job.setup.view = &view;
    job.setup.together = w->ends == TOGETHER;
    job.setup.bounded = job.setup.backups = job.setup.together;
    send(&w->master, WF_SETUP, &job.setup.base, NULL);
}

static void send_list(world *w)
{
    Weft__List body = WEFT__LIST__INIT;
    uint32_t ids[SLICES] = {0, 1, 2};

    body.slices = ids;
    body.n_slices = SLICES;
    send(&w->worker, WF_LIST, &body.base, NULL);
}

static void send_values(world *w, float value)
{
    wf_buf *values = wf_buf_new(SLICES * ELEMENTS * sizeof(float));

    for (int i = 0; i < SLICES * ELEMENTS; i++)
        ((float *)values->data)[i] = value;
    send(&w->worker, WF_PUSH, NULL, values);
    wf_buf_unref(&values);
}

static void send_push(world *w)
{
    send_values(w, -1);
}

static void send_nan(world *w)
{
    send_values(w, NAN);
}

static void send_save(world *w)
{
    Weft__Save body = WEFT__SAVE__INIT;

    body.folder = (char *)FOLDER;
    body.file = (char *)"shard-00000-of-00001.safetensors";
    send(&w->worker, WF_CUT_SAVE, &body.base, NULL);
}

static void send_move(world *w)
{
    Weft__Move body = WEFT__MOVE__INIT;
    Weft__Member to = WEFT__MEMBER__INIT;

    to.role = WF_ROLE_PS;
    to.index = 1;
    to.incarnation = 12;
    to.address = (char *)"t";
    body.slice = 1;
    body.to = &to;
    body.version = GENERATION + 1;
    send(&w->master, WF_MOVE, &body.base, NULL);
}

static void send_state_back(world *w)
{
    const wf_msg *state = w->taker.state;
    wf_msg *m = NULL;

    wf_assert(w->giver.ps && wf_net_msg(w->giver.net, WF_STATE, &m, NULL) == WF_OK);
    memcpy(wf_msg_control(m, state->head.control_bytes), state->control, state->head.control_bytes);
    for (uint32_t i = 0; i < state->n_frames; i++)
        wf_assert(wf_msg_add_frame(m, state->frames[i].buf, state->frames[i].data,
                                   state->frames[i].bytes, NULL) == WF_OK);
    m->head.job = JOB;
    m->head.generation = GENERATION;
    m->head.request = GENERATION + 2;
    wf_assert(wf_net_send(w->giver.net, w->giver.ps, WF_LANE_CONTROL, 0, &m, NULL) == WF_OK);
}

/* ---- the ps ---- */

static wf_status admit(void *arg, const wf_hello *hello, wf_err *err)
{
    return wf_ps_admit(((world *)arg)->ps, hello, err);
}

static wf_status save(void *arg, wf_ps_fork **f, wf_err *err)
{
    world *w = arg;

    (void)err;
    w->fork = *f;
    *f = NULL;
    return WF_OK;
}

static wf_status run_ps(world *w, wf_err *err)
{
    wf_ps_saved saved = {0};
    wf_event ev;

    wf_net_poll(w->net, w->now_ns);
    while (wf_net_event(w->net, w->now_ns, &ev))
        WF_TRY(wf_ps_on_event(w->ps, &ev, w->now_ns, err));
    WF_TRY(wf_ps_advance(w->ps, w->now_ns, err));
    if (w->fork) {
        wf_err why = {0};
        wf_status rc = wf_ps_fork_write(wf_memdisk_disk(w->disk), w->fork, &saved, &why);

        wf_ps_on_saved(w->ps, &w->fork, rc, &saved, &why);
    }
    wf_net_flush(w->net, w->now_ns);
    return WF_OK;
}

static wf_status turn(world *w, wf_err *err)
{
    for (int i = 0; i < 60; i++) {
        run_player(w, &w->master);
        run_player(w, &w->worker);
        run_player(w, &w->taker);
        run_player(w, &w->giver);
        WF_TRY(run_ps(w, err));
        w->now_ns += 100 * MS;
    }
    return WF_OK;
}

static wf_status dial(void *arg, wf_task task, const char *address, wf_transport **out, wf_err *err)
{
    (void)task;
    return wf_mem_dial(((world *)arg)->nets.mem, address, out, err);
}

static wf_status open_ps(world *w, wf_err *err)
{
    wf_net_conf c = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_PS, 0}, 2);
    wf_transport *t = NULL;
    wf_peer *master = NULL;

    c.admit = admit;
    c.admit_arg = w;
    WF_TRY(wf_net_new(&c, &w->net, err));
    WF_TRY(wf_mem_listen(w->nets.mem, "p", &t, err));
    wf_net_listen(w->net, &t);
    WF_TRY(wf_mem_dial(w->nets.mem, "m", &t, err));
    WF_TRY(wf_net_dial(w->net, (wf_task){WF_ROLE_MASTER, 0}, "m", &t, &master, err));
    return wf_ps_new(&(wf_ps_conf){.incarnation = 2,
                                   .session = "",
                                   .disk = wf_memdisk_disk(w->disk),
                                   .ops = {.arg = w, .save = save, .dial = dial, .dial_arg = w},
                                   .checksums = true},
                     w->net, master, &w->ps, err);
}

static void open_master(world *w)
{
    wf_net_conf c = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_MASTER, 0}, 1);

    w->master.net = wf_memnet_new(&c);
    wf_memnet_listen(&w->nets, w->master.net, "m");
}

static void open_worker(world *w)
{
    wf_net_conf c = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_WORKER, 0}, 11);

    w->worker.net = wf_memnet_new(&c);
    wf_memnet_dial(&w->nets, w->worker.net, (wf_task){WF_ROLE_PS, 0}, "p");
}

static void open_taker(world *w)
{
    wf_net_conf c = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_PS, 1}, 12);

    w->taker.net = wf_memnet_new(&c);
    wf_memnet_listen(&w->nets, w->taker.net, "t");
}

static void open_giver(world *w)
{
    wf_net_conf c = wf_memnet_conf(&w->nets, (wf_task){WF_ROLE_PS, 1}, 12);

    w->giver.net = wf_memnet_new(&c);
    wf_memnet_dial(&w->nets, w->giver.net, (wf_task){WF_ROLE_PS, 0}, "p");
}

/* Does what is the players', and then lets all have some turns. */
static wf_status act(world *w, void (*players)(world *w), wf_err *err)
{
    bool was = wf_nomem_spare(true);

    players(w);
    wf_nomem_spare(was);
    return turn(w, err);
}

static void pull(world *w)
{
    send(&w->worker, WF_PULL, NULL, NULL);
}

/* What the ps said of a lack of memory counts as its status. */
static wf_status said(world *w, const player *p, const bool *done, const char *what, wf_err *err)
{
    if (!*done && p->said.status == WF_OK) { /* it may come when memory is back, and then must */
        wf_nomem_spare(true);
        WF_TRY(turn(w, err));
    }
    if (p->said.status != WF_OK)
        return wf_fail(err, p->said.status, NULL, "%s", p->said.what);
    return *done ? WF_OK : wrong(err, "no %s", what);
}

/* The slice goes, and comes back with what it was. */
static wf_status play_moves(world *w, wf_err *err)
{
    WF_TRY(act(w, open_taker, err));
    WF_TRY(act(w, send_move, err));
    WF_TRY(said(w, &w->master, &w->master.moved, "answer to the move", err));
    WF_TRY(act(w, open_giver, err));
    WF_TRY(said(w, &w->giver, &w->giver.linked, "link of the other ps", err));
    WF_TRY(act(w, send_state_back, err));
    WF_TRY(said(w, &w->giver, &w->giver.taken, "answer to the state", err));
    return wf_ps_slice_at(w->ps, SLICES - 1)->updates == 1 ? WF_OK : wrong(err, "another slice");
}

static wf_status play(world *w, wf_err *err)
{
    WF_TRY(open_ps(w, err));
    WF_TRY(turn(w, err));
    WF_TRY(said(w, &w->master, &w->master.linked, "link to the master", err));
    WF_TRY(act(w, send_set_up, err));
    WF_TRY(said(w, &w->master, &w->master.set_up, "answer to the set-up", err));
    WF_TRY(act(w, open_worker, err));
    WF_TRY(said(w, &w->worker, &w->worker.linked, "link to the worker", err));
    WF_TRY(act(w, send_list, err));
    WF_TRY(act(w, send_push, err));
    WF_TRY(said(w, &w->worker, &w->worker.pushed, "answer to the push", err));
    WF_TRY(act(w, pull, err));
    WF_TRY(said(w, &w->worker, &w->worker.pulled, "answer to the pull", err));
    if (w->worker.wrong)
        return wrong(err, "other weights");
    if (w->ends == IN_MOVES)
        return play_moves(w, err);
    if (w->ends == IN_NAN) {
        WF_TRY(act(w, send_nan, err));
        return said(w, &w->master, &w->master.faulted, "fault", err);
    }
    WF_TRY(act(w, send_save, err));
    if (!w->worker.saved &&
        w->worker.said.status == WF_OK) /* the master's deadline ends this cut */
        return wf_fail(err, WF_NOMEM, NULL, "no memory to answer the save");
    return said(w, &w->worker, &w->worker.saved, "answer to the save", err);
}

static wf_status serve_until(int end, void *disk, wf_err *err)
{
    world w = {.now_ns = 1000 * MS, .ends = end};
    bool was = wf_nomem_spare(true);
    wf_status rc;

    w.disk = wf_memdisk_copy(disk);
    wf_nomem_disk(wf_memdisk_disk(w.disk));
    wf_memnet_init(&w.nets, "demo");
    open_master(&w);
    wf_nomem_spare(was);
    rc = play(&w, err);
    wf_nomem_spare(was); /* it may have been spared from some point on */
    wf_ps_fork_free(&w.fork);
    wf_ps_free(&w.ps);
    wf_net_free(&w.net, 0);
    was = wf_nomem_spare(true);
    wf_net_free(&w.worker.net, 0);
    if (w.taker.net)
        wf_net_free_msg(w.taker.net, &w.taker.state);
    wf_net_free(&w.taker.net, 0);
    wf_net_free(&w.giver.net, 0);
    wf_net_free(&w.master.net, 0);
    wf_memnet_close(&w.nets);
    wf_memdisk_free(&w.disk);
    wf_nomem_spare(was);
    return rc;
}

static wf_status serve(void *disk, wf_err *err)
{
    return serve_until(IN_A_CHECKPOINT, disk, err);
}

static wf_status serve_to_a_fault(void *disk, wf_err *err)
{
    return serve_until(IN_NAN, disk, err);
}

static wf_status serve_and_move(void *disk, wf_err *err)
{
    return serve_until(IN_MOVES, disk, err);
}

static wf_status serve_together(void *disk, wf_err *err)
{
    return serve_until(TOGETHER, disk, err);
}

static void a_ps_serves_or_says_that_it_cannot(void **state)
{
    assert_survives(serve, *state);
}

static void a_step_made_together_is_applied_or_the_ps_ends(void **state)
{
    assert_survives(serve_together, *state);
}

static void a_slice_goes_and_comes_back_or_the_ps_says_why_not(void **state)
{
    assert_survives(serve_and_move, *state);
}

static void a_fault_is_reported_once_memory_is_back(void **state)
{
    assert_survives(serve_to_a_fault, *state);
}

/* ---- a bucket of an unbounded table ---- */

enum { KEYS = 100, WIDTH = 4 };

typedef struct keys {
    uint64_t keys[KEYS];
    float values[KEYS * WIDTH];
    wf_slice_part part;
} keys;

/* What differs between the buckets: a filter; rows beyond the limit leave, or lie in files. */
typedef struct bucket {
    uint64_t filter_bytes;
    const char *disk;
} bucket;

static wf_status open_bucket(const wf_opt *opt, const bucket *b, wf_slice **out, wf_err *err)
{
    const wf_slice like = {.id = 5,
                           .count = WIDTH,
                           .row = WIDTH,
                           .trainable = true,
                           .policy = {.admit_after = 2,
                                      .filter_bytes = b->filter_bytes,
                                      .disk = b->disk,
                                      .max_rows = KEYS / 2,
                                      .dtype = WF_I8,
                                      .by_frequency = !b->disk}};

    return wf_slice_new(&wf_slice_hashed, &like, opt, out, err);
}

/* A push that fails for memory has changed nothing, and goes through when it is sent again. */
static wf_status push_keys(wf_slice *s, const wf_opt *opt, const keys *k, wf_err *err)
{
    uint64_t digest = s->ops->digest(s), updates = s->updates;
    wf_status rc = wf_slice_apply(s, opt, &k->part, err);

    if (rc != WF_OK && (s->ops->digest(s) != digest || s->updates != updates))
        return wrong(err, "a push that failed has changed the slice");
    return rc;
}

static wf_status send_on(const wf_slice *s, wf_slice *to, wf_err *err)
{
    Weft__SliceState *head = NULL;
    wf_msg_pool pool = {0};
    wf_msg *m = NULL;
    wf_status rc = wf_msg_new(&pool, WF_STATE, &m, err);

    if (rc == WF_OK)
        rc = wf_state_put(s, &(wf_clocks){0}, true, m, err);
    if (rc == WF_OK)
        rc = wf_state_head(m, &head, err);
    if (rc == WF_OK)
        rc = wf_state_get(m, head, to, err); /* compares digests */
    wf_control_free(&head);
    wf_msg_free(&pool, &m);
    wf_msg_pool_close(&pool);
    return rc;
}

static wf_status fill_a_bucket(void *arg, wf_err *err)
{
    const bucket *b = arg;
    uint64_t rows = b->disk ? KEYS : KEYS / 2;
    wf_slice *s = NULL, *to = NULL;
    keys k = {.part = {.n = KEYS * WIDTH}};
    wf_opt opt;
    wf_status rc = wf_opt_init(&opt, "adagrad", 0, NULL, NULL, err);

    for (uint64_t i = 0; i < KEYS; i++)
        k.keys[i] = i << 40;
    k.part.values = k.values;
    k.part.rows = (wf_rows){KEYS, (const uint8_t *)k.keys};
    if (rc == WF_OK)
        rc = open_bucket(&opt, b, &s, err);
    if (rc == WF_OK)
        rc = open_bucket(&opt, b, &to, err);
    for (int i = 0; rc == WF_OK && i < 3; i++)
        rc = push_keys(s, &opt, &k, err);
    if (rc == WF_OK)
        rc = send_on(s, to, err);
    if (rc == WF_OK && to->bytes != rows * wf_row_values_room(WF_I8, WIDTH))
        rc = wrong(err, "%lu bytes of rows", (unsigned long)to->bytes);
    wf_slice_free(&s);
    wf_slice_free(&to);
    return rc;
}

/* First values of bfloat16 pass through float32, a few at a time; then the table moves. */
static wf_status move_a_table(void *unused, wf_err *err)
{
    const wf_slice like = {.id = 5,
                           .count = KEYS * WIDTH,
                           .row = WIDTH,
                           .trainable = true,
                           .policy = {.seeded = true, .dtype = WF_BF16}};
    wf_slice *s = NULL, *to = NULL;
    wf_opt opt;
    wf_status rc = wf_opt_init(&opt, "adagrad", 0, NULL, NULL, err);

    (void)unused;
    if (rc == WF_OK)
        rc = wf_slice_new(&wf_slice_table, &like, &opt, &s, err);
    if (rc == WF_OK)
        rc = wf_slice_new(&wf_slice_table, &like, &opt, &to, err);
    if (rc == WF_OK)
        rc = s->ops->load(s, NULL, true, err);
    if (rc == WF_OK)
        rc = send_on(s, to, err);
    wf_slice_free(&s);
    wf_slice_free(&to);
    return rc;
}

static void a_table_of_fewer_bits_moves_whole_or_not_at_all(void **state)
{
    (void)state;
    assert_survives(move_a_table, NULL);
}

static void a_bucket_takes_a_push_whole_or_not_at_all(void **state)
{
    (void)state;
    assert_survives(fill_a_bucket, &(bucket){0});
    assert_survives(fill_a_bucket, &(bucket){.filter_bytes = 1 << 12});
    assert_survives(fill_a_bucket, &(bucket){.disk = "/tmp"}); /* whose files have no names */
}

/* The first values: element k is k. */
static int set_up(void **state)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_disk *d = wf_memdisk_disk(m);
    float values[SLICES * ELEMENTS];
    wf_ps_job job;

    for (int i = 0; i < SLICES * ELEMENTS; i++)
        values[i] = (float)i;
    *state = m;
    wf_ps_job_init(&job, SLICES, ELEMENTS, "sgd");
    wf_ps_job_write(&job, d, values);
    return wf_disk_make_dirs(d, FOLDER, NULL) == WF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    wf_memdisk_free((wf_memdisk **)state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ps_serves_or_says_that_it_cannot),
        cmocka_unit_test(a_step_made_together_is_applied_or_the_ps_ends),
        cmocka_unit_test(a_slice_goes_and_comes_back_or_the_ps_says_why_not),
        cmocka_unit_test(a_fault_is_reported_once_memory_is_back),
        cmocka_unit_test(a_bucket_takes_a_push_whole_or_not_at_all),
        cmocka_unit_test(a_table_of_fewer_bits_moves_whole_or_not_at_all),
    };

    wf_log_init("", (wf_log_level)(WF_ERROR + 1));
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
