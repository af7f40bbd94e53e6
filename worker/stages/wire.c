/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/wire.c - the messages of stages are sent: stage.h has their list. */
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/parts.h"
#include "worker/stages/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wf_status new_message(const wf_stage *s, uint16_t kind, wf_msg **out, wf_err *err)
{
    WF_TRY(wf_net_msg(s->exchange.net, kind, out, err));
    (*out)->head.job = s->exchange.job;
    (*out)->head.generation = s->exchange.generation;
    (*out)->head.step = s->now.number;
    (*out)->head.view = s->conf.start->stage;
    return WF_OK;
}

static wf_status send(const wf_stage *s, uint32_t stage, wf_msg **m, wf_err *err)
{
    (*m)->head.map = stage;
    return wf_stage_links_send(s->conf.links, s->exchange.net, wf_stage_worker(s, stage), m, err);
}

wf_status wf_stage_send(const wf_stage *s, uint32_t stage, uint16_t kind, uint32_t cut,
                        const ProtobufCMessage *body, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(new_message(s, kind, &m, err));
    m->head.cut = cut;
    rc = body ? wf_control_put(m, body, err) : WF_OK;
    if (rc == WF_OK)
        return send(s, stage, &m, err);
    wf_net_free_msg(s->exchange.net, &m);
    return rc;
}

static wf_status send_to_others(const wf_stage *s, uint16_t kind, uint32_t cut,
                                const ProtobufCMessage *body, wf_err *err)
{
    for (uint32_t i = 1; i < s->conf.start->n_stages; i++)
        WF_TRY(wf_stage_send(s, i, kind, cut, body, err));
    return WF_OK;
}

/* A worker in the view of the start; NULL: it is not there. */
static const Weft__Member *member_of(const Weft__Start *start, uint32_t worker)
{
    for (size_t i = 0; start->view && i < start->view->n_members; i++)
        if (start->view->members[i]->role == WF_ROLE_WORKER &&
            start->view->members[i]->index == worker)
            return start->view->members[i];
    return NULL;
}

/* A stage is sent its own graphs, and no data. */
static wf_status send_start(const wf_stage *s, uint32_t to, wf_err *err)
{
    const Weft__Start *start = s->conf.start;
    Weft__Stage rows[64], *list[64];
    Weft__Start own = *start;

    for (uint32_t i = 0; i < start->n_stages; i++) {
        weft__stage__init(&rows[i]);
        rows[i].worker = start->stages[i]->worker;
        rows[i].address = member_of(start, rows[i].worker)->address;
        rows[i].incarnation = member_of(start, rows[i].worker)->incarnation;
        rows[i].device = start->stages[i]->device;
        list[i] = &rows[i];
    }
    rows[to].backward = start->stages[to]->backward;
    own.train_graph = start->stages[to]->forward;
    own.eval_graph = start->stages[to]->evaluates;
    own.stages = list;
    own.stage = to;
    own.train_data = own.eval_data = NULL;
    own.view = NULL;
    own.round = NULL;
    return wf_stage_send(s, to, WF_STAGE_START, 0, &own.base, err);
}

wf_status wf_stage_send_starts(wf_stage *s, wf_err *err)
{
    const Weft__Start *start = s->conf.start;

    for (uint32_t i = 0; i < start->n_stages; i++)
        if (!member_of(start, wf_stage_worker(s, i)))
            return wf_fail(err, WF_AGAIN, NULL, "worker/%u, of stage %u, is not there",
                           wf_stage_worker(s, i), i);
    for (uint32_t i = 1; i < start->n_stages; i++) {
        const Weft__Member *m = member_of(start, wf_stage_worker(s, i));

        if (m->index != s->conf.links->self)
            WF_TRY(wf_stage_links_dial(s->conf.links, s->exchange.net, m->index, m->address,
                                       m->incarnation, err));
        WF_TRY(send_start(s, i, err));
    }
    return WF_OK;
}

/* Only the worker of the first stage knows all addresses; links to later stages are dialled once.
 */
static bool has_links(const wf_stage *s)
{
    for (uint32_t i = 0; i < s->conf.start->n_stages; i++) {
        const wf_peer *peer = wf_stage_link_to(s->conf.links, wf_stage_worker(s, i));

        if (wf_stage_worker(s, i) != s->conf.links->self && (!peer || !peer->up))
            return false;
    }
    return true;
}

wf_status wf_stage_look_for_links(wf_stage *s, wf_err *err)
{
    const Weft__Start *start = s->conf.start;

    for (uint32_t i = start->stage + 1; i < start->n_stages; i++)
        if (wf_stage_worker(s, i) != s->conf.links->self)
            WF_TRY(wf_stage_links_dial(s->conf.links, s->exchange.net, wf_stage_worker(s, i),
                                       start->stages[i]->address, start->stages[i]->incarnation,
                                       err));
    if (s->sent_ready || !has_links(s))
        return WF_OK;
    s->sent_ready = true;
    return wf_stage_send_outcome(s, WF_STAGE_READY, NULL, err);
}

wf_status wf_stage_send_outcome(wf_stage *s, uint16_t kind, const wf_err *why, wf_err *err)
{
    Weft__Outcome body = WEFT__OUTCOME__INIT;

    if (why) {
        body.status = why->status;
        body.what = (char *)why->what;
        body.hint = (char *)why->hint;
    }
    return wf_stage_send(s, 0, kind, 0, &body.base, err);
}

wf_status wf_stage_send_round(wf_stage *s, wf_err *err)
{
    Weft__StageRound body = WEFT__STAGE_ROUND__INIT;

    body.trains = s->now.trains;
    body.records = s->now.records;
    body.n_records = s->now.schedule.batches;
    body.epoch = s->now.epoch;
    body.split = s->now.split;
    body.number = s->now.first;
    return send_to_others(s, WF_STAGE_ROUND, 0, &body.base, err);
}

static wf_status send_along(wf_stage *s, uint32_t edge, uint32_t batch, const wf_stage_held *h,
                            wf_err *err)
{
    size_t bytes = (size_t)h->elems * wf_dtype_size(h->dtype);
    wf_part part = {.slice = edge, .codec = WF_CODEC_BYTES, .bytes = bytes};
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(new_message(s, WF_STAGE_VALUE, &m, err));
    m->head.request = edge;
    m->head.cut = batch;
    if (s->exchange.checksums)
        part.checksum = wf_part_checksum(h->buf->data, bytes);
    rc = wf_parts_put(m, &part, bytes ? 1 : 0, err);
    if (rc == WF_OK && bytes)
        rc = wf_msg_add_frame(m, h->buf, h->buf->data, bytes, err);
    if (rc == WF_OK)
        return send(s, wf_stage_book_now(s)->edges[edge]->to, &m, err);
    wf_net_free_msg(s->exchange.net, &m);
    return rc;
}

wf_status wf_stage_send_value(wf_stage *s, uint32_t batch, uint32_t value, wf_err *err)
{
    const wf_stage_book *b = wf_stage_book_now(s);
    const wf_stage_held *h = wf_stage_hold(s, batch, value);

    for (uint32_t i = 0; i < b->n_edges; i++) {
        const Weft__StageEdge *e = b->edges[i];
        int64_t elems;

        if (e->from != s->conf.start->stage || strcmp(e->name, b->values[value].name) != 0)
            continue;
        WF_TRY(wf_stage_edge_elems(e, s->now.records[batch], &elems, err));
        if (elems != h->elems || (wf_dtype)e->dtype != h->dtype)
            return wf_fail(err, WF_SHAPE, NULL,
                           "\"%.200s\" has %ld elements of %s, and %ld of %s were to come", e->name,
                           (long)h->elems, wf_dtype_name(h->dtype), (long)elems,
                           wf_dtype_name((wf_dtype)e->dtype));
        WF_TRY(send_along(s, i, batch, h, err));
    }
    return WF_OK;
}

wf_status wf_stage_send_save(wf_stage *s, wf_err *err)
{
    Weft__Save body = WEFT__SAVE__INIT;

    body.folder = s->told->saving.folder;
    for (uint32_t i = 1; i < s->conf.start->n_stages; i++)
        s->told->saving.shards[i].writer = (wf_task){WF_ROLE_WORKER, wf_stage_worker(s, i)};
    return send_to_others(s, WF_STAGE_SAVE, s->told->saving.cut, &body.base, err);
}

wf_status wf_stage_send_tune(wf_stage *s, double rate, wf_err *err)
{
    Weft__Tune body = WEFT__TUNE__INIT;

    body.learning_rate = rate;
    return send_to_others(s, WF_STAGE_TUNE, 0, &body.base, err);
}

void wf_stage_send_stop(wf_stage *s)
{
    wf_err ignored;
    wf_status rc = send_to_others(s, WF_STAGE_STOP, 0, NULL, &ignored);

    (void)rc; /* without it they stop at their next start */
}
