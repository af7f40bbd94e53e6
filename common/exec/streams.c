/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/streams.c - the three streams of a device's side, and what they wait for.
 *
 * Kernels run on one, copies to the device on another, copies from it on the third, so that the bus
 * is busy while kernels run. Their order is kept by events on the device (P7), and the host waits
 * for none of them.
 *
 * What is given to a run is brought ahead of all kernels, in the order in which they read it, and a
 * kernel waits for what it reads. Small copies that follow each other are a group with one event,
 * since a wait between two kernels costs a graph of its own (replay.c). How small they should be
 * was not measured.
 */
#include "common/base/size.h"
#include "common/exec/plan.h"

enum { GROUP_BYTES = 256 << 10 }; /* that a group may have behind its first copy */
#define NO_GROUP UINT32_MAX

wf_status wf_plan_side_open(wf_plan_side *side, wf_err *err)
{
    WF_TRY(wf_stream_new(side->device, &side->stream, err));
    if (side->device->is_host)
        return WF_OK;
    WF_TRY(wf_stream_beside(side->stream, &side->in, err));
    WF_TRY(wf_stream_beside(side->stream, &side->out, err));
    return wf_device_event_new(side->device, &side->mark, err);
}

/* What is queued on s from now on begins when what is queued on `other` now is done. */
static wf_status follow(wf_plan_side *side, wf_stream *s, wf_stream *other, wf_err *err)
{
    WF_TRY(wf_device_event_record(side->mark, other, err));
    return wf_stream_after(s, side->mark, err);
}

wf_status wf_plan_side_bring(wf_plan_side *side, void *to, const void *from, size_t bytes,
                             wf_err *err)
{
    WF_TRY(wf_stream_copy(side->in, WF_COPY_IN, to, from, bytes, err));
    side->brought = NO_GROUP; /* until kernels wait for it */
    WF_TRY(follow(side, side->stream, side->in, err));
    side->brought = 0;
    return WF_OK;
}

/* The kernels' stream waits for the copies. */
static wf_status join(wf_plan_side *side, wf_err *err)
{
    if (side->brought || side->beside)
        WF_TRY(follow(side, side->stream, side->in, err));
    if (side->took)
        WF_TRY(follow(side, side->stream, side->out, err));
    return WF_OK;
}

/* The host waits once, and after a failure for each stream, which forgets it then. */
wf_status wf_plan_side_wait(wf_plan_side *side, wf_err *err)
{
    wf_status rc = join(side, err);
    wf_status waited = wf_stream_wait(side->stream, rc == WF_OK ? err : NULL);

    rc = rc == WF_OK ? waited : rc;
    if (rc != WF_OK && side->in)
        waited = wf_stream_wait(side->in, NULL);
    if (rc != WF_OK && side->out)
        waited = wf_stream_wait(side->out, NULL);
    side->brought = 0;
    side->took = side->beside = false;
    return rc;
}

/* None of them is freed while another may wait for it. */
void wf_plan_side_close(wf_plan_side *side)
{
    wf_status ignored = side->stream ? wf_plan_side_wait(side, NULL) : WF_OK;

    (void)ignored;
    wf_device_event_free(&side->mark);
    wf_stream_free(&side->in);
    wf_stream_free(&side->out);
    wf_stream_free(&side->stream);
}

/* ---- what steps wait for ---- */

/* What is queued on a side in front of a step. */
typedef struct queued {
    wf_step *last;    /* of the group that may go on; NULL: none may */
    size_t bytes;     /* of that group, behind its first copy */
    uint32_t awaited; /* the last group that kernels have waited for */
    bool kernels;     /* that nobody has waited for */
    bool followed;    /* copies from the device wait for all kernels */
} queued;

static bool is_on_host(const wf_step *s)
{
    return s->side == WF_SIDE_HOST;
}

static bool brings(const wf_plan *p, const wf_step *s)
{
    return s->run.stream == p->sides[s->side].in;
}

static wf_room *room_of(const wf_plan *p, const wf_value *v)
{
    return v && p->room_of[v->index] != WF_NO_ROOM ? &p->rooms[p->room_of[v->index]] : NULL;
}

/* The last group that brings what a step reads, or what lies where it writes. */
static uint32_t group_needed(const wf_plan *p, const wf_node *n)
{
    uint32_t most = 0;

    for (uint32_t k = 0; k < n->n_in + n->n_out; k++) {
        const wf_room *r = room_of(p, k < n->n_in ? n->in[k] : n->out[k - n->n_in]);

        if (r && r->group > most)
            most = r->group;
    }
    return most;
}

/* A copy that makes an output, or has the host wait, is a group of its own. Memory of an output may
 * be in use until an event that the kernels alone wait for (wf_plan_after_event), so the copy waits
 * for them. */
static wf_status order_bringing(wf_plan *p, wf_step *s, queued *q, wf_err *err)
{
    wf_room *to = room_of(p, s->run.node->out[0]);
    bool alone = to->kind != WF_ROOM_ARENA || s->after;

    s->behind = q->kernels || to->kind != WF_ROOM_ARENA;
    if (q->last && !alone && to->bytes <= GROUP_BYTES - q->bytes) {
        q->last->ends_group = false;
        q->bytes += to->bytes;
        s->brings = q->last->brings;
    } else {
        WF_TRY(wf_device_event_new(p->sides[s->side].device, &p->groups[p->n_groups], err));
        q->bytes = 0;
        s->brings = ++p->n_groups;
    }
    to->group = s->brings;
    s->ends_group = true;
    q->last = alone ? NULL : s;
    return WF_OK;
}

static void order_other(const wf_plan *p, wf_step *s, queued *q)
{
    bool takes = s->run.stream == p->sides[s->side].out;
    uint32_t group = group_needed(p, s->run.node);

    s->needs = group > q->awaited ? group : 0;
    q->awaited = WF_MAX(q->awaited, group);
    s->behind = takes && (s->needs || !q->followed);
    q->followed = takes;
    q->kernels |= !takes;
    q->last = NULL;
}

wf_status wf_plan_order(wf_plan *p, wf_err *err)
{
    queued sides[WF_SIDES] = {0};

    if (p->n_sides == 1)
        return WF_OK;
    p->groups = wf_arena_array(p->arena, p->n_steps, sizeof(wf_device_event *));
    if (!p->groups)
        return wf_fail_nomem(err, p->n_steps * sizeof(wf_device_event *));
    for (uint32_t i = 0; i < p->n_steps; i++) {
        wf_step *s = &p->steps[i];

        if (is_on_host(s))
            for (uint32_t k = 1; k < p->n_sides; k++) {
                sides[k].last = NULL;
                sides[k].kernels = false;
            }
        else if (brings(p, s))
            WF_TRY(order_bringing(p, s, &sides[s->side], err));
        else
            order_other(p, s, &sides[s->side]);
    }
    return WF_OK;
}

/* ---- a run ---- */

/* Kernels, and what is queued on their stream from now on, wait for a group. */
static wf_status await_group(wf_plan *p, wf_plan_side *side, uint32_t group, wf_err *err)
{
    if (side->brought == group)
        side->brought = 0;
    return wf_stream_after(side->stream, p->groups[group - 1], err);
}

wf_status wf_step_before(wf_plan *p, const wf_step *s, wf_err *err)
{
    wf_plan_side *side = &p->sides[s->side];

    for (uint32_t left = s->after; left; left &= left - 1) {
        wf_plan_side *of = &p->sides[__builtin_ctz(left)];

        WF_TRY(is_on_host(s) ? wf_plan_side_wait(of, err) : wf_stream_wait(of->out, err));
    }
    if (s->needs)
        WF_TRY(await_group(p, side, s->needs, err));
    if (s->behind)
        WF_TRY(follow(side, s->run.stream, side->stream, err));
    return WF_OK;
}

/* An output that a copy brings is final on the stream of the kernels, as others of the device are.
 */
wf_status wf_step_behind(wf_plan *p, const wf_step *s, wf_err *err)
{
    wf_plan_side *side = &p->sides[s->side];

    if (is_on_host(s))
        return WF_OK;
    side->took |= s->run.stream == side->out;
    if (!s->brings)
        return WF_OK;
    side->brought = s->brings;
    if (s->ends_group)
        WF_TRY(wf_device_event_record(p->groups[s->brings - 1], side->in, err));
    return s->n_ready ? await_group(p, side, s->brings, err) : WF_OK;
}
