/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/replay.c - steps that a device has recorded are queued by one call, and not by one or
 * more for each kernel.
 *
 * A stretch is a row of steps of one device without a copy from or to the host, and without a wait
 * for one but in front of it: what they are asked to do follows from the addresses of their
 * operands alone. Those of the arena and of constants never change. A stretch is recorded for the
 * addresses that inputs and outputs have in a run, a few times, since memory that is lent to a plan
 * comes in turns.
 *
 * The first run of a plan records nothing: libraries prepare themselves in it.
 */
#include "common/base/size.h"
#include "common/exec/plan.h"
#include "common/log/log.h"

enum {
    LEAST_STEPS = 2,
    MOST_RECORDED = 64 /* of a stretch: whose addresses change ever again is not worth it */
};

static bool may_be_recorded(const wf_plan *p, const wf_step *s)
{
    return s->side != WF_SIDE_HOST && !s->after && !wf_plan_is_copy(s->run.node) &&
           wf_device_records(p->sides[s->side].device);
}

/* The step behind the stretch that begins here: the same step where there is none. */
static uint32_t end_of(const wf_plan *p, uint32_t begin)
{
    uint32_t end = begin;

    while (end < p->n_steps && may_be_recorded(p, &p->steps[end]) &&
           p->steps[end].side == p->steps[begin].side && (end == begin || !p->steps[end].needs))
        end++;
    return end - begin < LEAST_STEPS ? begin : end;
}

/* Adds the room of a value to those of a stretch, if its address may change. */
static void note_room(const wf_plan *p, wf_stretch *s, const wf_value *v)
{
    uint32_t room = v ? p->room_of[v->index] : WF_NO_ROOM;

    if (room == WF_NO_ROOM ||
        (p->rooms[room].kind != WF_ROOM_LENT && p->rooms[room].kind != WF_ROOM_OUTPUT))
        return;
    for (uint32_t i = 0; i < s->n_rooms; i++)
        if (s->rooms[i] == room)
            return;
    s->rooms[s->n_rooms++] = room;
}

/* Values that share a room lie at its address, from its first byte on. */
static wf_status list_rooms(wf_plan *p, wf_stretch *s, wf_err *err)
{
    size_t ports = 0;

    for (uint32_t i = s->begin; i < s->end; i++)
        ports += p->steps[i].run.node->n_in + p->steps[i].run.node->n_out;
    s->rooms = wf_arena_array(p->arena, WF_MIN(ports, (size_t)p->n_rooms), sizeof *s->rooms);
    if (!s->rooms)
        return wf_fail_nomem(err, ports * sizeof *s->rooms);
    for (uint32_t i = s->begin; i < s->end; i++) {
        const wf_node *n = p->steps[i].run.node;

        for (uint32_t k = 0; k < n->n_in; k++)
            note_room(p, s, n->in[k]);
        for (uint32_t k = 0; k < n->n_out; k++)
            note_room(p, s, n->out[k]);
    }
    for (uint32_t i = 0; i < WF_RECORDINGS; i++) {
        s->recorded[i].places = wf_arena_array(p->arena, s->n_rooms, sizeof(void *));
        if (!s->recorded[i].places)
            return wf_fail_nomem(err, s->n_rooms * sizeof(void *));
    }
    return WF_OK;
}

wf_status wf_plan_stretches(wf_plan *p, wf_err *err)
{
    p->stretches = wf_arena_array(p->arena, p->n_steps / LEAST_STEPS, sizeof *p->stretches);
    if (!p->stretches)
        return wf_fail_nomem(err, p->n_steps * sizeof *p->stretches);
    for (uint32_t i = 0, end; i < p->n_steps; i = WF_MAX(end, i + 1)) {
        wf_stretch *s = &p->stretches[p->n_stretches];

        end = end_of(p, i);
        if (end == i)
            continue;
        *s = (wf_stretch){.begin = i, .end = end};
        p->n_stretches++;
        WF_TRY(list_rooms(p, s, err));
    }
    return WF_OK;
}

void wf_plan_forget(wf_plan *p)
{
    for (uint32_t i = 0; i < p->n_stretches; i++)
        for (uint32_t k = 0; k < WF_RECORDINGS; k++)
            wf_device_graph_free(&p->stretches[i].recorded[k].graph);
}

static void *place_of(const wf_plan *p, uint32_t room)
{
    return p->tensors[p->rooms[room].head].data;
}

static wf_recorded *find(const wf_plan *p, wf_stretch *s)
{
    for (uint32_t i = 0; i < WF_RECORDINGS; i++) {
        wf_recorded *r = &s->recorded[i];
        bool same = r->graph;

        for (uint32_t k = 0; same && k < s->n_rooms; k++)
            same = r->places[k] == place_of(p, s->rooms[k]);
        if (same)
            return r;
    }
    return NULL;
}

static wf_status queue_each(wf_plan *p, const wf_stretch *s, wf_err *err)
{
    for (uint32_t i = s->begin; i < s->end; i++)
        WF_TRY(wf_step_queue(&p->steps[i], err));
    return WF_OK;
}

/* Records the stretch in place of the recording that was made longest ago; NULL: it cannot be.
 * Nothing of the run before is queued any more. */
static wf_recorded *record(wf_plan *p, wf_stretch *s)
{
    wf_stream *stream = p->sides[p->steps[s->begin].side].stream;
    wf_recorded *r = &s->recorded[s->n_recorded++ % WF_RECORDINGS];
    wf_err why, ignored;
    wf_status rc, ended;

    wf_device_graph_free(&r->graph);
    for (uint32_t k = 0; k < s->n_rooms; k++)
        r->places[k] = place_of(p, s->rooms[k]);
    rc = wf_stream_record_begin(stream, &why);
    if (rc == WF_OK) {
        rc = queue_each(p, s, &why);
        ended = wf_stream_record_end(stream, &r->graph, rc == WF_OK ? &why : &ignored);
        rc = rc == WF_OK ? ended : rc;
    }
    if (rc == WF_OK)
        return r;
    wf_device_graph_free(&r->graph);
    s->given_up = true;
    if (!p->told)
        WF_LOG_WARN("plan.not_recorded", "device=%s steps=%u why=\"%s\"", stream->device->name,
                    s->end - s->begin, why.what);
    p->told = true;
    return NULL;
}

wf_status wf_stretch_run(wf_plan *p, wf_stretch *s, wf_err *err)
{
    wf_recorded *r = p->has_run ? find(p, s) : NULL;

    WF_TRY(wf_step_before(p, &p->steps[s->begin], err));
    if (p->has_run && !r && !s->given_up && s->n_recorded < MOST_RECORDED)
        r = record(p, s);
    if (!r)
        return queue_each(p, s, err);
    return wf_device_graph_launch(r->graph, p->sides[p->steps[s->begin].side].stream, err);
}
