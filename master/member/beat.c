/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/beat.c
 *
 * Life means progress. A main thread that is stuck keeps sending signs of life by another thread,
 * but the number in them stands still. A long step is progress, for its processor time counts.
 */
#include "master/member/beat.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"

#include <stdio.h>

static void take_links(wf_progress *p, const Weft__Beat *body)
{
    p->n_links = 0;
    for (size_t i = 0; i < body->n_links && p->n_links < WF_MEMBER_LINKS; i++)
        p->links[p->n_links++] =
            (struct wf_progress_link){{(wf_role)body->links[i]->role, body->links[i]->index},
                                      body->links[i]->resent_bytes,
                                      body->links[i]->queued_bytes};
}

/* What a ps has done since its last beat; the numbers are its own word. */
static void take_updates(wf_progress *p, const Weft__Beat *body, int64_t now_ns)
{
    double seconds = (double)(now_ns - p->beat_ns) / 1e9;

    p->held_bytes = WF_MIN(body->held_bytes, (uint64_t)INT64_MAX);
    p->disk_bytes = WF_MIN(body->disk_bytes, (uint64_t)INT64_MAX);
    p->contained = WF_MIN(body->contained, (uint64_t)INT64_MAX);
    p->contained_bytes = WF_MIN(body->contained_bytes, (uint64_t)INT64_MAX);
    if (p->beat_ns && seconds > 0 && body->updates >= p->updates)
        p->updates_per_sec =
            0.5 * p->updates_per_sec + 0.5 * (double)(body->updates - p->updates) / seconds;
    p->updates = body->updates;
    p->job = body->job;
    p->left_out = WF_MIN(body->left_out, UINT64_C(1) << 48);
    p->staleness = (wf_histogram){0};
    for (size_t i = 0; i < WF_MIN(body->n_staleness, (size_t)WF_HISTOGRAM); i++)
        p->staleness.n[i] = WF_MIN(body->staleness[i], UINT64_C(1) << 48); /* so that sums fit */
}

wf_status wf_member_on_beat(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    wf_progress *p = &who->progress;
    Weft__Beat *body = NULL;

    WF_TRY(wf_control_get(msg, &weft__beat__descriptor, &body, err));
    if (body->progress != p->count)
        p->changed_ns = m->now_ns;
    p->count = body->progress;
    take_updates(p, body, m->now_ns);
    p->beat_ns = m->now_ns;
    p->waits.whom = (wf_task){(wf_role)body->waits_role, body->waits_index};
    p->waits.since_ns =
        m->now_ns - (int64_t)WF_MIN(body->waits_ms, UINT64_C(1) << 40) * WF_NS_PER_MS;
    snprintf(p->waits.what, sizeof p->waits.what, "%s", body->waits_for);
    if (who->task.role == WF_ROLE_PS && p->waits.whom.role == WF_ROLE_WORKER)
        p->held_ns = m->now_ns;
    take_links(p, body);
    wf_control_free(&body);
    return WF_OK;
}

void wf_master_on_stranger(void *master, const wf_msg *beat, int64_t now_ns)
{
    wf_master *m = master;
    wf_member *who;
    wf_err err;

    m->now_ns = now_ns;
    who = wf_member_find(m, beat->head.incarnation);
    if (!who)
        return;
    wf_member_received(m, who, now_ns);
    if (wf_member_on_beat(m, who, beat, &err) != WF_OK)
        WF_LOG_WARN("master.bad_message", "kind=beat why=\"%s\"", err.what);
}
