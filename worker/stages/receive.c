/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/receive.c - the messages of stages are taken, and links to them come and go. */
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/parts.h"
#include "worker/stages/state.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_EARLY = 4096 };

static bool is_link_to(const wf_stage *s, const wf_peer *peer, uint32_t stage)
{
    return peer->task.role == WF_ROLE_WORKER && wf_stage_worker(s, stage) == peer->task.index &&
           wf_stage_link_to(s->conf.links, peer->task.index) == peer;
}

/* The stage that a message is from, if its worker has it; of this worker where there is no peer.
 * The number of stages: none. */
static uint32_t sender_of(const wf_stage *s, const wf_peer *peer, const wf_msg *m)
{
    uint32_t from = m->head.view, none = (uint32_t)s->conf.start->n_stages;

    if (from >= none || from == s->conf.start->stage)
        return none;
    if (!peer)
        return wf_stage_worker(s, from) == s->conf.links->self ? from : none;
    return is_link_to(s, peer, from) ? from : none;
}

/* The first stage of the worker at the other end; the number of stages: none. */
static uint32_t stage_of(const wf_stage *s, const wf_peer *peer)
{
    uint32_t i = 0;

    while (i < s->conf.start->n_stages && !is_link_to(s, peer, i))
        i++;
    return i;
}

bool wf_stage_is_for(const wf_stage *s, const wf_msg *m)
{
    return s->exchange.net && m->head.job == s->exchange.job &&
           m->head.generation == s->exchange.generation && m->head.map == s->conf.start->stage;
}

static wf_status bad_value(const wf_stage *s, uint32_t from, const wf_msg *m, const char *why,
                           wf_err *err)
{
    return wf_fail(err, WF_PROTO, NULL,
                   "worker/%u: edge %u of micro-batch %u, round %u: %s (round %u is under way)",
                   wf_stage_worker(s, from), m->head.request, m->head.cut, m->head.step, why,
                   s->now.number);
}

/* Whether an edge of the book goes from that stage to this one. */
static bool is_edge(const wf_stage *s, const wf_stage_book *b, uint32_t edge, uint32_t from)
{
    return edge < b->n_edges && b->edges[edge]->to == s->conf.start->stage &&
           b->edges[edge]->from == from;
}

/* Puts bytes that have come in where they belong (T2). */
static wf_status put_value(wf_stage *s, const wf_stage_early *v, wf_err *err)
{
    const wf_stage_book *b = wf_stage_book_now(s);
    const Weft__StageEdge *e;
    uint32_t records;
    bool *came;
    int64_t elems;

    if (!is_edge(s, b, v->edge, v->from) || v->batch >= s->now.schedule.batches)
        return wf_fail(err, WF_PROTO, NULL,
                       "worker/%u: edge %u of %zu, micro-batch %u of %u, is none of its own",
                       wf_stage_worker(s, v->from), v->edge, b->n_edges, v->batch,
                       s->now.schedule.batches);
    e = b->edges[v->edge];
    records = s->now.records[v->batch];
    came = &s->now.came[(size_t)v->batch * b->n_edges + v->edge];
    WF_TRY(wf_stage_edge_elems(e, records, &elems, err));
    if ((size_t)elems * wf_dtype_size((wf_dtype)e->dtype) != v->bytes)
        return wf_fail(err, WF_PROTO, NULL, "worker/%u: \"%.200s\" of %u records has %zu bytes",
                       wf_stage_worker(s, v->from), e->name, records, v->bytes);
    if (*came)
        return wf_fail(err, WF_PROTO, NULL, "worker/%u: \"%.200s\" of micro-batch %u comes twice",
                       wf_stage_worker(s, v->from), e->name, v->batch);
    *came = true;
    for (uint32_t i = 0; i < b->n_values; i++) {
        wf_stage_held *h = wf_stage_hold(s, v->batch, i);

        if (strcmp(b->values[i].name, e->name) == 0 && !h->buf)
            *h = (wf_stage_held){
                .buf = wf_buf_ref(v->buf), .dtype = (wf_dtype)e->dtype, .elems = elems};
    }
    return WF_OK;
}

/* The most bytes that any edge to this stage brings for one micro-batch. */
static size_t most_bytes(const wf_stage *s)
{
    size_t most = 0;

    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < s->books[k].n_edges; i++) {
            const Weft__StageEdge *e = s->books[k].edges[i];
            wf_err ignored;
            int64_t elems;

            if (e->to == s->conf.start->stage &&
                wf_stage_edge_elems(e, s->conf.start->first_records, &elems, &ignored) == WF_OK)
                most = WF_MAX(most, (size_t)elems * wf_dtype_size((wf_dtype)e->dtype));
        }
    return most;
}

/* For a round that this stage has not been told of: it follows. What the round is will be seen
 * then. */
static wf_status keep_early(wf_stage *s, const wf_stage_early *v, wf_err *err)
{
    wf_stage_early *e;

    for (e = s->early; e; e = e->next)
        if (e->edge == v->edge && e->batch == v->batch && e->from == v->from &&
            e->round == v->round)
            return wf_fail(err, WF_PROTO, NULL,
                           "worker/%u: edge %u of micro-batch %u, round %u, comes twice",
                           wf_stage_worker(s, v->from), v->edge, v->batch, v->round);
    if (s->n_early == MOST_EARLY)
        return wf_fail(err, WF_PROTO, NULL, "%d values of a round that has not begun", MOST_EARLY);
    e = calloc(1, sizeof *e);
    if (!e)
        return wf_fail_nomem(err, sizeof *e);
    *e = *v;
    e->buf = wf_buf_ref(v->buf);
    e->next = s->early;
    s->early = e;
    s->n_early++;
    return WF_OK;
}

/* One that does not belong to the round is dropped, and the round waits for the right one. */
void wf_stage_take_early(wf_stage *s)
{
    for (wf_stage_early **at = &s->early; *at;) {
        wf_stage_early *e = *at;
        wf_err why;

        if (e->round > s->now.number) {
            at = &e->next;
            continue;
        }
        if (e->round == s->now.number && put_value(s, e, &why) != WF_OK)
            WF_LOG_WARN("stage.bad_value", "why=\"%s\"", why.what);
        *at = e->next;
        s->n_early--;
        wf_buf_unref(&e->buf);
        free(e);
    }
}

/* Kernels want aligned memory, and the transport its own back. */
static wf_status copy_of(wf_stage *s, uint32_t from, const wf_msg *m, wf_buf **out, size_t *bytes,
                         wf_err *err)
{
    wf_part parts[WF_MAX_PARTS];
    uint32_t n;

    WF_TRY(wf_parts_get(m, parts, &n, err));
    *bytes = n ? parts[0].bytes : 0;
    if (n > 1 || (n == 1 && parts[0].codec != WF_CODEC_BYTES) || *bytes > most_bytes(s))
        return bad_value(s, from, m, "it has other parts, or more bytes than an edge brings", err);
    *out = wf_stage_buf(s, *bytes);
    if (!*out)
        return wf_fail_nomem(err, *bytes);
    if (n)
        memcpy((*out)->data, wf_part_data(m, &parts[0]), *bytes);
    return WF_OK;
}

static wf_status on_value(wf_stage *s, uint32_t from, const wf_msg *m, wf_err *err)
{
    wf_stage_early v = {
        .round = m->head.step, .batch = m->head.cut, .edge = m->head.request, .from = from};
    bool is_now = v.round == s->now.number && s->now.busy;
    wf_status rc;

    if (s->is_over || v.round < s->now.number)
        return WF_OK;
    if (!is_now && v.round != s->now.number + 1)
        return bad_value(s, from, m, "it does not follow", err);
    if (is_now ? !is_edge(s, wf_stage_book_now(s), v.edge, from)
               : !is_edge(s, &s->books[0], v.edge, from) && !is_edge(s, &s->books[1], v.edge, from))
        return bad_value(s, from, m, "it goes between other stages", err);
    if (v.batch >= WF_STAGE_ROUND_MOST)
        return bad_value(s, from, m, "there are not so many", err);
    rc = copy_of(s, from, m, &v.buf, &v.bytes, err);
    if (rc == WF_OK)
        rc = is_now ? put_value(s, &v, err) : keep_early(s, &v, err);
    wf_buf_unref(&v.buf);
    return rc;
}

/* What memory is planned for: no micro-batch has more records than most have. */
static bool are_records(const wf_stage *s, const Weft__StageRound *body)
{
    for (size_t i = 0; i < body->n_records; i++)
        if (body->records[i] == 0 || body->records[i] > s->conf.start->first_records)
            return false;
    return body->n_records > 0 && body->n_records <= WF_STAGE_ROUND_MOST;
}

static wf_status on_round(wf_stage *s, const wf_msg *m, wf_err *err)
{
    Weft__StageRound *body = NULL;
    wf_status rc;

    if (s->is_over)
        return WF_OK;
    WF_TRY(wf_control_get(m, &weft__stage_round__descriptor, &body, err));
    if (s->now.busy || m->head.step != s->now.number + 1 || !are_records(s, body) ||
        (body->trains && wf_stage_predicts(s)))
        rc = wf_fail(err, WF_PROTO, NULL, "round %u, of %zu micro-batches, after round %u",
                     m->head.step, body->n_records, s->now.number);
    else
        rc = wf_stage_enter(s, m->head.step,
                            &(wf_stage_round){.trains = body->trains,
                                              .records = body->records,
                                              .n = (uint32_t)body->n_records,
                                              .epoch = body->epoch,
                                              .split = body->split,
                                              .number = body->number},
                            err);
    wf_control_free(&body);
    return rc;
}

/* Of the first stage: another one is ready, or done, or says why not. */
static wf_status on_outcome(wf_stage *s, uint32_t from, const wf_msg *m, wf_err *err)
{
    Weft__Outcome *body = NULL;

    WF_TRY(wf_control_get(m, &weft__outcome__descriptor, &body, err));
    if (body->status != WF_OK) {
        s->is_over = true;
        wf_fail(&s->why, body->status < WF_BROKEN ? (wf_status)body->status : WF_INVALID,
                body->hint, "%s", body->what);
        *err = s->why;
        wf_control_free(&body);
        return s->why.status;
    }
    wf_control_free(&body);
    if (m->head.kind == WF_STAGE_READY)
        s->others[from].ready = true;
    else if (m->head.step == s->now.number)
        s->others[from].done = true;
    return WF_OK;
}

static wf_status on_save(wf_stage *s, const wf_msg *m, wf_err *err)
{
    Weft__Save *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(m, &weft__save__descriptor, &body, err));
    wf_stage_wait(s);
    rc = wf_stage_save(s, m->head.cut, body->folder, err);
    wf_control_free(&body);
    if (rc == WF_OK)
        rc = wf_stage_send(s, 0, WF_STAGE_SAVED, m->head.cut,
                           &s->own->saving.shards[0].result->base, err);
    wf_exchange_save_end(s->own);
    return rc;
}

static wf_status on_saved(wf_stage *s, uint32_t from, const wf_msg *m, wf_err *err)
{
    wf_exchange_save *to = &s->told->saving;

    if (m->head.cut != to->cut || from >= to->n || to->shards[from].result)
        return WF_OK;
    to->shards[from].copied = true;
    return wf_control_get(m, &weft__saved__descriptor, &to->shards[from].result, err);
}

static wf_status on_tune(wf_stage *s, const wf_msg *m, wf_err *err)
{
    Weft__Tune *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(m, &weft__tune__descriptor, &body, err));
    wf_stage_wait(s);
    rc = wf_exchange_tune(s->own, body->learning_rate, err);
    wf_control_free(&body);
    return rc;
}

/* Messages that the first stage takes, but for values. */
static bool is_for_first(uint16_t kind)
{
    return kind == WF_STAGE_READY || kind == WF_STAGE_DONE || kind == WF_STAGE_SAVED ||
           kind == WF_STAGE_SUMS;
}

wf_status wf_stage_on_message(wf_stage *s, const wf_peer *peer, const wf_msg *m, wf_err *err)
{
    uint32_t from = sender_of(s, peer, m);
    bool first = wf_stage_is_first(s);

    if (from == s->conf.start->n_stages || !s->is_open)
        return WF_OK;
    if (m->head.kind == WF_STAGE_VALUE)
        return on_value(s, from, m, err);
    if (first != is_for_first(m->head.kind) || (!first && from != 0) ||
        (!s->own && (m->head.kind == WF_STAGE_SAVE || m->head.kind == WF_STAGE_SAVED ||
                     m->head.kind == WF_STAGE_TUNE)))
        return wf_fail(err, WF_PROTO, NULL, "worker/%u: %s to stage %u", wf_stage_worker(s, from),
                       wf_kind_name(m->head.kind), s->conf.start->stage);
    switch (m->head.kind) {
    case WF_STAGE_READY:
    case WF_STAGE_DONE:
        return on_outcome(s, from, m, err);
    case WF_STAGE_SAVED:
        return on_saved(s, from, m, err);
    case WF_STAGE_ROUND:
        return on_round(s, m, err);
    case WF_STAGE_SAVE:
        return on_save(s, m, err);
    case WF_STAGE_TUNE:
        return on_tune(s, m, err);
    case WF_STAGE_SUMS:
        return wf_stage_on_sums(s, from, m, err);
    case WF_STAGE_APPLY:
        return wf_stage_on_apply(s, m, err);
    default:
        return WF_OK;
    }
}

wf_status wf_stage_on_link(wf_stage *s, const wf_peer *peer, bool up, wf_err *err)
{
    uint32_t other = stage_of(s, peer);
    wf_err why;

    if (other == s->conf.start->n_stages || !s->exchange.net)
        return WF_OK;
    if (up)
        return wf_stage_is_first(s) ? WF_OK : wf_stage_look_for_links(s, err);
    s->is_over = true;
    s->now.busy = false;
    wf_fail(&why, WF_AGAIN, NULL, "worker/%u, which had stage %u of %zu, is gone",
            wf_stage_worker(s, other), other, s->conf.start->n_stages);
    if (!wf_stage_is_first(s))
        return other == 0 ? WF_OK : wf_stage_send_outcome(s, WF_STAGE_DONE, &why, err);
    s->why = why;
    *err = why;
    return WF_AGAIN;
}
