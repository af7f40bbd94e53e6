/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/npz.c - numpy's format of several arrays: a zip file whose members are npy files
 * ("NAME.npy"). (numpy.savez and numpy.savez_compressed.) */
#include "common/base/nearest.h"
#include "common/data/format.h"
#include "common/data/formats.h"
#include "common/data/zip.h"

#include <stdio.h>
#include <string.h>

/* Cuts ".npy" off a member's name; false if it has another. */
static bool array_name(const char *member, char out[WF_ZIP_NAME])
{
    size_t n = strlen(member);

    if (n < 5 || n >= WF_ZIP_NAME || strcmp(member + n - 4, ".npy") != 0)
        return false;
    memcpy(out, member, n - 4);
    out[n - 4] = 0;
    return true;
}

wf_status wf_npz_names(const char *path, wf_arena *a, const char *const **out, size_t *n,
                       wf_err *err)
{
    const char *const *members = NULL;
    const char **names;
    char name[WF_ZIP_NAME];
    size_t count = 0;
    wf_zip *zip = NULL;
    wf_status rc = wf_zip_open(path, &zip, err);

    if (rc == WF_OK)
        rc = wf_zip_names(zip, a, &members, &count, err);
    wf_zip_close(&zip);
    if (rc != WF_OK)
        return rc;
    names = wf_arena_array(a, count, sizeof *names);
    if (!names)
        return wf_fail_nomem(err, count * sizeof *names);
    for (size_t i = *n = 0; i < count; i++) {
        if (!array_name(members[i], name))
            continue;
        names[*n] = wf_arena_strdup(a, name);
        if (!names[(*n)++])
            return wf_fail_nomem(err, sizeof name);
    }
    *out = names;
    return WF_OK;
}

static wf_status no_array(const char *path, const char *name, const char *const names[], size_t n,
                          wf_err *err)
{
    const char *near = name ? wf_nearest(name, names, n) : NULL;
    char list[512] = "";
    size_t at = 0, shown = 0;

    for (; shown < n && at + WF_ZIP_NAME + 16 < sizeof list; shown++)
        at +=
            (size_t)snprintf(list + at, sizeof list - at, "%s%s", shown ? ", " : "", names[shown]);
    if (!name)
        return wf_fail(err, WF_USAGE, "name one of them, as in FILE.npz#NAME",
                       "%s holds %zu arrays: %s%s", path, n, list, shown < n ? ", ..." : "");
    if (near)
        return wf_fail(err, WF_INVALID, "write FILE.npz#NAME for an array of another name",
                       "%s has no array \"%.64s\"; did you mean \"%s\"?", path, name, near);
    return wf_fail(err, WF_INVALID, "write FILE.npz#NAME for an array of another name",
                   "%s has no array \"%.64s\"; it holds %s%s", path, name, n ? list : "none",
                   shown < n ? ", ..." : "");
}

static wf_status npz_member(const char *path, const char *name, char out[WF_ZIP_NAME], wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    const char *const *names = NULL;
    size_t n = 0, found;
    wf_status rc = a ? wf_npz_names(path, a, &names, &n, err) : wf_fail_nomem(err, 1);

    for (found = 0; rc == WF_OK && found < n; found++)
        if (name ? strcmp(names[found], name) == 0 : n == 1)
            break;
    if (rc == WF_OK && found == n)
        rc = no_array(path, name, names, n, err);
    if (rc == WF_OK)
        snprintf(out, WF_ZIP_NAME, "%.*s.npy", WF_ZIP_NAME - 5, names[found]);
    wf_arena_free(&a);
    return rc;
}

const wf_format wf_format_npz = {.name = "npz", .read = wf_format_read_npy, .member = npz_member};
