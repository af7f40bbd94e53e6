/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/commit.c - the commit of a checkpoint; steps have the numbers of
 * docs/checkpoints.md, "Commit order". */
#include "common/base/failpoint.h"
#include "common/ckpt/ckpt.h"
#include "common/ckpt/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *wf_ckpt_shard_name(uint32_t index, uint32_t n, char *name, size_t size)
{
    snprintf(name, size, "shard-%05" PRIu32 "-of-%05" PRIu32 ".safetensors", index, n);
    return name;
}

const char *wf_ckpt_tensor_name(const char *variable, const char *slot, uint64_t offset, bool whole,
                                char *name, size_t size)
{
    char part[32] = "";

    if (!whole)
        snprintf(part, sizeof part, "#%" PRIu64, offset);
    snprintf(name, size, "%s%s%s%s", variable, slot ? "/" : "", slot ? slot : "", part);
    return name;
}

static void print_cut(wf_cut_id cut, char *text, size_t size)
{
    snprintf(text, size, "g%" PRIu32 "-c%" PRIu32 "-%016" PRIx64, cut.generation, cut.number,
             cut.chief);
}

void wf_ckpt_meta(const char *job, wf_cut_id cut, char cut_text[WF_CUT_TEXT],
                  wf_shard_meta meta[WF_CKPT_N_META])
{
    print_cut(cut, cut_text, WF_CUT_TEXT);
    meta[0] = (wf_shard_meta){"job", job};
    meta[1] = (wf_shard_meta){"cut", cut_text};
}

/* "12 KiB are free" behind an error of the disk, whose text then has path, reason and room. */
wf_status wf_ckpt_say_free(wf_disk *disk, const char *path, wf_status rc, wf_err *err)
{
    uint64_t bytes;
    size_t at;

    if (rc != WF_IO || !err || wf_disk_free_bytes(disk, path, &bytes, NULL) != WF_OK)
        return rc;
    at = strlen(err->what);
    snprintf(err->what + at, sizeof err->what - at, " (%" PRIu64 " KiB are free there)",
             bytes / 1024);
    return rc;
}

typedef struct listing {
    wf_arena *arena;
    const char *const *names;
    size_t n;
} listing;

static wf_status list_job(wf_disk *disk, const char *job_dir, listing *out, wf_err *err)
{
    *out = (listing){.arena = wf_arena_new(0)};
    if (!out->arena)
        return wf_fail_nomem(err, 0);
    return wf_disk_list(disk, job_dir, out->arena, &out->names, &out->n, err);
}

/* A temporary folder that a crash left between its manifest and its name gets the name; others go.
 */
static wf_status settle(wf_disk *disk, const char *job_dir, const char *name, wf_arena *arena,
                        wf_err *err)
{
    char folder[WF_CKPT_PATH];
    wf_manifest m;
    wf_status rc;

    WF_TRY(wf_folder_path(folder, err, job_dir, name));
    rc = wf_folder_read(disk, folder, arena, &m, err);
    if (rc == WF_NOMEM)
        return rc; /* it may be complete */
    if (rc == WF_OK) {
        rc = wf_folder_publish(disk, job_dir, folder, &m, err);
        if (rc != WF_EXISTS)
            return rc;
    }
    return wf_folder_remove(disk, folder, err);
}

wf_status wf_ckpt_begin(wf_disk *disk, const char *dir, const char *job, wf_cut_id cut,
                        char folder[WF_CKPT_PATH], wf_err *err)
{
    char job_dir[WF_CKPT_PATH], name[WF_CUT_TEXT + 8] = ".tmp-";
    listing l = {0};
    wf_status rc;

    print_cut(cut, name + 5, WF_CUT_TEXT);
    WF_TRY(wf_folder_path(job_dir, err, dir, job));
    WF_TRY(wf_folder_path(folder, err, job_dir, name));
    rc = wf_disk_make_dirs(disk, job_dir, err);
    if (rc == WF_OK)
        rc = list_job(disk, job_dir, &l, err);
    for (size_t i = 0; rc == WF_OK && i < l.n; i++) {
        wf_cut_id other = {0};
        uint64_t step;

        if (wf_folder_kind_of(l.names[i], &step, &other) == WF_FOLDER_CUT &&
            wf_cut_compare(other, cut) <= 0)
            rc = settle(disk, job_dir, l.names[i], l.arena, err);
    }
    wf_arena_free(&l.arena);
    if (rc == WF_OK)
        rc = wf_failpoint("ckpt.begin", err);
    if (rc == WF_OK)
        rc = wf_disk_make_dir(disk, folder, err);
    return wf_ckpt_say_free(disk, dir, rc, err);
}

/* Step 5: the manifest into the temporary folder, durably. */
static wf_status write_manifest(wf_disk *disk, const char *folder, const wf_manifest *m,
                                wf_err *err)
{
    char path[WF_CKPT_PATH];
    wf_arena *arena = NULL;
    wf_bytes text = {0};
    wf_manifest again;
    wf_status rc;

    WF_TRY(wf_folder_path(path, err, folder, "manifest.json"));
    rc = wf_manifest_encode(m, &text, err);
    if (rc == WF_OK)
        rc = wf_failpoint("ckpt.manifest.before", err);
    if (rc == WF_OK)
        rc = wf_disk_replace(disk, path, text.data, text.size, err);
    if (rc == WF_OK)
        rc = wf_failpoint("ckpt.manifest.after", err);
    wf_bytes_close(&text);
    if (rc != WF_OK)
        return rc;
    /* Read back: the names and sizes of the files that other processes wrote, as they are on disk.
     */
    arena = wf_arena_new(0);
    rc = arena ? wf_folder_read(disk, folder, arena, &again, err) : wf_fail_nomem(err, 0);
    wf_arena_free(&arena);
    return rc;
}

static wf_status name_step(wf_disk *disk, const char *job_dir, const char *file, uint64_t step,
                           wf_err *err)
{
    char path[WF_CKPT_PATH], name[64], line[72];

    WF_TRY(wf_folder_path(path, err, job_dir, file));
    wf_folder_step_name(step, name, sizeof name);
    snprintf(line, sizeof line, "%s\n", name);
    return wf_disk_replace(disk, path, line, strlen(line), err);
}

/* Step 7. They are hints for people: what is newest is found by looking, what is best stands in
 * manifests. */
static wf_status move_latest(wf_disk *disk, const char *job_dir, const wf_manifest *m, wf_err *err)
{
    WF_TRY(wf_failpoint("ckpt.latest.before", err));
    WF_TRY(name_step(disk, job_dir, "latest", m->global_step, err));
    if (wf_manifest_best(m) == m->global_step)
        WF_TRY(name_step(disk, job_dir, "best", m->global_step, err));
    return wf_failpoint("ckpt.latest.after", err);
}

wf_status wf_ckpt_commit(wf_disk *disk, const char *dir, const char *folder, const wf_manifest *m,
                         wf_err *err)
{
    char job_dir[WF_CKPT_PATH];
    wf_status rc;

    WF_TRY(wf_folder_path(job_dir, err, dir, m->job));
    rc = write_manifest(disk, folder, m, err);
    if (rc == WF_OK)
        rc = wf_failpoint("ckpt.rename.before", err);
    if (rc == WF_OK)
        rc = wf_folder_publish(disk, job_dir, folder, m, err);
    if (rc == WF_OK)
        rc = wf_failpoint("ckpt.rename.after", err);
    if (rc == WF_OK)
        rc = move_latest(disk, job_dir, m, err);
    if (rc == WF_OK)
        return WF_OK;
    rc = wf_ckpt_say_free(disk, dir, rc, err);
    /* Gone already where the name was given: that checkpoint is whole, and only `latest` lags. */
    if (wf_ckpt_abandon(disk, folder, NULL) != WF_OK)
        wf_err_wrap(err, rc, "and %s could not be removed", folder);
    return wf_err_wrap(err, rc, "checkpoint at step %" PRIu64, m->global_step);
}

wf_status wf_ckpt_abandon(wf_disk *disk, const char *folder, wf_err *err)
{
    return wf_folder_remove(disk, folder, err);
}

/* A folder that stepped aside gets its name back, or goes if another has it. */
static wf_status settle_old(wf_disk *disk, const char *job_dir, const char *name, wf_err *err)
{
    char old[WF_CKPT_PATH], target[WF_CKPT_PATH];

    WF_TRY(wf_folder_path(old, err, job_dir, name));
    WF_TRY(wf_folder_path(target, err, job_dir, name + strlen(".old-")));
    if (wf_disk_exists(disk, target))
        return wf_folder_remove(disk, old, err);
    WF_TRY(wf_disk_rename(disk, old, target, err));
    return wf_disk_sync_dir(disk, job_dir, err);
}

wf_status wf_ckpt_sweep(wf_disk *disk, const char *dir, const char *job, wf_err *err)
{
    char job_dir[WF_CKPT_PATH];
    listing l = {0};
    wf_cut_id cut;
    uint64_t step;
    wf_status rc;

    WF_TRY(wf_folder_path(job_dir, err, dir, job));
    rc = list_job(disk, job_dir, &l, err);
    /* Cuts first: one of them may be what an old folder stepped aside for. */
    for (size_t i = 0; rc == WF_OK && i < l.n; i++)
        if (wf_folder_kind_of(l.names[i], &step, &cut) == WF_FOLDER_CUT)
            rc = settle(disk, job_dir, l.names[i], l.arena, err);
    for (size_t i = 0; rc == WF_OK && i < l.n; i++)
        if (wf_folder_kind_of(l.names[i], &step, &cut) == WF_FOLDER_OLD)
            rc = settle_old(disk, job_dir, l.names[i], err);
    wf_arena_free(&l.arena);
    return rc == WF_NOTFOUND ? WF_OK : rc;
}

wf_status wf_ckpt_gc(wf_disk *disk, const char *dir, const char *job, uint32_t keep,
                     uint64_t in_use, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    wf_ckpt_entry *list = NULL;
    size_t n = 0, whole = 0, seen = 0;
    uint64_t best = UINT64_MAX; /* as the newest says */
    char path[WF_CKPT_PATH];
    wf_status rc;

    if (!arena)
        return wf_fail_nomem(err, 0);
    rc = wf_ckpt_list(disk, dir, job, arena, &list, &n, err);
    for (size_t i = 0; i < n; i++) {
        if (!list[i].fault && whole++ == 0)
            best = list[i].best;
    }
    if (rc == WF_OK)
        rc = wf_failpoint("ckpt.gc.before", err);
    for (size_t i = 0; rc == WF_OK && whole > 0 && i < n; i++) {
        bool stays = !list[i].fault && seen++ < (keep > 0 ? keep : 1);

        if (stays || list[i].doubtful || (in_use && list[i].step == in_use) ||
            (!list[i].fault && list[i].step == best) || list[i].name[0] == '.')
            continue;
        rc = wf_failpoint("ckpt.gc.each", err);
        if (rc == WF_OK &&
            snprintf(path, sizeof path, "%s/%s/%s", dir, job, list[i].name) >= (int)sizeof path)
            rc = wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", dir);
        if (rc == WF_OK)
            rc = wf_folder_remove(disk, path, err);
    }
    wf_arena_free(&arena);
    return rc;
}
