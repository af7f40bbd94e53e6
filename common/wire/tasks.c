/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/tasks.c */
#include "common/wire/tasks.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"

wf_status wf_tasks_answer(wf_net *net, wf_peer *to, const wf_msg *ask, const wf_tasks *tasks,
                          wf_err *err)
{
    Weft__Tasks body = WEFT__TASKS__INIT;
    wf_msg *m = NULL;
    wf_status rc;

    body.ps = (char **)tasks->ps;
    body.n_ps = tasks->n_ps;
    body.workers = (char **)tasks->workers;
    body.n_workers = tasks->n_workers;
    WF_TRY(wf_net_msg(net, WF_TASKS, &m, err));
    m->head.request = ask->head.request;
    rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK)
        rc = wf_net_send(net, to, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(net, &m);
    return rc == WF_NOTFOUND ? WF_OK : rc; /* it is gone, and asks again */
}
