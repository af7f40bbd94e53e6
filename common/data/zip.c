/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/zip.c */
#include "common/data/zip.h"
#include "common/base/file.h"
#include "common/base/size.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unzip.h>

enum { CHUNK = 1 << 30 /* unzReadCurrentFile counts in int */, DEFLATE_BEST = 1032 };
enum { STORED = 0, DEFLATED = 8, ENCRYPTED = 1 };

struct wf_zip {
    unzFile file;
    const char *path; /* a copy */
    uint64_t size;    /* of the file on disk */
    bool begun;       /* a member is being read */
};

static wf_status damaged(const wf_zip *z, const char *what, wf_err *err)
{
    return wf_fail(err, WF_INVALID, "fetch the file again", "%s: damaged zip data (%s)", z->path,
                   what);
}

/* The size of a file, which must not be a folder or a pipe. */
static wf_status measure(const char *path, uint64_t *size, wf_err *err)
{
    struct stat st;
    wf_status rc;
    int fd = -1;

    WF_TRY(wf_file_open(path, O_RDONLY, &fd, err));
    rc = fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)
             ? wf_fail(err, WF_INVALID, "name one file", "%s is a folder, not a file", path)
             : WF_OK;
    *size = rc == WF_OK ? (uint64_t)st.st_size : 0;
    close(fd);
    return rc;
}

wf_status wf_zip_open(const char *path, wf_zip **out, wf_err *err)
{
    wf_zip *z = calloc(1, sizeof *z);
    unz_global_info64 info;
    wf_status rc;

    if (!z)
        return wf_fail_nomem(err, sizeof *z);
    z->path = strdup(path);
    rc = z->path ? measure(path, &z->size, err) : wf_fail_nomem(err, strlen(path));
    if (rc == WF_OK) {
        z->file = unzOpen64(path);
        if (!z->file || unzGetGlobalInfo64(z->file, &info) != UNZ_OK)
            rc = wf_fail(err, WF_INVALID, "check data.format and the path; numpy.savez writes it",
                         "%s is not a whole zip file", path);
        else if (info.number_entry > WF_ZIP_MOST)
            rc = wf_fail(err, WF_INVALID, NULL, "%s claims %" PRIu64 " members; %d are allowed",
                         path, (uint64_t)info.number_entry, WF_ZIP_MOST);
    }
    if (rc == WF_OK)
        *out = z;
    else
        wf_zip_close(&z);
    return rc;
}

void wf_zip_close(wf_zip **zip)
{
    wf_zip *z = *zip;

    *zip = NULL;
    if (!z)
        return;
    if (z->begun)
        unzCloseCurrentFile(z->file);
    if (z->file)
        unzClose(z->file);
    free((char *)z->path);
    free(z);
}

wf_status wf_zip_names(wf_zip *z, wf_arena *a, const char *const **out, size_t *n, wf_err *err)
{
    unz_global_info64 info;
    const char **names;
    char name[WF_ZIP_NAME];
    int why;

    if (unzGetGlobalInfo64(z->file, &info) != UNZ_OK)
        return damaged(z, "its directory", err);
    names =
        wf_arena_array(a, WF_MIN((size_t)info.number_entry, (size_t)WF_ZIP_MOST), sizeof *names);
    if (!names)
        return wf_fail_nomem(err, (size_t)info.number_entry * sizeof *names);
    *n = 0;
    for (why = unzGoToFirstFile(z->file); why == UNZ_OK && *n < info.number_entry;
         why = unzGoToNextFile(z->file)) {
        if (unzGetCurrentFileInfo64(z->file, NULL, name, sizeof name, NULL, 0, NULL, 0) != UNZ_OK)
            return damaged(z, "its directory", err);
        name[sizeof name - 1] = 0;
        names[*n] = wf_arena_strdup(a, name);
        if (!names[(*n)++])
            return wf_fail_nomem(err, sizeof name);
    }
    *out = names;
    return why == UNZ_OK || why == UNZ_END_OF_LIST_OF_FILE ? WF_OK
                                                           : damaged(z, "its directory", err);
}

wf_status wf_zip_begin(wf_zip *z, const char *name, uint64_t *most, wf_err *err)
{
    unz_file_info64 info;
    uint64_t unpacked;

    if (strlen(name) >= WF_ZIP_NAME || unzLocateFile(z->file, name, 1) != UNZ_OK)
        return wf_fail(err, WF_NOTFOUND, NULL, "%s has no member \"%.64s\"", z->path, name);
    if (unzGetCurrentFileInfo64(z->file, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK)
        return damaged(z, "its directory", err);
    if (info.flag & ENCRYPTED)
        return wf_fail(err, WF_UNSUPPORTED, "save it without a password",
                       "%s: the member \"%.64s\" is encrypted", z->path, name);
    if (info.compression_method != STORED && info.compression_method != DEFLATED)
        return wf_fail(err, WF_UNSUPPORTED, "write it with numpy.savez or savez_compressed",
                       "%s: the member \"%.64s\" is packed by method %lu", z->path, name,
                       info.compression_method);
    if (info.compressed_size > z->size || unzOpenCurrentFile(z->file) != UNZ_OK)
        return damaged(z, name, err);
    z->begun = true;
    if (__builtin_mul_overflow((uint64_t)info.compressed_size, (uint64_t)DEFLATE_BEST, &unpacked))
        unpacked = UINT64_MAX;
    *most = info.compression_method == STORED
                ? WF_MIN((uint64_t)info.uncompressed_size, (uint64_t)info.compressed_size)
                : WF_MIN((uint64_t)info.uncompressed_size, unpacked);
    return WF_OK;
}

wf_status wf_zip_read(wf_zip *z, void *out, size_t n, size_t *got, wf_err *err)
{
    uint8_t *to = out;

    for (*got = 0; *got < n;) {
        int k = unzReadCurrentFile(z->file, to + *got, (unsigned)WF_MIN(n - *got, (size_t)CHUNK));

        if (k < 0)
            return damaged(z, "of a member", err);
        if (k == 0)
            break;
        *got += (size_t)k;
    }
    return WF_OK;
}

wf_status wf_zip_end(wf_zip *z, wf_err *err)
{
    z->begun = false;
    if (unzCloseCurrentFile(z->file) != UNZ_OK)
        return damaged(z, "the checksum of a member is wrong", err);
    return WF_OK;
}
