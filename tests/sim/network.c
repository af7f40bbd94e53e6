/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/network.c - what becomes of a packet: it takes its time, and queues behind others where
 * the link is slow; a byte of it is flipped; it waits where the link is clogged. Without
 * connections it may also be lost, repeated, or overtaken. */
#include "common/base/size.h"
#include "tests/sim/world.h"

#include <stdlib.h>
#include <string.h>

static uint32_t sender(const wf_connection *c, int way)
{
    return way == TO_LISTENER ? c->from : c->to;
}

static uint32_t receiver(const wf_connection *c, int way)
{
    return way == TO_LISTENER ? c->to : c->from;
}

/* The time at which the last byte has left. */
static int64_t leaves_ns(wf_sim *s, wf_connection *c, const wf_packet *p)
{
    if (!s->spec.bytes_per_ms)
        return s->now_ns;
    c->free_ns[p->way] = WF_MAX(c->free_ns[p->way], s->now_ns) +
                         (int64_t)(wf_msg_bytes(p->msg) * (uint64_t)MS / s->spec.bytes_per_ms);
    return c->free_ns[p->way];
}

static void deliver_later(wf_sim *s, wf_connection *c, const wf_packet *packet)
{
    wf_packet *p = malloc(sizeof *p);
    int64_t delay_us = wf_sim_between(s, s->spec.delay_us_min, s->spec.delay_us_max);
    int64_t clogged_ns = s->clogged_ns[sender(c, packet->way)][receiver(c, packet->way)], at_ns;

    wf_assert(p);
    *p = *packet;
    if (wf_sim_below(s, 100) == 0)
        delay_us *= 20; /* now and then one is very late */
    at_ns = leaves_ns(s, c, packet) + delay_us * 1000 + WF_MAX(clogged_ns - s->now_ns, 0);
    if (!s->spec.packets) /* none overtakes another */
        at_ns = WF_MAX(at_ns, c->last_ns[packet->way]);
    c->last_ns[packet->way] = WF_MAX(at_ns, c->last_ns[packet->way]);
    wf_sim_plan(s, at_ns - s->now_ns, (wf_happening){.kind = PACKET, .what = p});
}

/* A byte of a frame is flipped in a copy: the sender's own stays as it is. */
static void flip_payload(wf_sim *s, wf_msg *m)
{
    wf_frame *f = &m->frames[wf_sim_below(s, m->n_frames)];
    wf_buf *buf;

    if (!f->bytes)
        return;
    buf = wf_buf_new(f->bytes);
    wf_assert(buf);
    memcpy(buf->data, f->data, f->bytes);
    ((uint8_t *)buf->data)[wf_sim_below(s, f->bytes)] ^= (uint8_t)(1 << wf_sim_below(s, 8));
    wf_buf_unref(&f->buf);
    f->buf = buf;
    f->data = buf->data;
    s->result.flips++;
}

/* Damage to header or control bytes is found by the checksum of the header, and the transport drops
 * the message; damage to the payload is for those who read it. False: dropped. */
static bool damage(wf_sim *s, wf_msg *m)
{
    if (wf_sim_below(s, 1000) >= s->spec.flip_per_mille)
        return true;
    if (m->n_frames == 0 || wf_sim_below(s, 4) == 0) {
        s->result.flips++;
        return false;
    }
    flip_payload(s, m);
    return true;
}

void wf_sim_carry(wf_sim *s, wf_connection *c, wf_packet *packet)
{
    bool lost = !c->passes || !damage(s, packet->msg);
    wf_packet again = *packet;

    if (s->spec.packets)
        lost |= s->severed[c->from][c->to] || wf_sim_below(s, 1000) < s->spec.drop_per_mille;
    if (lost) {
        wf_msg_free(&s->pool, &packet->msg);
        return;
    }
    if (wf_sim_below(s, 1000) < s->spec.dup_per_mille &&
        wf_msg_copy(&s->pool, packet->msg, &again.msg, NULL) == WF_OK)
        deliver_later(s, c, &again);
    deliver_later(s, c, packet);
}

uint32_t wf_sim_arrive(wf_sim *s, wf_packet *packet)
{
    const wf_connection *c = s->connections[packet->connection];
    uint32_t to = receiver(c, packet->way);

    if (s->spec.packets && s->severed[c->from][c->to])
        wf_msg_free(&s->pool, &packet->msg);
    else
        wf_socket_arrive(s, packet);
    free(packet);
    return to;
}
