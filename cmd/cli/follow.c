/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/follow.c - asks for the picture five times a second; the master tells nothing unasked. */
#include "cmd/cli/follow.h"
#include "cmd/cli/progress.h"
#include "cmd/cli/term.h"
#include "common/base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EVERY_MS = 200, PATIENCE_MS = 60000 };

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

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

/* "loss 0.0812  accuracy 0.9751" */
static void add_metrics(const json_t *metrics, char *out, size_t size)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)metrics, name, value)
    {
        size_t at = strlen(out);

        snprintf(out + at, size - at, "  %s %.4f", name, json_number_value(value));
    }
}

static void show(wf_progress *p, const json_t *job)
{
    char label[64], facts[256], rate[32], eta[32];
    double part = number(job, "part");

    snprintf(label, sizeof label, "epoch %d/%d", (int)number(job, "epoch"),
             (int)number(job, "epochs"));
    snprintf(facts, sizeof facts, "%s samples/s",
             wf_count_text((unsigned long long)number(job, "samples_per_sec"), rate, sizeof rate));
    add_metrics(json_object_get(job, "metrics"), facts, sizeof facts);
    snprintf(facts + strlen(facts), sizeof facts - strlen(facts), "  ETA %s",
             wf_seconds_text(number(job, "eta_s"), eta, sizeof eta));
    if (strcmp(text(job, "state"), "running") == 0 && part > 0)
        wf_progress_show(p, wf_now_ns(), part, label, facts);
}

/* What has happened since the last look: recoveries, lost tasks, evaluations. */
static void show_events(wf_progress *p, const json_t *job, char **last)
{
    json_t *lines = json_object_get(job, "events"), *line;
    size_t n = json_array_size(lines), first = 0, i;

    for (i = n; *last && i > 0; i--)
        if (strcmp(json_string_value(json_array_get(lines, i - 1)), *last) == 0) {
            first = i;
            break;
        }
    json_array_foreach(lines, i, line)
    {
        const char *s = json_string_value(line), *body = strchr(s, ' ');
        bool worth = strncmp(s, "job.evaluated", 13) == 0 || strncmp(s, "task.lost", 9) == 0 ||
                     strncmp(s, "ckpt.failed", 11) == 0 || strncmp(s, "ckpt.passed", 11) == 0 ||
                     strncmp(s, "job.restored", 12) == 0 || strncmp(s, "job.waits", 9) == 0;

        if (i < first || !worth || !body)
            continue;
        wf_progress_clear(p);
        fprintf(stderr, "%s\n", body + 1);
    }
    if (n > 0) {
        free(*last);
        *last = strdup(json_string_value(json_array_get(lines, n - 1)));
    }
}

static wf_status say_end(const wf_cluster_conf *conf, const json_t *job, wf_err *err)
{
    const char *state = text(job, "state"), *name = text(job, "job");
    char metrics[256] = "", took[32];
    json_t *step = json_object_get(job, "checkpoint");
    json_t *eval = json_object_get(job, "eval");

    if (strcmp(state, "failed") == 0)
        return wf_fail(err, WF_INVALID, text(job, "mend"), "job %s failed: %s", name,
                       text(job, "reason"));
    add_metrics(json_object_size(eval) ? eval : json_object_get(job, "metrics"), metrics,
                sizeof metrics);
    printf("%s:%s%s  in %s", state, metrics, json_object_size(eval) ? " (eval)" : "",
           wf_seconds_text(number(job, "elapsed_s"), took, sizeof took));
    if (json_is_integer(step))
        printf("  checkpoint %s/%s/step-%08lld", conf->checkpoint_dir, name,
               (long long)json_integer_value(step));
    if (strcmp(state, "done") == 0)
        printf("  next: weft export %s -o %s.onnx\n", name, name);
    else
        printf("  next: weft recover %s\n", name);
    if (strcmp(state, "done") != 0)
        return wf_fail(err, WF_STOPPED, "go on with: weft recover", "job %s: %s", name,
                       text(job, "reason"));
    return WF_OK;
}

static bool is_over(const json_t *job)
{
    const char *s = text(job, "state");

    return strcmp(s, "done") == 0 || strcmp(s, "failed") == 0 || strcmp(s, "stopped") == 0 ||
           strcmp(s, "interrupted") == 0;
}

static wf_status ask_stop(wf_ask *a, wf_progress *p, const char *job, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    wf_status rc;

    wf_progress_clear(p);
    fprintf(stderr, "stopping %s with a checkpoint; Ctrl-C again leaves it to itself\n", job);
    ask.command = "stop";
    ask.job = (char *)job;
    rc = wf_ask_send(a, &ask, PATIENCE_MS, NULL, err);
    return rc == WF_INVALID ? WF_OK : rc; /* it is over already: the next look says how */
}

static wf_status look(const wf_cluster_conf *conf, wf_ask *a, wf_progress *p, const char *name,
                      char **last, bool *over, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    json_t *picture = NULL, *job;
    wf_status rc;

    ask.command = "status";
    rc = wf_ask_send(a, &ask, PATIENCE_MS, &picture, err);
    job = rc == WF_OK ? wf_ask_job(picture, name) : NULL;
    if (rc == WF_OK && !job)
        rc = wf_fail(err, WF_NOTFOUND, NULL, "the master knows no job %s", name);
    if (rc == WF_OK) {
        show_events(p, job, last);
        *over = is_over(job);
        if (*over) {
            wf_progress_clear(p);
            rc = say_end(conf, job, err);
        } else {
            show(p, job);
        }
    }
    json_decref(picture);
    return rc;
}

void wf_follow_catch(void)
{
    struct sigaction act = {.sa_handler = on_interrupt};

    sigaction(SIGINT, &act, NULL);
}

wf_status wf_follow(const wf_cluster_conf *conf, wf_ask *a, const char *job, wf_err *err)
{
    wf_progress p = wf_progress_new(stderr);
    bool over = false, asked = false;
    char *last = NULL;
    wf_status rc = WF_OK;

    wf_follow_catch();
    wf_ask_until(a, had_enough);
    while (rc == WF_OK && !over && !had_enough()) {
        if (interrupts == 1 && !asked) {
            asked = true;
            rc = ask_stop(a, &p, job, err);
        }
        if (rc == WF_OK)
            rc = look(conf, a, &p, job, &last, &over, err);
        if (rc == WF_OK && !over)
            nanosleep(&(struct timespec){.tv_nsec = EVERY_MS * WF_NS_PER_MS}, NULL);
    }
    wf_ask_until(a, NULL);
    wf_progress_clear(&p);
    free(last);
    if (!over && had_enough() && (rc == WF_OK || rc == WF_STOPPED))
        rc = wf_fail(err, WF_STOPPED, "see it with: weft status", "no longer following %s", job);
    return rc;
}
