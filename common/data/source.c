/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/source.c */
#include "common/data/source.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/data/zst.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 30 /* gzread counts in int */, GZIP_BUFFER = 128 * 1024, DEFLATE_BEST = 1032 };
/* Packed bytes that are worth being read at once, and that may lie in memory beside the array. */
enum { BULK_LEAST = 64 << 10, BULK_MOST = 256 << 20 };

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);

    return n >= k && strcmp(text + n - k, end) == 0;
}

/* What the last failure to read means. */
static wf_status explain(const wf_source *s, wf_err *err)
{
    int why = Z_OK;
    const char *text = gzerror(s->file, &why);

    if (why == Z_ERRNO)
        return wf_fail_errno(err, errno, NULL, "%s: reading", s->path);
    if (why == Z_MEM_ERROR)
        return wf_fail_nomem(err, GZIP_BUFFER);
    return wf_fail(err, WF_INVALID, "fetch the file again",
                   "%s: damaged gzip data after %" PRIu64 " bytes (%s)", s->path, s->at, text);
}

wf_status wf_source_open(wf_source *s, const char *path, wf_err *err)
{
    struct stat st;
    wf_status rc;
    int fd;

    *s = (wf_source){.path = path, .packed = ends_with(path, ".gz")};
    rc = wf_is_zst(path) ? wf_zst_open(path, &fd, err) : wf_file_open(path, O_RDONLY, &fd, err);
    if (rc == WF_NOTFOUND)
        return wf_fail_errno(err, ENOENT, "check the path", "%s", path);
    if (rc == WF_OK && fstat(fd, &st) != 0)
        rc = wf_fail_errno(err, errno, NULL, "%s", path);
    else if (rc == WF_OK && !S_ISREG(st.st_mode))
        rc = wf_fail(err, WF_INVALID, "name one file", "%s is a folder, not a file", path);
    if (rc != WF_OK) {
        if (fd >= 0)
            close(fd);
        return rc;
    }
    s->size = (uint64_t)st.st_size;
    s->most = s->size;
    if (s->packed && __builtin_mul_overflow(s->size, (uint64_t)DEFLATE_BEST, &s->most))
        s->most = UINT64_MAX;
    s->file = gzdopen(fd, "rb");
    if (!s->file) {
        close(fd);
        return wf_fail_nomem(err, GZIP_BUFFER);
    }
    if (gzbuffer(s->file, GZIP_BUFFER) != 0)
        return wf_fail_nomem(err, GZIP_BUFFER);
    if (s->packed && gzdirect(s->file)) {
        int why = Z_OK;

        gzerror(s->file, &why); /* of the look that gzdirect takes */
        if (why != Z_OK)
            return explain(s, err);
        return wf_fail(err, WF_INVALID, "give it a name without .gz if it is not packed",
                       "%s does not hold gzip data", path);
    }
    return WF_OK;
}

wf_status wf_source_open_member(wf_source *s, const char *path, const char *zip, const char *member,
                                wf_err *err)
{
    *s = (wf_source){.path = path};
    WF_TRY(wf_zip_open(zip, &s->zip, err));
    WF_TRY(wf_zip_begin(s->zip, member, &s->most, err));
    s->size = s->most;
    return WF_OK;
}

void wf_source_close(wf_source *s)
{
    wf_zip_close(&s->zip);
    if (s->file)
        gzclose_r(s->file); /* what it could say was said by read and end */
    s->file = NULL;
}

static wf_status cut_short(const wf_source *s, uint64_t wanted, wf_err *err)
{
    char shown[PATH_MAX];

    wf_path_shown(s->path, shown);
    return wf_fail(err, WF_INVALID, "fetch the file again",
                   "%s: %" PRIu64 " bytes wanted%s, %" PRIu64 " present; the file was cut short",
                   shown, wanted, s->packed ? " after unpacking" : "", s->at);
}

wf_status wf_source_expect(const wf_source *s, uint64_t bytes, wf_err *err)
{
    uint64_t wanted;

    if (__builtin_add_overflow(s->at, bytes, &wanted))
        wanted = UINT64_MAX;
    if (wanted <= s->most)
        return WF_OK;
    return wf_fail(err, WF_INVALID, "fetch the file again",
                   "%s: %" PRIu64 " bytes wanted by its header, %s%" PRIu64
                   " present; the file was cut short or is of another format",
                   s->path, wanted, s->packed ? "at most " : "", s->most);
}

/* Up to n bytes; fewer only at the end of the file, whole or cut. */
static wf_status read_some(wf_source *s, void *out, size_t n, size_t *got, wf_err *err)
{
    uint8_t *to = out;

    *got = 0;
    if (s->zip) {
        WF_TRY(wf_zip_read(s->zip, out, n, got, err));
        s->at += *got;
        return WF_OK;
    }
    while (*got < n) {
        int k = gzread(s->file, to + *got, (unsigned)WF_MIN(n - *got, (size_t)CHUNK));

        if (k < 0)
            return explain(s, err);
        if (k == 0)
            break;
        *got += (size_t)k;
        s->at += (size_t)k;
    }
    return WF_OK;
}

wf_status wf_source_read(wf_source *s, void *out, size_t n, wf_err *err)
{
    uint64_t from = s->at;
    size_t got;

    WF_TRY(read_some(s, out, n, &got, err));
    return got == n ? WF_OK : cut_short(s, from + n, err);
}

wf_status wf_source_next(wf_source *s, void *out, size_t n, bool *any, wf_err *err)
{
    uint64_t from = s->at;
    size_t got;

    WF_TRY(read_some(s, out, n, &got, err));
    *any = got > 0;
    if (got == 0)
        return wf_source_end(s, err);
    return got == n ? WF_OK : cut_short(s, from + n, err);
}

wf_status wf_source_skip(wf_source *s, uint64_t n, wf_err *err)
{
    wf_assert(!s->packed && !s->zip);
    if (n > s->size - WF_MIN(s->at, s->size))
        return cut_short(s, s->at + n, err);
    if (gzseek(s->file, (z_off_t)n, SEEK_CUR) < 0)
        return explain(s, err);
    s->at += n;
    return WF_OK;
}

/* The whole packed file, which the caller frees; NULL when it cannot be had. */
static void *read_packed(const wf_source *s)
{
    size_t size = (size_t)s->size, at = 0;
    uint8_t *packed = malloc(size);
    int fd = -1;

    if (packed && wf_file_open(s->path, O_RDONLY, &fd, NULL) != WF_OK)
        fd = -1;
    while (packed && fd >= 0 && at < size) {
        ssize_t k = read(fd, packed + at, size - at);

        if (k <= 0)
            break;
        at += (size_t)k;
    }
    if (fd >= 0)
        close(fd);
    if (at < size) {
        free(packed);
        return NULL;
    }
    return packed;
}

/* False when the file is not one sound member of just the bytes wanted: zlib says what it is. */
static bool unpack_rest(const wf_source *s, uint8_t *out, size_t n)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t used = 0, made = 0, whole = (size_t)s->at + n;
    void *packed = d ? read_packed(s) : NULL;
    bool sound = packed &&
                 libdeflate_gzip_decompress_ex(d, packed, (size_t)s->size, out, whole, &used,
                                               &made) == LIBDEFLATE_SUCCESS &&
                 used == s->size && made == whole;

    free(packed);
    libdeflate_free_decompressor(d);
    if (sound)
        memmove(out, out + s->at, n); /* what was read before begins the member again */
    return sound;
}

wf_status wf_source_rest(wf_source *s, void *out, size_t n, wf_err *err)
{
    bool bulk = s->packed && s->size >= BULK_LEAST && s->size <= BULK_MOST &&
                s->at <= WF_SOURCE_ROOM && n <= s->most - s->at;

    if (!bulk || !unpack_rest(s, out, n))
        return wf_source_read(s, out, n, err);
    s->at += n;
    s->ended = true;
    return WF_OK;
}

/* The length of what was packed, modulo 2^32, as the last four bytes of a gzip file have it. */
static bool read_length(const wf_source *s, uint32_t *out)
{
    uint8_t end[4];
    ssize_t got = -1;
    int fd;

    if (s->size < sizeof end || wf_file_open(s->path, O_RDONLY, &fd, NULL) != WF_OK)
        return false;
    got = pread(fd, end, sizeof end, (off_t)(s->size - sizeof end));
    close(fd);
    *out =
        (uint32_t)end[0] | (uint32_t)end[1] << 8 | (uint32_t)end[2] << 16 | (uint32_t)end[3] << 24;
    return got == (ssize_t)sizeof end;
}

bool wf_source_holds(const wf_source *s, uint64_t n)
{
    uint32_t length = 0;

    if (s->packed)
        return read_length(s, &length) && length == (uint32_t)(s->at + n);
    return s->at + n == s->size;
}

wf_status wf_source_end(wf_source *s, wf_err *err)
{
    int why = Z_OK;
    uint64_t whole = s->at;
    uint8_t byte;
    size_t got;

    if (s->ended)
        return WF_OK;
    WF_TRY(read_some(s, &byte, 1, &got, err));
    if (got)
        return wf_fail(err, WF_INVALID, "check that this is the file you mean",
                       "%s goes on beyond the %" PRIu64 " bytes that its header announces", s->path,
                       whole);
    if (s->zip)
        return wf_zip_end(s->zip, err);
    gzerror(s->file, &why);
    if (why == Z_BUF_ERROR) /* all data came, and gzip's checksum after it did not */
        return wf_fail(err, WF_INVALID, "fetch the file again",
                       "%s: the last bytes are missing, the file was cut short at %" PRIu64
                       " bytes",
                       s->path, s->size);
    return WF_OK;
}
