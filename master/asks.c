/* SPDX-License-Identifier: Apache-2.0 */
/* master/asks.c - what the command line asks, and the picture of the cluster that it gets. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/compile/compile.h"
#include "common/conf/conf.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *member_state(const wf_master *m, const wf_member *who)
{
    if (who->down)
        return "down";
    if (!who->live)
        return who->incarnation ? "joining" : who->reason[0] ? "restarting" : "missing";
    if (m->job && !wf_job_over(m->job->state) && wf_unfit_is(who, m->job))
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
    return !who->live || m->now_ns - who->since_ns < 60 * WF_NS_PER_S;
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
        json_object_set_new(o, t[i].name, json_real(t[i].count > 0 ? t[i].sum / t[i].count : 0));
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
        if (m->members[i].live && m->members[i].generation == j->generation && m->job == j)
            rate += m->members[i].samples_per_sec;
    return rate;
}

static void progress_json(const wf_master *m, const wf_job *j, json_t *o)
{
    uint64_t all = j->prepared ? j->prepared->epochs * j->train_records : 0, done = 0;
    uint64_t trained = j->ledger.n ? wf_ledger_trained(&j->ledger) : j->last_trained;
    uint32_t epoch = j->ledger.n ? j->ledger.epoch + 1 : j->last_epoch; /* from 1; 0: none yet */
    double rate = job_rate(m, j);

    if (j->prepared && j->prepared->steps && j->prepared->steps * j->prepared->batch < all)
        all = j->prepared->steps * j->prepared->batch;
    if (epoch)
        done = (epoch - 1) * j->train_records + trained;
    if (j->state == WF_JOB_DONE)
        done = all;
    json_object_set_new(o, "epoch", json_integer(epoch));
    json_object_set_new(o, "epochs",
                        json_integer(j->prepared ? (json_int_t)j->prepared->epochs : 0));
    json_object_set_new(o, "part", json_real(all ? (double)done / (double)all : 0));
    json_object_set_new(o, "samples_per_sec", json_real(rate));
    json_object_set_new(o, "eta_s",
                        json_real(rate > 0 && all > done ? (double)(all - done) / rate : -1));
    json_object_set_new(o, "epoch_records", json_integer((json_int_t)j->train_records));
    json_object_set_new(o, "epoch_trained", json_integer((json_int_t)trained));
}

static json_t *job_json(const wf_master *m, const wf_job *j)
{
    int64_t end = j->ended_ns ? j->ended_ns : m->now_ns;
    json_t *o = json_object(), *lines = json_array();
    const char *changes = wf_job_changes(j->text);
    uint64_t step = wf_training_global_step(m, j);

    /* A master that started after the job's end knows its last checkpoint, and no steps. */
    if (wf_job_over(j->state) && j->latest != UINT64_MAX)
        step = WF_MAX(step, j->latest);
    json_object_set_new(o, "job", text_json(j->name));
    json_object_set_new(o, "state", text_json(wf_job_state_name(j->state)));
    json_object_set_new(o, "generation", json_integer(j->generation));
    json_object_set_new(o, "step", json_integer((json_int_t)step));
    progress_json(m, j, o);
    json_object_set_new(o, "metrics", tally_json(j->metrics, j->n_metrics));
    json_object_set_new(o, "eval", tally_json(j->eval, j->n_eval));
    json_object_set_new(o, "eval_counts", counts_json(j->eval, j->n_eval));
    json_object_set_new(o, "eval_epoch", json_integer(j->eval_epoch));
    if (j->callbacks.rate > 0)
        json_object_set_new(o, "learning_rate", json_real(j->callbacks.rate));
    if (j->callbacks.best_step)
        json_object_set_new(o, "best", json_integer((json_int_t)j->callbacks.best_step - 1));
    json_object_set_new(o, "checkpoint",
                        j->latest == UINT64_MAX ? json_null()
                                                : json_integer((json_int_t)j->latest));
    json_object_set_new(o, "checkpoints", json_integer(j->n_checkpoints));
    json_object_set_new(o, "failed_checkpoints", json_integer(j->n_failed_checkpoints));
    json_object_set_new(o, "dropped_steps", json_integer((json_int_t)j->dropped_steps));
    json_object_set_new(o, "rollbacks", json_integer(j->rollbacks));
    json_object_set_new(o, "left_out_records", json_integer((json_int_t)j->left_out_records));
    json_object_set_new(o, "pause_ms", json_real((double)j->pause_ns / 1e6));
    json_object_set_new(o, "pause_most_ms", json_real((double)j->pause_most_ns / 1e6));
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

/* Who asks for a job again has mended what was wrong: its faults are counted anew. */
static void begin_anew(wf_job *j, int64_t from_step)
{
    j->from_step = from_step;
    j->stop_asked = false;
    j->cut_failures = 0;
    j->rollbacks = j->set_aside = 0;
    j->ended_ns = 0;
}

/* A job's text is on disk before the job has it: one that the journal has no room for changes
 * nothing, and what would be in memory only is never run. */
static wf_status journal_text(wf_master *m, const wf_job *j, wf_job_state state, const char *text,
                              const char *path, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__JobRecord r;

    wf_job_record(j, &r);
    if (state == WF_JOB_QUEUED) { /* as begin_anew has it */
        r.stop = false;
        r.from_step = -1;
        r.ending_from = r.rollbacks = 0;
    }
    r.state = state;
    r.text = (char *)text;
    r.path = (char *)path;
    record.job = &r;
    return wf_err_wrap(err, wf_journal_append(m->journal, &record, err), "job %s", j->name);
}

static wf_status submit_new(wf_master *m, const char *name, const char *text, const char *path,
                            wf_err *err)
{
    wf_job *j = NULL;
    wf_status rc;

    WF_TRY(wf_job_add(m, name, text, path, &j, err));
    j->state = WF_JOB_QUEUED;
    rc = journal_text(m, j, WF_JOB_QUEUED, text, path, err);
    if (rc != WF_OK)
        wf_job_take_back(m);
    return rc;
}

wf_status wf_master_submit(wf_master *m, const char *name, const char *text, const char *path,
                           bool resume, wf_err *err)
{
    wf_job *j = wf_job_find(m, name);

    if (!wf_job_name_ok(name)) /* it becomes the name of folders */
        return wf_fail(err, WF_USAGE, NULL, "\"%.80s\" is no name for a job", name);
    if (j && !resume)
        return wf_fail(err, WF_EXISTS,
                       "choose another name, or go on with it: weft submit --resume",
                       "a job named %s is there already (%s)", name, wf_job_state_name(j->state));
    if (j && !wf_job_over(j->state))
        return wf_fail(err, WF_EXISTS, "follow it with: weft status", "job %s is %s", name,
                       wf_job_state_name(j->state));
    if (j && j->state == WF_JOB_DONE && strcmp(j->text, text) == 0)
        return WF_OK; /* there is nothing left to do */
    if (!j)
        return submit_new(m, name, text, path, err);
    WF_TRY(journal_text(m, j, WF_JOB_QUEUED, text, path, err));
    begin_anew(j, -1);
    j->ending_from = 0;
    j->state = WF_JOB_QUEUED;
    return wf_job_rewrite(j, text, path,
                          err); /* it may say more epochs; the digest guards the model */
}

static wf_status check_optimizer(const wf_job_conf *conf, wf_err *err)
{
    wf_opt opt;

    return wf_compile_optimizer_of_job(conf, &opt, err);
}

wf_status wf_master_change(wf_master *m, const char *name, size_t n, char *const set[], wf_err *err)
{
    wf_job *j = wf_job_find(m, name);
    wf_job_conf *conf = NULL;
    char *text;
    wf_status rc = WF_OK;

    if (!j)
        return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                       "there is no job named %s", name);
    if (!wf_job_over(j->state))
        return wf_fail(err, WF_EXISTS, "stop it first: weft stop", "job %s is %s", name,
                       wf_job_state_name(j->state));
    text = strdup(j->text);
    if (!text)
        return wf_fail_nomem(err, strlen(j->text));
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        char *next = NULL;

        rc = wf_job_change(text, set[i], &next, err);
        if (rc == WF_OK) {
            free(text);
            text = next;
        }
    }
    if (rc == WF_OK)
        rc = wf_job_parse(text, strlen(text), j->path, &conf, err);
    if (rc == WF_OK)
        rc = check_optimizer(conf, err);
    wf_job_free(&conf);
    if (rc == WF_OK)
        rc = journal_text(m, j, j->state, text, j->path, err);
    if (rc == WF_OK)
        rc = wf_job_rewrite(j, text, j->path, err);
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        wf_master_note(m, j, "job.changed", "%s", set[i]);
    free(text);
    return rc;
}

static wf_status recover(wf_master *m, const char *name, int64_t from_step, bool changed,
                         wf_err *err)
{
    wf_job *j = wf_job_find(m, name);

    if (!j)
        return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                       "there is no job named %s", name);
    if (j->state == WF_JOB_DONE && from_step < 0 && !changed)
        return wf_fail(err, WF_EXISTS, "take the model with: weft export", "job %s is done", name);
    if (!wf_job_over(j->state) && from_step < 0)
        return WF_OK; /* it recovers by itself */
    if (!wf_job_over(j->state))
        return wf_fail(err, WF_EXISTS, "stop it first: weft stop", "job %s is %s", name,
                       wf_job_state_name(j->state));
    begin_anew(j, from_step);
    if (from_step >= 0 || changed)
        j->ending_from = 0;
    return wf_job_enter(m, j, WF_JOB_RECOVERING, NULL, err);
}

wf_status wf_master_recover(wf_master *m, const char *name, int64_t from_step, wf_err *err)
{
    return recover(m, name, from_step, false, err);
}

static wf_status stop(wf_master *m, const char *name, wf_err *err)
{
    wf_job *j = wf_job_find(m, name);
    wf_status rc;

    if (!j)
        return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                       "there is no job named %s", name);
    if (wf_job_over(j->state))
        return wf_fail(err, WF_INVALID, NULL, "job %s is %s already", name,
                       wf_job_state_name(j->state));
    if (j->stop_asked && m->job == j && j->state != WF_JOB_RUNNING)
        return WF_OK; /* on disk since; whoever asks again and again must not fill it */
    j->stop_asked = true;
    if (m->job != j)
        return wf_job_stop(m, j, err);
    /* On disk in every state: a master that starts again must not forget that it was asked. */
    rc = wf_job_enter(m, j, j->state == WF_JOB_RUNNING ? WF_JOB_STOPPING : j->state, NULL, err);
    if (rc != WF_OK)
        j->stop_asked = false; /* not on disk: to be asked again */
    return rc;
}

static wf_status act(wf_master *m, const Weft__Ask *ask, wf_err *err)
{
    if (strcmp(ask->command, "status") == 0)
        return WF_OK;
    if (strcmp(ask->command, "submit") == 0)
        return wf_master_submit(m, ask->job, ask->text, ask->path, ask->resume, err);
    if (strcmp(ask->command, "recover") == 0 && ask->n_set)
        WF_TRY(wf_master_change(m, ask->job, ask->n_set, ask->set, err));
    if (strcmp(ask->command, "recover") == 0)
        return recover(m, ask->job, ask->from_step, ask->n_set > 0, err);
    if (strcmp(ask->command, "stop") == 0)
        return stop(m, ask->job, err);
    return wf_fail(err, WF_UNSUPPORTED, "upgrade the master", "the master knows no command \"%s\"",
                   ask->command);
}

wf_status wf_asks_on_message(wf_master *m, wf_peer *from, const wf_msg *msg, wf_err *err)
{
    Weft__Answer answer = WEFT__ANSWER__INIT;
    Weft__Ask *ask = NULL;
    wf_msg *reply = NULL;
    char *json = NULL;
    wf_err why = {0};
    wf_status rc;

    rc = wf_control_get(msg, &weft__ask__descriptor, &ask, &why);
    if (rc == WF_OK)
        rc = act(m, ask, &why);
    wf_control_free(&ask);
    if (rc == WF_IO || rc == WF_NOMEM) { /* the journal failed: nothing may be acknowledged */
        *err = why;
        return rc;
    }
    answer.status = rc;
    answer.what = why.what;
    answer.mend = why.mend;
    json = wf_master_status(m, m->now_ns);
    answer.json = json && strlen(json) < wf_kind_find(WF_ANSWER)->control_limit / 2 ? json : "";
    rc = wf_net_msg(m->net, WF_ANSWER, &reply, err);
    if (rc == WF_OK)
        rc = wf_control_put(reply, &answer.base, err);
    if (rc == WF_OK) {
        reply->head.request = msg->head.request;
        rc = wf_master_send(m, from, &reply, err);
    }
    wf_net_free_msg(m->net, &reply);
    free(json);
    return rc;
}
