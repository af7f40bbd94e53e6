/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/network.c - packets are late, lost and repeated; links are cut, or clogged: what is
 * sent over a clogged link arrives when it is free again, as with TCP over a network that stalls.
 */
#include "common/base/size.h"
#include "tests/sim/world.h"

#include <stdlib.h>

static void deliver_later(wf_sim *s, const wf_packet *packet)
{
    wf_packet *p = malloc(sizeof *p);
    int64_t delay_us = wf_sim_between(s, s->spec.delay_us_min, s->spec.delay_us_max);
    int64_t free_ns = s->clogged_ns[s->owner[packet->from]][s->owner[packet->to]];

    wf_assert(p);
    *p = *packet;
    if (wf_sim_below(s, 100) == 0)
        delay_us *= 20; /* now and then one is very late */
    wf_sim_plan(s, delay_us * 1000 + WF_MAX(free_ns - s->now_ns, 0),
                (wf_happening){.kind = PACKET, .what = p});
}

void wf_sim_carry(void *sim, const wf_packet *packet)
{
    wf_sim *s = sim;
    wf_packet p = *packet, again;
    uint32_t from = s->owner[packet->from], to = s->owner[packet->to];

    if (s->severed[from][to] || wf_sim_below(s, 1000) < s->spec.drop_per_mille) {
        wf_mem_drop(s->mem, &p);
        return;
    }
    if (wf_sim_below(s, 1000) < s->spec.dup_per_mille &&
        wf_mem_repeat(s->mem, &p, &again, NULL) == WF_OK)
        deliver_later(s, &again);
    deliver_later(s, &p);
}

void wf_sim_arrive(wf_sim *s, wf_packet *packet)
{
    if (s->severed[s->owner[packet->from]][s->owner[packet->to]])
        wf_mem_drop(s->mem, packet);
    else
        wf_mem_deliver(s->mem, packet);
    free(packet);
}

void wf_sim_own(wf_sim *s, uint32_t number, const wf_transport *t)
{
    wf_assert(wf_mem_endpoint(t) < MOST_ENDPOINTS);
    s->owner[wf_mem_endpoint(t)] = (uint8_t)number;
}
