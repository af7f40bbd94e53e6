/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/file_pages.c */
#include "common/base/file_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where the file system has no files without a name, one loses its name at once. */
static int open_named(const char *folder)
{
    char path[PATH_MAX];
    int fd;

    if (snprintf(path, sizeof path, "%s/.rows-XXXXXX", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static int open_unnamed(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR) ? open_named(folder) : fd;
}

static int reserve(int fd, size_t bytes)
{
    int why;

    do
        why = posix_fallocate(fd, 0, (off_t)bytes);
    while (why == EINTR);
    return why;
}

static wf_status fail_reserve(const char *folder, size_t bytes, int why, wf_err *err)
{
    if (why == ENOSPC || why == EDQUOT || why == EFBIG)
        return wf_fail(err, WF_FULL, "free space there",
                       "%.300s has no room for %zu bytes of table rows: %s", folder, bytes,
                       strerror(why));
    return wf_fail(err, WF_IO, "let the folder lie on a local file system",
                   "%zu bytes of table rows cannot be reserved in %.300s: %s", bytes, folder,
                   strerror(why));
}

wf_status wf_file_pages_new(const char *folder, size_t bytes, void **out, wf_err *err)
{
    int fd = open_unnamed(folder), why;
    void *data;

    if (fd < 0)
        return wf_fail(err, WF_IO, "let the process write to this folder",
                       "no file for table rows can be made in %.300s: %s", folder, strerror(errno));
    why = bytes > (size_t)PTRDIFF_MAX ? EFBIG : reserve(fd, bytes);
    if (why) {
        close(fd);
        return fail_reserve(folder, bytes, why, err);
    }
    data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    why = errno;
    close(fd);
    if (data == MAP_FAILED)
        return wf_fail(err, WF_NOMEM, "raise the limits of address space and of mappings",
                       "%zu bytes of a file cannot be mapped: %s", bytes, strerror(why));
    *out = data;
    return WF_OK;
}

void wf_file_pages_free(void *data, size_t bytes)
{
    if (data)
        munmap(data, bytes);
}

void wf_file_pages_expect_no_order(void *data, size_t bytes)
{
    (void)madvise(data, bytes, MADV_RANDOM); /* a wish, not a need */
}

void wf_file_pages_fetch(const void *data, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)data & ~(page - 1);

    (void)madvise((void *)from, bytes + ((uintptr_t)data - from), MADV_WILLNEED);
}
