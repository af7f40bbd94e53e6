/* SPDX-License-Identifier: Apache-2.0 */
/* ps/on_variable.c - what clients of sessions ask: the cluster's tasks, and variables of
 * containers.
 *
 * An error is the client's, and goes into the answer. One ask is carried out and answered before
 * the next, so that what one session has been told another finds so.
 */
#include "common/wire/control.h"
#include "common/wire/tensors.h"
#include "ps/state.h"

enum { OWED_MOST = 2 * WF_TENSORS_BYTES /* bytes of answers that a client has not taken */ };

static wf_status check_ask(const wf_ps *ps, const wf_peer *from, const Weft__VariableAsk *ask,
                           wf_err *err)
{
    if (ask->action == 0 || ask->action >= WF_N_VARIABLE_ACTIONS)
        return wf_fail(err, WF_UNSUPPORTED, "upgrade the ps",
                       "ps %u knows no action %u of variables", ps->conf.index, ask->action);
    if (ask->n_ps && ps->conf.tasks && ask->n_ps != ps->conf.tasks->n_ps)
        return wf_fail(err, WF_AGAIN, "open a new session",
                       "the cluster has %u ps now, and had %u when the session was opened: its "
                       "variables have other places",
                       ps->conf.tasks->n_ps, ask->n_ps);
    if (wf_variable_changes(ask->action) && (!ask->session || !ask->sequence))
        return wf_fail(err, WF_PROTO, NULL, "a change of a variable without session and sequence");
    if (wf_variable_brings(ask->action) && !ask->tensor)
        return wf_fail(err, WF_PROTO, NULL, "a change of a variable without a value");
    if (wf_net_owed_bytes(from) > OWED_MOST)
        return wf_fail(err, WF_AGAIN, "take the answers first",
                       "%zu MiB of answers wait for this client", wf_net_owed_bytes(from) >> 20);
    return WF_OK;
}

/* Errors are the client's. */
static wf_status act(wf_ps *ps, const wf_peer *from, const Weft__VariableAsk *ask, const wf_msg *m,
                     const wf_tensor **value, bool *was_there, wf_err *err)
{
    wf_tensor *content = NULL;
    wf_status rc = check_ask(ps, from, ask, err);

    if (rc == WF_OK && wf_variable_brings(ask->action))
        rc = wf_tensors_take(m, 0, ask->tensor, &content, err);
    if (rc == WF_OK)
        rc = wf_containers_act(ps->containers,
                               &(wf_variable_change){.action = (wf_variable_action)ask->action,
                                                     .session = ask->session,
                                                     .sequence = ask->sequence,
                                                     .since = ask->since,
                                                     .wants_value = ask->wants_value,
                                                     .container = ask->container,
                                                     .name = ask->name},
                               &content, ps->now_ns, value, was_there, err);
    wf_tensor_free(&content);
    return rc == WF_OK ? rc : wf_err_wrap(err, rc, "ps %u", ps->conf.index);
}

static wf_status answer(wf_ps *ps, wf_peer *to, const wf_msg *ask, Weft__VariableAnswer *body,
                        const wf_tensor *value, wf_err *err)
{
    Weft__TensorHead head;
    int64_t dims[WF_MAX_RANK];
    wf_msg *m = NULL;
    wf_status rc;

    if (value) {
        wf_tensor_head(value, &head, dims);
        body->tensor = &head;
    }
    WF_TRY(wf_net_msg(ps->net, WF_VARIABLE_OK, &m, err));
    rc = wf_tensors_put(m, &body->base, value ? 1 : 0, &value, ps->conf.checksums, err);
    if (rc == WF_OK) {
        m->head.request = ask->head.request;
        rc = wf_ps_send(ps, to, WF_LANE_CONTROL, 0, &m, err);
    }
    wf_net_free_msg(ps->net, &m);
    return rc;
}

static wf_status on_variable(wf_ps *ps, wf_peer *from, const wf_msg *m, wf_err *err)
{
    Weft__VariableAnswer body = WEFT__VARIABLE_ANSWER__INIT;
    Weft__VariableAsk *ask = NULL;
    const wf_tensor *value = NULL;
    bool was_there = false, wants = false;
    wf_err why = {0};
    wf_status rc = wf_tensors_body(m, &weft__variable_ask__descriptor, &ask, &why);

    if (rc == WF_OK) {
        rc = act(ps, from, ask, m, &value, &was_there, &why);
        wants = ask->wants_value || ask->action == WF_VARIABLE_READ;
    }
    wf_control_free(&ask);
    body.status = rc;
    body.what = why.what;
    body.hint = why.hint;
    body.was_there = was_there;
    return answer(ps, from, m, &body, rc == WF_OK && wants ? value : NULL, err);
}

wf_status wf_ps_on_client(wf_ps *ps, wf_peer *from, const wf_msg *m, wf_err *err)
{
    if (m->head.kind == WF_VARIABLE)
        return on_variable(ps, from, m, err);
    if (m->head.kind == WF_CONTAINED_ASK)
        return wf_ps_on_contained(ps, from, m, err);
    if (m->head.kind == WF_TASKS_ASK && ps->conf.tasks)
        return wf_tasks_answer(ps->net, from, m, ps->conf.tasks, err);
    return WF_OK;
}
