/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/match.c */
#include "common/data/match.h"
#include "common/data/format.h"
#include "common/data/paths.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

bool wf_data_matches(const char *match, const char *file)
{
    char whole[PATH_MAX];

    if (strcmp(match, file) == 0 || fnmatch(match, file, FNM_PATHNAME) == 0)
        return true;
    snprintf(whole, sizeof whole, "%.*s", (int)(wf_paths_member(file) - file), file);
    return fnmatch(match, whole, FNM_PATHNAME) == 0;
}

wf_status wf_data_match(const char *format, const char *path, const char *match, bool *any,
                        wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    const char *const *files = NULL;
    const wf_format *f = NULL;
    size_t n = 0;
    wf_status rc = a ? wf_format_find(format, &f, err) : wf_fail_nomem(err, 1);

    if (rc == WF_OK)
        rc = wf_paths_expand(&path, 1, wf_format_has_members(f), a, &files, &n, err);
    for (size_t i = 0; rc == WF_OK && !*any && i < n; i++)
        *any = wf_data_matches(match, files[i]);
    wf_arena_free(&a);
    return rc;
}
