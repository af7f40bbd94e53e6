/* SPDX-License-Identifier: Apache-2.0 */
/* ps/on_clock.c - a worker's clock, of a job with bounded staleness: it joins, or leaves. Its pulls
 * say how far it is. */
#include "ps/state.h"

/* It has nothing to compute: what it asked for ahead is for nobody. */
static wf_status leave(wf_ps *ps, wf_ps_worker *w, uint32_t last, wf_err *err)
{
    for (int i = 0; i < WF_PS_MAX_PULLS; i++)
        if (w->pulls[i].clock)
            w->pulls[i].open = w->pulls[i].behind = false;
    if (!wf_clocks_leave(&ps->clocks, w->peer->incarnation, ps->together.on ? last : 0))
        return WF_OK;
    WF_TRY(wf_together_advance(ps, err));
    return wf_ps_answer_held(ps, err);
}

static wf_status join(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    wf_clock_body answer = {.state = WF_CLOCK_JOINS};
    wf_msg *ok = NULL;
    wf_status rc;

    WF_TRY(wf_clocks_join(&ps->clocks, w->peer->incarnation, m->head.request, m->head.step,
                          &answer.clock, err));
    WF_TRY(wf_net_msg(ps->net, WF_CLOCK_OK, &ok, err));
    rc = wf_clock_put(ok, answer, err);
    ok->head.step = m->head.step;
    ok->head.request = m->head.request;
    if (rc == WF_OK)
        rc = wf_ps_send(ps, w->peer, WF_LANE_CONTROL, 0, &ok, err);
    wf_net_free_msg(ps->net, &ok);
    if (rc == WF_OK) /* one that joins anew has a later clock than before: others wait for less */
        rc = wf_together_advance(ps, err);
    return rc == WF_OK ? wf_ps_answer_held(ps, err) : rc;
}

wf_status wf_ps_on_clock(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    wf_clock_body body;

    WF_TRY(wf_clock_get(m, &body, err));
    if (!ps->bounded || m->head.step == 0)
        return wf_fail(err, WF_PROTO, NULL, "a clock, of a job that has none");
    return body.state == WF_CLOCK_JOINS ? join(ps, w, m, err) : leave(ps, w, body.clock, err);
}
