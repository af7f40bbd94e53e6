/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/layers.c - includes point down. Reads the #include lines of every source file and
 * fails on an arrow that points up, or sideways between two rooms of one level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Higher numbers stand higher. A room may include itself and what stands lower. */
static const struct room {
    const char *folder;
    int level;
} rooms[] = {
    {"common/base/", 0},    {"common/tensor/", 1}, {"common/log/", 1},
    {"common/metrics/", 1}, {"common/pb/", 1},     {"common/graph/", 2},
    {"common/wire/", 2},    {"common/conf/", 2},   {"common/optim/", 2},
    {"common/kernels/", 3}, {"common/onnx/", 3},   {"common/exec/", 4},
    {"common/compile/", 4}, {"common/ckpt/", 4},   {"common/data/", 4},
    {"master/", 5},         {"worker/", 5},        {"ps/", 5},
    {"serve/", 5},          {"cmd/", 6},
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

static bool may_include(const struct room *from, const struct room *to)
{
    return from == to || to->level < from->level;
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
    static const char *const tops[] = {"common", "master", "worker", "ps", "serve", "cmd"};
    char folder[4096];

    (void)state;
    for (size_t i = 0; i < sizeof tops / sizeof tops[0]; i++) {
        snprintf(folder, sizeof folder, "%s/%s", root, tops[i]);
        (void)nftw(folder, visit, 16, FTW_PHYS); /* a room that is not built yet is no fault */
    }
    assert_true(n_files > 50);
    assert_true(n_arrows > 100);
}

static void an_arrow_that_points_up_is_seen(void **state)
{
    (void)state;
    assert_false(may_include(room_of("common/base/x.h"), room_of("common/tensor/tensor.h")));
    assert_false(may_include(room_of("common/graph/x.h"), room_of("common/conf/conf.h")));
    assert_false(may_include(room_of("ps/x.h"), room_of("worker/worker.h")));
    assert_true(may_include(room_of("ps/x.h"), room_of("common/ckpt/ckpt.h")));
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(includes_point_down),
        cmocka_unit_test(an_arrow_that_points_up_is_seen),
    };

    root = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
