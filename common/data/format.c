/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/format.c - the table of formats. */
#include "common/data/format.h"
#include "common/base/file.h"
#include "common/base/nearest.h"
#include "common/data/formats.h"
#include "common/data/paths.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define WF_FORMAT(name) &wf_format_##name,
static const wf_format *const formats[] = {
#include "common/data/rows.def"
};
#undef WF_FORMAT

wf_status wf_format_find(const char *name, const wf_format **out, wf_err *err)
{
    const char *names[WF_COUNT(formats)], *near;
    char known[128] = "";
    size_t at = 0;

    for (size_t i = 0; i < WF_COUNT(formats); i++)
        if (strcmp(formats[i]->name, name) == 0) {
            *out = formats[i];
            return WF_OK;
        }
    for (size_t i = 0; i < WF_COUNT(formats); i++) {
        names[i] = formats[i]->name;
        if (at < sizeof known)
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", names[i]);
    }
    near = wf_nearest(name, names, WF_COUNT(names));
    if (near)
        return wf_fail(err, WF_USAGE, NULL, "unknown data format \"%s\"; did you mean \"%s\"?",
                       name, near);
    return wf_fail(err, WF_USAGE, NULL, "unknown data format \"%s\"; there are: %s", name, known);
}

wf_status wf_format_kind_of(const char *name, wf_format_kind *out, wf_err *err)
{
    const wf_format *f;

    WF_TRY(wf_format_find(name, &f, err));
    *out = f->text ? WF_FORMAT_TEXT : f->make ? WF_FORMAT_MADE : WF_FORMAT_ARRAYS;
    return WF_OK;
}

bool wf_format_has_key(const char *format, const char *key)
{
    const wf_format *f;

    if (wf_format_find(format, &f, NULL) != WF_OK)
        return false;
    for (size_t i = 0; i < WF_FORMAT_KEYS && f->keys[i]; i++)
        if (strcmp(f->keys[i], key) == 0)
            return true;
    return false;
}

wf_status wf_format_find_files(const char *format, const char *path, wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    const char *const *files = NULL;
    const wf_format *f = NULL;
    size_t n = 0;
    wf_status rc = a ? wf_format_find(format, &f, err) : wf_fail_nomem(err, 1);

    if (rc == WF_OK && !f->lend)
        rc = wf_paths_expand(&path, 1, wf_format_has_members(f), a, &files, &n, err);
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        char file[PATH_MAX], shown[PATH_MAX];
        const char *end =
            wf_format_has_members(f) ? wf_paths_member(files[i]) : files[i] + strlen(files[i]);

        snprintf(file, sizeof file, "%.*s", (int)(end - files[i]), files[i]);
        if (!wf_file_exists(file)) {
            wf_path_shown(file, shown);
            rc = wf_fail(err, WF_NOTFOUND, f->missing ? f->missing : "correct the path",
                         "there is no file %s", shown);
        }
    }
    wf_arena_free(&a);
    return rc;
}
