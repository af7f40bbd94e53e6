/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/stage_world.h - three workers with a stage each of a job, over nets in memory. Worker
 * 1 has a trainer, whose stage the chief, worker 0, has begin; the others are played. Or worker 0
 * has the first stage, and the others are played. For tests of what a stage receives. */
#ifndef WF_TESTS_STAGE_WORLD_H
#define WF_TESTS_STAGE_WORLD_H

#include "common/base/size.h"
#include "common/onnx/onnx.h"
#include "common/wire/control.h"
#include "common/wire/parts.h"
#include "master/generation/prepare.h"
#include "master/generation/restore.h"
#include "tests/kit/memdisk.h"
#include "tests/kit/memnet.h"
#include "worker/stages/state.h"
#include "worker/trainer_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 3, JOB = 7, GENERATION = 4, MS = 1000000, BATCHES = 4, RECORDS = 4 };

static const char *more = ""; /* lines of the job */

static const char TEXT[] =
    "job: j\n"
    "model:\n"
    "  input: {x: [6]}\n"
    "  layers:\n"
    "    - dense: {units: 8, name: a}\n"
    "    - dense: {units: 8, name: b}\n"
    "    - dense: {units: 3, name: c}\n"
    "loss: sparse_categorical_crossentropy\n"
    "data: {format: npy, train: {x: a.npy, y: b.npy}, eval: {x: a.npy, y: b.npy}}\n"
    "batch: 16\n"
    "place: {\"a/*\": worker/0, \"b/*\": worker/1, \"c/*\": worker/2}\n"
    "micro_batches: 4\n";

typedef struct world {
    wf_memnet nets;
    wf_memdisk *disk;
    wf_net *net[WORKERS];
    wf_peer *to_middle[WORKERS]; /* the links of others to worker 1, at their ends */
    wf_peer *at_middle[WORKERS]; /* and at its own */
    wf_prepared *prepared;
    wf_pool *pool;
    wf_trainer *trainer;
    wf_stage *first; /* at worker 0, which then takes the messages of the others */
    wf_stage_links links;
    wf_graph *graph;
    Weft__Start of_first;
    wf_peer *to_first[WORKERS];
    wf_worker_ops ops;
    uint32_t heard[256];   /* by the others, of a kind */
    char said[512];        /* by the last outcome */
    Weft__StageSums *sums; /* the last that others were sent */
    int64_t now_ns;
    wf_status says; /* worker 1, to the last message */
    wf_err why;
} world;

static world w;

static inline const char *address_of(uint32_t i)
{
    static const char *const list[WORKERS] = {"mem://0", "mem://1", "mem://2"};

    return list[i];
}

static inline wf_status dial(void *arg, wf_task task, const char *address, wf_transport **out,
                             wf_err *err)
{
    (void)arg, (void)task;
    return wf_mem_dial(w.nets.mem, address, out, err);
}

static inline void take_middle(wf_event *ev)
{
    const wf_worker_of of = {w.net[1], wf_memdisk_disk(w.disk)};
    uint32_t who = ev->peer->task.index;

    if (ev->kind == WF_EV_UP)
        w.at_middle[who] = ev->peer;
    if (ev->kind == WF_EV_MESSAGE || ev->kind == WF_EV_UP || ev->kind == WF_EV_DOWN) {
        w.why = (wf_err){0};
        w.says = w.ops.on_stage(w.ops.arg, &of, ev, &w.why);
    }
}

static inline void take_first(const wf_event *ev)
{
    if (ev->kind != WF_EV_MESSAGE || !wf_stage_is_for(w.first, ev->msg))
        return;
    w.why = (wf_err){0};
    w.says = wf_stage_on_message(w.first, ev->peer, ev->msg, &w.why);
}

static inline void hear(const wf_msg *m)
{
    Weft__Outcome *body = NULL;

    w.heard[m->head.kind]++;
    if (m->head.kind == WF_STAGE_SUMS) {
        wf_control_free(&w.sums);
        assert_int_equal(wf_control_get(m, &weft__stage_sums__descriptor, &w.sums, NULL), WF_OK);
    }
    if (m->head.kind != WF_STAGE_READY && m->head.kind != WF_STAGE_DONE)
        return;
    assert_int_equal(wf_control_get(m, &weft__outcome__descriptor, &body, NULL), WF_OK);
    snprintf(w.said, sizeof w.said, "%s", body->what);
    wf_control_free(&body);
}

static inline void turn(void)
{
    wf_event ev;

    for (int k = 0; k < 12; k++, w.now_ns += 2 * MS)
        for (uint32_t i = 0; i < WORKERS; i++) {
            wf_net_poll(w.net[i], w.now_ns);
            while (wf_net_event(w.net[i], w.now_ns, &ev)) {
                if (ev.kind == WF_EV_UP && ev.peer->task.index == 0)
                    w.to_first[i] = ev.peer;
                if (i == 1)
                    take_middle(&ev);
                else if (i == 0 && w.first)
                    take_first(&ev);
                else if (ev.kind == WF_EV_UP && ev.peer->task.index == 1)
                    w.to_middle[i] = ev.peer;
                else if (ev.kind == WF_EV_MESSAGE)
                    hear(ev.msg);
                wf_net_free_msg(w.net[i], &ev.msg);
            }
            wf_net_flush(w.net[i], w.now_ns);
        }
}

/* ---- messages ---- */

static inline wf_msg *message(uint32_t from, uint16_t kind)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(w.net[from], kind, &m, NULL), WF_OK);
    m->head.job = JOB;
    m->head.generation = GENERATION;
    m->head.view = from; /* the stage that has it, */
    m->head.map = w.first ? 0 : 1;
    return m;
}

static inline void send(uint32_t from, wf_msg *m)
{
    wf_peer *to = w.first ? w.to_first[from] : w.to_middle[from];

    w.says = WF_OK;
    assert_int_equal(wf_net_send(w.net[from], to, WF_LANE_CONTROL, 0, &m, NULL), WF_OK);
    turn();
}

static inline void send_body(uint32_t from, uint16_t kind, uint32_t step,
                             const ProtobufCMessage *body)
{
    wf_msg *m = message(from, kind);

    m->head.step = step;
    assert_int_equal(wf_control_put(m, body, NULL), WF_OK);
    send(from, m);
}

typedef struct value {
    uint32_t from, round, batch, edge;
    size_t bytes;
    uint8_t codec;
    uint16_t generation; /* 0: that of the job */
    uint32_t parts;      /* 0: one */
    int content;         /* of each byte */
} value;

static inline void send_value(value v)
{
    wf_msg *m = message(v.from, WF_STAGE_VALUE);
    wf_buf *buf = wf_buf_new(v.bytes + 1);
    wf_part parts[2] = {{.slice = v.edge, .codec = v.codec, .bytes = v.bytes},
                        {.slice = v.edge, .codec = v.codec}};

    memset(buf->data, v.content, v.bytes);
    m->head.step = v.round;
    m->head.request = v.edge;
    m->head.cut = v.batch;
    if (v.generation)
        m->head.generation = v.generation;
    parts[1] = parts[0];
    assert_int_equal(wf_parts_put(m, parts, v.parts ? v.parts : 1, NULL), WF_OK);
    assert_int_equal(wf_msg_add_frame(m, buf, buf->data, v.bytes, NULL), WF_OK);
    send(v.from, m);
    wf_buf_unref(&buf);
}

static inline void send_round(uint32_t from, uint32_t number, bool trains, uint32_t n,
                              uint32_t records)
{
    Weft__StageRound body = WEFT__STAGE_ROUND__INIT;
    uint32_t *list = calloc(n + 1, sizeof *list);

    for (uint32_t i = 0; i < n; i++)
        list[i] = records;
    body.trains = trains;
    body.records = list;
    body.n_records = n;
    send_body(from, WF_STAGE_ROUND, number, &body.base);
    free(list);
}

/* ---- what a stage has ---- */

/* Without gaps: snapshots are compared as memory. */
typedef struct snapshot {
    uint64_t stage, round, early, forwards, backwards, batches, held, ready, done, taken;
    uint64_t busy, is_over, updates, why, summed, decided, drops;
} snapshot;

static inline snapshot look(wf_stage *s)
{
    snapshot out = {.stage = (uintptr_t)s};

    if (!s)
        return out;
    out.round = s->now.number;
    out.early = s->n_early;
    out.forwards = s->now.schedule.forwards;
    out.backwards = s->now.schedule.backwards;
    out.batches = s->now.schedule.batches;
    out.busy = s->now.busy;
    out.is_over = s->is_over;
    out.taken = s->now.taken;
    out.updates = s->own ? s->own->acked : 0;
    out.why = s->why.status;
    out.summed = s->now.summed;
    out.decided = s->now.decided;
    out.drops = s->now.drops;
    for (uint32_t k = 0; s->now.held && k < out.batches; k++)
        for (uint32_t i = 0; i < wf_stage_book_now(s)->n_values; i++)
            out.held += wf_stage_hold(s, k, i)->buf != NULL;
    for (uint32_t i = 0; i < WORKERS; i++) {
        out.ready += s->others[i].ready;
        out.done += s->others[i].done;
        out.summed += s->others[i].summed;
    }
    return out;
}

static inline wf_stage *middle(void)
{
    return w.trainer->guests.n ? w.trainer->guests.rows[0].stage : NULL;
}

static inline void assert_as_it_was(snapshot was)
{
    snapshot is = look(w.first ? w.first : middle());

    assert_memory_equal(&is, &was, sizeof is);
}

/* The last message was refused, with a sentence, and nothing came of it. */
static inline void assert_refused(snapshot was, const char *part)
{
    assert_int_equal(w.says, WF_PROTO);
    if (!strstr(w.why.what, part))
        fail_msg("\"%s\" does not say \"%s\"", w.why.what, part);
    assert_as_it_was(was);
}

static inline void assert_dropped(snapshot was)
{
    assert_int_equal(w.says, WF_OK);
    assert_as_it_was(was);
}

/* An edge of the job between two stages, of the training graph. */
static inline uint32_t edge_between(uint32_t from, uint32_t to, size_t *bytes)
{
    const Weft__Start *s = &w.prepared->start;
    int64_t elems;

    for (size_t i = 0; i < s->n_train_edges; i++) {
        if (s->train_edges[i]->from != from || s->train_edges[i]->to != to)
            continue;
        assert_int_equal(wf_stage_edge_elems(s->train_edges[i], RECORDS, &elems, NULL), WF_OK);
        *bytes = (size_t)elems * wf_dtype_size((wf_dtype)s->train_edges[i]->dtype);
        return (uint32_t)i;
    }
    *bytes = 0;
    fail_msg("no edge from %u to %u", from, to);
    return 0;
}

/* ---- the job ---- */

typedef struct start {
    Weft__Start body;
    Weft__Stage rows[WORKERS], *list[WORKERS];
} start;

/* As the chief sends it to worker 1. */
static inline void make_start(start *s)
{
    const Weft__Start *from = &w.prepared->start;

    s->body = *from;
    for (uint32_t i = 0; i < WORKERS; i++) {
        weft__stage__init(&s->rows[i]);
        s->rows[i].worker = i;
        s->rows[i].address = (char *)address_of(i);
        s->rows[i].incarnation = 100 + i;
        s->list[i] = &s->rows[i];
    }
    s->rows[1].backward = from->stages[1]->backward;
    s->body.train_graph = from->stages[1]->forward;
    s->body.eval_graph = from->stages[1]->evaluates;
    s->body.stages = s->list;
    s->body.stage = 1;
    s->body.train_data = s->body.eval_data = NULL;
    s->body.initial = true;
    s->body.checkpoint_dir = "/ckpt";
}

static inline void prepare(void)
{
    char text[sizeof TEXT + 128];
    wf_restored r;
    wf_err err;

    snprintf(text, sizeof text, "%s%s", TEXT, more[0] ? more : "optimizer: adam\n");
    assert_int_equal(wf_master_prepare("j", text, "j.yaml",
                                       &(wf_master_cluster){.n_workers = WORKERS}, &w.prepared,
                                       &err),
                     WF_OK);
    assert_int_equal(wf_master_restore(&(wf_restore_from){wf_memdisk_disk(w.disk), "/ckpt", -1},
                                       w.prepared, &r, &err),
                     WF_OK);
    wf_restored_free(&r);
}

static inline int set_up(void **state)
{
    static const char *const devices[] = {"cpu"};
    wf_err err;

    (void)state;
    w = (world){.disk = wf_memdisk_new()};
    wf_memnet_init(&w.nets, "stages");
    prepare();
    assert_int_equal(wf_pool_new(1, &w.pool, &err), WF_OK);
    assert_int_equal(
        wf_trainer_new(
            &(wf_trainer_conf){
                .index = 1, .pool = w.pool, .devices = devices, .n_devices = 1, .dial = dial},
            &w.trainer, &err),
        WF_OK);
    w.ops = wf_trainer_ops(w.trainer);
    for (uint32_t i = 0; i < WORKERS; i++) {
        wf_net_conf conf = wf_memnet_conf(&w.nets, (wf_task){WF_ROLE_WORKER, i}, 100 + i);

        w.net[i] = wf_memnet_new(&conf);
        wf_memnet_listen(&w.nets, w.net[i], address_of(i));
    }
    w.to_middle[0] = wf_memnet_dial(&w.nets, w.net[0], (wf_task){WF_ROLE_WORKER, 1}, address_of(1));
    turn();
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    more = "";
    wf_control_free(&w.sums);
    wf_stage_free(&w.first);
    wf_graph_free(&w.graph);
    wf_stage_links_close(&w.links);
    wf_trainer_free(&w.trainer);
    for (uint32_t i = 0; i < WORKERS; i++)
        wf_net_free(&w.net[i], 0);
    wf_memnet_close(&w.nets);
    wf_prepared_free(&w.prepared);
    wf_pool_free(&w.pool);
    wf_memdisk_free(&w.disk);
    return 0;
}

static inline void begin_stage(void)
{
    start s;

    w.heard[WF_STAGE_READY] = 0;
    make_start(&s);
    send_body(0, WF_STAGE_START, 0, &s.body.base);
    turn();
    assert_non_null(middle());
    assert_true(middle()->is_open);
    assert_int_equal(w.heard[WF_STAGE_READY], 1);
    assert_non_null(w.to_middle[2]);
}

/* All that a round of training brings worker 1; with what is in each byte of it. */
static inline void send_all(uint32_t round, int content)
{
    const Weft__Start *job = &w.prepared->start;
    int64_t elems;

    for (uint32_t k = 0; k < BATCHES; k++)
        for (uint32_t i = 0; i < job->n_train_edges; i++) {
            const Weft__StageEdge *e = job->train_edges[i];

            if (e->to != 1)
                continue;
            assert_int_equal(wf_stage_edge_elems(e, RECORDS, &elems, NULL), WF_OK);
            send_value((value){e->from, round, k, i,
                               (size_t)elems * wf_dtype_size((wf_dtype)e->dtype), WF_CODEC_BYTES,
                               .content = content});
            assert_int_equal(w.says, WF_OK);
        }
}

static inline void work(void)
{
    wf_err err;

    while (wf_stage_can_work(middle()))
        assert_int_equal(wf_stage_work(middle(), &err), WF_OK);
    turn();
}

#endif
