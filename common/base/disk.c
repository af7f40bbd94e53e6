/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/disk.c - what every kind of disk shares: dispatch, and whole-file helpers built on
 * it. */
#include "common/base/disk.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

wf_status wf_disk_open(wf_disk *d, const char *path, wf_disk_mode mode, wf_disk_file **out,
                       wf_err *err)
{
    return d->ops->open(d, path, mode, out, err);
}

wf_status wf_disk_write(wf_disk_file *f, const void *data, size_t n, wf_err *err)
{
    return n ? f->disk->ops->write(f, data, n, err) : WF_OK;
}

wf_status wf_disk_read(wf_disk_file *f, uint64_t offset, void *data, size_t n, wf_err *err)
{
    return n ? f->disk->ops->read(f, offset, data, n, err) : WF_OK;
}

wf_status wf_disk_size(wf_disk_file *f, uint64_t *bytes, wf_err *err)
{
    return f->disk->ops->size(f, bytes, err);
}

wf_status wf_disk_cut(wf_disk_file *f, uint64_t bytes, wf_err *err)
{
    return f->disk->ops->cut(f, bytes, err);
}

wf_status wf_disk_sync(wf_disk_file *f, wf_err *err)
{
    return f->disk->ops->sync(f, err);
}

wf_status wf_disk_close(wf_disk_file **f, wf_err *err)
{
    wf_disk_file *open = *f;

    *f = NULL;
    return open ? open->disk->ops->close(open, err) : WF_OK;
}

void wf_disk_drop(wf_disk_file **f)
{
    wf_status rc = wf_disk_close(f, NULL);

    (void)rc; /* nothing was written, or the write has failed already and says so */
}

wf_status wf_disk_rename(wf_disk *d, const char *from, const char *to, wf_err *err)
{
    return d->ops->rename(d, from, to, err);
}

wf_status wf_disk_remove(wf_disk *d, const char *path, wf_err *err)
{
    return d->ops->remove(d, path, err);
}

wf_status wf_disk_make_dir(wf_disk *d, const char *path, wf_err *err)
{
    return d->ops->make_dir(d, path, err);
}

wf_status wf_disk_sync_dir(wf_disk *d, const char *path, wf_err *err)
{
    return d->ops->sync_dir(d, path, err);
}

wf_status wf_disk_list(wf_disk *d, const char *path, wf_arena *arena, const char *const **names,
                       size_t *n, wf_err *err)
{
    return d->ops->list(d, path, arena, names, n, err);
}

wf_status wf_disk_free_bytes(wf_disk *d, const char *path, uint64_t *bytes, wf_err *err)
{
    return d->ops->free_bytes(d, path, bytes, err);
}

wf_status wf_disk_read_all(wf_disk *d, const char *path, size_t limit_bytes, wf_bytes *out,
                           wf_err *err)
{
    wf_disk_file *f = NULL;
    uint64_t bytes;
    uint8_t *at;
    wf_status rc;

    rc = wf_disk_open(d, path, WF_DISK_READ, &f, err);
    if (rc != WF_OK)
        goto out;
    rc = wf_disk_size(f, &bytes, err);
    if (rc != WF_OK)
        goto out;
    if (bytes > limit_bytes) {
        rc = wf_fail(err, WF_FULL, NULL, "%s is larger than the %zu bytes allowed here", path,
                     limit_bytes);
        goto out;
    }
    at = wf_bytes_extend(out, (size_t)bytes);
    rc = at ? wf_disk_read(f, 0, at, (size_t)bytes, err) : wf_fail_nomem(err, bytes);
out:
    wf_disk_drop(&f);
    if (rc != WF_OK)
        wf_bytes_close(out);
    return rc;
}

/* The folder of a path: "." without a slash, "/" for a name at the root. */
static wf_status folder_of(const char *path, char folder[PATH_MAX], wf_err *err)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;

    if (n >= PATH_MAX)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", path);
    if (slash) {
        memcpy(folder, path, n);
        folder[n] = 0;
    }
    if (n == 0)
        snprintf(folder, PATH_MAX, "%s", slash ? "/" : ".");
    return WF_OK;
}

wf_status wf_disk_replace(wf_disk *d, const char *path, const void *data, size_t n, wf_err *err)
{
    char temporary[PATH_MAX], folder[PATH_MAX];
    wf_disk_file *f = NULL;
    wf_status rc;

    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= (int)sizeof temporary)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", path);
    WF_TRY(folder_of(path, folder, err));
    rc = wf_disk_open(d, temporary, WF_DISK_CREATE, &f, err);
    if (rc != WF_OK)
        return rc;
    rc = wf_disk_write(f, data, n, err);
    if (rc == WF_OK)
        rc = wf_disk_sync(f, err);
    if (rc != WF_OK)
        wf_disk_drop(&f);
    else
        rc = wf_disk_close(&f, err);
    if (rc == WF_OK)
        rc = wf_disk_rename(d, temporary, path, err);
    if (rc != WF_OK) {
        wf_status gone = wf_disk_remove(d, temporary, NULL);

        (void)gone; /* what failed first is what the caller must hear */
        return rc;
    }
    return wf_disk_sync_dir(d, folder, err);
}

/* The folder `made` is durable in the one above it. */
static wf_status keep_dir(wf_disk *d, const char *made, wf_err *err)
{
    char above[PATH_MAX];

    WF_TRY(folder_of(made, above, err));
    return wf_disk_sync_dir(d, above, err);
}

/* Of the folders that are there the last may be one whose maker ended before it was durable, unless
 * the one above cannot be synced: then it was made in another way, and is another's to keep. */
static wf_status keep_found(wf_disk *d, char found[], wf_err *err)
{
    wf_status rc = *found ? keep_dir(d, found, err) : WF_OK;

    *found = 0;
    return rc == WF_UNSUPPORTED ? WF_OK : rc;
}

wf_status wf_disk_make_dirs(wf_disk *d, const char *path, wf_err *err)
{
    char part[PATH_MAX], found[PATH_MAX] = "";

    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", path);
    for (char *p = part + 1;; p++) {
        char was = *p;

        if (was != '/' && was != 0)
            continue;
        *p = 0;
        if (wf_disk_exists(d, part)) {
            memcpy(found, part, (size_t)(p - part) + 1);
        } else {
            WF_TRY(keep_found(d, found, err));
            WF_TRY(wf_disk_make_dir(d, part, err));
            WF_TRY(keep_dir(d, part, err));
        }
        *p = was;
        if (was == 0)
            return keep_found(d, found, err);
    }
}

/* *gone: there is no such folder. */
static wf_status remove_what_is_there(wf_disk *d, const char *path, bool *gone, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    const char *const *names;
    size_t n = 0;
    wf_status rc;

    if (!arena)
        return wf_fail_nomem(err, 0);
    rc = wf_disk_list(d, path, arena, &names, &n, err);
    *gone = rc == WF_NOTFOUND;
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        const char *file = wf_arena_printf(arena, "%s/%s", path, names[i]);

        rc = file ? wf_disk_remove(d, file, err) : wf_fail_nomem(err, 0);
        rc = rc == WF_NOTFOUND ? WF_OK : rc; /* its owner was faster */
    }
    if (rc == WF_OK)
        rc = wf_disk_remove(d, path, err);
    wf_arena_free(&arena);
    return rc;
}

/* Another process may be about to add a file, until it hears that this is not wanted any more. */
wf_status wf_disk_remove_dir(wf_disk *d, const char *path, wf_err *err)
{
    enum { TIMES = 4 };
    bool gone = false;
    wf_status rc = WF_OK;

    for (int i = 0; i < TIMES; i++) {
        rc = remove_what_is_there(d, path, &gone, err);
        if (rc != WF_IO || gone)
            break;
    }
    return gone || rc == WF_NOTFOUND ? WF_OK : rc;
}

bool wf_disk_exists(wf_disk *d, const char *path)
{
    wf_disk_file *f = NULL;

    if (wf_disk_open(d, path, WF_DISK_READ, &f, NULL) != WF_OK)
        return false;
    wf_disk_drop(&f);
    return true;
}
