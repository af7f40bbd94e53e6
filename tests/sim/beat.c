/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/beat.c - signs of life of ps and workers, as cmd/beat.c sends them: over a connection
 * of their own, whatever the main thread does. The number in them grows with its turns, and while
 * it is in a call that computes; it stands still while the thread hangs. A process that hangs is
 * ended by its watchdog, a little later than the master should have given it up. */
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "tests/sim/world.h"

enum { EVERY_MS = 150 };

static void plan_beat(process *p)
{
    wf_sim_plan(p->sim, EVERY_MS * MS,
                (wf_happening){.kind = BEAT, .who = p->number, .life = p->life});
}

void wf_sim_begin_beats(process *p)
{
    if (!p->ps && !p->worker)
        return;
    p->beat = wf_socket_dial(p, 0);
    p->changed_ns = p->sim->now_ns;
    plan_beat(p);
}

static void fill(const process *p, Weft__Beat *body, wf_vitals *v)
{
    wf_waiting *w = &v->waits;

    body->progress = p->turns;
    if (p->busy_until_ns > p->sim->now_ns) /* it computes, and waits for nothing */
        return;
    if (p->ps)
        wf_ps_vitals(p->ps, v);
    else
        wf_worker_waiting(p->worker, w);
    body->updates = v->updates;
    body->held_bytes = v->held_bytes;
    body->job = v->job;
    body->left_out = v->left_out;
    body->staleness = v->staleness.n;
    body->n_staleness = v->job ? WF_HISTOGRAM : 0;
    body->waits_role = w->whom.role;
    body->waits_index = w->whom.index;
    body->waits_for = w->what;
    if (w->whom.role && w->since_ns)
        body->waits_ms = (uint64_t)WF_MAX(wf_sim_clock(p) - w->since_ns, 0) / MS;
}

static void send_beat(process *p)
{
    Weft__Beat body = WEFT__BEAT__INIT;
    wf_vitals v = {0};
    wf_msg *m = NULL;
    wf_err err;

    fill(p, &body, &v);
    wf_assert(wf_msg_new(&p->sim->pool, WF_BEAT, &m, &err) == WF_OK);
    m->head.version = WF_WIRE_VERSION;
    m->head.incarnation = p->life;
    wf_assert(wf_control_put(m, &body.base, &err) == WF_OK);
    (void)!p->beat->ops->send(p->beat, &(wf_route){0}, m, &err); /* the master may be away */
    wf_msg_free(&p->sim->pool, &m);
}

void wf_sim_beat(process *p)
{
    wf_sim *s = p->sim;

    if (p->frozen) {
        p->changed_ns += EVERY_MS * MS;
        plan_beat(p);
        return;
    }
    p->turns += p->busy_until_ns > s->now_ns;
    if (p->beat->ops->tend)
        p->beat->ops->tend(p->beat, wf_sim_clock(p));
    send_beat(p);
    if (!p->hung)
        p->changed_ns = s->now_ns;
    if (s->now_ns - p->changed_ns < (STUCK_MS + STUCK_MS / 4) * MS) {
        plan_beat(p);
        return;
    }
    wf_oracle_ends_stuck(p);
    wf_sim_ends(p, (wf_exit){.code = 1});
}
