/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/listing.c */
#include "common/data/listing.h"
#include "common/base/size.h"
#include "common/base/text.h"
#include "common/data/paths.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* A folder that cannot be read has no files either, and nobody would learn why. */
static wf_status check_folder(const char *pattern, wf_err *err)
{
    char folder[PATH_MAX];
    int n = (int)(name_of(pattern) - pattern);

    if (n >= (int)sizeof folder)
        return wf_fail(err, WF_INVALID, NULL, "the path %.64s... is too long", pattern);
    snprintf(folder, sizeof folder, "%.*s", n, n ? pattern : "");
    if (access(n ? folder : ".", R_OK | X_OK) == 0)
        return WF_OK;
    return wf_fail_errno(err, errno, "the master lists it: its host must see the folder",
                         "listing the files of %s", n ? folder : ".");
}

static wf_status expand(const char *pattern, wf_arena *a, const char *const **paths, size_t *n,
                        wf_err *err)
{
    wf_status rc;

    WF_TRY(check_folder(pattern, err));
    rc = wf_paths_expand(&pattern, 1, false, a, paths, n, err);
    if (rc != WF_NOTFOUND)
        return rc;
    *n = 0;
    return WF_OK;
}

/* Whether it is a file that counts; one that has gone since its folder was read does not. */
static bool look_at(const char *path, wf_listed *out)
{
    struct stat st;

    if (strchr("_.", name_of(path)[0]) || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *out = (wf_listed){.path = path,
                       .bytes = (uint64_t)st.st_size,
                       .changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec};
    return true;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const wf_listed *)a)->path, ((const wf_listed *)b)->path);
}

static size_t drop_twins(wf_listed list[], size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(list[kept - 1].path, list[i].path) != 0)
            list[kept++] = list[i];
    return kept;
}

wf_status wf_data_list(const char *const patterns[], size_t n, wf_arena *a, wf_listed **out,
                       size_t *n_out, wf_err *err)
{
    wf_listed *list = NULL;
    size_t used = 0, room = 0;

    for (size_t i = 0; i < n; i++) {
        const char *const *paths = NULL;
        size_t found = 0;

        WF_TRY(expand(patterns[i], a, &paths, &found, err));
        if (used + found > room) {
            wf_listed *more;

            room = WF_MAX(2 * room, used + found);
            more = wf_arena_array(a, room, sizeof *more);
            if (!more)
                return wf_fail_nomem(err, room * sizeof *more);
            if (used)
                memcpy(more, list, used * sizeof *list);
            list = more;
        }
        for (size_t k = 0; k < found; k++) {
            if (!wf_text_is_utf8(paths[k])) /* no manifest could name it */
                return wf_fail(err, WF_INVALID, "rename it",
                               "the name of a file that matches %s is not UTF-8", patterns[i]);
            used += look_at(paths[k], &list[used]);
        }
    }
    if (used)
        qsort(list, used, sizeof *list, by_path);
    *out = list;
    *n_out = drop_twins(list, used);
    return WF_OK;
}

uint64_t wf_listed_id(const char *path)
{
    return XXH3_64bits(path, strlen(path));
}

const char *wf_listed_member(const char *path)
{
    return wf_paths_member(path);
}

wf_status wf_data_check_listed(const char *path, uint64_t bytes, wf_err *err)
{
    static const char hint[] = "every host sees the files under this path, and they stay as they "
                               "are until a checkpoint has them";
    struct stat st;

    if (stat(path, &st) != 0 && errno == ENOENT)
        return wf_fail(err, WF_NOTFOUND, hint, "%s is gone, of which %" PRIu64 " bytes were taken",
                       path, bytes);
    if (stat(path, &st) != 0)
        return wf_fail_errno(err, errno, hint, "looking at %s", path);
    if ((uint64_t)st.st_size != bytes)
        return wf_fail(err, WF_INVALID, hint,
                       "%s has changed: it has %" PRIu64 " bytes, and had %" PRIu64
                       " when it was taken",
                       path, (uint64_t)st.st_size, bytes);
    return WF_OK;
}
