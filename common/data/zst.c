/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/zst.c */
#include "common/data/zst.h"
#include "common/base/file.h"
#include "common/base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { LOOK_EACH = 64 << 20 /* bytes, between looks at what is free */ };
static const uint64_t LEAST_FREE = 256 << 20;

/* A file on its way through. */
typedef struct unpacking {
    const char *path, *folder;
    int from, to;
    ZSTD_DCtx *z;
    uint8_t *packed, *content; /* [ZSTD_DStreamInSize, ZSTD_DStreamOutSize] */
    uint64_t out, looked;      /* bytes written, and up to when the disk was last looked at */
    size_t left;               /* 0: a frame has ended */
} unpacking;

bool wf_is_zst(const char *path)
{
    size_t n = strlen(path);

    return n > 4 && strcmp(path + n - 4, ".zst") == 0;
}

static wf_status open_packed(unpacking *u, wf_err *err)
{
    struct stat st;
    wf_status rc = wf_file_open(u->path, O_RDONLY, &u->from, err);

    if (rc == WF_NOTFOUND)
        return wf_fail_errno(err, ENOENT, "check the path", "%s", u->path);
    if (rc == WF_OK && fstat(u->from, &st) != 0)
        return wf_fail_errno(err, errno, NULL, "%s", u->path);
    if (rc == WF_OK && !S_ISREG(st.st_mode))
        return wf_fail(err, WF_INVALID, "name one file", "%s is a folder, not a file", u->path);
    return rc;
}

static wf_status open_content(unpacking *u, wf_err *err)
{
    const char *named = getenv("TMPDIR");
    char name[PATH_MAX];

    u->folder = named && named[0] ? named : "/tmp";
    snprintf(name, sizeof name, "%s/weft-XXXXXX", u->folder);
    u->to = mkostemp(name, O_CLOEXEC);
    if (u->to < 0)
        return wf_fail(err, WF_IO, "set TMPDIR to a folder with room for the file's content",
                       "%s: cannot make a temporary file in %s: %m", u->path, u->folder);
    unlink(name);
    return WF_OK;
}

static wf_status no_room(const unpacking *u, int why, wf_err *err)
{
    return wf_fail_errno(err, why, "set TMPDIR to a folder with room for it, or unpack the file",
                         "%s: unpacking into %s, after %" PRIu64 " bytes", u->path, u->folder,
                         u->out);
}

/* Data must not take the room that checkpoints and the system need. */
static wf_status look_at_disk(unpacking *u, wf_err *err)
{
    struct statvfs disk;
    uint64_t unit;

    u->looked = u->out;
    if (fstatvfs(u->to, &disk) != 0)
        return no_room(u, errno, err);
    unit = disk.f_frsize;
    return disk.f_bavail * unit < WF_MIN(LEAST_FREE, disk.f_blocks * unit / 16)
               ? no_room(u, ENOSPC, err)
               : WF_OK;
}

static wf_status damaged(const unpacking *u, size_t code, wf_err *err)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return wf_fail_nomem(err, ZSTD_DStreamOutSize());
    if (ZSTD_getErrorCode(code) == ZSTD_error_prefix_unknown && u->out == 0)
        return wf_fail(err, WF_INVALID, "give it a name without .zst if it is not packed",
                       "%s does not hold zstd data", u->path);
    if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
        return wf_fail(err, WF_UNSUPPORTED, "pack it without --long, or with --long=27",
                       "%s is packed with a window of more than 128 MiB", u->path);
    return wf_fail(err, WF_INVALID, "fetch the file again",
                   "%s: damaged zstd data after %" PRIu64 " bytes: %s", u->path, u->out,
                   ZSTD_getErrorName(code));
}

static wf_status unpack_piece(unpacking *u, size_t n, wf_err *err)
{
    ZSTD_inBuffer in = {u->packed, n, 0};
    ZSTD_outBuffer out = {u->content, ZSTD_DStreamOutSize(), 0};

    while (in.pos < in.size || (u->left != 0 && out.pos == out.size)) {
        out.pos = 0;
        u->left = ZSTD_decompressStream(u->z, &out, &in);
        if (ZSTD_isError(u->left))
            return damaged(u, u->left, err);
        if (wf_write_all(u->to, u->content, out.pos, u->folder, NULL) != WF_OK)
            return no_room(u, errno, err);
        u->out += out.pos;
        if (u->out - u->looked >= LOOK_EACH)
            WF_TRY(look_at_disk(u, err));
    }
    return WF_OK;
}

static wf_status unpack(unpacking *u, wf_err *err)
{
    u->z = ZSTD_createDCtx();
    u->packed = malloc(ZSTD_DStreamInSize());
    u->content = malloc(ZSTD_DStreamOutSize());
    u->left = 1;
    if (!u->z || !u->packed || !u->content)
        return wf_fail_nomem(err, ZSTD_DStreamInSize() + ZSTD_DStreamOutSize());
    WF_TRY(look_at_disk(u, err));
    for (;;) {
        ssize_t n = read(u->from, u->packed, ZSTD_DStreamInSize());

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wf_fail_errno(err, errno, NULL, "%s: reading", u->path);
        if (n == 0)
            break;
        WF_TRY(unpack_piece(u, (size_t)n, err));
    }
    if (u->left != 0)
        return wf_fail(err, WF_INVALID, "fetch the file again",
                       "%s: the file was cut short, after %" PRIu64 " bytes", u->path, u->out);
    return lseek(u->to, 0, SEEK_SET) == 0 ? WF_OK : no_room(u, errno, err);
}

wf_status wf_zst_open(const char *path, int *fd, wf_err *err)
{
    unpacking u = {.path = path, .from = -1, .to = -1};
    wf_status rc = open_packed(&u, err);

    if (rc == WF_OK)
        rc = open_content(&u, err);
    if (rc == WF_OK)
        rc = unpack(&u, err);
    ZSTD_freeDCtx(u.z);
    free(u.packed);
    free(u.content);
    if (u.from >= 0)
        close(u.from);
    if (rc != WF_OK && u.to >= 0) {
        close(u.to);
        u.to = -1;
    }
    *fd = u.to;
    return rc;
}
