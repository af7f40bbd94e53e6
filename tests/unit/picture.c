/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/picture.c - the picture of a cluster as people see it: reasons, jobs in their order,
 * and the picture that files give. */
#include "cmd/cli/picture.h"
#include "cmd/cli/tail.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef wf_status printer(FILE *f, const json_t *picture, wf_err *err);

static wf_status print_jobs(FILE *f, const json_t *picture, wf_err *err)
{
    return wf_picture_jobs(f, picture, false, err);
}

static wf_status print_job(FILE *f, const json_t *job, wf_err *err)
{
    wf_cluster_conf conf = {.state_dir = "/nowhere", .checkpoint_dir = "/ckpt"};

    return wf_picture_job(f, &conf, job, err);
}

enum { MOST_TEXT = 8192 };

/* What is printed of a picture that is written as JSON with ' for ". */
static void printed(printer *print, const char *json, char text[MOST_TEXT])
{
    char *copy = strdup(json);
    json_t *picture;
    wf_err err;
    FILE *f = fmemopen(text, MOST_TEXT, "w");

    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    picture = json_loads(copy, 0, NULL);
    assert_non_null(picture);
    assert_int_equal(print(f, picture, &err), WF_OK);
    fclose(f);
    json_decref(picture);
    free(copy);
}

static void expect(printer *print, const char *json, const char *words)
{
    char text[MOST_TEXT];

    printed(print, json, text);
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in:\n%s", words, text);
}

#define TASK(role, state, more)                                                                    \
    "{'tasks': [{'task': '" role "/1', 'role': '" role "', 'state': '" state                       \
    "', 'age_s': 12.0, " more "}]}"
#define KILLED "'reason': 'killed', 'last_end': {'age_s': 14.0}"

static void a_reason_says_when(void **state)
{
    (void)state;
    expect(wf_picture_tasks, TASK("worker", "training", "'pid': 7, " KILLED),
           "7    0:12  0     0 samples/s  -      restarted 0:12 ago: killed\n");
    expect(wf_picture_tasks, TASK("worker", "restarting", "'pid': null, " KILLED),
           "-    0:12  -     -     -      killed, 0:14 ago\n");
    expect(wf_picture_tasks, TASK("worker", "training", "'reason': ''"), "-\n");
    expect(wf_picture_tasks,
           TASK("worker", "training",
                KILLED ", 'waits': {'for': 'ps/0', 'what': 'weights', 'since_s': 61.0}"),
           "waits 1:01 for ps/0: weights\n");
    expect(
        wf_picture_tasks,
        TASK("ps", "down", KILLED ", 'waits': {'for': 'master', 'what': 'a link', 'since_s': 5.0}"),
        "killed, 0:14 ago\n");
}

static void what_became_of_splits_is_told(void **state)
{
    (void)state;
    expect(wf_picture_tasks,
           TASK("worker", "training",
                KILLED ", 'returned': {'splits': 1, 'waiting': 0, 'begin': 40000, 'end': 42000, "
                       "'to': 'worker/0', 'to_several': false}"),
           "; 1 split (records 40 000 to 42 000) given to worker/0\n");
    expect(wf_picture_tasks,
           TASK("worker", "training",
                KILLED ", 'returned': {'splits': 3, 'waiting': 2, 'begin': 0, 'end': 9, "
                       "'to': '', 'to_several': false}"),
           "; 3 splits (records 0 to 9), 2 of them not given to a worker yet\n");
}

static void a_ps_has_updates_and_bytes_and_who_never_came_no_age(void **state)
{
    (void)state;
    expect(
        wf_picture_tasks,
        TASK("ps", "serving", "'pid': 7, 'step': 9, 'updates_per_sec': 1209.7, 'held_bytes': 2048"),
        "ps/1    serving  7    0:12  -     1 210 updates/s  2.0 KiB  -\n");
    expect(wf_picture_tasks,
           "{'tasks': [{'task': 'ps/1', 'role': 'ps', 'state': 'missing', 'age_s': null}]}",
           "ps/1    missing  -    -    -     -     -      -\n");
}

static void jobs_under_way_come_first_and_old_ones_are_folded(void **state)
{
    char json[4096] = "{'jobs': [";
    char text[MOST_TEXT], *at;

    (void)state;
    for (int i = 1; i <= 12; i++)
        snprintf(json + strlen(json), sizeof json - strlen(json),
                 "{'name': 'a#%d', 'state': 'done', 'epoch': 3}, ", i);
    strcat(json, "{'name': 'b#1', 'state': 'running', 'epoch': 2, 'epochs': 9, 'metrics': "
                 "{'loss': 0.5, 'accuracy': 0.25}, 'eval': {'loss': 0.125}}]}");
    printed(print_jobs, json, text);
    at = strstr(text, "\nb#1   running  2/9 ");
    assert_non_null(at);
    assert_non_null(strstr(at, "loss 0.5000  val_loss 0.1250\na#12  done     3 "));
    assert_non_null(strstr(at, "\na#3 "));
    assert_null(strstr(at, "\na#2 "));
    assert_non_null(strstr(at, "\nand 2 older: weft status --all\n"));
}

static void one_job_says_what_losses_have_cost(void **state)
{
    (void)state;
    expect(print_job, "{'name': 'a#1', 'state': 'running', 'lost_workers': 2}",
           "  lost  no acknowledged update; 2 workers were lost, whose records are trained again");
    expect(print_job,
           "{'name': 'a#1', 'state': 'running', 'lost_workers': 2, 'undone_steps': 1875}",
           "  lost  at least 1 875 steps, by going back\n");
    expect(
        print_job,
        "{'name': 'a#1', 'state': 'done', 'checkpoint': 7, 'set': '  epochs: 20\\n  batch: 4\\n'}",
        "  checkpoint  /ckpt/a#1/step-00000007\n  set         epochs: 20\n  set         batch: "
        "4\n");
}

static void a_line_is_cut_between_characters(void **state)
{
    (void)state;
    assert_int_equal(wf_text_fits("abc", 3, 2), 2);
    assert_int_equal(wf_text_fits("abc", 3, 9), 3);
    assert_int_equal(wf_text_fits("a\xe2\x94\x81z", 5, 2), 4);
}

/* ---- files ---- */

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(wf_file_write(path, text, strlen(text), NULL), WF_OK);
}

static void the_end_of_a_file_begins_with_a_line(void **state)
{
    char folder[] = "/tmp/weft-picture-XXXXXX", path[64];
    wf_bytes text = {0};
    uint64_t end = 0;
    wf_err err;

    (void)state;
    assert_non_null(mkdtemp(folder));
    write_file(folder, "log", "first\nsecond\nthird");
    snprintf(path, sizeof path, "%s/log", folder);
    assert_int_equal(wf_tail_read(path, 10, &text, &end, &err), WF_OK);
    assert_string_equal(wf_bytes_str(&text), "third");
    assert_int_equal(end, 18);
    wf_bytes_close(&text);
    assert_int_equal(wf_tail_read(path, 100, &text, NULL, &err), WF_OK);
    assert_string_equal(wf_bytes_str(&text), "first\nsecond\nthird");
    wf_bytes_close(&text);
    assert_int_equal(wf_tail_read("/nowhere/log", 100, &text, NULL, &err), WF_NOTFOUND);
    assert_int_equal(wf_remove_tree(folder, &err), WF_OK);
}

static const json_t *job_at(const json_t *picture, size_t i)
{
    return json_array_get(json_object_get(picture, "jobs"), i);
}

/* The last event decides; a line that a crash cut short is no event, and what ran runs no more. */
static void files_tell_how_runs_ended(void **state)
{
    static const char failed[] =
        "{\"ts\": \"2026-01-02\", \"event\": \"job.state\", \"text\": \"running\", \"step\": 1}\n"
        "{\"ts\": \"2026-01-03\", \"event\": \"job.state\", \"text\": \"failed: the loss is NaN\", "
        "\"hint\": \"lower it\", \"step\": 8}\n";
    static const char ran[] =
        "{\"ts\": \"2026-01-01\", \"event\": \"job.state\", \"text\": \"running\", \"step\": 1}\n"
        "{\"ts\": \"2026-01-01\", \"event\": \"job.epoch\", \"text\": \"epoch 3/10: loss 1\", "
        "\"step\": 64, \"epoch\": 3, \"train\": {\"loss\": 1.0}, \"val\": {}}\n"
        "{\"ts\": \"2026-02-01\", \"event\": \"job.st";
    char folder[] = "/tmp/weft-picture-XXXXXX", run[64];
    wf_cluster_conf conf = {.state_dir = folder, .checkpoint_dir = "/nowhere"};
    json_t *picture = NULL;
    const json_t *job;
    wf_err err;

    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int i = 1; i <= 3; i++) {
        snprintf(run, sizeof run, "%s/jobs/a#%d", folder, i);
        assert_int_equal(wf_make_dirs(run, &err), WF_OK);
        if (i < 3)
            write_file(run, "events.jsonl", i == 1 ? failed : ran);
    }
    assert_int_equal(wf_past_picture(&conf, &picture, &err), WF_OK);
    assert_int_equal(json_array_size(json_object_get(picture, "jobs")), 3);
    assert_string_equal(wf_text_of(job_at(picture, 0), "state"), "queued"); /* without an event */
    job = job_at(picture, 1);
    assert_string_equal(wf_text_of(job, "name"), "a#2");
    assert_string_equal(wf_text_of(job, "state"), "interrupted");
    assert_string_equal(wf_text_of(job, "hint"), "go on with: weft recover a#2");
    assert_int_equal((int)wf_number_of(job, "epochs"), 10);
    assert_int_equal((int)wf_number_of(job, "step"), 64);
    job = job_at(picture, 2);
    assert_string_equal(wf_text_of(job, "state"), "failed");
    assert_string_equal(wf_text_of(job, "reason"), "the loss is NaN");
    assert_string_equal(wf_text_of(job, "hint"), "lower it");
    json_decref(picture);
    assert_int_equal(wf_remove_tree(folder, &err), WF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reason_says_when),
        cmocka_unit_test(what_became_of_splits_is_told),
        cmocka_unit_test(a_ps_has_updates_and_bytes_and_who_never_came_no_age),
        cmocka_unit_test(jobs_under_way_come_first_and_old_ones_are_folded),
        cmocka_unit_test(one_job_says_what_losses_have_cost),
        cmocka_unit_test(a_line_is_cut_between_characters),
        cmocka_unit_test(the_end_of_a_file_begins_with_a_line),
        cmocka_unit_test(files_tell_how_runs_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
