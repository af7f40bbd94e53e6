/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/memory.c - which values share memory, how long it lives, and where it lies.
 *
 * Views join the room of what they view. Then, node by node, a result may take over the room of an
 * operand that is read for the last time there, if the kernel works in place and the sizes agree.
 * An output's room is its own: kernels write straight to where the caller wants it.
 *
 * Offsets: rooms largest first, each at the lowest offset that is free during its life ("greedy by
 * size", Pisarchyk and Lee 2020, section 5.2).
 */
#include "common/base/size.h"
#include "common/exec/plan.h"

#include <stdlib.h>
#include <string.h>

static uint32_t new_room(wf_plan *p, wf_room_kind kind, const wf_value *v, uint32_t step)
{
    p->rooms[p->n_rooms] = (wf_room){.kind = kind,
                                     .side = p->side_of[v->index],
                                     .bytes = wf_tensor_bytes(&p->tensors[v->index]),
                                     .first = step,
                                     .last = step,
                                     .written = step,
                                     .head = v->index};
    p->room_of[v->index] = p->n_rooms;
    p->next_in_room[v->index] = WF_NO_ROOM;
    return p->n_rooms++;
}

static void join(wf_plan *p, const wf_value *v, uint32_t room)
{
    p->room_of[v->index] = room;
    p->next_in_room[v->index] = p->rooms[room].head;
    p->rooms[room].head = v->index;
}

static wf_room *room_of(wf_plan *p, const wf_value *v)
{
    return &p->rooms[p->room_of[v->index]];
}

static size_t padded(const wf_room *r)
{
    return wf_align_up(r->bytes, WF_BUF_ALIGN);
}

static void use(wf_room *r, uint32_t step)
{
    if (r->last != WF_TO_THE_END)
        r->last = WF_MAX(r->last, step);
}

/* Inputs and constants that a run reads or hands out. */
static void given_rooms(wf_plan *p)
{
    for (uint32_t i = 0; i < p->n_ins; i++)
        if (p->ins[i].used && p->room_of[p->ins[i].value->index] == WF_NO_ROOM)
            new_room(p, WF_ROOM_LENT, p->ins[i].value, 0);
    for (size_t i = 0; i < p->g->n_values; i++) {
        const wf_value *v = p->g->values[i];

        if (p->needed[v->index] && wf_value_is_constant(v)) {
            new_room(p, WF_ROOM_CONSTANT, v, 0);
            p->usage.constants_bytes += room_of(p, v)->bytes;
            if (p->side_of[v->index] != WF_SIDE_HOST)
                p->usage.device_bytes += padded(room_of(p, v));
        }
    }
}

/* What copies read stays until the host has waited for them, which it does in front of a step of
 * its own (P5). To have each writer wait for the copy instead would save the memory, and hold up
 * kernels. */
static void keep_copied(wf_plan *p)
{
    uint32_t waits = WF_TO_THE_END; /* the next node that the host waits in front of */

    for (uint32_t i = p->n_nodes; i-- > 0;) {
        const wf_node *n = p->nodes[i];

        if (wf_plan_is_copy(n))
            use(room_of(p, n->in[0]), waits);
        else if (!p->kernels[i]->is_view && wf_plan_side_of(p, n) == WF_SIDE_HOST)
            waits = i;
    }
}

/* One room a result, views with what they view; lives are complete after this. */
static void result_rooms(wf_plan *p)
{
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const wf_node *n = p->nodes[i];

        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k])
                use(room_of(p, n->in[k]), i);
        if (p->kernels[i]->is_view) {
            join(p, n->out[0], p->room_of[n->in[0]->index]);
            continue;
        }
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k]) {
                new_room(p, WF_ROOM_ARENA, n->out[k], i);
                p->usage.tensors_bytes += room_of(p, n->out[k])->bytes;
            }
    }
    for (uint32_t i = 0; i < p->n_outs; i++)
        room_of(p, p->outs[i].value)->last = WF_TO_THE_END;
    keep_copied(p);
}

/* Moves all values of room `from` to room `to`. */
static void merge(wf_plan *p, uint32_t from, uint32_t to)
{
    uint32_t v = p->rooms[from].head, last = v;

    for (; v != WF_NO_ROOM; last = v, v = p->next_in_room[v])
        p->room_of[v] = to;
    p->next_in_room[last] = p->rooms[to].head;
    p->rooms[to].head = p->rooms[from].head;
    p->rooms[to].last = p->rooms[from].last;
    p->rooms[to].written = p->rooms[from].written;
    p->rooms[from].head = WF_NO_ROOM;
}

static void in_place(wf_plan *p)
{
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const wf_node *n = p->nodes[i];
        uint32_t out, from;

        if (p->kernels[i]->is_view || !wf_node_has_out(n, 0))
            continue;
        out = p->room_of[n->out[0]->index];
        for (uint32_t k = 0; k < n->n_in && k < 32; k++) {
            if (!(p->kernels[i]->in_place >> k & 1u) || !n->in[k])
                continue;
            from = p->room_of[n->in[k]->index];
            if (p->rooms[from].kind == WF_ROOM_ARENA && p->rooms[from].last == i &&
                p->rooms[from].bytes == p->rooms[out].bytes &&
                p->tensors[n->in[k]->index].dtype == p->tensors[n->out[0]->index].dtype) {
                merge(p, out, from);
                break;
            }
        }
    }
}

/* The first output of a room that runs compute is written straight to its place. */
static void output_rooms(wf_plan *p)
{
    for (uint32_t i = 0; i < p->n_outs; i++) {
        wf_room *r = room_of(p, p->outs[i].value);

        p->outs[i].direct = r->kind == WF_ROOM_ARENA;
        if (p->outs[i].direct)
            r->kind = WF_ROOM_OUTPUT;
    }
}

wf_status wf_plan_rooms(wf_plan *p, wf_err *err)
{
    size_t n = p->g->n_values;

    p->rooms = wf_arena_array(p->arena, n, sizeof *p->rooms);
    if (!p->rooms)
        return wf_fail_nomem(err, n * sizeof *p->rooms);
    given_rooms(p);
    result_rooms(p);
    in_place(p);
    output_rooms(p);
    return WF_OK;
}

static int larger_first(const void *a, const void *b)
{
    const wf_room *x = *(wf_room *const *)a, *y = *(wf_room *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y; /* qsort is not stable, plans are */
}

static int lower_first(const void *a, const void *b)
{
    const wf_room *x = *(wf_room *const *)a, *y = *(wf_room *const *)b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The lowest offset for r among placed[n], which are sorted by offset. */
static size_t lowest_offset(const wf_room *r, wf_room *const placed[], size_t n)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        if (placed[i]->last < r->first || r->last < placed[i]->first)
            continue;
        if (placed[i]->offset >= at + padded(r))
            break; /* fits in front of this one, and those behind are further up */
        at = WF_MAX(at, placed[i]->offset + padded(placed[i]));
    }
    return at;
}

static wf_status place_rooms(wf_plan *p, uint32_t side, wf_err *err)
{
    wf_room **rooms = wf_arena_array(p->arena, p->n_rooms, sizeof *rooms);
    size_t n = 0, total = 0;

    if (!rooms)
        return wf_fail_nomem(err, p->n_rooms * sizeof *rooms);
    for (uint32_t i = 0; i < p->n_rooms; i++) {
        wf_room *r = &p->rooms[i];

        if (r->kind != WF_ROOM_ARENA || r->head == WF_NO_ROOM || r->side != side)
            continue;
        if (r->bytes > SIZE_MAX / 4 || !wf_add_size(total, padded(r), &total))
            return wf_plan_too_large(p, SIZE_MAX - p->taken, NULL, err);
        rooms[n++] = r;
    }
    if (n)
        qsort(rooms, n, sizeof *rooms, larger_first);
    for (size_t i = 0; i < n; i++) {
        wf_room *r = rooms[i];

        r->offset = lowest_offset(r, rooms, i);
        p->sides[side].arena_bytes = WF_MAX(p->sides[side].arena_bytes, r->offset + padded(r));
        qsort(rooms, i + 1, sizeof *rooms, lower_first);
    }
    return WF_OK;
}

void wf_room_move(wf_plan *p, uint32_t room, void *data)
{
    for (uint32_t v = p->rooms[room].head; v != WF_NO_ROOM; v = p->next_in_room[v])
        p->tensors[v].data = data;
}

/* Outputs have memory of their own, here or in the messages that the caller binds. */
static wf_status take_outputs(wf_plan *p, wf_err *err)
{
    for (uint32_t i = 0; i < p->n_rooms; i++)
        if (p->rooms[i].kind == WF_ROOM_OUTPUT)
            WF_TRY(wf_plan_take(p, p->rooms[i].bytes, NULL, err));
    return WF_OK;
}

wf_status wf_plan_lay_out(wf_plan *p, wf_err *err)
{
    WF_TRY(take_outputs(p, err));
    for (uint32_t side = 0; side < p->n_sides; side++) {
        wf_plan_side *s = &p->sides[side];

        WF_TRY(place_rooms(p, side, err));
        WF_TRY(wf_plan_reserve(p, s->device, s->arena_bytes, NULL, &s->memory, err));
        p->usage.arena_bytes += s->arena_bytes;
        if (side != WF_SIDE_HOST)
            p->usage.device_bytes += s->arena_bytes;
    }
    return WF_OK;
}

wf_status wf_plan_place(wf_plan *p, wf_err *err)
{
    for (uint32_t side = 0; side < p->n_sides; side++) {
        wf_plan_side *s = &p->sides[side];

        WF_TRY(wf_plan_reserve(p, s->device, s->workspace_bytes, s->hungriest, &s->workspace, err));
        p->usage.workspace_bytes += s->workspace_bytes;
        if (side != WF_SIDE_HOST)
            p->usage.device_bytes += s->workspace_bytes;
    }
    if (p->measure_only)
        return WF_OK;
    for (uint32_t i = 0; i < p->n_rooms; i++)
        if (p->rooms[i].kind == WF_ROOM_ARENA)
            wf_room_move(p, i,
                         (char *)p->sides[p->rooms[i].side].memory->data + p->rooms[i].offset);
    for (uint32_t i = 0; i < p->n_steps; i++)
        p->steps[i].run.workspace = p->sides[p->steps[i].side].workspace->data;
    return WF_OK;
}
