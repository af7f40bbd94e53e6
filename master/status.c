/* SPDX-License-Identifier: Apache-2.0 */
/* master/status.c - the picture of the cluster that the command line gets. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/conf/conf.h"
#include "common/graph/graph.h"
#include "common/wire/coding.h"
#include "master/top.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *member_state(const wf_master *m, const wf_member *who)
{
    if (who->state == WF_MEMBER_DOWN)
        return "down";
    if (!wf_member_is_live(who))
        return who->incarnation ? "joining"
               : who->refused   ? "refused"
               : who->reason[0] ? "restarting"
                                : "missing";
    if (m->job && !wf_job_over(m->job->state) && wf_faults_is_unfit(who, m->job))
        return "unfit";
    if (m->job && !wf_job_over(m->job->state) && who->part != WF_PART_NONE &&
        who->generation == m->job->generation)
        return who->part == WF_PART_READY ? (who->task.role == WF_ROLE_PS ? "serving" : "training")
                                          : "starting";
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

static void put(json_t *o, const char *key, json_t *value)
{
    json_object_set_new(o, key, value);
}

static void put_int(json_t *o, const char *key, uint64_t value)
{
    put(o, key, json_integer((json_int_t)value));
}

static void put_real(json_t *o, const char *key, double value)
{
    put(o, key, json_real(value));
}

static void put_text(json_t *o, const char *key, const char *text)
{
    put(o, key, text_json(text));
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
    put_text(o, "reason", who->reason);
    put_real(o, "age_s", (double)(m->now_ns - who->reason_ns) / 1e9);
    return o;
}

/* What became of the splits that the incarnation before had in hand; null: it had none. */
static json_t *returned_json(const wf_master *m, const wf_member *who)
{
    const wf_returned *r = &who->returned;
    char name[32];
    json_t *o;

    if (!r->n || !m->job || r->generation != m->job->generation || !reason_is_news(m, who))
        return json_null();
    o = json_object();
    put_int(o, "splits", r->n);
    put_int(o, "waiting", r->waiting);
    put_int(o, "begin", r->begin);
    put_int(o, "end", r->end);
    put_text(o, "to", r->to.role ? wf_task_str(r->to, name, sizeof name) : "");
    put(o, "to_several", json_boolean(r->to_several));
    return o;
}

static json_t *waiting_json(const wf_master *m, const wf_waiting *w)
{
    char name[32];
    json_t *o;

    if (w->whom.role == WF_ROLE_NONE)
        return json_null();
    o = json_object();
    put_text(o, "for", wf_task_str(w->whom, name, sizeof name));
    put_text(o, "what", w->what);
    put_real(o, "since_s", (double)(m->now_ns - w->since_ns) / 1e9);
    return o;
}

static json_t *links_json(const wf_progress *p)
{
    json_t *list = json_array();
    char name[32];

    for (uint32_t i = 0; i < p->n_links; i++) {
        json_t *o = json_object();

        put_text(o, "peer", wf_task_str(p->links[i].peer, name, sizeof name));
        put_int(o, "sent_again_bytes", p->links[i].resent_bytes);
        put_int(o, "queued_bytes", p->links[i].queued_bytes);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *member_json(const wf_master *m, const wf_member *who)
{
    char name[32];
    json_t *o = json_object();

    put_text(o, "task", wf_task_str(who->task, name, sizeof name));
    put_text(o, "role", wf_role_name(who->task.role));
    put_text(o, "address", who->address);
    put_text(o, "state", member_state(m, who));
    put(o, "pid", who->incarnation ? json_integer(who->pid) : json_null());
    put(o, "age_s", /* since it came or was lost; null: it has never come */
        who->since_ns ? json_real((double)(m->now_ns - who->since_ns) / 1e9) : json_null());
    put_int(o, "step", m->job && who->generation == m->job->generation ? who->steps : 0);
    put_real(o, "samples_per_sec", who->samples_per_sec);
    put_text(o, "reason", reason_is_news(m, who) ? who->reason : "");
    put(o, "last_end", last_end_json(m, who));
    put(o, "returned", returned_json(m, who));
    if (who->task.role == WF_ROLE_PS) {
        put_real(o, "updates_per_sec", who->incarnation ? who->progress.updates_per_sec : 0);
        put_int(o, "held_bytes", who->incarnation ? who->progress.held_bytes : 0);
        put_int(o, "disk_bytes", who->incarnation ? who->progress.disk_bytes : 0);
        put_int(o, "session_variables", who->incarnation ? who->progress.contained : 0);
        put_int(o, "session_bytes", who->incarnation ? who->progress.contained_bytes : 0);
    }
    put(o, "waits", waiting_json(m, &who->progress.waits));
    put(o, "owes", waiting_json(m, &who->progress.owes));
    put(o, "links", links_json(&who->progress));
    put_real(o, "compute_s", (double)who->compute_ns / 1e9);
    put_real(o, "wait_s", (double)who->wait_ns / 1e9);
    put_real(o, "transfer_s", (double)who->transfer_ns / 1e9);
    put_real(o, "data_s", (double)who->data_ns / 1e9);
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

/* From 1; 0: none yet. */
static uint32_t epoch_of(const wf_job *j)
{
    return j->epoch->ledger.n ? j->epoch->ledger.epoch + 1 : j->epoch->last_epoch;
}

bool wf_master_marks(const wf_master *m, const char *job, wf_job_marks *out)
{
    const wf_job *j = wf_job_find(m, job);

    if (!j)
        return false;
    *out = (wf_job_marks){.state = wf_job_state_name(j->state),
                          .is_over = wf_job_over(j->state),
                          .epoch = epoch_of(j),
                          .eval_epoch = j->epoch->eval_epoch,
                          .checkpoint = j->latest == UINT64_MAX ? -1 : (int64_t)j->latest};
    return true;
}

/* Records of all epochs so far. */
static uint64_t records_so_far(const wf_job *j, uint64_t trained)
{
    return wf_job_grows(j) ? j->epoch->records_before + trained
                           : (epoch_of(j) - 1) * j->epoch->train_records + trained;
}

/* All records that there will be; 0: nobody knows. Of data that grows without an end: as many as
 * there are now, so that a bar shows the open round. */
static uint64_t records_in_all(const wf_job *j)
{
    const wf_prepared *p = j->prepared;
    uint64_t all = 0;

    if (p && wf_job_grows(j))
        all = p->steps ? p->steps * p->batch : j->epoch->records_before + j->epoch->train_records;
    else if (p)
        all = p->epochs * j->epoch->train_records;
    if (p && p->steps && p->steps * p->batch < all)
        all = p->steps * p->batch;
    return all;
}

static bool has_end(const wf_job *j)
{
    return !wf_job_grows(j) || (j->prepared && j->prepared->steps);
}

static json_t *rounds_json(const wf_job *j, uint64_t trained)
{
    const wf_rounds *r = &j->rounds;
    char waits[512] = "";
    json_t *o;

    if (!wf_job_grows(j))
        return json_null();
    if (r->is_wanted && j->prepared && j->state == WF_JOB_RUNNING)
        snprintf(waits, sizeof waits, "new files that match %.200s%s%.200s",
                 j->prepared->patterns[0], r->why[0] ? ": " : "", r->why);
    o = json_object();
    put_int(o, "round", r->round);
    put_int(o, "files", r->n_taken);
    put_int(o, "files_waiting", r->n_waiting);
    put_int(o, "records", records_so_far(j, trained));
    put_text(o, "waits_for", waits);
    return o;
}

static void progress_json(const wf_master *m, const wf_job *j, json_t *o)
{
    uint64_t all = records_in_all(j), done = 0;
    uint64_t trained =
        j->epoch->ledger.n ? wf_ledger_trained(&j->epoch->ledger) : j->epoch->last_trained;
    uint32_t epoch = epoch_of(j);
    double rate = job_rate(m, j);

    if (epoch)
        done = records_so_far(j, trained);
    if (j->state == WF_JOB_DONE)
        done = all;
    put_int(o, "epoch", epoch);
    put_int(o, "epochs",
            j->prepared && j->prepared->epochs != WF_EPOCHS_ANY ? j->prepared->epochs : 0);
    put_real(o, "part", all ? (double)done / (double)all : 0);
    put_real(o, "samples_per_sec", rate);
    put_real(o, "eta_s", rate > 0 && all > done && has_end(j) ? (double)(all - done) / rate : -1);
    put_int(o, "epoch_records", j->epoch->train_records);
    put_int(o, "epoch_trained", trained);
    put(o, "rounds", rounds_json(j, trained));
    put(o, "evaluating", json_boolean(j->epoch->state == WF_EPOCH_EVALUATING));
}

/* How many updates the variables had taken in between the pull and the push of a gradient, as the
 * ps that hold them told last; null: no ps has yet. */
static json_t *staleness_json(const wf_master *m, const wf_job *j)
{
    wf_histogram all = {0};
    json_t *o;

    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i].progress.job == j->number)
            wf_histogram_merge(&all, &m->members[i].progress.staleness);
    if (wf_histogram_count(&all) == 0)
        return json_null();
    o = json_object();
    put_int(o, "pushes", wf_histogram_count(&all));
    put_int(o, "p50", wf_histogram_quantile(&all, 0.5));
    put_int(o, "p99", wf_histogram_quantile(&all, 0.99));
    put_int(o, "most", wf_histogram_quantile(&all, 1));
    return o;
}

/* Adds the name of a coding to "bf16, int8", unless it is there. */
static void name_coding(char *text, size_t size, uint32_t coding)
{
    size_t n = strlen(text);

    if (!strstr(text, wf_coding_name(coding)))
        snprintf(text + n, size - n, "%s%s", n ? ", " : "", wf_coding_name(coding));
}

/* Of a model that is divided among workers: who holds how much of it. */
static json_t *stages_json(const Weft__Start *s)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < s->n_stages; i++) {
        json_t *o = json_object();
        uint64_t variables = 0, elems = 0;
        char task[32];

        for (size_t k = 0; k < s->n_variables; k++) {
            uint64_t n = 1;

            for (size_t d = 0; d < s->variables[k]->n_dims; d++)
                n *= (uint64_t)s->variables[k]->dims[d];
            if (s->variables[k]->stage == i) {
                variables++;
                elems += n;
            }
        }
        put_text(o, "worker",
                 wf_task_str((wf_task){WF_ROLE_WORKER, s->stages[i]->worker}, task, sizeof task));
        if (s->stages[i]->device[0])
            put_text(o, "device", s->stages[i]->device);
        put_int(o, "variables", variables);
        put_int(o, "bytes", elems * sizeof(float));
        json_array_append_new(list, o);
    }
    return list;
}

/* How gradients and weights travel, and the bytes of gradients against those of float32, as far as
 * this master has heard; null: all as float32, or a master that has not compiled the job. */
static json_t *codec_json(const wf_job *j)
{
    char push[64] = "", pull[64] = "";
    json_t *o;

    for (size_t i = 0; j->prepared && i < j->prepared->setup.n_variables; i++) {
        const Weft__Variable *v = j->prepared->setup.variables[i];

        if (v->kind != WF_VAR_TRAINABLE)
            continue;
        name_coding(push, sizeof push, v->push_coding);
        name_coding(pull, sizeof pull, v->pull_coding);
    }
    if ((!*push || strcmp(push, "f32") == 0) && (!*pull || strcmp(pull, "f32") == 0))
        return json_null();
    o = json_object();
    put_text(o, "push", push);
    put_text(o, "pull", pull);
    put_int(o, "pushed_bytes", j->epoch->pushed_bytes);
    put_int(o, "f32_bytes", j->epoch->plain_bytes);
    put_real(o, "ratio",
             j->epoch->plain_bytes ? (double)j->epoch->pushed_bytes / (double)j->epoch->plain_bytes
                                   : 1);
    return o;
}

static uint64_t left_out_parts(const wf_master *m, const wf_job *j)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i].progress.job == j->number)
            n += m->members[i].progress.left_out;
    return n;
}

static json_t *job_json(const wf_master *m, const wf_job *j)
{
    int64_t end = j->ended_ns ? j->ended_ns : m->now_ns;
    json_t *o = json_object(), *lines = json_array(), *numbers = json_array();
    const char *changes = wf_job_changes(j->text);
    wf_tally trained[WF_MASTER_METRICS];
    char job[WF_RUN_NAME];
    uint64_t step = wf_job_step(m, j);

    /* A master that started after the job's end, or before a job goes on, knows its last
     * checkpoint, and no steps. */
    if ((wf_job_over(j->state) || j->state < WF_JOB_STARTING) && j->latest != UINT64_MAX)
        step = WF_MAX(step, j->latest);
    put_int(o, "run", wf_run_split(j->name, job));
    put_text(o, "job", job);
    put_text(o, "name", j->name);
    put_text(o, "state", wf_job_state_name(j->state));
    put_int(o, "generation", j->generation);
    put_int(o, "step", step);
    progress_json(m, j, o);
    put(o, "metrics", tally_json(trained, wf_epoch_trained((wf_job *)j, trained)));
    put(o, "eval", tally_json(j->epoch->eval, j->epoch->n_eval));
    put(o, "eval_counts", counts_json(j->epoch->eval, j->epoch->n_eval));
    put_int(o, "eval_epoch", j->epoch->eval_epoch);
    if (j->epoch->callbacks.rate > 0)
        put_real(o, "learning_rate", j->epoch->callbacks.rate);
    if (j->epoch->callbacks.best_step)
        put_int(o, "best", j->epoch->callbacks.best_step - 1);
    put(o, "checkpoint", j->latest == UINT64_MAX ? json_null() : json_integer(j->latest));
    put_int(o, "checkpoints", j->cut->n_saved);
    put_int(o, "failed_checkpoints", j->cut->n_failed);
    put_int(o, "dropped_steps", j->epoch->dropped_steps);
    put_int(o, "rollbacks", j->rollbacks);
    put_int(o, "lost_workers", j->lost_workers);
    put_int(o, "undone_steps", j->undone_steps);
    put_int(o, "left_out_records", j->left_out_records);
    if (j->epoch->shard_files ||
        (j->epoch->ledger.n && j->prepared && j->prepared->shard != WF_SHARD_DATA)) {
        put_text(o, "shard", wf_shard_word(j->epoch->shard_files ? WF_SHARD_FILE : WF_SHARD_DATA));
        put_int(o, "shard_files", j->epoch->shard_files);
    }
    if (j->epoch->near.dealt_near + j->epoch->near.dealt_far) {
        put_int(o, "splits_near", j->epoch->near.dealt_near);
        put_int(o, "splits_far", j->epoch->near.dealt_far);
    }
    if (j->epoch->rows_named)
        put_real(o, "cache_hits", (double)j->epoch->rows_cached / (double)j->epoch->rows_named);
    put(o, "staleness", staleness_json(m, j));
    put(o, "codec", codec_json(j));
    if (j->prepared && j->prepared->start.n_stages > 0)
        put(o, "stages", stages_json(&j->prepared->start));
    put_int(o, "left_out_parts", left_out_parts(m, j));
    put_real(o, "pause_ms", (double)j->cut->pause_ns / 1e6);
    put_real(o, "pause_most_ms", (double)j->cut->pause_most_ns / 1e6);
    put_real(o, "elapsed_s", j->began_ns ? (double)(end - j->began_ns) / 1e9 : 0);
    put_text(o, "set", changes ? changes : "");
    put_text(o, "passed_over", j->passed ? j->passed : "");
    put_text(o, "reason", j->reason);
    put_text(o, "hint", j->hint);
    for (uint32_t i = 0; i < j->lines.n; i++) {
        json_array_append_new(lines, text_json(j->lines.kept[i].text));
        json_array_append_new(numbers, json_integer((json_int_t)j->lines.kept[i].number));
    }
    put(o, "events", lines);
    put(o, "event_numbers", numbers);
    put_int(o, "events_told", j->lines.told);
    return o;
}

char *wf_master_status(const wf_master *m, int64_t now_ns)
{
    json_t *o = json_object(), *tasks = json_array(), *jobs = json_array(), *master = json_object();
    char missing[1024];
    char *text;

    (void)now_ns;
    put_int(master, "pid", wf_net_pid(m->net));
    put_real(master, "age_s", (double)(m->now_ns - m->began_ns) / 1e9);
    for (uint32_t i = 0; i < m->n_members; i++)
        json_array_append_new(tasks, member_json(m, &m->members[i]));
    for (uint32_t i = 0; i < m->n_jobs; i++)
        if (m->jobs[i]->state != WF_JOB_REMOVED)
            json_array_append_new(jobs, job_json(m, m->jobs[i]));
    put_int(o, "view", m->view);
    put_text(o, "missing", wf_members_missing(m, missing, sizeof missing));
    put_int(o, "bad_messages", wf_net_bad_messages(m->net));
    put_int(o, "refused_deaths", m->refused_deaths);
    put(o, "master", master);
    put(o, "tasks", tasks);
    put(o, "jobs", jobs);
    text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return text;
}
