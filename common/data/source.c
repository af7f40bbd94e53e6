/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/source.c - bytes of a file, unpacked on the way when its name ends in .gz.
 *
 * An array's memory grows as its bytes arrive: a header of 40 bytes that promises 60 GB costs nothing
 * but a sentence.
 */
#include "common/base/size.h"
#include "common/data/format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { FIRST_BYTES = 64 << 20, GZ_BUFFER = 1 << 18 };

struct wf_source {
    int fd;
    gzFile gz; /* NULL: plain, through fd */
    uint64_t done;
    char *path;
};

bool wf_path_is(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);

    if (n >= 3 && strcmp(path + n - 3, ".gz") == 0)
        n -= 3;
    return n >= m && strncmp(path + n - m, ending, m) == 0;
}

static bool is_gz(const char *path)
{
    size_t n = strlen(path);

    return n >= 3 && strcmp(path + n - 3, ".gz") == 0;
}

wf_status wf_source_open(const char *path, wf_source **out, wf_err *err)
{
    wf_status rc = WF_OK;
    struct stat st;
    wf_source *s = calloc(1, sizeof *s);

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    s->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0) {
        rc = wf_fail_errno(err, errno, "check the path", "%s", path);
        goto out;
    }
    if (fstat(s->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        rc = wf_fail(err, WF_INVALID, "name a file", "%s is not a plain file", path);
        goto out;
    }
    s->path = strdup(path);
    if (!s->path) {
        rc = wf_fail_nomem(err, strlen(path));
        goto out;
    }
    if (is_gz(path)) {
        s->gz = gzdopen(s->fd, "rb");
        if (!s->gz) {
            rc = wf_fail_nomem(err, GZ_BUFFER);
            goto out;
        }
        s->fd = -1; /* gzclose closes it */
        gzbuffer(s->gz, GZ_BUFFER);
    }
    *out = s;
    s = NULL;
out:
    wf_source_close(&s);
    return rc;
}

void wf_source_close(wf_source **s)
{
    if (!*s)
        return;
    if ((*s)->gz)
        gzclose_r((*s)->gz);
    if ((*s)->fd >= 0)
        close((*s)->fd);
    free((*s)->path);
    free(*s);
    *s = NULL;
}

static wf_status read_some(wf_source *s, void *data, size_t n, size_t *got, wf_err *err)
{
    ssize_t r;

    if (s->gz) {
        r = gzread(s->gz, data, (unsigned)WF_MIN(n, (size_t)1 << 30));
        if (r < 0) {
            int code;

            return wf_fail(err, WF_CORRUPT, "copy the file again",
                           "%s: not good gzip after %" PRIu64 " bytes: %s", s->path, s->done,
                           gzerror(s->gz, &code));
        }
    } else {
        do
            r = read(s->fd, data, n);
        while (r < 0 && errno == EINTR);
        if (r < 0)
            return wf_fail_errno(err, errno, NULL, "reading %s", s->path);
    }
    s->done += (uint64_t)r;
    *got = (size_t)r;
    return WF_OK;
}

wf_status wf_source_read(wf_source *s, void *data, size_t n, size_t *got, wf_err *err)
{
    size_t have = 0, more = 1;

    while (have < n && more) {
        WF_TRY(read_some(s, (char *)data + have, n - have, &more, err));
        have += more;
    }
    *got = have;
    return WF_OK;
}

static wf_status cut_short(const wf_source *s, uint64_t wanted, wf_err *err)
{
    return wf_fail(err, WF_CORRUPT, "copy the file again",
                   "%s was cut short: %" PRIu64 " bytes are wanted and %" PRIu64 " are there",
                   s->path, wanted, s->done);
}

wf_status wf_source_all(wf_source *s, void *data, size_t n, wf_err *err)
{
    uint64_t wanted = s->done + n;
    size_t got;

    WF_TRY(wf_source_read(s, data, n, &got, err));
    if (got < n)
        return cut_short(s, wanted, err);
    return WF_OK;
}

wf_status wf_source_at_end(wf_source *s, wf_err *err)
{
    uint64_t wanted = s->done;
    size_t got;
    char byte;

    WF_TRY(wf_source_read(s, &byte, 1, &got, err));
    if (got)
        return wf_fail(err, WF_INVALID, "the header does not belong to this content",
                       "%s goes on after the %" PRIu64 " bytes that its header promises", s->path,
                       wanted);
    return WF_OK;
}

/* Bytes of the array, or an error that names its dims. */
static wf_status array_bytes(const wf_source *s, wf_dtype dtype, uint32_t rank,
                             const int64_t dims[], size_t *bytes, wf_err *err)
{
    char text[160];
    int64_t elems;

    if (rank < 1 || rank > WF_MAX_RANK)
        return wf_fail(err, WF_INVALID, "records lie along the first axis",
                       "%s has %u axes; 1 to %d can be read", s->path, rank, WF_MAX_RANK);
    if (!wf_dims_elems(rank, dims, &elems) ||
        !wf_mul_size((size_t)elems, wf_dtype_size(dtype), bytes) || *bytes > WF_FIELD_LIMIT)
        return wf_fail(err, WF_INVALID, NULL, "%s says that it holds %s %s, which cannot be",
                       s->path, wf_dtype_name(dtype), wf_dims_str(rank, dims, text, sizeof text));
    return WF_OK;
}

wf_status wf_source_array(wf_source *s, wf_dtype dtype, uint32_t rank, const int64_t dims[],
                          wf_array *out, wf_err *err)
{
    wf_status rc = WF_OK;
    uint64_t from = s->done;
    size_t bytes, have = 0, room = 0, got;
    char *data = NULL, *grown;

    WF_TRY(array_bytes(s, dtype, rank, dims, &bytes, err));
    do {
        room = room == 0 ? WF_MIN(bytes, (size_t)FIRST_BYTES) : WF_MIN(bytes, room * 2);
        grown = realloc(data, WF_MAX(room, (size_t)1));
        if (!grown) {
            rc = wf_fail_nomem(err, room);
            goto out;
        }
        data = grown;
        rc = wf_source_read(s, data + have, room - have, &got, err);
        if (rc != WF_OK)
            goto out;
        have += got;
        if (have < room) {
            rc = cut_short(s, from + bytes, err);
            goto out;
        }
    } while (have < bytes);
    rc = wf_source_at_end(s, err);
    if (rc != WF_OK)
        goto out;
    *out = (wf_array){.dtype = dtype, .rank = rank, .data = data};
    memcpy(out->dims, dims, rank * sizeof dims[0]);
    data = NULL;
out:
    free(data);
    return rc;
}
