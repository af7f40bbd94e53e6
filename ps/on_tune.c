/* SPDX-License-Identifier: Apache-2.0 */
/* ps/on_tune.c - the master changes the learning rate between two epochs, when no push is under
 * way. It may say so again after a lost link: the same rate twice is the same rate. */
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "ps/state.h"

wf_status wf_ps_on_tune(wf_ps *ps, const wf_msg *m, wf_err *err)
{
    Weft__Tune *body = NULL;
    wf_err why;
    wf_status rc;

    if (!wf_ps_serves(ps) || m->head.job != ps->job_number || m->head.generation != ps->generation)
        return WF_OK;
    WF_TRY(wf_control_get(m, &weft__tune__descriptor, &body, err));
    if (wf_opt_set_rate(&ps->opt, body->learning_rate, &why) != WF_OK) {
        wf_control_free(&body);
        wf_session_fault(&ps->session, &why, NULL); /* it ends the job, and not this process */
        return WF_OK;
    }
    WF_LOG_INFO("ps.tuned", "learning_rate=%g", body->learning_rate);
    rc = wf_session_send(&ps->session, WF_TUNE_OK, &body->base, err);
    wf_control_free(&body);
    return rc;
}
