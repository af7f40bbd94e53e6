/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/picture_job.c - one job, with all that is known of it. */
#include "cmd/cli/ask.h"
#include "cmd/cli/curves.h"
#include "cmd/cli/picture.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"

#include <inttypes.h>
#include <string.h>

/* Of the history. */
enum { LAST_EPOCHS = 5 };

static void add(wf_rows *t, const char *label, const char *value)
{
    char indented[64];

    snprintf(indented, sizeof indented, "  %s", label);
    wf_rows_add(t, (const char *[]){indented, value}, 2);
}

static bool is_said(const char *text)
{
    return strcmp(text, "-") != 0;
}

/* How gradients and weights travel, where it is not all float32. */
static void add_codec(wf_rows *t, const json_t *codec)
{
    double plain = wf_number_of(codec, "f32_bytes"), pushed = wf_number_of(codec, "pushed_bytes");
    char text[256], before[32], after[32];
    int n;

    if (!json_is_object(codec))
        return;
    n = snprintf(text, sizeof text, "push %s, pull %s", wf_text_of(codec, "push"),
                 wf_text_of(codec, "pull"));
    if (plain > 0)
        snprintf(text + n, sizeof text - (size_t)n, "; %s of gradients in %s (%.3g %%)",
                 wf_bytes_text((unsigned long long)plain, before, sizeof before),
                 wf_bytes_text((unsigned long long)pushed, after, sizeof after),
                 100 * pushed / plain);
    add(t, "codec", text);
}

/* Which worker holds how much of a model that is divided. */
static void add_stages(wf_rows *t, const json_t *stages)
{
    char text[1024] = "", bytes[32];
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(stages) && n < sizeof text - 64; i++) {
        const json_t *s = json_array_get(stages, i);

        n += (size_t)snprintf(
            text + n, sizeof text - n, "%s%s%s%s %s", i ? ", " : "", wf_text_of(s, "worker"),
            json_object_get(s, "device") ? "/" : "",
            json_object_get(s, "device") ? wf_text_of(s, "device") : "",
            wf_bytes_text((unsigned long long)wf_number_of(s, "bytes"), bytes, sizeof bytes));
    }
    if (n > 0)
        add(t, "stages", text);
}

static void add_numbers(wf_rows *t, const json_t *job)
{
    const json_t *staleness = json_object_get(job, "staleness");
    char text[128], rate[32], eta[24];

    if (wf_number_of(job, "samples_per_sec") > 0) {
        snprintf(text, sizeof text, "%s samples/s, ETA %s",
                 wf_count_text((unsigned long long)wf_number_of(job, "samples_per_sec"), rate,
                               sizeof rate),
                 wf_seconds_text(wf_number_of(job, "eta_s"), eta, sizeof eta));
        add(t, "rate", text);
    }
    if (wf_number_of(job, "elapsed_s") > 0)
        add(t, "elapsed", wf_seconds_text(wf_number_of(job, "elapsed_s"), text, sizeof text));
    if (json_is_object(staleness)) {
        snprintf(text, sizeof text, "p50 %" PRIu64 ", p99 %" PRIu64 ", most %" PRIu64 " updates",
                 (uint64_t)wf_number_of(staleness, "p50"), (uint64_t)wf_number_of(staleness, "p99"),
                 (uint64_t)wf_number_of(staleness, "most"));
        add(t, "staleness", text);
    }
    if (json_is_number(json_object_get(job, "cache_hits"))) {
        snprintf(text, sizeof text, "%.1f %% of the rows of tables were cached",
                 100 * wf_number_of(job, "cache_hits"));
        add(t, "cache", text);
    }
    if (wf_number_of(job, "left_out_parts") > 0) {
        double late = wf_number_of(job, "left_out_parts"), used = wf_number_of(staleness, "pushes");

        snprintf(text, sizeof text, "%.1f %% of the gradients came after their step was complete",
                 100 * late / (late + used));
        add(t, "left out", text);
    }
    add_codec(t, json_object_get(job, "codec"));
    add_stages(t, json_object_get(job, "stages"));
    if (wf_number_of(job, "learning_rate") > 0) {
        snprintf(text, sizeof text, "%g", wf_number_of(job, "learning_rate"));
        add(t, "learning rate", text);
    }
}

static void add_checkpoint(wf_rows *t, const wf_cluster_conf *conf, const json_t *job)
{
    const json_t *saved = json_object_get(job, "checkpoint"), *best = json_object_get(job, "best");
    char text[PATH_MAX + 128];

    if (json_is_integer(saved)) {
        snprintf(text, sizeof text, "%s/%s/step-%08lld", conf->checkpoint_dir,
                 wf_text_of(job, "name"), (long long)json_integer_value(saved));
        add(t, "checkpoint", text);
    }
    if (json_is_integer(best)) {
        snprintf(text, sizeof text, "step-%08lld", (long long)json_integer_value(best));
        add(t, "best", text);
    }
    if (is_said(wf_text_of(job, "passed_over")))
        add(t, "passed over", wf_text_of(job, "passed_over"));
}

/* "  epochs: 20" and so on, a line each: what weft recover --set has changed. */
static void add_changes(wf_rows *t, const char *lines)
{
    char one[256];

    for (; lines[0] == ' '; lines += strcspn(lines, "\n"), lines += lines[0] != 0) {
        snprintf(one, sizeof one, "%.*s", (int)strcspn(lines, "\n") - 2, lines + 2);
        add(t, "set", one);
    }
}

/* What losses of tasks have cost, as far as the master has seen. */
static void add_losses(wf_rows *t, const json_t *job)
{
    unsigned long long undone = (unsigned long long)wf_number_of(job, "undone_steps");
    unsigned lost = (unsigned)wf_number_of(job, "lost_workers");
    unsigned long long left_out = (unsigned long long)wf_number_of(job, "left_out_records");
    unsigned long long dropped = (unsigned long long)wf_number_of(job, "dropped_steps");
    char text[256], steps[32];

    if (undone)
        snprintf(text, sizeof text, "at least %s steps, by going back",
                 wf_count_text(undone, steps, sizeof steps));
    else if (lost)
        snprintf(text, sizeof text,
                 "no acknowledged update; %u worker%s lost, whose records are trained again", lost,
                 lost == 1 ? " was" : "s were");
    if (undone || lost)
        add(t, "lost", text);
    if (left_out) {
        snprintf(text, sizeof text, "%s records on which workers died, or which made NaN",
                 wf_count_text(left_out, steps, sizeof steps));
        add(t, "left out", text);
    }
    if (dropped) {
        snprintf(text, sizeof text, "%s steps with NaN or infinite gradients",
                 wf_count_text(dropped, steps, sizeof steps));
        add(t, "dropped", text);
    }
}

/* Of data whose files are near some hosts. */
static void add_near(wf_rows *t, const json_t *job)
{
    unsigned long long near = (unsigned long long)wf_number_of(job, "splits_near"),
                       far = (unsigned long long)wf_number_of(job, "splits_far");
    char text[128], a[32], b[32];

    if (near + far == 0)
        return;
    snprintf(text, sizeof text, "%s of %s splits went to workers near their files",
             wf_count_text(near, a, sizeof a), wf_count_text(near + far, b, sizeof b));
    add(t, "near", text);
}

/* Under `shard`: file or auto. */
static void add_shard(wf_rows *t, const json_t *job)
{
    unsigned long long files = (unsigned long long)wf_number_of(job, "shard_files");
    char text[128], n[32];

    if (!is_said(wf_text_of(job, "shard")))
        return;
    if (files)
        snprintf(text, sizeof text, "file: no split has records of two of the %s files",
                 wf_count_text(files, n, sizeof n));
    else
        snprintf(text, sizeof text, "%s: splits are of any files", wf_text_of(job, "shard"));
    add(t, "shard", text);
}

/* Of data that grows. */
static void add_rounds(wf_rows *t, const json_t *job)
{
    const json_t *r = json_object_get(job, "rounds");
    char text[128], files[32], records[32];
    int waiting = (int)wf_number_of(r, "files_waiting");

    if (!json_is_object(r))
        return;
    wf_count_text((unsigned long long)wf_number_of(r, "files"), files, sizeof files);
    wf_count_text((unsigned long long)wf_number_of(r, "records"), records, sizeof records);
    snprintf(text, sizeof text, "round %d: %s records of %s files; %d more file%s there",
             (int)wf_number_of(r, "round"), records, files, waiting,
             waiting == 1 ? " is" : "s are");
    add(t, "data", text);
    if (is_said(wf_text_of(r, "waits_for")))
        add(t, "waits for", wf_text_of(r, "waits_for"));
}

static wf_status print_history(FILE *f, const wf_cluster_conf *conf, const char *run, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    wf_curves c = {0};
    wf_status rc = arena ? wf_curves_read(conf, run, arena, &c, err) : wf_fail_nomem(err, 0);

    if (rc == WF_OK && c.n_rows) {
        fprintf(f, "\n");
        rc = wf_curves_print(&c, LAST_EPOCHS, f, arena, err);
    }
    if (rc == WF_OK && c.n_rows > LAST_EPOCHS)
        wf_term_print(f, "all %zu epochs: weft history %s\n", c.n_rows, run);
    wf_arena_free(&arena);
    return rc == WF_NOTFOUND ? WF_OK : rc; /* the first epoch is not over */
}

wf_status wf_picture_job(FILE *f, const wf_cluster_conf *conf, const json_t *job, wf_err *err)
{
    const char *name = wf_text_of(job, "name");
    wf_rows t = {0};

    wf_term_print(f, "job %s  %s  generation %d  epoch %d", name, wf_text_of(job, "state"),
                  (int)wf_number_of(job, "generation"), (int)wf_number_of(job, "epoch"));
    if (wf_number_of(job, "epochs") > 0) /* compiled by this life of the master */
        fprintf(f, "/%d", (int)wf_number_of(job, "epochs"));
    fprintf(f, "  step %lld\n", (long long)wf_number_of(job, "step"));
    if (is_said(wf_text_of(job, "reason")))
        add(&t, "reason", wf_text_of(job, "reason"));
    if (is_said(wf_text_of(job, "hint")))
        add(&t, "hint", wf_text_of(job, "hint"));
    add_numbers(&t, job);
    add_rounds(&t, job);
    add_shard(&t, job);
    add_near(&t, job);
    wf_picture_metrics(&t, job);
    add_checkpoint(&t, conf, job);
    add_changes(&t, wf_text_of(job, "set"));
    add_losses(&t, job);
    WF_TRY(wf_rows_print(&t, f, err));
    return print_history(f, conf, name, err);
}
