/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/profile.c - what each step of a run takes when it has the device for itself. */
#include "common/base/clock.h"
#include "common/exec/plan.h"
#include "common/graph/op.h"

uint32_t wf_plan_n_steps(const wf_plan *p)
{
    return p->n_steps;
}

static wf_status queue(wf_plan *p, wf_step *s, wf_err *err)
{
    return s->brings ? wf_step_bring(p, s, err) : wf_step_queue(s, err);
}

/* The first time brings what a step waits for, and has libraries prepare themselves. */
static wf_status measure(wf_plan *p, wf_step *s, uint32_t times, double *us, wf_err *err)
{
    int64_t from;

    WF_TRY(wf_step_run(p, s, err));
    WF_TRY(wf_plan_wait(p, err));
    from = wf_now_ns();
    for (uint32_t i = 0; i < times; i++)
        WF_TRY(queue(p, s, err));
    WF_TRY(wf_step_behind(p, s, err)); /* so that a copy is waited for */
    WF_TRY(wf_plan_wait(p, err));
    *us = (double)(wf_now_ns() - from) / (1e3 * times);
    return WF_OK;
}

wf_status wf_plan_profile(wf_plan *p, const wf_step_key *key, uint32_t times, wf_step_time *out,
                          wf_err *err)
{
    wf_status rc = wf_plan_prepare_run(p, key, err);
    wf_status waited;

    p->taking = p->takes_ahead = false;
    for (uint32_t i = 0; i < p->n_steps && rc == WF_OK; i++) {
        out[i].node = p->steps[i].run.node;
        rc = measure(p, &p->steps[i], times, &out[i].us, err);
    }
    waited = wf_plan_wait(p, rc == WF_OK ? err : NULL);
    return rc != WF_OK ? rc : waited;
}
