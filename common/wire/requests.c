/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/requests.c */
#include "common/wire/requests.h"

#include <stdlib.h>

static wf_status send(const wf_requests *r, const wf_request *q, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(wf_net_copy_msg(r->net, q->msg, &m, err));
    rc = wf_net_send(r->net, q->peer, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(r->net, &m);
    return rc == WF_NOTFOUND ? WF_OK : rc; /* its link is lost: the next one brings it */
}

wf_status wf_requests_send(wf_requests *r, wf_peer *to, wf_msg **m, void *user, uint32_t *number,
                           wf_err *err)
{
    wf_request *q = calloc(1, sizeof *q), **at = &r->first;

    if (!q) {
        wf_net_free_msg(r->net, m);
        return wf_fail_nomem(err, sizeof *q);
    }
    if (++r->last == 0)
        r->last = 1;
    *q = (wf_request){.number = r->last, .peer = to, .msg = *m, .user = user};
    *m = NULL;
    q->msg->head.request = *number = q->number;
    while (*at)
        at = &(*at)->next;
    *at = q;
    return to->up ? send(r, q, err) : WF_OK;
}

wf_status wf_requests_on_up(wf_requests *r, const wf_peer *peer, wf_err *err)
{
    for (const wf_request *q = r->first; q; q = q->next)
        if (q->peer == peer)
            WF_TRY(send(r, q, err));
    return WF_OK;
}

/* Takes *at off the list. */
static void end(const wf_requests *r, wf_request **at)
{
    wf_request *q = *at;

    *at = q->next;
    wf_net_free_msg(r->net, &q->msg);
    free(q);
}

bool wf_requests_answered(wf_requests *r, const wf_peer *from, uint32_t number, void **user)
{
    for (wf_request **at = &r->first; *at; at = &(*at)->next) {
        if ((*at)->number != number || (*at)->peer != from)
            continue;
        *user = (*at)->user;
        end(r, at);
        return true;
    }
    return false;
}

void wf_requests_drop(wf_requests *r, uint32_t number)
{
    for (wf_request **at = &r->first; *at; at = &(*at)->next)
        if ((*at)->number == number) {
            end(r, at);
            return;
        }
}

void wf_requests_drop_of(wf_requests *r, const void *user)
{
    for (wf_request **at = &r->first; *at;) {
        if ((*at)->user == user)
            end(r, at);
        else
            at = &(*at)->next;
    }
}

void wf_requests_close(wf_requests *r)
{
    while (r->first)
        end(r, &r->first);
}
