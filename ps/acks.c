/* SPDX-License-Identifier: Apache-2.0 */
/* ps/acks.c - pushes that are applied and not acknowledged yet.
 *
 * on_push hands an applied push over, and its acknowledgement leaves from wf_ps_advance. So
 * applying and acknowledging are two things: an acknowledgement may come to wait for a replica, and
 * nothing in on_push would change. Today nothing has to be waited for.
 *
 * Invariants
 *   A1  what is handed over is applied, and is acknowledged once, unless the sender's link is lost
 *       before: then the sender pushes again
 *   A2  acknowledgements leave in the order in which pushes were applied
 */
#include "common/base/size.h"
#include "ps/state.h"

#include <stdlib.h>
#include <string.h>

void wf_acks_close(wf_acks *a)
{
    free(a->rows);
    free(a->slices);
    *a = (wf_acks){0};
}

static wf_status make_room(wf_acks *a, uint32_t n, wf_err *err)
{
    if (a->n == a->room) {
        uint32_t room = a->room ? 2 * a->room : 16;
        wf_ps_ack *rows = realloc(a->rows, room * sizeof *rows);

        if (!rows)
            return wf_fail_nomem(err, room * sizeof *rows);
        a->rows = rows;
        a->room = room;
    }
    if (n > a->slices_room - a->n_slices) {
        uint32_t room = WF_MAX(2 * a->slices_room, a->n_slices + n);
        uint32_t *slices = realloc(a->slices, room * sizeof *slices);

        if (!slices)
            return wf_fail_nomem(err, room * sizeof *slices);
        a->slices = slices;
        a->slices_room = room;
    }
    return WF_OK;
}

wf_status wf_acks_add(wf_ps *ps, wf_ps_worker *w, uint32_t step, const uint32_t slices[],
                      uint32_t n, wf_err *err)
{
    wf_acks *a = &ps->acks;

    WF_TRY(make_room(a, n, err));
    a->rows[a->n++] = (wf_ps_ack){.worker = w, .step = step, .first = a->n_slices, .n = n};
    if (n)
        memcpy(a->slices + a->n_slices, slices, n * sizeof *slices);
    a->n_slices += n;
    return WF_OK;
}

void wf_acks_forget(wf_ps *ps, const wf_ps_worker *w)
{
    for (uint32_t i = 0; i < ps->acks.n; i++)
        if (ps->acks.rows[i].worker == w)
            ps->acks.rows[i].worker = NULL;
}

static wf_status send_ok(wf_ps *ps, const wf_ps_ack *row, wf_err *err)
{
    wf_msg *ok = NULL;
    wf_status rc;

    for (uint32_t i = 0; i < row->n; i++) /* A1 */
        wf_assert(wf_seen_before(&wf_ps_slice(ps, ps->acks.slices[row->first + i])->seen,
                                 row->worker->peer->incarnation, row->step));
    WF_TRY(wf_net_msg(ps->net, WF_PUSH_OK, &ok, err));
    ok->head.step = row->step;
    rc = wf_slices_put(ok, ps->acks.slices + row->first, row->n, err);
    if (rc == WF_OK)
        rc = wf_ps_send(ps, row->worker->peer, WF_LANE_CONTROL, 0, &ok, err);
    wf_net_free_msg(ps->net, &ok);
    return rc;
}

wf_status wf_acks_advance(wf_ps *ps, wf_err *err)
{
    wf_acks *a = &ps->acks;
    wf_status rc = WF_OK;

    for (uint32_t i = 0; rc == WF_OK && i < a->n; i++) /* A2 */
        if (a->rows[i].worker)
            rc = send_ok(ps, &a->rows[i], err);
    a->n = a->n_slices = 0;
    return rc;
}
