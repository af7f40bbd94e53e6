/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_restore.c - what a generation begins from, and what it makes of that. */
#include "ckpt_make.h"
#include "master/epoch/epoch.h"
#include "master/job/job.h"
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A checkpoint that has stepped aside for one that never came, and that one's folder. */
static void what_a_crash_left_is_tidied_before_a_generation_begins(void **state)
{
    static const char left[] = "/ckpt/one/.tmp-g1-c9-0000000000000abc";
    stage *s = *state;
    wf_disk *disk = wf_memdisk_disk(s->disk);
    wf_arena *arena = wf_arena_new(0);
    const char *const *names = NULL;
    wf_disk_file *f = NULL;
    size_t n = 0, size;

    s->model.epochs = 5;
    assert_int_equal(wf_disk_make_dirs(disk, "/ckpt/one", NULL), WF_OK);
    assert_int_equal(
        make_ckpt(disk, "/ckpt", "one", "ledger", (wf_cut_id){1, 1, 0xabc}, 100, 3, NULL), WF_OK);
    assert_int_equal(
        wf_disk_rename(disk, "/ckpt/one/step-00000100", "/ckpt/one/.old-step-00000100", NULL),
        WF_OK);
    assert_int_equal(wf_disk_make_dir(disk, left, NULL), WF_OK);
    assert_int_equal(
        wf_disk_open(disk, "/ckpt/one/.tmp-g1-c9-0000000000000abc/shard", WF_DISK_CREATE, &f, NULL),
        WF_OK);
    assert_int_equal(wf_disk_close(&f, NULL), WF_OK);
    stage_cast(s);
    stage_submit(s, "one", "ledger");
    for (int i = 0; i < 20 && !s->players[0].heard[WF_SETUP]; i++)
        stage_turn(s, 20);
    stage_job_says(s, "one", "events", "generation 2 begins from step 100");
    /* The checkpoint has no frozen variables: the ps take them from here. */
    assert_non_null(wf_memdisk_bytes(s->disk, "/ckpt/one/initial.safetensors", &size));
    assert_int_equal(wf_disk_list(disk, "/ckpt/one", arena, &names, &n, NULL), WF_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_not_equal(names[i][0], '.');
    wf_arena_free(&arena);
}

enum { BEST = 16 }; /* where players save */

/* For a job that ends with its best weights. */
static void cast_for_the_best(stage *s)
{
    s->model.records = 600; /* as the checkpoint has it */
    s->model.evaluates = s->model.restores_best = true;
    s->model.epochs = 9;
    stage_cast(s);
}

static void make_the_best(const stage *s)
{
    assert_int_equal(make_ckpt(wf_memdisk_disk(s->disk), "/ckpt", "one", "ledger",
                               (wf_cut_id){1, 1, 0xabc}, BEST, 3, NULL),
                     WF_OK);
}

/* The best checkpoint was saved again by a later generation, in the midst of another epoch. */
static void a_job_that_ends_with_its_best_weights_trains_nothing_after_them(void **state)
{
    stage *s = *state;

    cast_for_the_best(s);
    stage_run(s, "one");
    make_the_best(s);
    stage_until(s, "one", "done");
    stage_job_says(s, "one", "events", "generation 2 begins from step 16");
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(s->players[i].generation, 2);
        assert_int_equal(s->players[i].dealt, 0);
    }
}

/* The checkpoint of the best weights fails in a way in which the next one need not: it is made
 * before the next epoch changes them. */
static void the_best_weights_are_saved_again_where_the_first_time_failed(void **state)
{
    stage *s = *state;

    cast_for_the_best(s);
    s->players[1].saved = s->players[2].saved = (stage_answer){WF_AGAIN, "a slice has moved"};
    stage_run(s, "one");
    for (int i = 0; i < 200 && s->players[1].heard[WF_CUT_OPEN] < 3; i++)
        stage_wait(s, 20);
    assert_in_range(s->players[1].heard[WF_CUT_OPEN], 3, 1000);
    assert_int_equal(wf_job_find(s->master, "one")->epoch->ledger.epoch, 0);
    s->players[1].saved = s->players[2].saved = (stage_answer){WF_OK, ""};
    make_the_best(s);
    stage_until(s, "one", "done");
    stage_job_says(s, "one", "events", "the weights after epoch 1 are restored");
}

/* The journal is new, as after it was wiped, or beside another master's; the job's checkpoints are
 * not: all of them are older than those to come. */
static void a_generation_follows_that_of_the_checkpoint(void **state)
{
    enum { STEP = 16 };
    stage *s = *state;

    s->model.records = 600; /* as the checkpoint has it */
    s->model.epochs = 9;
    assert_int_equal(wf_disk_make_dirs(wf_memdisk_disk(s->disk), "/ckpt/one", NULL), WF_OK);
    assert_int_equal(make_ckpt(wf_memdisk_disk(s->disk), "/ckpt", "one", "ledger",
                               (wf_cut_id){7, 40, 0xabc}, STEP, 3, NULL),
                     WF_OK);
    stage_cast(s);
    stage_submit(s, "one", "ledger");
    stage_until(s, "one", "running");
    stage_job_says(s, "one", "events", "generation 8 begins from step 16");
    assert_int_equal(s->players[1].generation, 8);
}

static void a_checkpoint_of_the_last_generation_is_refused(void **state)
{
    stage *s = *state;

    assert_int_equal(wf_disk_make_dirs(wf_memdisk_disk(s->disk), "/ckpt/one", NULL), WF_OK);
    assert_int_equal(make_ckpt(wf_memdisk_disk(s->disk), "/ckpt", "one", "ledger",
                               (wf_cut_id){UINT16_MAX, 1, 0xabc}, 16, 3, NULL),
                     WF_OK);
    stage_cast(s);
    stage_submit(s, "one", "ledger");
    stage_until(s, "one", "failed");
    stage_job_says(s, "one", "reason", "is of generation 65535");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(what_a_crash_left_is_tidied_before_a_generation_begins),
        STAGED(a_generation_follows_that_of_the_checkpoint),
        STAGED(a_checkpoint_of_the_last_generation_is_refused),
        STAGED(a_job_that_ends_with_its_best_weights_trains_nothing_after_them),
        STAGED(the_best_weights_are_saved_again_where_the_first_time_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
