/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/following.c - asks for the picture five times a second; the master tells nothing unasked.
 */
#include "cmd/cli/following.h"
#include "cmd/cli/ports.h"
#include "cmd/cli/progress.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"
#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/text.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_MS = 200, ONE_ANSWER_MS = 3000, PATIENCE_MS = 60000 };

typedef struct follower {
    const char *again;      /* goes on with a job that was stopped */
    char name[WF_RUN_NAME]; /* of the run, as the master has it */
    wf_progress progress;
    uint64_t seen;               /* events of the job */
    char waits_for[WF_RUN_NAME]; /* the job in hand when it is queued, as it was shown */
    json_t *named;               /* tasks that are down for good and were shown, by name */
} follower;

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
    (void)number;
    interrupts++;
}

/* The first Ctrl-C stops the job, the second leaves it to itself, whatever is being waited for. */
static bool had_enough(void)
{
    return interrupts >= 2;
}

bool wf_follow_interrupted(void)
{
    return interrupts > 0;
}

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

/* "loss 0.0812  accuracy 0.9751"; the names may have a part from the model's file. */
static void add_metrics(const json_t *metrics, const char *prefix, char *out, size_t size)
{
    char safe[128];
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)metrics, name, value)
    {
        size_t at = strlen(out);

        wf_text_escape(name, false, safe, sizeof safe);
        snprintf(out + at, size - at, "  %s%s %.4f", prefix, safe, json_number_value(value));
    }
}

/* Of data that grows. A log would only grow with it. */
static bool show_waiting(wf_progress *p, const json_t *job)
{
    const char *what = text(json_object_get(job, "rounds"), "waits_for");
    char safe[256], facts[320], label[64];

    if (!what[0])
        return false;
    snprintf(label, sizeof label, "epoch %d", (int)number(job, "epoch"));
    wf_text_escape(what, false, safe, sizeof safe);
    snprintf(facts, sizeof facts, "waits for %s", safe);
    if (p->term.tty)
        wf_progress_show(p, wf_now_ns(), number(job, "part"), label, facts);
    return true;
}

static void show(wf_progress *p, const json_t *job)
{
    char label[64], facts[256], rate[32], eta[32];
    double part = number(job, "part");
    bool evaluates = json_is_true(json_object_get(job, "evaluating"));

    if (show_waiting(p, job) || strcmp(text(job, "state"), "running") != 0 || part <= 0 ||
        (part >= 1 && !evaluates))
        return;
    if (number(job, "epochs") > 0)
        snprintf(label, sizeof label, "epoch %d/%d", (int)number(job, "epoch"),
                 (int)number(job, "epochs"));
    else
        snprintf(label, sizeof label, "epoch %d", (int)number(job, "epoch"));
    facts[0] = 0;
    if (number(job, "samples_per_sec") > 0)
        snprintf(
            facts, sizeof facts, "%s samples/s",
            wf_count_text((unsigned long long)number(job, "samples_per_sec"), rate, sizeof rate));
    add_metrics(json_object_get(job, "metrics"), "", facts, sizeof facts);
    if (json_is_object(json_object_get(job, "staleness")))
        snprintf(facts + strlen(facts), sizeof facts - strlen(facts), "  staleness p99 %d",
                 (int)number(json_object_get(job, "staleness"), "p99"));
    if (json_is_number(json_object_get(job, "cache_hits")))
        snprintf(facts + strlen(facts), sizeof facts - strlen(facts), "  cache hit %.0f %%",
                 100 * number(job, "cache_hits"));
    snprintf(facts + strlen(facts), sizeof facts - strlen(facts), "  ETA %s",
             wf_seconds_text(number(job, "eta_s"), eta, sizeof eta));
    if (evaluates) /* the rate falls, and means nothing */
        snprintf(facts, sizeof facts, "evaluating");
    wf_progress_show(p, wf_now_ns(), part, label, facts);
}

static bool is_worth_a_line(const char *event)
{
    static const char *const kinds[] = {
        "job.epoch ", "job.round ", "job.callback ",   "job.restores_best ", "job.restored ",
        "job.waits ", "task.lost ", "task.restarted ", "ckpt.failed ",       "ckpt.passed"};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(event, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

/* What has happened since the last look: epochs, recoveries, lost tasks. The master keeps the last
 * lines alone, and numbers them all; one that has started again begins at 0. */
static void show_events(wf_progress *p, const json_t *job, uint64_t *seen)
{
    json_t *lines = json_object_get(job, "events"), *line;
    json_t *numbers = json_object_get(job, "event_numbers");
    uint64_t told = (uint64_t)number(job, "events_told");
    size_t i;

    if (*seen > told)
        *seen = 0;
    json_array_foreach(lines, i, line)
    {
        const char *s = json_string_value(line), *body = strchr(s, ' ');

        if ((uint64_t)json_integer_value(json_array_get(numbers, i)) < *seen ||
            !is_worth_a_line(s) || !body)
            continue;
        wf_progress_clear(p);
        wf_term_print(stderr, "%s\n", body + 1);
    }
    *seen = told;
}

static wf_status say_end(const wf_cluster_conf *conf, const json_t *job, const char *again,
                         wf_err *err)
{
    const char *state = text(job, "state"), *name = text(job, "name"), *plain = text(job, "job");
    char metrics[256] = "", took[32], next[PATH_MAX + 128];
    wf_term term = wf_term_of(stdout);
    wf_bytes line = {0};
    json_t *step = json_object_get(job, "checkpoint");
    json_t *eval = json_object_get(job, "eval");

    if (strcmp(state, "failed") == 0)
        return wf_fail(err, WF_INVALID, text(job, "hint"), "job %s failed: %s", name,
                       text(job, "reason"));
    if (json_object_size(eval))
        add_metrics(eval, "val_", metrics, sizeof metrics);
    else
        add_metrics(json_object_get(job, "metrics"), "", metrics, sizeof metrics);
    wf_bytes_printf(&line, "%s:%s", state, metrics);
    if (strcmp(state, "interrupted") != 0) /* a new master does not know how long it took */
        wf_bytes_printf(&line, "  in %s",
                        wf_seconds_text(number(job, "elapsed_s"), took, sizeof took));
    if (json_is_integer(step))
        wf_bytes_printf(&line, "  checkpoint %s/%s/step-%08lld", conf->checkpoint_dir, name,
                        (long long)json_integer_value(step));
    if (strcmp(state, "done") == 0)
        snprintf(next, sizeof next, "weft export %s -o %s.onnx", plain, plain);
    else
        snprintf(next, sizeof next, "%s", again ? again : "");
    /* A command that is to be copied is not broken over the end of a line. */
    if (again)
        wf_term_print(stdout, "%s%snext: %s\n", wf_bytes_str(&line),
                      term.tty && line.size + strlen(next) + 8 > (size_t)term.columns ? "\n" : "  ",
                      next);
    wf_bytes_close(&line);
    if (strcmp(state, "done") != 0)
        return wf_fail(err, WF_STOPPED, NULL, "job %s: %s", name, text(job, "reason"));
    return WF_OK;
}

static wf_status ask_stop(wf_ask *a, wf_progress *p, const char *job, bool saved, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    wf_status rc;

    wf_progress_clear(p);
    wf_term_print(stderr, "stopping %s%s; Ctrl-C again leaves it to itself\n", job,
                  saved ? " with a checkpoint" : "");
    ask.command = "stop";
    ask.job = (char *)job;
    wf_ask_until(a, NULL); /* the order is given, though nobody may wait for what follows from it */
    rc = wf_ask_send(a, &ask, ONE_ANSWER_MS, NULL, err);
    wf_ask_until(a, had_enough);
    if (rc == WF_TIMEOUT)
        rc = wf_ask_send(a, &ask, PATIENCE_MS, NULL, err);
    return rc == WF_INVALID ? WF_OK : rc; /* it is over already: the next look says how */
}

/* Once for each job that it waits for: "waiting for job a#1 (epoch 5/25, about 0:15)". */
static void say_queue(follower *f, json_t *picture, const json_t *job)
{
    json_t *other;
    char facts[96] = "", eta[32];
    size_t i;

    if (strcmp(text(job, "state"), "queued") != 0)
        return;
    json_array_foreach(json_object_get(picture, "jobs"), i, other)
    {
        if (other == job || wf_ask_is_over(other) || strcmp(text(other, "state"), "queued") == 0)
            continue;
        if (strcmp(f->waits_for, text(other, "name")) == 0)
            return;
        snprintf(f->waits_for, sizeof f->waits_for, "%s", text(other, "name"));
        if (number(other, "eta_s") > 0)
            snprintf(facts, sizeof facts, " (epoch %d/%d, about %s)", (int)number(other, "epoch"),
                     (int)number(other, "epochs"),
                     wf_seconds_text(number(other, "eta_s"), eta, sizeof eta));
        wf_term_print(stderr, "waiting for job %s%s\n", f->waits_for, facts);
        return;
    }
}

/* The picture of the cluster. A master that is away comes back, and workers train on meanwhile; one
 * that nobody will start again is not waited for. */
static wf_status ask_picture(const wf_cluster_conf *conf, wf_ask *a, wf_progress *p,
                             json_t **picture, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    int64_t began_ns = wf_now_ns();

    ask.command = "status";
    for (bool told = false;; told = true) {
        wf_status rc = wf_ask_send(a, &ask, ONE_ANSWER_MS, picture, err);

        if (rc != WF_TIMEOUT)
            return rc;
        json_decref(*picture);
        *picture = NULL;
        /* On this host nobody but a supervisor starts the master again. */
        WF_TRY(wf_port_is_here(&conf->master) ? wf_super_check_up(conf, err) : WF_OK);
        if (wf_now_ns() - began_ns >= PATIENCE_MS * WF_NS_PER_MS)
            return wf_fail(err, WF_TIMEOUT, "is it up? start it with: weft up",
                           "no answer from the master at %s in %d ms", conf->master.address,
                           PATIENCE_MS);
        if (!told) {
            wf_progress_clear(p);
            wf_term_print(stderr,
                          "no answer from the master at %s; workers go on with what they have\n",
                          conf->master.address);
        }
    }
}

/* A task that is down for good is named once. A job needs every ps and at least one worker: one
 * that would wait for them for ever is not followed any further. */
static wf_status check_tasks(follower *f, json_t *picture, const char *job, wf_err *err)
{
    size_t i, n_workers = 0, n_workers_down = 0;
    json_t *task, *ps = NULL, *worker = NULL, *needed;

    json_array_foreach(json_object_get(picture, "tasks"), i, task)
    {
        bool is_worker = strcmp(text(task, "role"), "worker") == 0;

        n_workers += is_worker;
        if (strcmp(text(task, "state"), "down") != 0)
            continue;
        n_workers_down += is_worker;
        if (is_worker)
            worker = task;
        else
            ps = task;
        if (json_object_get(f->named, text(task, "task")))
            continue;
        json_object_set_new(f->named, text(task, "task"), json_true());
        wf_progress_clear(&f->progress);
        wf_term_print(stderr, "%s is down for good: %s\n", text(task, "task"),
                      text(task, "reason"));
    }
    needed = ps ? ps : n_workers_down == n_workers ? worker : NULL;
    if (!needed)
        return WF_OK;
    return wf_fail(err, WF_IO, "put that right, then: weft down && weft up && weft recover JOB",
                   "job %s waits for %s, which is down for good: %.700s", job, text(needed, "task"),
                   text(needed, "reason"));
}

static wf_status look(const wf_cluster_conf *conf, wf_ask *a, follower *f, bool *over, wf_err *err)
{
    json_t *picture = NULL, *job;
    wf_status rc;

    rc = ask_picture(conf, a, &f->progress, &picture, err);
    job = rc == WF_OK ? wf_ask_job(picture, f->name) : NULL;
    if (rc == WF_OK && !job)
        rc = wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                     "the master knows no job %s", f->name);
    if (rc == WF_OK) {
        snprintf(f->name, sizeof f->name, "%s", text(job, "name"));
        show_events(&f->progress, job, &f->seen);
        *over = wf_ask_is_over(job);
        if (*over) {
            wf_progress_clear(&f->progress);
            rc = say_end(conf, job, f->again, err);
        } else {
            say_queue(f, picture, job);
            show(&f->progress, job);
            rc = check_tasks(f, picture, f->name, err);
        }
    }
    json_decref(picture);
    return rc;
}

const char *wf_recover_command(const char *job, char *text, size_t size)
{
    snprintf(text, size, "weft recover %s", job);
    return text;
}

void wf_follow_catch(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP}; /* the last: the terminal was closed */
    struct sigaction act = {.sa_handler = on_interrupt}, before;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
            sigaction(ends[i], &act, NULL);
}

wf_status wf_follow(const wf_cluster_conf *conf, wf_ask *a, const char *job, const char *again,
                    wf_err *err)
{
    follower f = {.progress = wf_progress_new(stderr), .named = json_object(), .again = again};
    bool over = false, asked = false;
    wf_status rc = WF_OK;

    snprintf(f.name, sizeof f.name, "%s", job);
    wf_follow_catch();
    wf_ask_until(a, had_enough);
    while (rc == WF_OK && !over && !(asked && had_enough())) {
        if (interrupts > 0 && !asked) {
            asked = true;
            rc = ask_stop(a, &f.progress, f.name, again != NULL, err);
        }
        if (rc == WF_OK && !had_enough())
            rc = look(conf, a, &f, &over, err);
        if (rc == WF_OK && !over && !had_enough())
            rc = wf_ask_pass(a, EVERY_MS, err);
    }
    wf_ask_until(a, NULL);
    wf_progress_clear(&f.progress);
    json_decref(f.named);
    if (!over && had_enough() && (rc == WF_OK || rc == WF_STOPPED))
        rc = wf_fail(err, WF_STOPPED, "follow it again with: weft follow", "no longer following %s",
                     f.name);
    return rc;
}
