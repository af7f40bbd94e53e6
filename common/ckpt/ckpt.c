/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/ckpt.c - finding and reading checkpoints. */
#include "common/ckpt/ckpt.h"
#include "common/ckpt/folder.h"
#include "common/ckpt/json.h"
#include "common/ckpt/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- listing ---- */

/* A folder that a person renamed or copied: its name says one step, its manifest another. The name
 * is what people and `weft recover --from` go by, so neither is believed. */
static wf_status check_name(const char *name, const wf_manifest *m, wf_err *err)
{
    wf_cut_id cut;
    uint64_t step = 0;
    char hint[128], right[64];

    if (wf_folder_kind_of(name, &step, &cut) != WF_FOLDER_STEP || step == m->global_step)
        return WF_OK;
    wf_folder_step_name(m->global_step, right, sizeof right);
    snprintf(hint, sizeof hint, "if it was renamed, call it %s again; if it is a copy, remove it",
             right);
    return wf_fail(err, WF_MISMATCH, hint,
                   "its manifest is of step %" PRIu64 ", not %" PRIu64
                   ": the folder was renamed or is a copy",
                   m->global_step, step);
}

static wf_status add_entry(wf_disk *disk, const char *job_dir, const char *name, uint64_t step,
                           bool temporary, wf_arena *arena, wf_ckpt_entry *list, size_t *n,
                           wf_err *err)
{
    char folder[WF_CKPT_PATH];
    wf_err why = {0};
    wf_manifest m = {0};
    wf_ckpt_entry e = {.step = step, .name = wf_arena_strdup(arena, name)};
    wf_status rc;

    WF_TRY(wf_folder_path(folder, err, job_dir, name));
    rc = wf_folder_read(disk, folder, arena, &m, &why);
    if (rc == WF_OK)
        rc = check_name(name, &m, &why);
    if (rc == WF_NOMEM)
        return wf_fail_nomem(err, WF_MANIFEST_MAX_BYTES);
    if (rc != WF_OK && temporary)
        return WF_OK; /* being written, or abandoned: no checkpoint, and no fault either */
    if (rc != WF_OK)
        e.fault = wf_arena_strdup(arena, why.what);
    e.doubtful = rc == WF_IO || rc == WF_MISMATCH;
    if (m.job) {
        e.generation = m.cut.generation;
        e.created_ms = m.created_ms;
        e.best = wf_manifest_best(&m);
        e.n_files = (uint32_t)m.n_files;
        for (size_t i = 0; i < m.n_files; i++)
            e.bytes += m.files[i].bytes;
    }
    if (rc == WF_OK)
        e.step = m.global_step;
    if (!e.name || (rc != WF_OK && !e.fault))
        return wf_fail_nomem(err, strlen(name));
    list[(*n)++] = e;
    return WF_OK;
}

/* Newest first; what has no manifest to read before all others, by step. */
static int newest_first(const void *a, const void *b)
{
    const wf_ckpt_entry *x = a, *y = b;
    uint32_t gx = x->n_files ? x->generation : UINT32_MAX;
    uint32_t gy = y->n_files ? y->generation : UINT32_MAX;

    if (gx != gy)
        return gx > gy ? -1 : 1;
    if (x->step != y->step)
        return x->step > y->step ? -1 : 1;
    return strcmp(y->name, x->name); /* step-N before .tmp-: 's' > '.' */
}

wf_status wf_ckpt_list(wf_disk *disk, const char *dir, const char *job, wf_arena *arena,
                       wf_ckpt_entry **out, size_t *n, wf_err *err)
{
    char job_dir[WF_CKPT_PATH];
    const char *const *names = NULL;
    wf_ckpt_entry *list;
    size_t n_names = 0, n_listed = 0;
    wf_status rc;

    WF_TRY(wf_folder_path(job_dir, err, dir, job));
    rc = wf_disk_list(disk, job_dir, arena, &names, &n_names, err);
    if (rc == WF_NOTFOUND)
        return wf_fail(err, rc, "check the job's name, or train it first",
                       "there are no checkpoints of job \"%s\" in %s", job, dir);
    if (rc != WF_OK)
        return rc;
    list = wf_arena_array(arena, n_names, sizeof *list);
    if (!list)
        return wf_fail_nomem(err, n_names * sizeof *list);
    for (size_t i = 0; i < n_names; i++) {
        wf_cut_id cut;
        uint64_t step = 0;
        wf_folder_kind kind = wf_folder_kind_of(names[i], &step, &cut);

        if (kind == WF_FOLDER_STEP || kind == WF_FOLDER_CUT)
            WF_TRY(add_entry(disk, job_dir, names[i], step, kind == WF_FOLDER_CUT, arena, list,
                             &n_listed, err));
    }
    if (n_listed)
        qsort(list, n_listed, sizeof *list, newest_first);
    *out = list;
    *n = n_listed; /* with the list, or not at all */
    return WF_OK;
}

/* ---- opening ---- */

static wf_status verify_file(wf_ckpt *c, const wf_ckpt_file *file, wf_err *err)
{
    char path[WF_CKPT_PATH], sum[WF_SUM_TEXT] = "";
    uint64_t bytes = 0;

    WF_TRY(wf_folder_path(path, err, c->folder, file->name));
    WF_TRY(wf_shard_sum(c->disk, path, &bytes, sum, err));
    if (bytes != file->bytes || strcmp(sum, file->sum) != 0)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR, "%s: checksum differs", file->name);
    return WF_OK;
}

static wf_status open_folder(wf_disk *disk, const char *dir, const char *job, const char *name,
                             bool verify, wf_ckpt **out, wf_err *err)
{
    wf_ckpt *c = calloc(1, sizeof *c);
    wf_status rc;

    if (!c)
        return wf_fail_nomem(err, sizeof *c);
    c->disk = disk;
    c->arena = wf_arena_new(0);
    rc = c->arena ? WF_OK : wf_fail_nomem(err, 0);
    if (rc == WF_OK &&
        snprintf(c->folder, sizeof c->folder, "%s/%s/%s", dir, job, name) >= (int)sizeof c->folder)
        rc = wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", dir);
    if (rc == WF_OK)
        rc = wf_folder_read(disk, c->folder, c->arena, &c->m, err);
    if (rc == WF_OK)
        rc = check_name(name, &c->m, err);
    if (rc == WF_OK && strcmp(c->m.job, job) != 0)
        rc = wf_fail(err, WF_CORRUPT, NULL, "it is a checkpoint of job \"%.64s\"", c->m.job);
    if (rc == WF_OK) {
        wf_folder_step_name(c->m.global_step, c->name, sizeof c->name);
        c->shards = wf_arena_array(c->arena, c->m.n_files, sizeof *c->shards);
        rc = c->shards ? WF_OK : wf_fail_nomem(err, c->m.n_files * sizeof *c->shards);
    }
    for (size_t i = 0; rc == WF_OK && verify && i < c->m.n_files; i++)
        rc = verify_file(c, &c->m.files[i], err);
    if (rc == WF_OK)
        rc = wf_ckpt_check_tensors(c, err);
    if (rc != WF_OK) {
        wf_ckpt_close(&c);
        return rc;
    }
    *out = c;
    return WF_OK;
}

void wf_ckpt_close(wf_ckpt **c)
{
    if (!*c)
        return;
    for (size_t i = 0; (*c)->shards && i < (*c)->m.n_files; i++)
        wf_shard_close(&(*c)->shards[i]);
    wf_arena_free(&(*c)->arena);
    free(*c);
    *c = NULL;
}

wf_status wf_ckpt_open_entry(wf_disk *disk, const char *dir, const char *job,
                             const wf_ckpt_entry *e, bool verify, wf_ckpt **out, wf_err *err)
{
    return wf_err_wrap(err, open_folder(disk, dir, job, e->name, verify, out, err), "%s", e->name);
}

wf_status wf_ckpt_open(wf_disk *disk, const char *dir, const char *job, uint64_t step, bool verify,
                       wf_ckpt **out, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    wf_ckpt_entry *list = NULL;
    size_t n = 0;
    wf_status rc;

    if (!arena)
        return wf_fail_nomem(err, 0);
    rc = wf_ckpt_list(disk, dir, job, arena, &list, &n, err);
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        if (list[i].step != step)
            continue;
        rc = wf_ckpt_open_entry(disk, dir, job, &list[i], verify, out, err);
        goto out;
    }
    if (rc == WF_OK)
        rc = wf_fail(err, WF_NOTFOUND, "see `weft ckpt ls` for those that are there",
                     "job \"%s\" has no checkpoint at step %" PRIu64 " in %s", job, step, dir);
out:
    wf_arena_free(&arena);
    return rc;
}

static void pass_over(const wf_ckpt_entry *e, const wf_err *why, wf_ckpt_passed_over *told,
                      void *arg)
{
    char sentence[sizeof why->what + sizeof why->hint + 128];

    if (!told)
        return;
    snprintf(sentence, sizeof sentence, "%s passed over: %s%s%s", e->name, why->what,
             why->hint[0] ? "; " : "", why->hint);
    told(arg, e->step, sentence);
}

wf_status wf_ckpt_newest(wf_disk *disk, const char *dir, const char *job, const char *digest,
                         uint64_t at_most, wf_ckpt_passed_over *told, void *arg, wf_ckpt **out,
                         wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    wf_ckpt_entry *list = NULL;
    wf_ckpt *c = NULL;
    size_t n = 0;
    wf_status rc;

    if (!arena)
        return wf_fail_nomem(err, 0);
    rc = wf_ckpt_list(disk, dir, job, arena, &list, &n, err);
    for (size_t i = 0; rc == WF_OK && !c && i < n; i++) {
        wf_err why = {0};
        wf_status found;

        if (list[i].step > at_most)
            continue;
        found = open_folder(disk, dir, job, list[i].name, true, &c, &why);
        if (found == WF_NOMEM) /* says nothing about it: an older one must not take its place */
            rc =
                wf_err_wrap(err, wf_fail(err, found, why.hint, "%s", why.what), "%s", list[i].name);
        else if (found != WF_OK)
            pass_over(&list[i], &why, told, arg);
    }
    if (rc == WF_OK && !c)
        rc = wf_fail(err, WF_NOTFOUND, "train it first, or look with `weft ckpt ls`",
                     "job \"%s\" has no checkpoint that verifies in %s", job, dir);
    if (rc == WF_OK && digest && strcmp(c->m.digest, digest) != 0)
        rc = wf_fail(err, WF_MISMATCH, "train it as a new run, without --resume",
                     "%s of job \"%s\" was saved by graph %s, the job has %s", c->name, job,
                     c->m.digest, digest);
    wf_arena_free(&arena);
    if (rc != WF_OK) {
        wf_ckpt_close(&c);
        return rc;
    }
    *out = c;
    return WF_OK;
}

const wf_manifest *wf_ckpt_manifest(const wf_ckpt *c)
{
    return &c->m;
}

const char *wf_ckpt_name(const wf_ckpt *c)
{
    return c->name;
}

const wf_ckpt_variable *wf_ckpt_variable_find(const wf_ckpt *c, const char *name)
{
    for (size_t i = 0; i < c->m.n_variables; i++)
        if (strcmp(c->m.variables[i].name, name) == 0)
            return &c->m.variables[i];
    return NULL;
}

uint64_t wf_ckpt_updates_at(const wf_ckpt_variable *v, uint64_t offset)
{
    for (size_t i = 0; i < v->n_slices; i++)
        if (offset - v->slices[i].offset < v->slices[i].count)
            return v->slices[i].updates;
    return 0;
}
