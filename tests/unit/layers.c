/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/layers.c - includes point down. Reads the #include lines of every source file and
 * fails on an arrow that points up, or sideways between two rooms of one level. And among the files
 * of the master calls go one way: which file calls which follows from where functions are defined
 * and named, so a header that many share hides nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Higher numbers stand higher. A room may include itself and what stands lower. The first row that
 * fits counts: a front door that the rooms within include stands below them. */
static const struct room {
    const char *folder;
    int level;
} rooms[] = {
    {"common/base/", 0},
    {"common/tensor/", 1},
    {"common/log/", 1},
    {"common/metrics/", 1},
    {"common/pb/", 1},
    {"common/graph/", 2},
    {"common/wire/", 2},
    {"common/data/", 2},
    {"common/optim/", 2},
    {"common/conf/", 3},
    {"common/kernels/", 3},
    {"common/onnx/", 3},
    {"common/exec/", 4},
    {"common/compile/", 4},
    {"common/ckpt/", 4},
    {"common/session/", 5},
    {"master/callbacks/", 5},
    {"master/store/", 5},
    {"master/master.h", 6},
    {"master/core/", 7},
    {"master/member/", 8},
    {"master/job/", 9},
    {"master/cut/", 10},
    {"master/epoch/", 10},
    {"master/generation/", 10},
    {"master/placement/", 10},
    {"master/", 11}, /* the files beside its rooms */
    {"worker/", 11},
    {"ps/", 11},
    {"serve/", 11},
    {"supervisor/", 11},
    {"runtime/", 12},
    {"lib/", 13},
    {"cmd/", 14},
};

static const char *root;
static int n_files, n_arrows;

static const struct room *room_of(const char *path)
{
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++)
        if (strncmp(path, rooms[i].folder, strlen(rooms[i].folder)) == 0)
            return &rooms[i];
    return NULL;
}

/* What stands below, and yet is not for them. Roles meet in messages. And but for the master they
 * get a compiled job or a list of tasks, and read no YAML. */
static bool is_not_for(const struct room *from, const struct room *to)
{
    static const char *const roles[] = {"worker/", "ps/", "supervisor/"};

    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (strcmp(from->folder, roles[i]) == 0)
            return strcmp(to->folder, "common/conf/") == 0 ||
                   strncmp(to->folder, "master/", strlen("master/")) == 0;
    return false;
}

static bool may_include(const struct room *from, const struct room *to)
{
    return from == to || (to->level < from->level && !is_not_for(from, to));
}

static void check_line(const char *path, const struct room *from, int number, const char *line)
{
    char target[256];
    const struct room *to;

    if (sscanf(line, " # include \"%255[^\"]\"", target) != 1 &&
        sscanf(line, "#include \"%255[^\"]\"", target) != 1)
        return;
    to = room_of(target);
    if (!to)
        return; /* generated, or beside its own file */
    n_arrows++;
    if (!may_include(from, to))
        fail_msg("%s:%d includes %s: %s does not stand below %s", path, number, target, to->folder,
                 from->folder);
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    const char *name = path + strlen(root) + 1, *dot = strrchr(path, '.');
    const struct room *from = room_of(name);
    char line[512];
    FILE *f;

    (void)st, (void)at;
    if (kind != FTW_F || !from || !dot || (strcmp(dot, ".c") != 0 && strcmp(dot, ".h") != 0))
        return 0;
    f = fopen(path, "re");
    assert_non_null(f);
    n_files++;
    for (int number = 1; fgets(line, sizeof line, f); number++)
        check_line(name, from, number, line);
    fclose(f);
    return 0;
}

static void includes_point_down(void **state)
{
    static const char *const tops[] = {"common",  "master",     "worker", "ps", "serve",
                                       "runtime", "supervisor", "lib",    "cmd"};
    char folder[4096];

    (void)state;
    for (size_t i = 0; i < sizeof tops / sizeof tops[0]; i++) {
        snprintf(folder, sizeof folder, "%s/%s", root, tops[i]);
        (void)nftw(folder, visit, 16, FTW_PHYS); /* a room that is not built yet is no fault */
    }
    assert_true(n_files > 50);
    assert_true(n_arrows > 100);
}

/* ---- calls between the master's files ---- */

enum { MOST_SOURCES = 96, MOST_FUNCTIONS = 1024, NAME = 64 };

static struct source {
    char path[128], *text;
} sources[MOST_SOURCES];
static size_t n_sources;

static struct function {
    char name[NAME];
    size_t source;
} functions[MOST_FUNCTIONS];
static size_t n_functions;

static bool calls[MOST_SOURCES][MOST_SOURCES];

/* Comments become blanks, and strings are of no function's name. */
static void blank_comments(char *text)
{
    for (char *at = text; (at = strstr(at, "/*"));) {
        char *end = strstr(at, "*/");

        while (at < (end ? end + 2 : at + strlen(at)))
            *at++ = ' ';
    }
}

static void add_source(const char *path, const char *text)
{
    struct source *s = &sources[n_sources++];

    assert_true(n_sources <= MOST_SOURCES);
    snprintf(s->path, sizeof s->path, "%s", path);
    s->text = strdup(text);
    assert_non_null(s->text);
    blank_comments(s->text);
}

static void forget_sources(void)
{
    while (n_sources > 0)
        free(sources[--n_sources].text);
    n_functions = 0;
    memset(calls, 0, sizeof calls);
}

/* The next name that begins with wf_, in place; its length in *n. */
static const char *next_name(const char *at, size_t *n)
{
    for (; (at = strstr(at, "wf_")); at += *n) {
        bool inside = isalnum((unsigned char)at[-1]) || at[-1] == '_';

        for (*n = 0; isalnum((unsigned char)at[*n]) || at[*n] == '_';)
            ++*n;
        if (!inside && *n < NAME)
            return at;
    }
    return NULL;
}

/* A definition begins a line, as the format has it, and is not static; a table is one too. */
static void find_definitions(size_t source)
{
    for (char *line = sources[source].text, *end; *line; line = end + 1) {
        char *open = strpbrk(line, "(=;{\n"), *name;

        end = strchr(line, '\n');
        if (!end)
            return;
        if (!open || (*open != '(' && *open != '=') || !isalpha((unsigned char)*line) ||
            strncmp(line, "static", 6) == 0 || strncmp(line, "typedef", 7) == 0)
            continue;
        while (open > line && open[-1] == ' ')
            open--;
        for (name = open; name > line && (isalnum((unsigned char)name[-1]) || name[-1] == '_');)
            name--;
        if (strncmp(name, "wf_", 3) != 0 || open - name >= NAME)
            continue;
        assert_true(n_functions < MOST_FUNCTIONS);
        snprintf(functions[n_functions].name, NAME, "%.*s", (int)(open - name), name);
        functions[n_functions++].source = source;
    }
}

static void find_calls(void)
{
    size_t n;

    for (size_t i = 0; i < n_sources; i++)
        find_definitions(i);
    for (size_t i = 0; i < n_sources; i++)
        for (const char *at = sources[i].text + 1; (at = next_name(at, &n)); at += n)
            for (size_t k = 0; k < n_functions; k++)
                if (strlen(functions[k].name) == n && strncmp(functions[k].name, at, n) == 0 &&
                    functions[k].source != i)
                    calls[i][functions[k].source] = true;
}

/* Files that are called by none of those left, or call none, are in no circle; *text names what is
 * left. */
static size_t find_circle(char *text, size_t size)
{
    bool gone[MOST_SOURCES] = {false}, again = true;
    size_t left = n_sources;

    while (again) {
        again = false;
        for (size_t i = 0; i < n_sources; i++) {
            bool in = false, out = false;

            for (size_t k = 0; k < n_sources && !gone[i]; k++) {
                out |= calls[i][k] && !gone[k];
                in |= calls[k][i] && !gone[k];
            }
            if (gone[i] || (in && out))
                continue;
            gone[i] = again = true;
            left--;
        }
    }
    text[0] = 0;
    for (size_t i = 0; i < n_sources; i++)
        if (!gone[i])
            snprintf(text + strlen(text), size - strlen(text), " %s", sources[i].path);
    return left;
}

static int read_source(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    const char *dot = strrchr(path, '.');
    char *text;
    FILE *f;

    (void)at;
    if (kind != FTW_F || !dot || strcmp(dot, ".c") != 0)
        return 0;
    text = calloc(1, (size_t)st->st_size + 1);
    f = fopen(path, "re");
    assert_true(text && f && fread(text, 1, (size_t)st->st_size, f) == (size_t)st->st_size);
    add_source(path + strlen(root) + 1, text);
    fclose(f);
    free(text);
    return 0;
}

static void the_masters_files_call_one_way(void **state)
{
    char folder[4096], circle[4096];

    (void)state;
    snprintf(folder, sizeof folder, "%s/master", root);
    assert_int_equal(nftw(folder, read_source, 16, FTW_PHYS), 0);
    find_calls();
    assert_true(n_sources > 20 && n_functions > 150);
    for (size_t i = 0; i < n_sources * n_sources; i++) {
        const char *from = sources[i / n_sources].path, *to = sources[i % n_sources].path;

        if (calls[i / n_sources][i % n_sources] && !may_include(room_of(from), room_of(to)))
            fail_msg("%s calls %s, which does not stand below it", from, to);
    }
    if (find_circle(circle, sizeof circle))
        fail_msg("files of the master call each other in a circle:%s", circle);
    forget_sources();
}

static void a_circle_of_calls_is_seen(void **state)
{
    char circle[256];

    (void)state;
    add_source("a.c", "\nint wf_a(void)\n{\n    return wf_b();\n}\n");
    add_source("b.c", "\nint wf_b(void)\n{\n    return wf_c + wf_leaf(); /* wf_a() */\n}\n");
    add_source("c.c", "\nconst int wf_c = 1;\n");
    add_source("leaf.c", "\nint wf_leaf(void)\n{\n    return 1;\n}\n");
    find_calls();
    assert_int_equal(find_circle(circle, sizeof circle), 0);
    forget_sources();
    add_source("a.c", "\nint wf_a(void)\n{\n    return wf_b();\n}\n");
    add_source("b.c", "\nint wf_b(void)\n{\n    return call(wf_c) + wf_leaf();\n}\n");
    add_source("c.c", "\nint *wf_c(void)\n{\n    return wf_a();\n}\n");
    add_source("leaf.c", "\nint wf_leaf(void)\n{\n    return 1;\n}\n");
    find_calls();
    assert_int_equal(find_circle(circle, sizeof circle), 3);
    assert_string_equal(circle, " a.c b.c c.c");
    forget_sources();
}

static void an_arrow_that_points_up_is_seen(void **state)
{
    (void)state;
    assert_false(may_include(room_of("common/base/x.h"), room_of("common/tensor/tensor.h")));
    assert_false(may_include(room_of("common/graph/x.h"), room_of("common/conf/conf.h")));
    assert_false(may_include(room_of("ps/x.h"), room_of("worker/worker.h")));
    assert_false(may_include(room_of("supervisor/x.c"), room_of("master/master.h")));
    assert_false(may_include(room_of("supervisor/x.c"), room_of("cmd/cli/super.h")));
    assert_true(may_include(room_of("ps/x.h"), room_of("common/ckpt/ckpt.h")));
    assert_false(may_include(room_of("master/cut/x.c"), room_of("master/epoch/epoch.h")));
    assert_false(may_include(room_of("master/member/x.c"), room_of("master/job/job.h")));
    assert_false(may_include(room_of("master/job/x.c"), room_of("master/top.h")));
    assert_true(may_include(room_of("master/core/x.c"), room_of("master/master.h")));
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(includes_point_down),
        cmocka_unit_test(the_masters_files_call_one_way),
        cmocka_unit_test(a_circle_of_calls_is_seen),
        cmocka_unit_test(an_arrow_that_points_up_is_seen),
    };

    root = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
