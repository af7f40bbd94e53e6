/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/folder.c */
#include "common/ckpt/folder.h"
#include "common/ckpt/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits only, as %u would also take spaces and signs. NULL when there is none, or too many. */
static const char *scan_u64(const char *at, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    size_t n = 0;

    for (; n < 20; n++) {
        char c = at[n];
        unsigned digit = c >= '0' && c <= '9'                 ? (unsigned)(c - '0')
                         : base == 16 && c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                              : base;

        if (digit >= base)
            break;
        value = value * base + digit;
    }
    *out = value;
    return n > 0 && n < 20 ? at + n : NULL;
}

static bool scan_step(const char *name, uint64_t *step)
{
    const char *end = strncmp(name, "step-", 5) == 0 ? scan_u64(name + 5, 10, step) : NULL;

    return end && *end == 0;
}

static bool scan_cut(const char *name, wf_cut_id *cut)
{
    uint64_t generation, number;
    const char *at;

    if (strncmp(name, ".tmp-g", 6) != 0)
        return false;
    at = scan_u64(name + 6, 10, &generation);
    if (!at || strncmp(at, "-c", 2) != 0)
        return false;
    at = scan_u64(at + 2, 10, &number);
    if (!at || *at != '-')
        return false;
    at = scan_u64(at + 1, 16, &cut->chief);
    cut->generation = (uint32_t)generation;
    cut->number = (uint32_t)number;
    return at && *at == 0 && generation <= UINT32_MAX && number <= UINT32_MAX;
}

wf_folder_kind wf_folder_kind_of(const char *name, uint64_t *step, wf_cut_id *cut)
{
    if (scan_step(name, step))
        return WF_FOLDER_STEP;
    if (scan_cut(name, cut))
        return WF_FOLDER_CUT;
    if (strncmp(name, ".old-", 5) == 0 && scan_step(name + 5, step))
        return WF_FOLDER_OLD;
    return WF_FOLDER_OTHER;
}

const char *wf_folder_step_name(uint64_t step, char *name, size_t size)
{
    snprintf(name, size, "step-%08" PRIu64, step);
    return name;
}

wf_status wf_folder_path(char path[WF_CKPT_PATH], wf_err *err, const char *above, const char *name)
{
    if (snprintf(path, WF_CKPT_PATH, "%s/%s", above, name) >= WF_CKPT_PATH)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", above);
    return WF_OK;
}

static wf_status check_size(wf_disk *disk, const char *folder, const wf_ckpt_file *file,
                            wf_err *err)
{
    char path[WF_CKPT_PATH];
    wf_disk_file *f = NULL;
    uint64_t bytes = 0;
    wf_status rc;

    WF_TRY(wf_folder_path(path, err, folder, file->name));
    rc = wf_disk_open(disk, path, WF_DISK_READ, &f, err);
    if (rc == WF_NOTFOUND)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR, "%s is missing", file->name);
    if (rc == WF_OK)
        rc = wf_disk_size(f, &bytes, err);
    wf_disk_drop(&f);
    if (rc == WF_OK && bytes != file->bytes)
        rc = wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                     "%s: %s: %" PRIu64 " of %" PRIu64 " bytes are there", file->name,
                     bytes < file->bytes ? "cut short" : "longer than it was", bytes, file->bytes);
    return rc;
}

wf_status wf_folder_read(wf_disk *disk, const char *folder, wf_arena *arena, wf_manifest *out,
                         wf_err *err)
{
    char path[WF_CKPT_PATH];
    wf_bytes text = {0};
    wf_status rc;

    WF_TRY(wf_folder_path(path, err, folder, "manifest.json"));
    rc = wf_disk_read_all(disk, path, WF_MANIFEST_MAX_BYTES, &text, err);
    if (rc == WF_NOTFOUND)
        return wf_fail(err, WF_CORRUPT, NULL, "manifest.json is missing, it was never finished");
    if (rc == WF_OK)
        rc = wf_manifest_decode(wf_bytes_str(&text), text.size, "manifest.json", arena, out, err);
    wf_bytes_close(&text);
    for (size_t i = 0; rc == WF_OK && i < out->n_files; i++)
        rc = check_size(disk, folder, &out->files[i], err);
    return rc;
}

wf_status wf_folder_remove(wf_disk *disk, const char *folder, wf_err *err)
{
    char path[WF_CKPT_PATH];
    wf_status rc;

    WF_TRY(wf_folder_path(path, err, folder, "manifest.json"));
    rc = wf_disk_remove(disk, path, err);
    if (rc == WF_OK)
        rc = wf_disk_sync_dir(disk, folder, err);
    return rc == WF_OK || rc == WF_NOTFOUND ? wf_disk_remove_dir(disk, folder, err) : rc;
}

/* WF_EXISTS where the folder that has the name step-N holds a cut at least as high as this one. */
static wf_status refuse_lower(wf_disk *disk, const char *target, const wf_manifest *m, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    wf_manifest other;
    wf_status rc = arena ? wf_folder_read(disk, target, arena, &other, err) : wf_fail_nomem(err, 0);

    if (rc == WF_OK && wf_cut_compare(other.cut, m->cut) >= 0)
        rc = wf_fail(err, WF_EXISTS, NULL, "%s is there already, of a later cut", target);
    else if (rc != WF_NOMEM)
        rc = WF_OK; /* lower, or not complete */
    wf_arena_free(&arena);
    return rc;
}

wf_status wf_folder_publish(wf_disk *disk, const char *job_dir, const char *folder,
                            const wf_manifest *m, wf_err *err)
{
    char name[64], old_name[80], target[WF_CKPT_PATH], old[WF_CKPT_PATH];
    bool taken;
    wf_status rc;

    wf_folder_step_name(m->global_step, name, sizeof name);
    snprintf(old_name, sizeof old_name, ".old-%s", name);
    WF_TRY(wf_folder_path(target, err, job_dir, name));
    WF_TRY(wf_folder_path(old, err, job_dir, old_name));
    taken = wf_disk_exists(disk, target);
    if (taken)
        WF_TRY(refuse_lower(disk, target, m, err));
    /* One that stepped aside before, in a life that ended there: the name has been taken since. */
    if (taken && wf_disk_exists(disk, old))
        WF_TRY(wf_folder_remove(disk, old, err));
    if (taken)
        WF_TRY(wf_disk_rename(disk, target, old, err));
    rc = wf_disk_rename(disk, folder, target, err);
    if (rc != WF_OK) {
        wf_status back = taken ? wf_disk_rename(disk, old, target, NULL) : WF_OK;

        (void)back; /* if this fails too, wf_ckpt_sweep gives the name back */
        return rc;
    }
    WF_TRY(wf_disk_sync_dir(disk, job_dir, err));
    return taken ? wf_folder_remove(disk, old, err) : WF_OK;
}
