/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_ckpt.c - checkpoints are written and read while memory ends. A good one is never
 * taken for a damaged one: what was there before is there afterwards, whatever became of the next.
 */
#include "ckpt_make.h"
#include "tests/kit/nomem_disk.h"
#include "tests/unit/nomem.h"

#define DIR "/data/ckpt"
#define JOB "mlp"

static const wf_cut_id cuts[] = {{1, 1, 0xabc}, {1, 2, 0xabc}, {1, 3, 0xabc}};

/* Opens the newest and compares all of it; which step that was. */
static wf_status read_newest(wf_disk *d, uint64_t *step, wf_err *err)
{
    wf_ckpt *c = NULL;
    bool was;

    WF_TRY(wf_ckpt_newest(d, DIR, JOB, "d1", UINT64_MAX, NULL, NULL, &c, err));
    was = wf_nomem_spare(true); /* ckpt_is_of gives no status */
    *step = wf_ckpt_manifest(c)->global_step;
    if (!ckpt_is_of(c, *step))
        *step = 0;
    wf_nomem_spare(was);
    wf_ckpt_close(&c);
    return *step ? WF_OK : wrong(err, "other values than were written");
}

/* Of steps 100 and 200. */
static wf_status read_second(void *both, wf_err *err)
{
    uint64_t step = 0;

    WF_TRY(read_newest(wf_memdisk_disk(both), &step, err));
    return step == 200 ? WF_OK : wrong(err, "step %d is the newest", (int)step);
}

static wf_status list_both(void *both, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    wf_ckpt_entry *list = NULL;
    wf_status rc = arena ? WF_OK : wf_fail_nomem(err, 0);
    size_t n = 0;

    if (rc == WF_OK)
        rc = wf_ckpt_list(wf_memdisk_disk(both), DIR, JOB, arena, &list, &n, err);
    if (rc == WF_OK && n != 2)
        rc = wrong(err, "%zu checkpoints", n);
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        if (list[i].step != 200 - 100 * i || list[i].fault)
            rc = wrong(err, "%s: %s", list[i].name, list[i].fault ? list[i].fault : "out of order");
    wf_arena_free(&arena);
    return rc;
}

static wf_memdisk *copy_of(const wf_memdisk *m)
{
    wf_memdisk *copy = wf_memdisk_copy(m);

    wf_nomem_disk(wf_memdisk_disk(copy));
    return copy;
}

/* With memory back: the newest is `wanted`, or `before` unless rc is WF_OK. */
static wf_status check_newest(wf_disk *d, wf_status rc, uint64_t wanted, uint64_t before,
                              wf_err *err)
{
    uint64_t step = 0;
    wf_err why = {0};

    if (read_newest(d, &step, &why) != WF_OK)
        return wrong(err, "the newest: %s", why.what);
    if (step != wanted && (rc == WF_OK || step != before))
        return wrong(err, "step %d is the newest", (int)step);
    return rc;
}

/* Step 300 on a copy of a disk that has 100 and 200, which then go. */
static wf_status write_third(void *both, wf_err *err)
{
    bool was = wf_nomem_spare(true);
    wf_memdisk *m = copy_of(both);
    wf_disk *d = wf_memdisk_disk(m);
    wf_status rc;

    wf_nomem_spare(was);
    rc = make_ckpt(d, DIR, JOB, "d1", cuts[2], 300, 1, err);
    was = wf_nomem_spare(true);
    rc = check_newest(d, rc, 300, 200, err);
    wf_memdisk_free(&m);
    wf_nomem_spare(was);
    return rc;
}

/* A master that starts anew finds a checkpoint that a crash left complete and without its name, and
 * may find the name taken. */
static wf_status settle(void *unnamed, wf_err *err)
{
    bool was = wf_nomem_spare(true);
    wf_memdisk *m = copy_of(unnamed);
    wf_disk *d = wf_memdisk_disk(m);
    wf_status rc;

    wf_nomem_spare(was);
    rc = wf_ckpt_sweep(d, DIR, JOB, err);
    was = wf_nomem_spare(true);
    if (wf_ckpt_sweep(d, DIR, JOB, NULL) != WF_OK)
        rc = wrong(err, "it cannot be swept again");
    rc = check_newest(d, rc, 200, 200, err);
    wf_memdisk_free(&m);
    wf_nomem_spare(was);
    return rc;
}

static wf_memdisk *both;

static void checkpoints_are_listed(void **state)
{
    (void)state;
    assert_survives(list_both, both);
}

static void the_newest_is_read_or_none(void **state)
{
    (void)state;
    assert_survives(read_second, both);
}

static void a_checkpoint_is_written_and_older_ones_removed(void **state)
{
    (void)state;
    assert_survives(write_third, both);
}

static void a_checkpoint_without_its_name_is_kept(void **state)
{
    wf_memdisk *m = copy_of(both);
    wf_disk *d = wf_memdisk_disk(m);

    (void)state;
    assert_int_equal(wf_disk_rename(d, DIR "/" JOB "/step-00000200",
                                    DIR "/" JOB "/.tmp-g1-c2-0000000000000abc", NULL),
                     WF_OK);
    assert_survives(settle, m);
    /* The same step of an older cut has the name. */
    assert_int_equal(make_ckpt(d, DIR, JOB, "d1", cuts[0], 200, 0, NULL), WF_OK);
    assert_survives(settle, m);
    wf_memdisk_free(&m);
}

static int set_up(void **state)
{
    wf_err err = {0};

    (void)state;
    both = wf_memdisk_new();
    for (int i = 0; i < 2; i++)
        if (make_ckpt(wf_memdisk_disk(both), DIR, JOB, "d1", cuts[i], 100 * (uint64_t)(i + 1), 3,
                      &err) != WF_OK) {
            print_error("%s\n", err.what);
            return -1;
        }
    wf_nomem_disk(wf_memdisk_disk(both));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wf_memdisk_free(&both);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_are_listed),
        cmocka_unit_test(the_newest_is_read_or_none),
        cmocka_unit_test(a_checkpoint_is_written_and_older_ones_removed),
        cmocka_unit_test(a_checkpoint_without_its_name_is_kept),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
