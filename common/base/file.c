/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/file.c */
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    return S_ISFIFO(mode) ? "pipe" : S_ISSOCK(mode) ? "socket" : "device";
}

wf_status wf_file_open(const char *path, int flags, int *fd, wf_err *err)
{
    struct stat st;
    wf_status rc;

    /* ENXIO: a socket, or a pipe to write to that nobody reads. */
    *fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0644);
    if (*fd < 0 && errno == ENXIO)
        return wf_fail(err, WF_INVALID, "put a file in its place", "%s is a pipe or a socket",
                       path);
    if (*fd < 0)
        return wf_fail_errno(err, errno, NULL, "cannot %s %s", flags & O_CREAT ? "create" : "open",
                             path);
    if (fstat(*fd, &st) != 0)
        rc = wf_fail_errno(err, errno, NULL, "cannot look at %s", path);
    else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        rc = wf_fail(err, WF_INVALID, "put a file in its place", "%s is a %s and no file", path,
                     kind_of(st.st_mode));
    else
        return WF_OK;
    close(*fd);
    *fd = -1;
    return rc;
}

static wf_status read_to_end(int fd, size_t limit_bytes, const char *path, wf_bytes *out,
                             wf_err *err)
{
    for (;;) {
        uint8_t block[65536];
        ssize_t n = read(fd, block, sizeof block);

        if (n == 0)
            return wf_bytes_check(out, err);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wf_fail_errno(err, errno, NULL, "cannot read %s", path);
        if (out->size + (size_t)n > limit_bytes)
            return wf_fail(err, WF_FULL, NULL, "%s is larger than the %zu bytes allowed here", path,
                           limit_bytes);
        wf_bytes_add(out, block, (size_t)n);
    }
}

wf_status wf_file_read(const char *path, size_t limit_bytes, wf_bytes *out, wf_err *err)
{
    wf_status rc;
    int fd;

    WF_TRY(wf_file_open(path, O_RDONLY, &fd, err));
    rc = read_to_end(fd, limit_bytes, path, out, err);
    close(fd);
    if (rc != WF_OK)
        wf_bytes_close(out);
    return rc;
}

wf_status wf_write_all(int fd, const void *data, size_t n, const char *path, wf_err *err)
{
    const char *at = data;

    while (n > 0) {
        ssize_t done = write(fd, at, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return wf_fail_errno(err, errno, NULL, "cannot write %s", path);
        at += done;
        n -= (size_t)done;
    }
    return WF_OK;
}

wf_status wf_sync_dir(const char *path, wf_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int errnum = fd < 0 || fsync(fd) != 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    if (errnum == EACCES || errnum == EROFS || errnum == EINVAL)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "cannot sync folder %s: it may not be read, or its file system has no sync",
                       path);
    return errnum ? wf_fail_errno(err, errnum, NULL, "cannot sync folder %s", path) : WF_OK;
}

/* `named`: the path that it gets in the end, in `folder`; for messages. */
static wf_status write_and_sync(const char *path, const char *named, const char *folder,
                                const void *data, size_t n, wf_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    wf_status rc;

    if (fd < 0 && errno == ENOENT)
        return wf_fail(err, WF_NOTFOUND, "make it, or write to another", "there is no folder %s",
                       folder);
    if (fd < 0)
        return wf_fail_errno(err, errno, NULL, "cannot create %s", named);
    rc = wf_write_all(fd, data, n, path, err);
    if (rc == WF_OK && fsync(fd) != 0)
        rc = wf_fail_errno(err, errno, NULL, "cannot sync %s", path);
    if (close(fd) != 0 && rc == WF_OK)
        rc = wf_fail_errno(err, errno, NULL, "cannot close %s", path);
    return rc;
}

wf_status wf_file_write(const char *path, const void *data, size_t n, wf_err *err)
{
    char temporary[PATH_MAX], folder[PATH_MAX];
    char *slash;
    wf_status rc;

    if (snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid()) >=
        (int)sizeof temporary)
        return wf_fail(err, WF_INVALID, NULL, "the path %s is too long", path);
    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    rc = write_and_sync(temporary, path, slash ? folder : ".", data, n, err);
    if (rc == WF_OK && rename(temporary, path) != 0)
        rc = wf_fail_errno(err, errno, NULL, "cannot rename %s to %s", temporary, path);
    if (rc != WF_OK) {
        unlink(temporary);
        return rc;
    }
    return wf_sync_dir(slash ? folder : ".", err);
}

wf_status wf_make_dirs(const char *path, wf_err *err)
{
    char part[PATH_MAX];

    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return wf_fail(err, WF_INVALID, NULL, "the path %s is too long", path);
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return wf_fail_errno(err, errno, NULL, "cannot make folder %s", part);
        *p = '/';
    }
    if (mkdir(part, 0755) != 0 && errno != EEXIST)
        return wf_fail_errno(err, errno, NULL, "cannot make folder %s", part);
    return WF_OK;
}

bool wf_file_exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

void wf_path_shown(const char *path, char out[PATH_MAX])
{
    char folder[PATH_MAX], real[PATH_MAX];
    size_t n = strlen(path);

    snprintf(out, PATH_MAX, "%s", path);
    while (n < PATH_MAX) { /* the longest folder in front that exists */
        while (n && path[n - 1] != '/')
            n--;
        if (n == 0)
            return;
        snprintf(folder, sizeof folder, "%.*s", (int)n, path);
        if (realpath(folder, real)) {
            if (snprintf(out, PATH_MAX, "%s/%s", real[1] ? real : "", path + n) >= PATH_MAX)
                snprintf(out, PATH_MAX, "%s", path);
            return;
        }
        n--;
    }
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

wf_status wf_remove_tree(const char *path, wf_err *err)
{
    enum { OPEN_MOST = 16 };

    if (nftw(path, remove_one, OPEN_MOST, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        return wf_fail_errno(err, errno, NULL, "cannot remove %s", path);
    return WF_OK;
}
