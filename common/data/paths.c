/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/paths.c */
#include "common/data/paths.h"
#include "common/base/file.h"
#include "common/base/size.h"

#include <glob.h>
#include <limits.h>
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

static wf_status add_matches(list *l, const char *pattern, const char *member, wf_err *err)
{
    glob_t found = {0};
    int why = glob(pattern, GLOB_NOSORT, NULL, &found); /* it would sort by the user's language */
    wf_status rc = WF_OK;

    if (why == GLOB_NOSPACE)
        rc = wf_fail_nomem(err, strlen(pattern));
    else if (why || found.gl_pathc == 0)
        rc = wf_fail(err, WF_NOTFOUND, "check the pattern", "no file matches %s", pattern);
    else
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);
    for (size_t i = 0; rc == WF_OK && i < found.gl_pathc; i++)
        rc = add(l, found.gl_pathv[i], member, err);
    globfree(&found);
    return rc;
}

static wf_status expand_one(list *l, const char *path, bool members, wf_err *err)
{
    const char *member = members ? wf_paths_member(path) : path + strlen(path);
    char file[PATH_MAX];
    size_t n = (size_t)(member - path);

    if (n >= sizeof file)
        return wf_fail(err, WF_INVALID, NULL, "the path %.64s... is too long", path);
    memcpy(file, path, n);
    file[n] = 0;
    if (!strpbrk(file, "*?[") || wf_file_exists(file))
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
