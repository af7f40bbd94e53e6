/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/picture_tasks.c - the table of tasks. */
#include "cmd/cli/picture.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"

#include <string.h>

/* Shorter waits are part of any step. */
static const double LONG_WAIT_S = 5;

static const char *seconds_of(const json_t *o, const char *key, char *text, size_t size)
{
    const json_t *value = json_object_get(o, key);

    return wf_seconds_text(json_is_number(value) ? json_number_value(value) : -1, text, size);
}

/* "waits 0:12 for ps/1: weights of step 7", or what the master waits for; false if neither is long.
 */
static bool wait_text(const json_t *task, char *out, size_t size)
{
    const json_t *waits = json_object_get(task, "waits"), *owes = json_object_get(task, "owes");
    char age[24];

    if (wf_number_of(waits, "since_s") >= LONG_WAIT_S)
        snprintf(out, size, "waits %s for %s: %s", seconds_of(waits, "since_s", age, sizeof age),
                 wf_text_of(waits, "for"), wf_text_of(waits, "what"));
    else if (wf_number_of(owes, "since_s") >= LONG_WAIT_S)
        snprintf(out, size, "the master waits %s for %s",
                 seconds_of(owes, "since_s", age, sizeof age), wf_text_of(owes, "what"));
    else
        return false;
    return true;
}

/* "; 1 split (records 40 000 to 42 000) given to worker/0": what became of a lost worker's work. */
static void add_returned(const json_t *task, char *out, size_t size)
{
    const json_t *r = json_object_get(task, "returned");
    unsigned n = (unsigned)wf_number_of(r, "splits"), waits = (unsigned)wf_number_of(r, "waiting");
    char begin[32], end[32];
    size_t at = strlen(out);

    if (!n)
        return;
    wf_count_text((unsigned long long)wf_number_of(r, "begin"), begin, sizeof begin);
    wf_count_text((unsigned long long)wf_number_of(r, "end"), end, sizeof end);
    at += (size_t)snprintf(out + at, size - at, "; %u split%s (records %s to %s)", n,
                           n == 1 ? "" : "s", begin, end);
    if (at < size && waits)
        snprintf(out + at, size - at, ", %u of them not given to a worker yet", waits);
    else if (at < size)
        snprintf(out + at, size - at, " given to %s%s", wf_text_of(r, "to"),
                 json_is_true(json_object_get(r, "to_several")) ? " and others" : "");
}

static bool is_one_of(const char *word, const char *const words[])
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words != NULL;
}

/* "restarted 0:12 ago: killed by signal 9 (Killed)"; "-" once the task has lived on for long
 * enough. Of one that is not back: "killed by signal 9 (Killed), 0:12 ago". */
static const char *reason_text(const json_t *task, char *out, size_t size)
{
    static const char *const away[] = {"down",    "joining", "restarting", "missing",
                                       "refused", "unfit",   NULL};
    static const char *const ended[] = {"down", "restarting", NULL};
    const char *reason = wf_text_of(task, "reason");
    bool says_why = is_one_of(wf_text_of(task, "state"), ended) && strcmp(reason, "-") != 0;
    char age[24];

    /* What a process waited for when it ended says less than why it did. */
    if (!says_why && wait_text(task, out, size))
        return out;
    if (strcmp(reason, "-") == 0)
        return "-";
    if (is_one_of(wf_text_of(task, "state"), away))
        snprintf(out, size, "%s, %s ago", reason,
                 seconds_of(json_object_get(task, "last_end"), "age_s", age, sizeof age));
    else
        snprintf(out, size, "restarted %s ago: %s", seconds_of(task, "age_s", age, sizeof age),
                 reason);
    add_returned(task, out, size);
    return out;
}

/* "1.2 GiB", or "1.2 GiB, 30 GiB on disk" where rows lie in files. */
static void held_text(const json_t *task, char *out, size_t size)
{
    unsigned long long on_disk = (unsigned long long)wf_number_of(task, "disk_bytes");
    char disk[32];

    wf_bytes_text((unsigned long long)wf_number_of(task, "held_bytes"), out, size);
    if (on_disk == 0)
        return;
    wf_bytes_text(on_disk, disk, sizeof disk);
    snprintf(out + strlen(out), size - strlen(out), ", %s on disk", disk);
}

static void add_task(wf_rows *t, const json_t *task)
{
    char pid[24] = "-", age[24], step[24] = "-", rate[48] = "-", held[64] = "-", reason[1300];
    bool is_ps = strcmp(wf_text_of(task, "role"), "ps") == 0;
    long long process = json_integer_value(json_object_get(task, "pid"));
    double per_sec = wf_number_of(task, is_ps ? "updates_per_sec" : "samples_per_sec");

    if (process) /* 0: no process is known to be the task's now */
        snprintf(pid, sizeof pid, "%lld", process);
    if (process && !is_ps)
        snprintf(step, sizeof step, "%lld",
                 (long long)json_integer_value(json_object_get(task, "step")));
    if (process && is_ps)
        held_text(task, held, sizeof held);
    if (process) {
        wf_count_text((unsigned long long)(per_sec + 0.5), rate, sizeof rate);
        snprintf(rate + strlen(rate), sizeof rate - strlen(rate), " %s/s",
                 is_ps ? "updates" : "samples");
    }
    wf_rows_add(t,
                (const char *[]){wf_text_of(task, "task"), wf_text_of(task, "state"), pid,
                                 seconds_of(task, "age_s", age, sizeof age), step, rate, held,
                                 reason_text(task, reason, sizeof reason)},
                8);
}

wf_status wf_picture_tasks(FILE *f, const json_t *picture, wf_err *err)
{
    const json_t *master = json_object_get(picture, "master");
    char pid[24], age[24];
    wf_rows t = {0};
    json_t *task;
    size_t i;

    wf_rows_add(
        &t, (const char *[]){"TASK", "STATE", "PID", "AGE", "STEP", "RATE", "HOLDS", "REASON"}, 8);
    snprintf(pid, sizeof pid, "%lld",
             (long long)json_integer_value(json_object_get(master, "pid")));
    wf_rows_add(&t,
                (const char *[]){"master", "serving", pid,
                                 seconds_of(master, "age_s", age, sizeof age), "-", "-", "-", "-"},
                8);
    json_array_foreach(json_object_get(picture, "tasks"), i, task) add_task(&t, task);
    return wf_rows_print(&t, f, err);
}
