/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/picture_jobs.c - the table of jobs: what runs and waits comes first, then what has ended,
 * the newest first. */
#include "cmd/cli/ask.h"
#include "cmd/cli/picture.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"

#include <string.h>

/* Of those that have ended, so many are shown. */
enum { MOST_OLD = 10 };

static void add_metrics(const json_t *metrics, const char *prefix, char *out, size_t size)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)metrics, name, value)
    {
        size_t at = strlen(out);

        if (json_is_number(value) && at < size)
            snprintf(out + at, size - at, "%s%s%.63s %.4f", at ? "  " : "", prefix, name,
                     json_number_value(value));
    }
}

/* The loss, and what the evaluation says; where there is none, what training says. */
static const char *metrics_text(const json_t *job, char *out, size_t size)
{
    const json_t *metrics = json_object_get(job, "metrics"), *eval = json_object_get(job, "eval");
    const json_t *loss = json_object_get(metrics, "loss");

    out[0] = 0;
    if (!json_object_size(eval)) {
        add_metrics(metrics, "", out, size);
        return out[0] ? out : "-";
    }
    if (json_is_number(loss))
        snprintf(out, size, "loss %.4f", json_number_value(loss));
    add_metrics(eval, "val_", out, size);
    return out;
}

void wf_picture_metrics(wf_rows *t, const json_t *job)
{
    char text[512] = "";

    add_metrics(json_object_get(job, "metrics"), "", text, sizeof text);
    if (text[0])
        wf_rows_add(t, (const char *[]){"  training", text}, 2);
    text[0] = 0;
    add_metrics(json_object_get(job, "eval"), "val_", text, sizeof text);
    if (text[0])
        wf_rows_add(t, (const char *[]){"  evaluation", text}, 2);
}

/* "3/10"; "3" where the number of all is not known. */
static const char *epoch_text(const json_t *job, char *out, size_t size)
{
    int epoch = (int)wf_number_of(job, "epoch"), epochs = (int)wf_number_of(job, "epochs");

    if (epochs)
        snprintf(out, size, "%d/%d", epoch, epochs);
    else
        snprintf(out, size, epoch ? "%d" : "-", epoch);
    return out;
}

static void add_job(wf_rows *t, const json_t *job)
{
    char epoch[32], step[24], rate[32] = "-", checkpoint[32] = "-", eta[24] = "-", metrics[512];
    const json_t *saved = json_object_get(job, "checkpoint");

    snprintf(step, sizeof step, "%lld", (long long)wf_number_of(job, "step"));
    if (wf_number_of(job, "samples_per_sec") > 0) {
        wf_count_text((unsigned long long)wf_number_of(job, "samples_per_sec"), rate, sizeof rate);
        wf_seconds_text(wf_number_of(job, "eta_s"), eta, sizeof eta);
    }
    if (json_is_integer(saved))
        snprintf(checkpoint, sizeof checkpoint, "step-%08lld",
                 (long long)json_integer_value(saved));
    wf_rows_add(t,
                (const char *[]){wf_text_of(job, "name"), wf_text_of(job, "state"),
                                 epoch_text(job, epoch, sizeof epoch), step, rate, eta, checkpoint,
                                 metrics_text(job, metrics, sizeof metrics)},
                8);
}

wf_status wf_picture_jobs(FILE *f, const json_t *picture, bool all, wf_err *err)
{
    const json_t *jobs = json_object_get(picture, "jobs"), *job;
    size_t n = json_array_size(jobs), i, old = 0;
    wf_rows t = {0};

    if (n == 0)
        return WF_OK;
    wf_rows_add(
        &t,
        (const char *[]){"JOB", "STATE", "EPOCH", "STEP", "RATE", "ETA", "CHECKPOINT", "METRICS"},
        8);
    json_array_foreach(jobs, i, job)
    {
        if (!wf_ask_is_over(job))
            add_job(&t, job);
    }
    for (i = n; i-- > 0;) {
        job = json_array_get(jobs, i);
        if (wf_ask_is_over(job) && (old++ < MOST_OLD || all))
            add_job(&t, job);
    }
    WF_TRY(wf_rows_print(&t, f, err));
    if (old > MOST_OLD && !all)
        fprintf(f, "and %zu older: weft status --all\n", old - MOST_OLD);
    return WF_OK;
}
