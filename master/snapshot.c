/* SPDX-License-Identifier: Apache-2.0 */
/* master/snapshot.c - the whole state as records of the journal: with them alone a replay comes to
 * what all records so far come to.
 *
 * The order matters: jobs before the view, whose steps are of the job in hand; and that job last,
 * so that it is in hand after the replay. */
#include "common/base/size.h"
#include "common/log/log.h"
#include "master/top.h"

#include <stdlib.h>

static wf_status put_session(wf_master *m, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;

    record.session = m->session;
    return wf_journal_append(m->journal, &record, err);
}

/* The oldest first, so that a replay fills the ring as it is. */
static wf_status put_retired(wf_master *m, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__Retired list = WEFT__RETIRED__INIT;
    uint64_t ids[WF_MASTER_RETIRED];
    uint32_t n = WF_MIN(m->n_retired, (uint32_t)WF_MASTER_RETIRED);

    if (n == 0)
        return WF_OK;
    for (uint32_t i = 0; i < n; i++)
        ids[i] = m->retired[(m->n_retired - n + i) % WF_MASTER_RETIRED];
    list.incarnations = ids;
    list.n_incarnations = n;
    record.retired = &list;
    return wf_journal_append(m->journal, &record, err);
}

static wf_status put_job(wf_master *m, const wf_job *j, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__JobRecord r;

    wf_job_record(j, &r);
    r.text = j->text;
    r.path = j->path;
    record.job = &r;
    return wf_journal_append(m->journal, &record, err);
}

static wf_status put_view(wf_master *m, wf_err *err)
{
    Weft__View view;
    wf_status rc;

    if (m->view == 0)
        return WF_OK;
    WF_TRY(wf_view_make(m, &view, err));
    rc = wf_view_journal(m, &view, m->job ? m->job->lost_steps : 0, err);
    wf_view_free(&view);
    return rc;
}

static wf_status put_progress(wf_master *m, const wf_job *j, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__JobState r = WEFT__JOB_STATE__INIT;

    r.lost_steps = j->lost_steps;
    r.cut = j->cut->number;
    r.latest = j->latest == UINT64_MAX ? 0 : j->latest + 1;
    r.checkpoints = j->cut->n_saved;
    r.last_epoch = j->epoch->last_epoch;
    r.last_trained = j->epoch->last_trained;
    record.job_state = &r;
    record.number = j->number;
    WF_TRY(wf_growth_journal(m, j, err)); /* first: what the epoch says is about that round */
    WF_TRY(wf_epoch_journal(m, j, err));
    return wf_journal_append(m->journal, &record, err);
}

static wf_status put_all(wf_master *m, wf_err *err)
{
    WF_TRY(put_session(m, err));
    WF_TRY(put_retired(m, err));
    for (uint32_t i = 0; i < m->n_jobs; i++)
        WF_TRY(put_job(m, m->jobs[i], err));
    WF_TRY(put_view(m, err));
    for (uint32_t i = 0; i < m->n_jobs; i++)
        if (m->jobs[i] != m->job)
            WF_TRY(put_progress(m, m->jobs[i], err));
    return m->job ? put_progress(m, m->job, err) : WF_OK;
}

void wf_master_snapshot(wf_master *m)
{
    wf_err why;
    wf_status rc;

    wf_journal_begin_snapshot(m->journal);
    rc = put_all(m, &why);
    wf_journal_end_snapshot(m->journal, rc == WF_OK);
    if (rc != WF_OK)
        WF_LOG_WARN("journal.no_snapshot", "why=\"%s\"", why.what);
}
