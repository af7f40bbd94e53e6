/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/conf_run.c - names of jobs and runs, and which run a name means. */
#include "common/base/file.h"
#include "common/conf/run.h"
#include "common/session/runs.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void names_are_told_from_what_is_none(void **state)
{
    static const char *const jobs[] = {"a", "mnist-mlp", "a.b_c-9",
                                       "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcd"};
    static const char *const runs[] = {"a#1", "mnist-mlp#12", "a#9999999"};
    static const char *const bad[] = {
        "",          ".a",         "A",
        "a/b",       "a#",         "a#0",
        "a#01",      "a#-1",       "#1",
        "a#1x",      "a##1",       "a#1#2",
        "a 1",       "a#10000000", "..",
        "a\n",       "a#\n",       "é",
        "../../etc", ".#1",        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcde"};

    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        assert_true(wf_job_name_ok(jobs[i]) && wf_run_name_ok(jobs[i]));
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        assert_true(!wf_job_name_ok(runs[i]) && wf_run_name_ok(runs[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_true(!wf_job_name_ok(bad[i]) && !wf_run_name_ok(bad[i]));
}

static void a_name_is_split_and_put_together(void **state)
{
    char job[WF_RUN_NAME], name[WF_RUN_NAME];

    (void)state;
    assert_int_equal(wf_run_split("digits#12", job), 12);
    assert_string_equal(job, "digits");
    assert_int_equal(wf_run_split("digits", job), 0);
    assert_string_equal(job, "digits");
    assert_string_equal(wf_run_name("digits", 12, name), "digits#12");
    assert_string_equal(wf_run_name("digits", 0, name), "digits");
}

static void make(const char *top, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", top, name);
    assert_int_equal(wf_make_dirs(path, NULL), WF_OK);
}

static void runs_are_found_in_folders(void **state)
{
    char a[] = "/tmp/weft-runs-XXXXXX", b[] = "/tmp/weft-runs-XXXXXX", name[WF_RUN_NAME];
    const char *const dirs[] = {mkdtemp(a), mkdtemp(b), NULL}, *const none[] = {"/nonexistent",
                                                                                NULL};
    wf_arena *arena = wf_arena_new(0);
    wf_runs runs;

    (void)state;
    assert_int_equal(wf_runs_choose(dirs, "x", -1, false, name, NULL), WF_OK);
    assert_string_equal(name, "x#1");
    assert_int_equal(wf_runs_choose(dirs, "x", -1, true, name, NULL), WF_OK);
    assert_string_equal(name, "x#1");
    make(a, "x#2");
    make(a, "x#10");
    make(b, "x#9");
    make(b, "x#10");
    make(b, "xx#77");
    make(b, ".tmp");
    make(b, "x#12y");
    assert_int_equal(wf_runs_list(dirs, "x", arena, &runs, NULL), WF_OK);
    assert_int_equal(runs.n, 3);
    assert_true(runs.number[0] == 10 && runs.number[1] == 9 && runs.number[2] == 2);
    assert_int_equal(wf_runs_list(none, "x", arena, &runs, NULL), WF_OK);
    assert_int_equal(runs.n, 0);
    assert_int_equal(wf_runs_find(dirs, "x", name, NULL), WF_OK);
    assert_string_equal(name, "x#10");
    assert_int_equal(wf_runs_find(dirs, "x#3", name, NULL), WF_OK);
    assert_string_equal(name, "x#3");
    assert_int_equal(wf_runs_find(dirs, "y", name, NULL), WF_OK);
    assert_string_equal(name, "y");
    assert_int_equal(wf_runs_choose(dirs, "x", 4, false, name, NULL), WF_OK);
    assert_string_equal(name, "x#11");
    assert_int_equal(wf_runs_choose(dirs, "x", 20, false, name, NULL), WF_OK);
    assert_string_equal(name, "x#21");
    assert_int_equal(wf_runs_choose(dirs, "x", 20, true, name, NULL), WF_OK);
    assert_string_equal(name, "x#20");
    assert_int_equal(wf_runs_choose(dirs, "x", WF_RUN_MOST, false, name, NULL), WF_FULL);
    assert_int_equal(wf_runs_surplus(dirs, "x#11", 2, arena, &runs, NULL), WF_OK);
    assert_true(runs.n == 2 && runs.number[0] == 9 && runs.number[1] == 2);
    assert_int_equal(wf_runs_surplus(dirs, "x#10", 2, arena, &runs, NULL), WF_OK);
    assert_true(runs.n == 1 && runs.number[0] == 2);
    assert_int_equal(wf_runs_surplus(dirs, "x#10", 20, arena, &runs, NULL), WF_OK);
    assert_int_equal(runs.n, 0);
    wf_arena_free(&arena);
    assert_int_equal(wf_remove_tree(a, NULL), WF_OK);
    assert_int_equal(wf_remove_tree(b, NULL), WF_OK);
    assert_int_equal(access(a, F_OK), -1);
    assert_int_equal(wf_remove_tree(b, NULL), WF_OK); /* it is fine if it is not there */
}

static void a_tree_goes_and_what_links_point_to_stays(void **state)
{
    char top[] = "/tmp/weft-tree-XXXXXX", path[256], target[256];

    (void)state;
    assert_non_null(mkdtemp(top));
    make(top, "keep");
    make(top, "goes/deep");
    snprintf(target, sizeof target, "%s/keep/file", top);
    assert_int_equal(wf_file_write(target, "x", 1, NULL), WF_OK);
    snprintf(path, sizeof path, "%s/goes/deep/link", top);
    assert_int_equal(symlink(target, path), 0);
    snprintf(path, sizeof path, "%s/goes/folder", top);
    snprintf(target, sizeof target, "%s/keep", top);
    assert_int_equal(symlink(target, path), 0);
    snprintf(path, sizeof path, "%s/goes", top);
    assert_int_equal(wf_remove_tree(path, NULL), WF_OK);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof path, "%s/keep/file", top);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(wf_remove_tree(top, NULL), WF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_told_from_what_is_none),
        cmocka_unit_test(a_name_is_split_and_put_together),
        cmocka_unit_test(runs_are_found_in_folders),
        cmocka_unit_test(a_tree_goes_and_what_links_point_to_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
