/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/runs.c */
#include "common/session/runs.h"
#include "common/base/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int newest_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x < y) - (x > y);
}

/* Adds the numbers of the names that are runs of the job. */
static wf_status add(const char *const *names, size_t n, const char *job, wf_arena *arena,
                     wf_runs *out, wf_err *err)
{
    uint32_t *all = wf_arena_array(arena, out->n + n, sizeof *all);

    if (!all)
        return wf_fail_nomem(err, (out->n + n) * sizeof *all);
    if (out->n)
        memcpy(all, out->number, out->n * sizeof *all);
    out->number = all;
    for (size_t i = 0; i < n; i++) {
        char its[WF_RUN_NAME];
        uint32_t number;

        if (!wf_run_name_ok(names[i]))
            continue;
        number = wf_run_split(names[i], its);
        if (strcmp(its, job) == 0)
            all[out->n++] = number;
    }
    return WF_OK;
}

wf_status wf_runs_list(const char *const dirs[], const char *job, wf_arena *arena, wf_runs *out,
                       wf_err *err)
{
    size_t kept = 0;

    *out = (wf_runs){0};
    for (; *dirs; dirs++) {
        const char *const *names = NULL;
        size_t n = 0;
        wf_status rc = wf_disk_list(wf_disk_posix(), *dirs, arena, &names, &n, err);

        if (rc != WF_NOTFOUND)
            WF_TRY(rc);
        if (rc == WF_OK && n)
            WF_TRY(add(names, n, job, arena, out, err));
    }
    if (out->n == 0)
        return WF_OK;
    qsort(out->number, out->n, sizeof *out->number, newest_first);
    for (size_t i = 0; i < out->n; i++)
        if (i == 0 || out->number[i] != out->number[i - 1])
            out->number[kept++] = out->number[i];
    out->n = kept;
    return WF_OK;
}

wf_status wf_runs_find(const char *const dirs[], const char *word, char name[WF_RUN_NAME],
                       wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    char job[WF_RUN_NAME];
    wf_runs runs = {0};
    wf_status rc = WF_OK;

    if (!arena)
        return wf_fail_nomem(err, 0);
    if (wf_run_split(word, job) == 0)
        rc = wf_runs_list(dirs, job, arena, &runs, err);
    if (rc == WF_OK && runs.n)
        wf_run_name(job, runs.number[0], name);
    else if (rc == WF_OK && name != word)
        snprintf(name, WF_RUN_NAME, "%s", word);
    wf_arena_free(&arena);
    return rc;
}

wf_status wf_runs_choose(const char *const dirs[], const char *job, int64_t known, bool resume,
                         char name[WF_RUN_NAME], wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    wf_runs runs = {0};
    int64_t newest = known;
    wf_status rc;

    rc = arena ? wf_runs_list(dirs, job, arena, &runs, err) : wf_fail_nomem(err, 0);
    if (rc == WF_OK && runs.n && runs.number[0] > newest)
        newest = runs.number[0];
    wf_arena_free(&arena);
    if (rc == WF_OK && newest >= WF_RUN_MOST && !resume)
        rc = wf_fail(err, WF_FULL, "give the job another name", "job %s has %d runs", job,
                     WF_RUN_MOST);
    if (rc != WF_OK)
        return rc;
    if (newest < 0)
        wf_run_name(job, 1, name);
    else
        wf_run_name(job, (uint32_t)newest + !resume, name);
    return WF_OK;
}

wf_status wf_runs_surplus(const char *const dirs[], const char *run, uint32_t keep, wf_arena *arena,
                          wf_runs *out, wf_err *err)
{
    char job[WF_RUN_NAME];
    uint32_t number = wf_run_split(run, job);
    size_t stay = 0;

    WF_TRY(wf_runs_list(dirs, job, arena, out, err));
    while (stay < out->n && out->number[stay] >= number)
        stay++;
    stay += keep - 1;
    stay = stay < out->n ? stay : out->n;
    out->number += stay;
    out->n -= stay;
    return WF_OK;
}
