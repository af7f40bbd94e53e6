/* SPDX-License-Identifier: Apache-2.0 */
/* master/asks.c - what the command line asks. */
#include "common/compile/compile.h"
#include "common/compile/strategy.h"
#include "common/conf/conf.h"
#include "common/session/same.h"
#include "common/wire/control.h"
#include "common/wire/tasks.h"
#include "master/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A person asks for a job again, who has repaired what was wrong: its faults are counted anew. */
static void begin_anew(const wf_master *m, wf_job *j, int64_t from_step)
{
    j->from_step = from_step;
    j->stop_asked = false;
    j->cut->failures = 0;
    j->rollbacks = j->epoch->set_aside = 0;
    if (j->began_ns && j->ended_ns) /* it took no time while it was over */
        j->began_ns += m->now_ns - j->ended_ns;
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

/* Refuses a job that is under way: `verb` is the command for it. */
static wf_status is_under_way(const wf_job *j, const char *verb, wf_err *err)
{
    char hint[WF_RUN_NAME + 64];

    snprintf(hint, sizeof hint, "%s %s", verb, j->name);
    return wf_fail(err, WF_EXISTS, hint, "job %s is %s", j->name, wf_job_state_name(j->state));
}

static wf_status submit_new(wf_master *m, const char *name, const char *text, const char *path,
                            wf_err *err)
{
    char job[WF_RUN_NAME], hint[WF_RUN_NAME + 96];
    wf_job *j = NULL;
    wf_status rc;

    wf_run_split(name, job);
    j = wf_job_find_live(m, job);
    if (j) {
        snprintf(hint, sizeof hint,
                 "follow it with: weft follow %s; or give this one another name: --name NAME",
                 j->name);
        return wf_fail(err, WF_EXISTS, hint, "job %s is %s", j->name, wf_job_state_name(j->state));
    }
    WF_TRY(wf_master_add_job(m, name, text, path, &j, err));
    wf_job_move(j, WF_JOB_SUBMITTED);
    rc = journal_text(m, j, WF_JOB_QUEUED, text, path, err);
    if (rc != WF_OK)
        wf_master_remove_last_job(m);
    return rc;
}

wf_status wf_master_submit(wf_master *m, const char *name, const char *text, const char *path,
                           bool resume, wf_err *err)
{
    wf_job *j = wf_job_find(m, name);

    if (!wf_run_name_ok(name)) /* it becomes the name of folders */
        return wf_fail(err, WF_USAGE, NULL, "\"%.80s\" is no name for a job", name);
    if (j && !resume)
        return wf_fail(err, WF_EXISTS, "go on with it by --resume",
                       "a job named %s is there already (%s)", j->name,
                       wf_job_state_name(j->state));
    if (j && !wf_job_over(j->state))
        return is_under_way(j, "follow it with: weft follow", err);
    if (j && j->state == WF_JOB_DONE && strcmp(j->text, text) == 0)
        return WF_OK; /* there is nothing left to do */
    if (!j)
        return submit_new(m, name, text, path, err);
    WF_TRY(journal_text(m, j, WF_JOB_QUEUED, text, path, err));
    begin_anew(m, j, -1);
    j->ending_from = 0;
    free(j->text_was);
    j->text_was = NULL;
    wf_job_move(j, WF_JOB_SUBMITTED);
    return wf_job_rewrite(j, text, path,
                          err); /* it may say more epochs; the digest guards the model */
}

/* Against what the job has made. */
static wf_status check_made(const wf_job *j, const wf_job_conf *conf, int64_t from_step,
                            wf_err *err)
{
    uint64_t made = from_step < 0 ? j->latest : (uint64_t)from_step;
    wf_job_conf *before = NULL;
    wf_status rc;

    if (made == UINT64_MAX)
        return WF_OK;
    if (conf->steps && conf->steps < made)
        return wf_fail(err, WF_USAGE, "give more of them, or go back with --from STEP",
                       "%s has made %" PRIu64 " steps, and \"steps\" is to be %" PRIu64, j->name,
                       made, conf->steps);
    rc = wf_job_parse(j->text, strlen(j->text), j->path, &before, err);
    if (rc == WF_OK)
        rc = wf_job_same_slots(before, conf, j->name, err);
    wf_job_free(&before);
    return rc;
}

/* What is known without compiling. */
static wf_status check_change(const wf_master *m, const wf_job *j, const wf_job_conf *conf,
                              int64_t from_step, wf_err *err)
{
    const wf_strategy *strategy;
    wf_opt opt;

    WF_TRY(wf_strategy_of_job(conf, m->n_ps, m->n_workers, &strategy, err));
    WF_TRY(wf_strategy_check_backups(conf, strategy, m->n_workers, err));
    WF_TRY(wf_compile_optimizer_of_job(conf, &opt, err));
    return check_made(j, conf, from_step, err);
}

/* What the job goes on with if it does not compile with `text`. Of several changes of which none
 * was compiled, the first one's text stays. */
static wf_status change_text(wf_master *m, wf_job *j, const char *text, wf_err *err)
{
    char *was = j->text_was ? j->text_was : strdup(j->text);
    wf_status rc;

    if (!was)
        return wf_fail_nomem(err, strlen(j->text));
    rc = journal_text(m, j, j->state, text, j->path, err);
    if (rc == WF_OK)
        rc = wf_job_rewrite(j, text, j->path, err);
    if (rc == WF_OK)
        j->text_was = was;
    else if (was != j->text_was)
        free(was);
    return rc;
}

wf_status wf_master_take_text_back(wf_master *m, wf_job *j, wf_err *err)
{
    char *was = j->text_was;
    wf_status rc;

    if (!was)
        return WF_OK;
    j->text_was = NULL;
    rc = journal_text(m, j, j->state, was, j->path, err);
    if (rc == WF_OK)
        rc = wf_job_rewrite(j, was, j->path, err);
    if (rc == WF_OK)
        wf_job_note(m, j, "job.taken_back", "what was set is taken back");
    free(was);
    return rc;
}

wf_status wf_master_change(wf_master *m, const char *name, int64_t from_step, size_t n,
                           char *const set[], wf_err *err)
{
    wf_job *j = wf_job_find(m, name);
    wf_job_conf *conf = NULL;
    char *text;
    wf_status rc = WF_OK;

    if (!j)
        return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                       "there is no job named %s", name);
    if (!wf_job_over(j->state))
        return is_under_way(j, "stop it first: weft stop", err);
    text = strdup(j->text);
    if (!text)
        return wf_fail_nomem(err, strlen(j->text));
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        char *next = NULL;

        rc = wf_job_change(text, set[i], true, &next, err);
        if (rc == WF_OK) {
            free(text);
            text = next;
        }
    }
    if (rc == WF_OK)
        rc = wf_job_parse(text, strlen(text), j->path, &conf, err);
    if (rc == WF_OK)
        rc = check_change(m, j, conf, from_step, err);
    wf_job_free(&conf);
    if (rc == WF_OK)
        rc = change_text(m, j, text, err);
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        wf_job_note(m, j, "job.changed", "%s", set[i]);
    free(text);
    return rc;
}

static wf_status is_done(const wf_job *j, wf_err *err)
{
    char hint[2 * WF_RUN_NAME + 96], job[WF_RUN_NAME];

    wf_run_split(j->name, job);
    snprintf(hint, sizeof hint,
             "export it with: weft export %s -o %s.onnx; or train on with: --set epochs=N", j->name,
             job);
    return wf_fail(err, WF_EXISTS, hint, "job %s is done", j->name);
}

static wf_status recover(wf_master *m, const char *name, int64_t from_step, bool changed,
                         wf_err *err)
{
    wf_job *j = wf_job_find(m, name);

    if (!j)
        return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                       "there is no job named %s", name);
    if (j->state == WF_JOB_DONE && from_step < 0 && !changed)
        return is_done(j, err);
    if (!wf_job_over(j->state) && from_step < 0)
        return WF_OK; /* it recovers by itself */
    if (!wf_job_over(j->state))
        return is_under_way(j, "stop it first: weft stop", err);
    begin_anew(m, j, from_step);
    if (from_step >= 0 || changed)
        j->ending_from = 0;
    return wf_job_enter(m, j, WF_JOB_RECOVER, NULL, err);
}

wf_status wf_master_recover(wf_master *m, const char *name, int64_t from_step, wf_err *err)
{
    return recover(m, name, from_step, false, err);
}

wf_status wf_master_stop(wf_master *m, const char *name, wf_err *err)
{
    wf_job *j = wf_job_find(m, name);
    wf_status rc;

    if (!j)
        return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                       "there is no job named %s", name);
    if (wf_job_over(j->state))
        return wf_fail(err, WF_INVALID, NULL, "job %s is %s already", j->name,
                       wf_job_state_name(j->state));
    if (j->stop_asked && m->job == j && j->state != WF_JOB_RUNNING)
        return WF_OK; /* on disk since; whoever asks again and again must not fill it */
    j->stop_asked = true;
    if (m->job != j)
        return wf_job_stop(m, j, err);
    /* On disk in every state: a master that starts again must not forget that it was asked. */
    rc = wf_job_enter(m, j, WF_JOB_STOP_ASKED, NULL, err);
    if (rc != WF_OK)
        j->stop_asked = false; /* not on disk: to be asked again */
    return rc;
}

wf_status wf_master_forget(wf_master *m, const char *name, wf_err *err)
{
    wf_job *j = wf_job_find(m, name);

    if (!wf_run_name_ok(name))
        return wf_fail(err, WF_USAGE, NULL, "\"%.80s\" is no name for a job", name);
    if (j && strcmp(j->name, name) != 0)
        j = NULL;
    if (j && !wf_job_over(j->state))
        return is_under_way(j, "stop it first: weft stop", err);
    if (j) {
        WF_TRY(wf_job_enter(m, j, WF_JOB_REMOVE, NULL, err));
        WF_TRY(wf_job_rewrite(j, "", "", err));
    }
    wf_master_queue_removal(m, name);
    return WF_OK;
}

static wf_status move_slice(wf_master *m, const Weft__Ask *ask, wf_err *err)
{
    wf_job *j = wf_job_find(m, ask->job);

    if (!j)
        return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                       "there is no job named %s", ask->job);
    return wf_placement_ask(m, j, ask->variable, ask->slice, ask->ps,
                            !j->cut_wanted && j->cut->state == WF_CUT_NONE, err);
}

/* The placement of a job, or of the one in hand, as text that the caller frees. */
static wf_status show_placement(const wf_master *m, const char *name, char **out, wf_err *err)
{
    const wf_job *j = name[0] ? wf_job_find(m, name) : m->job;
    json_t *o;

    if (!j)
        return name[0]
                   ? wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                             "there is no job named %s", name)
                   : wf_fail(err, WF_INVALID, NULL, "no job runs; slices are on ps while one does");
    if (j != m->job || !j->prepared || !wf_placement_is_of(m->placement, j))
        return wf_fail(err, WF_INVALID, NULL,
                       m->n_ps ? "job %s is %s; slices are on ps while a job runs"
                               : "job %s is %s, in a cluster without ps",
                       j->name, wf_job_state_name(j->state));
    o = wf_placement_json(m, j);
    *out = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return *out ? WF_OK : wf_fail_nomem(err, 0);
}

static wf_status act(wf_master *m, const Weft__Ask *ask, wf_err *err)
{
    if (strcmp(ask->command, "status") == 0 || strcmp(ask->command, "placement") == 0)
        return WF_OK;
    if (strcmp(ask->command, "submit") == 0)
        return wf_master_submit(m, ask->job, ask->text, ask->path, ask->resume, err);
    if (strcmp(ask->command, "recover") == 0 && ask->n_set)
        WF_TRY(wf_master_change(m, ask->job, ask->from_step, ask->n_set, ask->set, err));
    if (strcmp(ask->command, "recover") == 0)
        return recover(m, ask->job, ask->from_step, ask->n_set > 0, err);
    if (strcmp(ask->command, "stop") == 0)
        return wf_master_stop(m, ask->job, err);
    if (strcmp(ask->command, "forget") == 0)
        return wf_master_forget(m, ask->job, err);
    if (strcmp(ask->command, "move") == 0)
        return move_slice(m, ask, err);
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
    if (rc == WF_OK && strcmp(ask->command, "placement") == 0)
        rc = show_placement(m, ask->job, &json, &why);
    wf_control_free(&ask);
    if (rc == WF_IO || rc == WF_NOMEM) { /* the journal failed: nothing may be acknowledged */
        *err = why;
        return rc;
    }
    answer.status = rc;
    answer.what = why.what;
    answer.hint = why.hint;
    if (!json)
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

wf_status wf_asks_on_tasks(wf_master *m, wf_peer *from, const wf_msg *msg, wf_err *err)
{
    const char **ps = calloc((size_t)m->n_members + 1, sizeof *ps);
    const char **workers = calloc((size_t)m->n_members + 1, sizeof *workers);
    wf_tasks all = {.ps = ps, .workers = workers};
    wf_status rc = ps && workers ? WF_OK : wf_fail_nomem(err, m->n_members * sizeof *ps);

    for (uint32_t i = 0; rc == WF_OK && i < m->n_members; i++) {
        const wf_member *who = &m->members[i];

        if (who->task.role == WF_ROLE_PS)
            ps[all.n_ps++] = who->address;
        else
            workers[all.n_workers++] = who->address;
    }
    if (rc == WF_OK)
        rc = wf_tasks_answer(m->net, from, msg, &all, err);
    free(ps);
    free(workers);
    return rc;
}
