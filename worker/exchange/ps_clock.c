/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ps_clock.c - this worker among others that wait for each other (ps/clocks.h).
 *
 * Before its first pull, and after it had nothing to compute, it asks each ps to join. The largest
 * clock of all answers is that of its next step; pulls leave when all that hold slices have
 * answered. When it has nothing to compute it leaves again, so that nobody waits for it.
 *
 * Where steps are made together it joins again only when all that it has pushed is acknowledged:
 * its earlier steps have another clock than the new one would say.
 *
 * Clock messages go in the lane of pulls, behind those that were sent before: one that overtook a
 * pull would leave, and the pull would join again.
 */
#include "common/base/size.h"
#include "worker/exchange/ps_state.h"

/* Behind all pulls of steps that follow the last one begun, and in the order of sending. */
static uint64_t clock_key(const wf_client *c)
{
    return 4 * ((uint64_t)c->base.begun + 3 + WF_MAX_PIPELINE);
}

static wf_status say(wf_client *c, uint32_t ps, wf_err *err)
{
    wf_clock_body body = {WF_CLOCK_LEAVES, c->clock.made};
    wf_msg *m = NULL;
    wf_status rc;

    if (c->clock.joins)
        body = (wf_clock_body){WF_CLOCK_JOINS, 0};
    WF_TRY(wf_net_msg(c->net, WF_CLOCK, &m, err));
    rc = wf_clock_put(m, body, err);
    m->head.step = WF_MAX(c->clock.step, 1u);
    m->head.request = c->clock.number;
    if (rc == WF_OK)
        rc = wf_client_send(c, ps, WF_LANE_DATA, clock_key(c), &m, err);
    wf_net_free_msg(c->net, &m);
    return rc;
}

static wf_status say_to_all(wf_client *c, wf_err *err)
{
    for (uint32_t i = 0; i < c->n_ps; i++)
        WF_TRY(say(c, i, err));
    return WF_OK;
}

bool wf_clock_is_in(const wf_client *c)
{
    return !c->bounded || c->base.is_in;
}

uint32_t wf_clock_of(wf_client *c, uint32_t step)
{
    uint32_t next = wf_decisions_last(&c->clock.decided) + 1;

    if (!c->bounded)
        return 0;
    if (step + c->base.shift < next)
        c->base.shift = next - step;
    c->clock.used = step + c->base.shift;
    return c->clock.used;
}

wf_status wf_clock_join(wf_client *c, uint32_t step, wf_err *err)
{
    if (!c->bounded || c->clock.joins || (c->together && wf_exchange_in_flight(&c->base) > 0))
        return WF_OK;
    c->clock.joins = true;
    c->clock.step = step;
    c->clock.least = 1;
    c->clock.number++;
    for (uint32_t i = 0; i < c->n_ps; i++) /* one without a slice, too: it may come to have one */
        c->doors[i].joined = false;
    return say_to_all(c, err);
}

wf_status wf_clock_join_late(wf_client *c, wf_err *err)
{
    uint32_t step = 0;

    for (int set = 0; set < WF_EVAL_SET; set++)
        if (c->base.set_step[set] && (step == 0 || c->base.set_step[set] < step))
            step = c->base.set_step[set];
    return step ? wf_clock_join(c, step, err) : WF_OK;
}

wf_status wf_clock_leave(wf_exchange *x, wf_err *err)
{
    wf_client *c = (wf_client *)x;

    if (!c->bounded || !c->clock.joins)
        return WF_OK;
    c->clock.joins = x->is_in = false;
    for (int set = 0; set < WF_EVAL_SET; set++)
        wf_exchange_drop(x, set);
    return say_to_all(c, err);
}

wf_status wf_clock_again(wf_client *c, uint32_t ps, wf_err *err)
{
    if (!c->bounded || c->base.is_in || c->clock.number == 0)
        return WF_OK;
    return say(c, ps, err);
}

wf_status wf_clock_on_ok(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err)
{
    wf_clock_body body;

    WF_TRY(wf_clock_get(m, &body, err));
    if (!c->clock.joins || c->base.is_in || m->head.request != c->clock.number)
        return WF_OK;
    c->clock.least = WF_MAX(c->clock.least, body.clock);
    c->doors[ps].joined = true;
    for (uint32_t i = 0; i < c->n_ps; i++)
        if (!c->doors[i].joined)
            return WF_OK;
    if (c->together) /* a worker is in a step once */
        c->clock.least = WF_MAX(c->clock.least, c->clock.used + 1);
    c->base.shift = c->clock.least - c->clock.step;
    c->base.is_in = true;
    return wf_pulls_again(c, err);
}

/* ---- what a ps has decided ---- */

static wf_status tell(wf_client *c, uint32_t ps, const wf_decision *d, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(wf_net_msg(c->net, WF_DECIDED, &m, err));
    rc = wf_decided_put(m, d, err);
    if (rc == WF_OK)
        rc = wf_client_send(c, ps, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(c->net, &m);
    return rc;
}

wf_status wf_decided_on(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err)
{
    uint64_t workers[WF_MAX_CONTRIBUTORS];
    wf_decision d = {.workers = workers};
    bool added;

    WF_TRY(wf_decided_get(m, &d, err));
    WF_TRY(wf_decisions_add(&c->clock.decided, &d, &added, err));
    for (uint32_t i = 0; added && i < c->n_ps; i++)
        if (i != ps)
            WF_TRY(tell(c, i, &d, err));
    return WF_OK;
}

wf_status wf_decided_again(wf_client *c, uint32_t ps, wf_err *err)
{
    for (uint32_t i = 0; i < c->clock.decided.n; i++)
        WF_TRY(tell(c, ps, &c->clock.decided.rows[i], err));
    return WF_OK;
}
