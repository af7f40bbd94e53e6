/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/disk_posix.c - the disk of the machine. Stateless but for the open files. */
#include "common/base/disk.h"
#include "common/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

typedef struct posix_file {
    wf_disk_file base; /* first */
    int fd;
    char path[];
} posix_file;

static wf_status posix_open(wf_disk *d, const char *path, wf_disk_mode mode, wf_disk_file **out,
                            wf_err *err)
{
    static const int flags[] = {
        [WF_DISK_READ] = O_RDONLY,
        [WF_DISK_CREATE] = O_WRONLY | O_CREAT | O_TRUNC,
        [WF_DISK_APPEND] = O_RDWR | O_CREAT | O_APPEND,
    };
    posix_file *f = malloc(sizeof *f + strlen(path) + 1);
    wf_status rc;

    if (!f)
        return wf_fail_nomem(err, sizeof *f);
    rc = wf_file_open(path, flags[mode], &f->fd, err);
    if (rc != WF_OK) {
        free(f);
        return rc;
    }
    f->base.disk = d;
    memcpy(f->path, path, strlen(path) + 1);
    *out = &f->base;
    return WF_OK;
}

static wf_status posix_write(wf_disk_file *base, const void *data, size_t n, wf_err *err)
{
    posix_file *f = (posix_file *)base;

    return wf_write_all(f->fd, data, n, f->path, err);
}

static wf_status posix_read(wf_disk_file *base, uint64_t offset, void *data, size_t n, wf_err *err)
{
    posix_file *f = (posix_file *)base;
    char *at = data;

    while (n > 0) {
        ssize_t got = pread(f->fd, at, n, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return wf_fail_errno(err, errno, NULL, "cannot read %s", f->path);
        if (got == 0)
            return wf_fail(err, WF_CORRUPT, NULL,
                           "%s ends at byte %" PRIu64
                           ", %zu bytes too early; the write was cut short",
                           f->path, offset, n);
        at += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return WF_OK;
}

static wf_status posix_size(wf_disk_file *base, uint64_t *bytes, wf_err *err)
{
    posix_file *f = (posix_file *)base;
    struct stat st;

    if (fstat(f->fd, &st) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot look at %s", f->path);
    if (!S_ISREG(st.st_mode))
        return wf_fail(err, WF_IO, NULL, "%s is not a file", f->path);
    *bytes = (uint64_t)st.st_size;
    return WF_OK;
}

static wf_status posix_cut(wf_disk_file *base, uint64_t bytes, wf_err *err)
{
    posix_file *f = (posix_file *)base;

    if (ftruncate(f->fd, (off_t)bytes) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot shorten %s", f->path);
    return WF_OK;
}

static wf_status posix_sync(wf_disk_file *base, wf_err *err)
{
    posix_file *f = (posix_file *)base;

    if (fsync(f->fd) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot sync %s", f->path);
    return WF_OK;
}

static wf_status posix_close(wf_disk_file *base, wf_err *err)
{
    posix_file *f = (posix_file *)base;
    wf_status rc = WF_OK;

    if (close(f->fd) != 0 && errno != EINTR)
        rc = wf_fail_errno(err, errno, NULL, "cannot close %s", f->path);
    free(f);
    return rc;
}

static wf_status posix_rename(wf_disk *d, const char *from, const char *to, wf_err *err)
{
    (void)d;
    if (rename(from, to) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot rename %s to %s", from, to);
    return WF_OK;
}

static wf_status posix_remove(wf_disk *d, const char *path, wf_err *err)
{
    (void)d;
    if (remove(path) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot remove %s", path);
    return WF_OK;
}

static wf_status posix_make_dir(wf_disk *d, const char *path, wf_err *err)
{
    (void)d;
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return wf_fail_errno(err, errno, NULL, "cannot make folder %s", path);
    return WF_OK;
}

static wf_status posix_sync_dir(wf_disk *d, const char *path, wf_err *err)
{
    (void)d;
    return wf_sync_dir(path, err);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static wf_status posix_list(wf_disk *d, const char *path, wf_arena *arena,
                            const char *const **names, size_t *n, wf_err *err)
{
    DIR *dir = opendir(path);
    const char **found = NULL;
    size_t count = 0, room = 0;
    wf_status rc = WF_OK;

    (void)d;
    if (!dir)
        return wf_fail_errno(err, errno, NULL, "cannot list %s", path);
    for (;;) {
        struct dirent *e = readdir(dir);

        if (!e)
            break;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (count == room) {
            const char **more = wf_arena_array(arena, 2 * room + 16, sizeof *more);

            if (more && count)
                memcpy(more, found, count * sizeof *more);
            room = 2 * room + 16;
            found = more;
        }
        if (!found || !(found[count] = wf_arena_strdup(arena, e->d_name))) {
            rc = wf_fail_nomem(err, room * sizeof *found);
            break;
        }
        count++;
    }
    closedir(dir);
    if (rc != WF_OK)
        return rc;
    if (count)
        qsort(found, count, sizeof *found, by_bytes);
    *names = found;
    *n = count;
    return WF_OK;
}

static wf_status posix_free_bytes(wf_disk *d, const char *path, uint64_t *bytes, wf_err *err)
{
    struct statvfs st;

    (void)d;
    if (statvfs(path, &st) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot look at the disk of %s", path);
    *bytes = (uint64_t)st.f_bavail * st.f_frsize;
    return WF_OK;
}

static wf_status no_sync(wf_disk_file *f, wf_err *err)
{
    (void)f, (void)err;
    return WF_OK;
}

static wf_status no_sync_dir(wf_disk *d, const char *path, wf_err *err)
{
    (void)d, (void)path, (void)err;
    return WF_OK;
}

#define OPS(sync_file, sync_folder)                                                                \
    {                                                                                              \
        .open = posix_open, .write = posix_write, .read = posix_read, .size = posix_size,          \
        .cut = posix_cut, .sync = (sync_file), .close = posix_close, .rename = posix_rename,       \
        .remove = posix_remove, .make_dir = posix_make_dir, .sync_dir = (sync_folder),             \
        .list = posix_list, .free_bytes = posix_free_bytes,                                        \
    }
static const wf_disk_ops posix_ops = OPS(posix_sync, posix_sync_dir);
static const wf_disk_ops temporary_ops = OPS(no_sync, no_sync_dir);

wf_disk *wf_disk_posix(void)
{
    /* Written by nobody: `const` only had to go because callers hold disks that do change. */
    static wf_disk posix = {&posix_ops};

    return &posix;
}

wf_disk *wf_disk_temporary(void)
{
    static wf_disk temporary = {&temporary_ops};

    return &temporary;
}
