/* SPDX-License-Identifier: Apache-2.0 */
/* master/status.c - the picture of the cluster that the command line gets. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/conf/conf.h"
#include "master/top.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const char *member_state(const wf_master *m, const wf_member *who)
{
    if (who->state == WF_MEMBER_DOWN)
        return "down";
    if (!wf_member_is_live(who))
        return who->incarnation ? "joining" : who->reason[0] ? "restarting" : "missing";
    if (m->job && !wf_job_over(m->job->state) && wf_faults_is_unfit(who, m->job))
        return "unfit";
    if (m->job && !wf_job_over(m->job->state) && who->generation == m->job->generation)
        return who->ready ? (who->task.role == WF_ROLE_PS ? "serving" : "training") : "starting";
    return "ready";
}

/* A text as JSON has it: what is no UTF-8, as when a sentence was cut within a character, is "?".
 */
static json_t *text_json(const char *text)
{
    json_t *out = json_string(text);
    char copy[1024];

    if (out)
        return out;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *c = copy; *c; c++)
        *c = (unsigned char)*c < 0x80 ? *c : '?';
    return json_string(copy);
}

/* How an incarnation ended is the state of the task until the next one has lived for a minute. */
static bool reason_is_news(const wf_master *m, const wf_member *who)
{
    return !wf_member_is_live(who) || m->now_ns - who->since_ns < 60 * WF_NS_PER_S;
}

/* How and when the incarnation before ended, for as long as the master lives; null: none has. */
static json_t *last_end_json(const wf_master *m, const wf_member *who)
{
    json_t *o;

    if (!who->reason[0])
        return json_null();
    o = json_object();
    json_object_set_new(o, "reason", text_json(who->reason));
    json_object_set_new(o, "age_s", json_real((double)(m->now_ns - who->reason_ns) / 1e9));
    return o;
}

static json_t *waiting_json(const wf_master *m, const wf_waiting *w)
{
    char name[32];
    json_t *o;

    if (w->whom.role == WF_ROLE_NONE)
        return json_null();
    o = json_object();
    json_object_set_new(o, "for", text_json(wf_task_str(w->whom, name, sizeof name)));
    json_object_set_new(o, "what", text_json(w->what));
    json_object_set_new(o, "since_s", json_real((double)(m->now_ns - w->since_ns) / 1e9));
    return o;
}

static json_t *links_json(const wf_progress *p)
{
    json_t *list = json_array();
    char name[32];

    for (uint32_t i = 0; i < p->n_links; i++) {
        json_t *o = json_object();

        json_object_set_new(o, "peer", text_json(wf_task_str(p->links[i].peer, name, sizeof name)));
        json_object_set_new(o, "sent_again_bytes",
                            json_integer((json_int_t)p->links[i].resent_bytes));
        json_object_set_new(o, "queued_bytes", json_integer((json_int_t)p->links[i].queued_bytes));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *member_json(const wf_master *m, const wf_member *who)
{
    char name[32];
    json_t *o = json_object();

    json_object_set_new(o, "task", text_json(wf_task_str(who->task, name, sizeof name)));
    json_object_set_new(o, "role", text_json(wf_role_name(who->task.role)));
    json_object_set_new(o, "address", text_json(who->address));
    json_object_set_new(o, "state", text_json(member_state(m, who)));
    json_object_set_new(o, "pid",
                        who->incarnation ? json_integer((json_int_t)who->pid) : json_null());
    json_object_set_new(o, "age_s", json_real((double)(m->now_ns - who->since_ns) / 1e9));
    json_object_set_new(
        o, "step", json_integer(m->job && who->generation == m->job->generation ? who->steps : 0));
    json_object_set_new(o, "samples_per_sec", json_real(who->samples_per_sec));
    json_object_set_new(o, "reason", text_json(reason_is_news(m, who) ? who->reason : ""));
    json_object_set_new(o, "last_end", last_end_json(m, who));
    json_object_set_new(o, "waits", waiting_json(m, &who->progress.waits));
    json_object_set_new(o, "owes", waiting_json(m, &who->progress.owes));
    json_object_set_new(o, "links", links_json(&who->progress));
    json_object_set_new(o, "compute_s", json_real((double)who->compute_ns / 1e9));
    json_object_set_new(o, "wait_s", json_real((double)who->wait_ns / 1e9));
    json_object_set_new(o, "transfer_s", json_real((double)who->transfer_ns / 1e9));
    json_object_set_new(o, "data_s", json_real((double)who->data_ns / 1e9));
    return o;
}

static json_t *tally_json(const wf_tally t[], uint32_t n)
{
    json_t *o = json_object();

    for (uint32_t i = 0; i < n; i++)
        json_object_set_new(o, t[i].name, json_real(wf_tally_mean(&t[i], 0)));
    return o;
}

static json_t *counts_json(const wf_tally t[], uint32_t n)
{
    json_t *o = json_object();

    for (uint32_t i = 0; i < n; i++)
        json_object_set_new(o, t[i].name, json_pack("[f, f]", t[i].sum, t[i].count));
    return o;
}

static double job_rate(const wf_master *m, const wf_job *j)
{
    double rate = 0;

    for (uint32_t i = 0; i < m->n_members; i++)
        if (wf_member_is_live(&m->members[i]) && m->members[i].generation == j->generation &&
            m->job == j)
            rate += m->members[i].samples_per_sec;
    return rate;
}

static void progress_json(const wf_master *m, const wf_job *j, json_t *o)
{
    uint64_t all = j->prepared ? j->prepared->epochs * j->epoch->train_records : 0, done = 0;
    uint64_t trained =
        j->epoch->ledger.n ? wf_ledger_trained(&j->epoch->ledger) : j->epoch->last_trained;
    uint32_t epoch = j->epoch->ledger.n ? j->epoch->ledger.epoch + 1
                                        : j->epoch->last_epoch; /* from 1; 0: none yet */
    double rate = job_rate(m, j);

    if (j->prepared && j->prepared->steps && j->prepared->steps * j->prepared->batch < all)
        all = j->prepared->steps * j->prepared->batch;
    if (epoch)
        done = (epoch - 1) * j->epoch->train_records + trained;
    if (j->state == WF_JOB_DONE)
        done = all;
    json_object_set_new(o, "epoch", json_integer(epoch));
    json_object_set_new(o, "epochs",
                        json_integer(j->prepared ? (json_int_t)j->prepared->epochs : 0));
    json_object_set_new(o, "part", json_real(all ? (double)done / (double)all : 0));
    json_object_set_new(o, "samples_per_sec", json_real(rate));
    json_object_set_new(o, "eta_s",
                        json_real(rate > 0 && all > done ? (double)(all - done) / rate : -1));
    json_object_set_new(o, "epoch_records", json_integer((json_int_t)j->epoch->train_records));
    json_object_set_new(o, "epoch_trained", json_integer((json_int_t)trained));
}

static json_t *job_json(const wf_master *m, const wf_job *j)
{
    int64_t end = j->ended_ns ? j->ended_ns : m->now_ns;
    json_t *o = json_object(), *lines = json_array();
    const char *changes = wf_job_changes(j->text);
    uint64_t step = wf_job_step(m, j);

    /* A master that started after the job's end knows its last checkpoint, and no steps. */
    if (wf_job_over(j->state) && j->latest != UINT64_MAX)
        step = WF_MAX(step, j->latest);
    json_object_set_new(o, "job", text_json(j->name));
    json_object_set_new(o, "state", text_json(wf_job_state_name(j->state)));
    json_object_set_new(o, "generation", json_integer(j->generation));
    json_object_set_new(o, "step", json_integer((json_int_t)step));
    progress_json(m, j, o);
    json_object_set_new(o, "metrics", tally_json(j->epoch->metrics, j->epoch->n_metrics));
    json_object_set_new(o, "eval", tally_json(j->epoch->eval, j->epoch->n_eval));
    json_object_set_new(o, "eval_counts", counts_json(j->epoch->eval, j->epoch->n_eval));
    json_object_set_new(o, "eval_epoch", json_integer(j->epoch->eval_epoch));
    if (j->epoch->callbacks.rate > 0)
        json_object_set_new(o, "learning_rate", json_real(j->epoch->callbacks.rate));
    if (j->epoch->callbacks.best_step)
        json_object_set_new(o, "best", json_integer((json_int_t)j->epoch->callbacks.best_step - 1));
    json_object_set_new(o, "checkpoint",
                        j->latest == UINT64_MAX ? json_null()
                                                : json_integer((json_int_t)j->latest));
    json_object_set_new(o, "checkpoints", json_integer(j->cut->n_saved));
    json_object_set_new(o, "failed_checkpoints", json_integer(j->cut->n_failed));
    json_object_set_new(o, "dropped_steps", json_integer((json_int_t)j->epoch->dropped_steps));
    json_object_set_new(o, "rollbacks", json_integer(j->rollbacks));
    json_object_set_new(o, "left_out_records", json_integer((json_int_t)j->left_out_records));
    json_object_set_new(o, "pause_ms", json_real((double)j->cut->pause_ns / 1e6));
    json_object_set_new(o, "pause_most_ms", json_real((double)j->cut->pause_most_ns / 1e6));
    json_object_set_new(o, "elapsed_s",
                        json_real(j->began_ns ? (double)(end - j->began_ns) / 1e9 : 0));
    json_object_set_new(o, "set", text_json(changes ? changes : ""));
    json_object_set_new(o, "passed_over", text_json(j->passed ? j->passed : ""));
    json_object_set_new(o, "reason", text_json(j->reason));
    json_object_set_new(o, "mend", text_json(j->mend));
    for (uint32_t i = 0; i < j->n_lines; i++)
        json_array_append_new(lines, text_json(j->lines[i]));
    json_object_set_new(o, "events", lines);
    return o;
}

char *wf_master_status(const wf_master *m, int64_t now_ns)
{
    json_t *o = json_object(), *tasks = json_array(), *jobs = json_array();
    char missing[1024];
    char *text;

    (void)now_ns;
    for (uint32_t i = 0; i < m->n_members; i++)
        json_array_append_new(tasks, member_json(m, &m->members[i]));
    for (uint32_t i = 0; i < m->n_jobs; i++)
        json_array_append_new(jobs, job_json(m, m->jobs[i]));
    json_object_set_new(o, "view", json_integer(m->view));
    json_object_set_new(o, "missing", text_json(wf_members_missing(m, missing, sizeof missing)));
    json_object_set_new(o, "bad_messages", json_integer((json_int_t)wf_net_bad_messages(m->net)));
    json_object_set_new(o, "refused_deaths", json_integer((json_int_t)m->refused_deaths));
    json_object_set_new(o, "tasks", tasks);
    json_object_set_new(o, "jobs", jobs);
    text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return text;
}
