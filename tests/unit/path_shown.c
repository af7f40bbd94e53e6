/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/path_shown.c - a path as messages show it. */
#include "common/base/file.h"
#include "tests/unit/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void dots_and_links_are_followed_as_far_as_folders_exist(void **state)
{
    test_folder f;
    char link[PATH_MAX], path[PATH_MAX + 64], shown[PATH_MAX], want[PATH_MAX];

    (void)state;
    test_folder_make(&f);
    snprintf(link, sizeof link, "%s", test_path(&f, "link"));
    assert_int_equal(symlink(f.path, link), 0);
    snprintf(path, sizeof path, "%s/link/../%s/./no/file.gz", f.path, strrchr(f.path, '/') + 1);
    wf_path_shown(path, shown);
    snprintf(want, sizeof want, "%s/no/file.gz", f.path);
    assert_string_equal(shown, want);
    test_folder_remove(&f);
}

static void what_has_no_folder_stays(void **state)
{
    static const struct {
        const char *path, *shown;
    } cases[] = {{"file", "file"}, {"no/such/file", "no/such/file"}, {"", ""}, {"/file", "/file"}};
    char shown[PATH_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        wf_path_shown(cases[i].path, shown);
        assert_string_equal(shown, cases[i].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dots_and_links_are_followed_as_far_as_folders_exist),
        cmocka_unit_test(what_has_no_folder_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
