/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/status.c */
#include "cmd/cli/ask.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s && s[0] ? s : "-";
}

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* Shorter waits are part of any step. */
static const double LONG_WAIT_S = 5;

/* "waits 0:12 for ps/1: weights of step 7", or what the master waits for; false if neither is long.
 */
static bool wait_text(const json_t *task, char *out, size_t size)
{
    const json_t *waits = json_object_get(task, "waits"), *owes = json_object_get(task, "owes");
    char age[24];

    if (number(waits, "since_s") >= LONG_WAIT_S)
        snprintf(out, size, "waits %s for %s: %s",
                 wf_seconds_text(number(waits, "since_s"), age, sizeof age), text(waits, "for"),
                 text(waits, "what"));
    else if (number(owes, "since_s") >= LONG_WAIT_S)
        snprintf(out, size, "the master waits %s for %s",
                 wf_seconds_text(number(owes, "since_s"), age, sizeof age), text(owes, "what"));
    else
        return false;
    return true;
}

/* "killed by signal 9 (Killed), 0:12 ago"; "-" once the task has lived on for long enough. */
static const char *reason_text(const json_t *task, char *out, size_t size)
{
    char age[24];

    if (wait_text(task, out, size))
        return out;
    snprintf(out, size, "%s", text(task, "reason"));
    if (strcmp(out, "-") == 0)
        return out;
    wf_seconds_text(number(json_object_get(task, "last_end"), "age_s"), age, sizeof age);
    snprintf(out, size, "%s, %s ago", text(task, "reason"), age);
    return out;
}

static wf_status print_tasks(json_t *picture, wf_err *err)
{
    wf_rows t = {0};
    json_t *task;
    size_t i;

    wf_rows_add(&t, (const char *[]){"TASK", "STATE", "PID", "AGE", "STEP", "RATE", "REASON"}, 7);
    json_array_foreach(json_object_get(picture, "tasks"), i, task)
    {
        char pid[24], age[24], step[24], rate[24], reason[1100];
        long long number_of_process = json_integer_value(json_object_get(task, "pid"));

        /* 0: no process is known to be the task's now */
        snprintf(pid, sizeof pid, number_of_process ? "%lld" : "-", number_of_process);
        snprintf(step, sizeof step, "%lld",
                 (long long)json_integer_value(json_object_get(task, "step")));
        wf_count_text((unsigned long long)number(task, "samples_per_sec"), rate, sizeof rate);
        wf_seconds_text(number(task, "age_s"), age, sizeof age);
        wf_rows_add(&t,
                    (const char *[]){text(task, "task"), text(task, "state"), pid, age, step, rate,
                                     reason_text(task, reason, sizeof reason)},
                    7);
    }
    return wf_rows_print(&t, stdout, err);
}

/* "  epochs: 20" and so on, a line each: what weft recover --set has changed. */
static void print_changes(const char *lines)
{
    while (lines[0] == ' ') {
        size_t n = strcspn(lines, "\n");

        wf_term_print(stdout, "\n  set %.*s", (int)n - 2, lines + 2);
        lines += n + (lines[n] != 0);
    }
}

static void print_job(json_t *job)
{
    json_t *step = json_object_get(job, "checkpoint"), *value;
    char rate[24], eta[24];
    const char *name;

    wf_term_print(stdout, "job %s  %s  generation %d  epoch %d", text(job, "name"),
                  text(job, "state"), (int)number(job, "generation"), (int)number(job, "epoch"));
    if (number(job, "epochs") > 0) /* compiled by this life of the master */
        printf("/%d", (int)number(job, "epochs"));
    printf("  step %lld", (long long)number(job, "step"));
    json_object_foreach(json_object_get(job, "metrics"), name, value)
        printf("  %s %.4f", name, json_number_value(value));
    json_object_foreach(json_object_get(job, "eval"), name, value)
        printf("  val_%s %.4f", name, json_number_value(value));
    if (number(job, "samples_per_sec") > 0)
        printf("  %s samples/s  ETA %s",
               wf_count_text((unsigned long long)number(job, "samples_per_sec"), rate, sizeof rate),
               wf_seconds_text(number(job, "eta_s"), eta, sizeof eta));
    if (json_is_integer(step))
        printf("  checkpoint step-%08lld", (long long)json_integer_value(step));
    print_changes(text(job, "set"));
    if (strcmp(text(job, "reason"), "-") != 0)
        wf_term_print(stdout, "\n  %s", text(job, "reason"));
    if (strcmp(text(job, "hint"), "-") != 0)
        wf_term_print(stdout, "; %s", text(job, "hint"));
    printf("\n");
}

static wf_status print_all(json_t *picture, const char *job, wf_err *err)
{
    json_t *one;
    size_t i;

    if (job && !wf_ask_job(picture, job))
        return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                       "there is no job named %s", job);
    WF_TRY(print_tasks(picture, err));
    json_array_foreach(json_object_get(picture, "jobs"), i,
                       one) if (!job || one == wf_ask_job(picture, job)) print_job(one);
    return WF_OK;
}

static wf_status print_json(json_t *picture, const char *job, wf_err *err)
{
    json_t *what = job ? wf_ask_job(picture, job) : picture;

    if (!what)
        return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                       "there is no job named %s", job);
    json_dumpf(what, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    printf("\n");
    return WF_OK;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    enum { ANSWER_MS = 3000 };
    Weft__Ask ask = WEFT__ASK__INIT;
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    json_t *picture = NULL;
    wf_ask *a = NULL;
    bool json = false;
    wf_words words;
    const wf_flag flags[] = {{"json", 0, .set = &json}, {"cluster", 0, .value = &cluster}, {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 0, 1, &words, err));
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    ask.command = "status";
    rc = wf_super_check_up(conf, err);
    if (rc == WF_OK)
        rc = wf_ask_open(conf, &a, err);
    if (rc == WF_OK)
        rc = wf_ask_send(a, &ask, ANSWER_MS, &picture, err);
    if (rc == WF_OK)
        rc = json ? print_json(picture, words.n ? words.word[0] : NULL, err)
                  : print_all(picture, words.n ? words.word[0] : NULL, err);
    json_decref(picture);
    wf_ask_close(&a);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_status = {
    .name = "status",
    .help = "tasks and jobs as they are now",
    .usage = "weft status [JOB] [--json] [--cluster FILE]\n\n"
             "JOB is a job, whose newest run is shown, or a run: digits#2.\n"
             "Every task with its state, process, rate, step and, when it was lost, the reason;\n"
             "every job with its state, generation, epoch, step, loss, metrics and checkpoint.\n"
             "  --json   the same for programs\n\n"
             "  weft status digits\n",
    .run = run,
};
