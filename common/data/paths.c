/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/paths.c */
#include "common/data/paths.h"
#include "common/base/file.h"
#include "common/base/size.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct list {
    wf_arena *arena;
    const char **paths;
    size_t n, room;
} list;

const char *wf_paths_member(const char *path)
{
    const char *mark = strrchr(path, '#');

    return mark && !strchr(mark, '/') ? mark : path + strlen(path);
}

static wf_status add(list *l, const char *path, const char *member, wf_err *err)
{
    if (l->n == WF_PATHS_MOST)
        return wf_fail(err, WF_INVALID, "put the records into fewer files",
                       "the data is in more than %d files", WF_PATHS_MOST);
    if (l->n == l->room) {
        size_t room = WF_MAX(2 * l->room, (size_t)8);
        const char **more = wf_arena_array(l->arena, room, sizeof *more);

        if (!more)
            return wf_fail_nomem(err, room * sizeof *more);
        if (l->n)
            memcpy(more, l->paths, l->n * sizeof *more);
        l->paths = more;
        l->room = room;
    }
    l->paths[l->n] = wf_arena_printf(l->arena, "%s%s", path, member);
    return l->paths[l->n++] ? WF_OK : wf_fail_nomem(err, strlen(path) + strlen(member));
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The files of a folder whose names match, sorted. Names that begin with a dot match no pattern
 * that does not. */
static wf_status add_matches(list *l, const char *pattern, const char *member, wf_err *err)
{
    const char *slash = strrchr(pattern, '/'), *name = slash ? slash + 1 : pattern;
    char folder[PATH_MAX], path[2 * PATH_MAX];
    struct dirent *entry;
    size_t before = l->n;
    wf_status rc = WF_OK;
    DIR *dir;

    snprintf(folder, sizeof folder, "%.*s", (int)(name - pattern), pattern);
    dir = opendir(folder[0] ? folder : ".");
    if (!dir && errno == ENOMEM)
        return wf_fail_nomem(err, strlen(pattern));
    while (dir && rc == WF_OK && (entry = readdir(dir))) {
        if (fnmatch(name, entry->d_name, FNM_PERIOD) != 0)
            continue;
        snprintf(path, sizeof path, "%s%s", folder, entry->d_name);
        rc = add(l, path, member, err);
    }
    if (dir)
        closedir(dir);
    if (rc == WF_OK && l->n == before)
        rc = wf_fail(err, WF_NOTFOUND, "check the pattern, which may be in the file's name only",
                     "no file matches %s", pattern);
    if (rc == WF_OK)
        qsort(l->paths + before, l->n - before, sizeof *l->paths, by_bytes);
    return rc;
}

static wf_status expand_one(list *l, const char *path, bool members, wf_err *err)
{
    const char *member = members ? wf_paths_member(path) : path + strlen(path);
    char file[PATH_MAX];
    size_t n = (size_t)(member - path);
    const char *name;

    if (n >= sizeof file)
        return wf_fail(err, WF_INVALID, NULL, "the path %.64s... is too long", path);
    memcpy(file, path, n);
    file[n] = 0;
    name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    if (!strpbrk(name, "*?[") || wf_file_exists(file))
        return add(l, file, member, err);
    return add_matches(l, file, member, err);
}

wf_status wf_paths_expand(const char *const paths[], size_t n, bool members, wf_arena *a,
                          const char *const **out, size_t *n_out, wf_err *err)
{
    list l = {.arena = a};

    for (size_t i = 0; i < n; i++)
        WF_TRY(expand_one(&l, paths[i], members, err));
    *out = l.paths;
    *n_out = l.n;
    return WF_OK;
}
