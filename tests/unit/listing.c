/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/listing.c - the files that patterns name, in a folder of the test's own. */
#include "common/data/listing.h"
#include "common/base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct folder {
    char path[64];
    wf_arena *a;
} folder;

static int begin(void **state)
{
    folder *f = calloc(1, sizeof *f);

    assert_non_null(f);
    snprintf(f->path, sizeof f->path, "/tmp/weft-listing-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    f->a = wf_arena_new(0);
    *state = f;
    return 0;
}

static int end(void **state)
{
    folder *f = *state;
    wf_err err;

    assert_int_equal(wf_remove_tree(f->path, &err), WF_OK);
    wf_arena_free(&f->a);
    free(f);
    return 0;
}

static void put(const folder *f, const char *name, const char *text)
{
    char path[256];
    FILE *to;

    snprintf(path, sizeof path, "%s/%s", f->path, name);
    to = fopen(path, "w");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
}

/* The names that patterns give, without the folder: "a b". */
static const char *list(folder *f, const char *one, const char *other)
{
    char a[256], b[256];
    const char *patterns[] = {a, b};
    wf_listed *found = NULL;
    static char text[256];
    size_t n = 0;
    wf_err err;

    snprintf(a, sizeof a, "%s/%s", f->path, one);
    snprintf(b, sizeof b, "%s/%s", f->path, other ? other : "");
    assert_int_equal(wf_data_list(patterns, other ? 2 : 1, f->a, &found, &n, &err), WF_OK);
    text[0] = 0;
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s:%d", i ? " " : "",
                 found[i].path + strlen(f->path) + 1, (int)found[i].bytes);
    return text;
}

static void files_are_listed_by_name_and_once(void **state)
{
    folder *f = *state;
    char sub[128];
    wf_err err;

    put(f, "b.csv", "12");
    put(f, "a.csv", "1");
    put(f, "_c.csv", "1");
    put(f, ".d.csv", "1");
    put(f, "e.txt", "1234");
    snprintf(sub, sizeof sub, "%s/z.csv", f->path);
    assert_int_equal(wf_make_dirs(sub, &err), WF_OK); /* a folder is no file */
    assert_string_equal(list(f, "*.csv", NULL), "a.csv:1 b.csv:2");
    assert_string_equal(list(f, "e.txt", "*.csv"), "a.csv:1 b.csv:2 e.txt:4");
    assert_string_equal(list(f, "*.csv", "a*"), "a.csv:1 b.csv:2");
    assert_string_equal(list(f, "?.nothing", "no.txt"), "");
    assert_string_equal(list(f, "_c.csv", NULL), "");
}

static void a_folder_that_cannot_be_read_is_told(void **state)
{
    folder *f = *state;
    char pattern[128];
    const char *patterns[] = {pattern};
    wf_listed *found;
    size_t n;
    wf_err err;

    snprintf(pattern, sizeof pattern, "%s/none/*.csv", f->path);
    assert_int_equal(wf_data_list(patterns, 1, f->a, &found, &n, &err), WF_NOTFOUND);
    assert_non_null(strstr(err.what, "/none/"));
    put(f, "x\xff.csv", "1");
    snprintf(pattern, sizeof pattern, "%s/*.csv", f->path);
    assert_int_equal(wf_data_list(patterns, 1, f->a, &found, &n, &err), WF_INVALID);
}

static void a_file_is_as_it_was_taken(void **state)
{
    folder *f = *state;
    char path[128];
    wf_err err;

    snprintf(path, sizeof path, "%s/a.csv", f->path);
    put(f, "a.csv", "12345");
    assert_int_equal(wf_data_check_listed(path, 5, &err), WF_OK);
    assert_int_equal(wf_data_check_listed(path, 6, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "it has 5 bytes, and had 6"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(wf_data_check_listed(path, 5, &err), WF_NOTFOUND);
    assert_non_null(strstr(err.what, "a.csv is gone"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_listed_by_name_and_once, begin, end),
        cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_read_is_told, begin, end),
        cmocka_unit_test_setup_teardown(a_file_is_as_it_was_taken, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
