/* SPDX-License-Identifier: Apache-2.0 */
/* master/core/core.c - the way out of the master, which leads past the journal; and what a job was
 * compiled to, whose last share frees it. */
#include "master/core/core.h"

#include <stdlib.h>

wf_status wf_master_send(wf_master *m, wf_peer *to, wf_msg **msg, wf_err *err)
{
    wf_assert(!m->replaying);
    (*msg)->head.view = m->view;
    (*msg)->head.job = m->job_number;
    (*msg)->head.generation = m->job_generation;
    (*msg)->head.map = m->job_generation; /* slices move with a generation only */
    WF_TRY(wf_outbox_add_message(&m->outbox, wf_journal_appended(m->journal), to, msg, err));
    return wf_master_release(m, err);
}

void wf_master_queue_note(wf_master *m, const char *job, char *json)
{
    wf_outbox_add_note(&m->outbox, wf_journal_appended(m->journal), job, json);
}

void wf_master_queue_removal(wf_master *m, const char *job)
{
    wf_outbox_add_note(&m->outbox, wf_journal_appended(m->journal), job, NULL);
}

wf_status wf_master_release(wf_master *m, wf_err *err)
{
    wf_outbox_row row;

    while (wf_outbox_next(&m->outbox, wf_journal_durable(m->journal), &row)) {
        wf_status rc = WF_OK;

        wf_assert(row.after <= wf_journal_durable(m->journal)); /* M1 */
        if (row.msg)
            rc = wf_net_send(m->net, row.to, WF_LANE_CONTROL, 0, &row.msg, err);
        else if (row.json)
            m->conf.ops.note(m->conf.ops.arg, row.job, row.json);
        else if (m->conf.ops.forget)
            m->conf.ops.forget(m->conf.ops.arg, row.job);
        free(row.json);
        if (rc != WF_OK && rc != WF_NOTFOUND) /* NOTFOUND: its EV_DOWN is on the way */
            return rc;
    }
    return WF_OK;
}

void wf_prepared_free(wf_prepared **p)
{
    if (*p && (*p)->shares > 0) {
        (*p)->shares--;
        *p = NULL;
    }
    if (!*p)
        return;
    wf_arena_free(&(*p)->arena);
    free(*p);
    *p = NULL;
}
