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

static wf_memdisk *both;

static void checkpoints_are_listed(void **state)
{
    (void)state;
    assert_survives(list_both, both);
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
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
