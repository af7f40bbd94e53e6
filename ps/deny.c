/* SPDX-License-Identifier: Apache-2.0 */
/* ps/deny.c - a worker learns that it is not served as it believes: by another generation or view,
 * or because slices have moved. A denial carries the version of the map here and all moves that
 * this ps knows, so that the worker finds the slices. */
#include "common/log/log.h"
#include "common/wire/control.h"
#include "ps/state.h"

#include <stdlib.h>

static wf_status fill_moves(const wf_ps *ps, Weft__Denied *body, Weft__MapChange **rows,
                            wf_err *err)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < ps->map.n; i++)
        n += wf_map_has_moved(&ps->map, i);
    *rows = calloc((size_t)n + 1, sizeof(**rows));
    body->moved = calloc((size_t)n + 1, sizeof(*body->moved));
    if (!*rows || !body->moved)
        return wf_fail_nomem(err, n * sizeof(**rows));
    for (uint32_t i = 0; i < ps->map.n; i++) {
        Weft__MapChange *row = &(*rows)[body->n_moved];

        if (!wf_map_has_moved(&ps->map, i))
            continue;
        weft__map_change__init(row);
        row->slice = i;
        row->ps = ps->map.slices[i].primary;
        row->version = ps->map.slices[i].version;
        wf_assert(row->version <= ps->map.version); /* M1 */
        body->moved[body->n_moved++] = row;
    }
    return WF_OK;
}

/* `generation` and `map` are of what was denied; 0 for the map when nothing was sent. */
static wf_status say_denied(wf_ps *ps, const wf_ps_worker *w, uint16_t generation, uint32_t map,
                            wf_err *err)
{
    Weft__Denied body = WEFT__DENIED__INIT;
    Weft__MapChange *rows = NULL;
    wf_msg *no = NULL;
    wf_status rc = fill_moves(ps, &body, &rows, err);

    body.map = map;
    if (rc == WF_OK)
        rc = wf_net_msg(ps->net, WF_DENIED, &no, err);
    if (rc == WF_OK)
        rc = wf_control_put(no, &body.base, err);
    if (rc == WF_OK) {
        no->head.request = generation; /* what was of an older one is not to be said again */
        rc = wf_ps_send(ps, w->peer, WF_LANE_CONTROL, 0, &no, err);
    }
    wf_net_free_msg(ps->net, &no);
    free(body.moved);
    free(rows);
    return rc;
}

/* To a worker of another job or generation: as if from a ps of its own, which knows of no moves. It
 * may be the newer one, and asks again. */
static wf_status deny_stranger(wf_ps *ps, const wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    Weft__Denied body = WEFT__DENIED__INIT;
    wf_msg *no = NULL;
    wf_status rc;

    body.map = m->head.map;
    WF_TRY(wf_net_msg(ps->net, WF_DENIED, &no, err));
    rc = wf_control_put(no, &body.base, err);
    no->head.job = m->head.job;
    no->head.generation = m->head.generation;
    no->head.request = m->head.generation;
    if (rc == WF_OK)
        rc = wf_net_send(ps->net, w->peer, WF_LANE_CONTROL, 0, &no, err);
    wf_net_free_msg(ps->net, &no);
    return rc == WF_NOTFOUND ? WF_OK : rc;
}

wf_status wf_ps_deny(wf_ps *ps, const wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    WF_LOG_DEBUG("ps.denied", "worker=%u kind=%s generation=%u here=%u map=%u here=%u",
                 w->peer->task.index, wf_kind_name(m->head.kind), m->head.generation,
                 ps->generation, m->head.map, ps->map.version);
    if (m->head.job != ps->job_number || m->head.generation != ps->generation)
        return deny_stranger(ps, w, m, err);
    return say_denied(ps, w, m->head.generation, m->head.map, err);
}

wf_status wf_ps_announce_map(wf_ps *ps, wf_err *err)
{
    wf_ps_count_anew(ps);
    for (uint32_t i = 0; i < ps->n_workers; i++) {
        wf_ps_close_pulls(ps, ps->workers[i]);
        ps->workers[i]->denied = true; /* by whatever map: another slice may have a newer one */
        WF_TRY(say_denied(ps, ps->workers[i], ps->generation, 0, err));
    }
    wf_ps_share_room(ps);
    return WF_OK;
}

wf_status wf_ps_announce_kept(wf_ps *ps, uint32_t slice, wf_err *err)
{
    for (uint32_t i = 0; i < ps->n_workers; i++) {
        WF_TRY(wf_ps_answer_waiting(ps, ps->workers[i], &slice, 1, err));
        WF_TRY(say_denied(ps, ps->workers[i], ps->generation, 0, err));
    }
    return WF_OK;
}
