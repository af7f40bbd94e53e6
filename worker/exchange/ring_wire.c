/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_wire.c - the messages of workers that add up gradients.
 *
 *   ring_sums   a range of a bucket: `step` is the common step, `request` the bucket, `cut` the
 *               round of its sum; a part table with the one part, or with none for an empty range
 *   ring_given  a member has given all of its part of a step: `request` is how many records; the
 *               control bytes have a bit for each variable of which it has given a gradient
 *   ring_done   a member has applied the step
 *
 * A link that breaks loses messages, and what they held has been written over since. So the process
 * ends then, and the generation with it: the next one begins from a checkpoint.
 */
#include "common/base/size.h"
#include "common/wire/parts.h"
#include "worker/exchange/ring_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- members ---- */

static int by_index(const void *a, const void *b)
{
    const wf_ring_member *x = a, *y = b;

    return x->index < y->index ? -1 : x->index > y->index;
}

static wf_status find_me(wf_ring *r, wf_err *err)
{
    bool found = false;

    for (uint32_t i = 0; i < r->n_members; i++) {
        if (i > 0 && r->members[i].index == r->members[i - 1].index)
            return wf_fail(err, WF_PROTO, NULL, "worker %u is twice in a view",
                           r->members[i].index);
        if (r->members[i].incarnation == r->local.conf.incarnation) {
            r->me = i;
            found = true;
        }
    }
    return found ? WF_OK : wf_fail(err, WF_PROTO, NULL, "a start whose view lacks this worker");
}

wf_status wf_ring_members_open(wf_ring *r, wf_err *err)
{
    const Weft__View *view = r->local.conf.start->view;

    if (!view || view->n_members > WF_REDUCE_MEMBERS_MOST)
        return wf_fail(err, WF_UNSUPPORTED, "take parameter_server for so many workers",
                       "gradients are added up between %d workers at most", WF_REDUCE_MEMBERS_MOST);
    r->members = calloc(view->n_members + 1, sizeof *r->members);
    if (!r->members)
        return wf_fail_nomem(err, view->n_members * sizeof *r->members);
    for (size_t i = 0; i < view->n_members; i++)
        if (view->members[i]->role == WF_ROLE_WORKER)
            r->members[r->n_members++] = (wf_ring_member){
                .index = view->members[i]->index, .incarnation = view->members[i]->incarnation};
    qsort(r->members, r->n_members, sizeof *r->members, by_index);
    return find_me(r, err);
}

bool wf_ring_is_linked(const wf_ring *r)
{
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me && !r->members[i].peer)
            return false;
    return true;
}

/* n_members: nobody. */
static uint32_t place_of(const wf_ring *r, const wf_peer *peer)
{
    uint32_t i = 0;

    while (i < r->n_members && (i == r->me || r->members[i].index != peer->task.index ||
                                r->members[i].incarnation != peer->incarnation))
        i++;
    return peer->task.role == WF_ROLE_WORKER ? i : r->n_members;
}

wf_status wf_ring_on_up(wf_exchange *x, const wf_peer *peer, wf_err *err)
{
    wf_ring *r = (wf_ring *)x;
    uint32_t i = place_of(r, peer);

    if (i == r->n_members)
        return WF_OK;
    if (r->members[i].was_up)
        return wf_fail(err, WF_BROKEN, "look at the network between the two",
                       "the link to worker %u broke, and messages of a step may be lost with it",
                       r->members[i].index);
    r->members[i].was_up = true;
    r->members[i].peer = (wf_peer *)(uintptr_t)peer;
    return wf_ring_advance(r, err);
}

void wf_ring_on_down(wf_exchange *x, const wf_peer *peer)
{
    wf_ring *r = (wf_ring *)x;

    for (uint32_t i = 0; i < r->n_members; i++)
        if (r->members[i].peer == peer)
            r->members[i].peer = NULL;
}

/* ---- sending ---- */

static wf_status new_message(wf_ring *r, uint16_t kind, uint32_t step, wf_msg **out, wf_err *err)
{
    const wf_exchange_conf *c = &r->local.conf;

    WF_TRY(wf_net_msg(c->net, kind, out, err));
    (*out)->head.job = c->job;
    (*out)->head.generation = c->generation;
    (*out)->head.view = c->view;
    (*out)->head.step = step;
    return WF_OK;
}

/* Without a link nothing is sent: wf_ring_on_up ends the process, or the master the generation. */
static wf_status send(wf_ring *r, uint32_t to, wf_lane lane, wf_msg **m, wf_err *err)
{
    wf_status rc = WF_OK;

    if (r->members[to].peer)
        rc = wf_net_send(r->local.conf.net, r->members[to].peer, lane, ++r->order, m, err);
    wf_net_free_msg(r->local.conf.net, m);
    return rc == WF_NOTFOUND ? WF_OK : rc;
}

static wf_status put_range(const wf_ring *r, const wf_reduce_message *what, uint64_t at, wf_msg *m,
                           wf_err *err)
{
    const float *from = (const float *)r->gradients->data + at;
    wf_part part = {.codec = WF_CODEC_F32, .bytes = what->n * sizeof(float)};

    if (what->n == 0)
        return wf_parts_put(m, NULL, 0, err);
    if (r->local.conf.checksums)
        part.checksum = wf_part_checksum(from, part.bytes);
    WF_TRY(wf_parts_put(m, &part, 1, err));
    return wf_msg_add_frame(m, r->gradients, from, part.bytes, err);
}

wf_status wf_ring_send_sums(wf_ring *r, uint32_t bucket, const wf_reduce_message *what, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(new_message(r, WF_RING_SUMS, r->clock + 1, &m, err));
    m->head.request = bucket;
    m->head.cut = what->round;
    rc = put_range(r, what, r->buckets[bucket].at + what->at, m, err);
    if (rc == WF_OK)
        rc = send(r, what->to, WF_LANE_DATA, &m, err);
    wf_net_free_msg(r->local.conf.net, &m);
    return rc;
}

static wf_status send_given(wf_ring *r, uint32_t to, wf_err *err)
{
    uint32_t n = r->local.n_variables;
    wf_msg *m = NULL;
    uint8_t *bits;

    WF_TRY(new_message(r, WF_RING_GIVEN, r->clock + 1, &m, err));
    m->head.request = r->records;
    bits = wf_msg_control(m, (n + 7) / 8);
    if (!bits && n > 0) {
        wf_net_free_msg(r->local.conf.net, &m);
        return wf_fail_nomem(err, (n + 7) / 8);
    }
    if (n > 0)
        memset(bits, 0, (n + 7) / 8);
    for (uint32_t i = 0; i < n; i++)
        if (r->variables[i].pushed)
            bits[i / 8] |= (uint8_t)(1u << i % 8);
    return send(r, to, WF_LANE_CONTROL, &m, err);
}

wf_status wf_ring_say_given(wf_ring *r, wf_err *err)
{
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me)
            WF_TRY(send_given(r, i, err));
    return WF_OK;
}

wf_status wf_ring_say_done(wf_ring *r, wf_err *err)
{
    for (uint32_t i = 0; i < r->n_members; i++) {
        wf_msg *m = NULL;

        if (i == r->me)
            continue;
        WF_TRY(new_message(r, WF_RING_DONE, r->clock, &m, err));
        WF_TRY(send(r, i, WF_LANE_CONTROL, &m, err));
    }
    return WF_OK;
}

/* ---- receiving ---- */

static wf_status on_sums(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    wf_part parts[WF_MAX_PARTS];
    uint32_t bucket = m->head.request, n;
    wf_buf *buf = r->gradients;
    const uint8_t *bytes = NULL;
    uint64_t elements = 0;

    WF_TRY(wf_parts_get(m, parts, &n, err));
    if (bucket >= r->n_buckets || n > 1 ||
        (n == 1 && (parts[0].codec != WF_CODEC_F32 || parts[0].coding != WF_CODING_F32)))
        return wf_fail(err, WF_PROTO, NULL, "worker %u: %u parts of bucket %u, of %u",
                       r->members[from].index, n, bucket, r->n_buckets);
    if (n == 1) {
        buf = m->frames[parts[0].frame].buf;
        bytes = wf_part_data(m, &parts[0]);
        elements = parts[0].bytes / sizeof(float);
    }
    WF_TRY(wf_reduce_put(&r->buckets[bucket].sums[wf_ring_slot(m->head.step)], from, m->head.cut,
                         buf, bytes, elements, err));
    return m->head.step == r->clock + 1 && r->under_way ? wf_ring_pump(r, bucket, err) : WF_OK;
}

static wf_status on_given(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    uint32_t slot = wf_ring_slot(m->head.step), n = r->local.n_variables;
    wf_ring_word *word = &r->members[from].words[slot];

    if (word->in || m->head.control_bytes != (n + 7) / 8)
        return wf_fail(err, WF_PROTO, NULL, "worker %u: step %u is given twice, or with %u bytes",
                       r->members[from].index, m->head.step, m->head.control_bytes);
    *word = (wf_ring_word){true, m->head.request};
    for (uint32_t i = 0; i < n; i++)
        r->given[slot][i] |= r->variables[i].is_in && (m->control[i / 8] >> i % 8 & 1);
    return WF_OK;
}

static wf_status take(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    uint32_t ahead = m->head.step - r->clock;

    if (m->head.kind == WF_RING_DONE && ahead <= 1) {
        r->members[from].done = m->head.step;
        return WF_OK;
    }
    if (m->head.kind == WF_RING_DONE || ahead == 0 || ahead > WF_RING_AT_ONCE)
        return wf_fail(err, WF_PROTO, NULL, "worker %u: %s of step %u, after step %u",
                       r->members[from].index, wf_kind_name(m->head.kind), m->head.step, r->clock);
    return m->head.kind == WF_RING_SUMS ? on_sums(r, from, m, err) : on_given(r, from, m, err);
}

wf_status wf_ring_on_message(wf_exchange *x, const wf_peer *from, const wf_msg *m, int64_t now_ns,
                             wf_err *err)
{
    wf_ring *r = (wf_ring *)x;
    uint32_t i = place_of(r, from);

    (void)now_ns;
    if (i == r->n_members || m->head.kind < WF_RING_SUMS || m->head.kind > WF_RING_DONE)
        return WF_OK;
    WF_TRY(take(r, i, m, err));
    return wf_ring_advance(r, err);
}

/* ---- who is late ---- */

/* Of the members: one without a link; one that has not given its part of the step under way; one
 * that has not applied the last. n_members: nobody. */
static uint32_t find_late(const wf_ring *r)
{
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me && !r->members[i].peer)
            return i;
    for (uint32_t i = 0; r->under_way && i < r->n_members; i++)
        if (!r->members[i].words[wf_ring_slot(r->clock + 1)].in)
            return i;
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me && r->members[i].done < r->clock)
            return i;
    return r->n_members;
}

void wf_ring_name_late(const wf_exchange *x, wf_exchange_wait wait, uint32_t of, wf_waiting *out)
{
    const wf_ring *r = (const wf_ring *)x;
    uint32_t i = find_late(r);
    size_t n = strlen(out->what);

    (void)wait, (void)of;
    if (i == r->n_members)
        return;
    out->whom = (wf_task){WF_ROLE_WORKER, r->members[i].index};
    if (!r->members[i].peer)
        snprintf(out->what + n, sizeof out->what - n, " (no link)");
}
