/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/ranges.c */
#include "common/data/ranges.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/data/zst.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK = 256 << 10, WINDOW = 32 << 10, TRAILER = 8 };
enum { GZIP = 15 + 16, RAW = -15 /* zlib's window bits */ };
static const uint64_t FIRST_SPAN = 256 << 10;

typedef struct point {
    uint64_t in, out; /* bytes before it */
    int bits;         /* of the byte before `in` that belong to what follows */
    uint8_t *window;  /* [WINDOW]; NULL: a member of the file begins here */
} point;

struct wf_ranges {
    const char *path;
    int fd;
    bool packed;
    point points[WF_RANGES_POINTS];
    uint32_t n_points;
    uint64_t span; /* of content between two points */
    /* of a pass over packed content */
    z_stream z;
    bool has_z, raw;
    uint64_t in, out;    /* bytes taken and given so far */
    uint32_t trailer;    /* bytes of a member's end that are still to be passed over */
    uint8_t *compressed; /* [CHUNK] */
    uint8_t *content;    /* [CHUNK] */
};

static wf_status damaged(const wf_ranges *r, wf_err *err)
{
    return wf_fail(err, WF_INVALID, "fetch the file again",
                   "%s: damaged gzip data after %" PRIu64 " bytes%s%s", r->path, r->out,
                   r->z.msg ? ": " : "", r->z.msg ? r->z.msg : "");
}

/* Up to n bytes of the file; 0 at its end. */
static wf_status read_file(const wf_ranges *r, uint64_t at, void *out, size_t n, size_t *got,
                           wf_err *err)
{
    ssize_t k;

    do
        k = pread(r->fd, out, n, (off_t)at);
    while (k < 0 && errno == EINTR);
    if (k < 0)
        return wf_fail_errno(err, errno, NULL, "%s: reading", r->path);
    *got = (size_t)k;
    return WF_OK;
}

static wf_status check_packed(const wf_ranges *r, wf_err *err)
{
    uint8_t magic[2] = {0};
    size_t got;

    WF_TRY(read_file(r, 0, magic, sizeof magic, &got, err));
    if (magic[0] == 0x1f && magic[1] == 0x8b)
        return WF_OK;
    return wf_fail(err, WF_INVALID, "give it a name without .gz if it is not packed",
                   "%s does not hold gzip data", r->path);
}

static wf_status check_file(const wf_ranges *r, wf_err *err)
{
    struct stat st;

    if (fstat(r->fd, &st) != 0)
        return wf_fail_errno(err, errno, NULL, "%s", r->path);
    if (!S_ISREG(st.st_mode))
        return wf_fail(err, WF_INVALID, "name one file", "%s is a folder, not a file", r->path);
    return r->packed ? check_packed(r, err) : WF_OK;
}

wf_status wf_ranges_open(const char *path, wf_ranges **out, wf_err *err)
{
    size_t n = strlen(path);
    wf_ranges *r = calloc(1, sizeof *r);
    wf_status rc;

    *out = r;
    if (!r)
        return wf_fail_nomem(err, sizeof *r);
    *r = (wf_ranges){.path = path, .fd = -1, .span = FIRST_SPAN};
    r->packed = n > 3 && strcmp(path + n - 3, ".gz") == 0;
    rc = wf_is_zst(path) ? wf_zst_open(path, &r->fd, err)
                         : wf_file_open(path, O_RDONLY, &r->fd, err);
    if (rc == WF_NOTFOUND)
        rc = wf_fail_errno(err, ENOENT, "check the path", "%s", path);
    r->content = malloc(CHUNK);
    if (rc == WF_OK && r->packed)
        r->compressed = malloc(CHUNK);
    if (rc == WF_OK && (!r->content || (r->packed && !r->compressed)))
        rc = wf_fail_nomem(err, CHUNK);
    if (rc == WF_OK)
        rc = check_file(r, err);
    if (rc != WF_OK)
        wf_ranges_close(out);
    return rc;
}

void wf_ranges_close(wf_ranges **ranges)
{
    wf_ranges *r = *ranges;

    *ranges = NULL;
    if (!r)
        return;
    if (r->has_z)
        inflateEnd(&r->z);
    for (uint32_t i = 0; i < r->n_points; i++)
        free(r->points[i].window);
    if (r->fd >= 0)
        close(r->fd);
    free(r->compressed);
    free(r->content);
    free(r);
}

/* ---- packed content ---- */

/* A pass begins at a point. */
static wf_status begin_pass(wf_ranges *r, const point *from, wf_err *err)
{
    uint8_t byte = 0;
    size_t got = 1;

    if (r->has_z)
        inflateEnd(&r->z);
    r->z = (z_stream){0};
    r->has_z = inflateInit2(&r->z, from->window ? RAW : GZIP) == Z_OK;
    if (!r->has_z)
        return wf_fail_nomem(err, WINDOW);
    r->raw = from->window != NULL;
    r->in = from->in;
    r->out = from->out;
    r->trailer = 0;
    if (!from->window)
        return WF_OK;
    if (from->bits)
        WF_TRY(read_file(r, from->in - 1, &byte, 1, &got, err));
    if (got != 1 ||
        (from->bits && inflatePrime(&r->z, from->bits, byte >> (8 - from->bits)) != Z_OK) ||
        inflateSetDictionary(&r->z, from->window, WINDOW) != Z_OK)
        return damaged(r, err);
    return WF_OK;
}

/* Another member may follow the one that has ended. A raw pass has its trailer still before it. */
static void end_member(wf_ranges *r)
{
    r->trailer = r->raw ? TRAILER : 0;
    r->raw = false;
    inflateReset2(&r->z, GZIP);
}

static void pass_trailer(wf_ranges *r)
{
    uint32_t n = WF_MIN(r->trailer, r->z.avail_in);

    r->z.next_in += n;
    r->z.avail_in -= n;
    r->in += n;
    r->trailer -= n;
}

/* Inflates into the room that z has, to its end, the end of a deflate block (flush Z_BLOCK), or the
 * end of the file, which sets *ended. */
static wf_status inflate_some(wf_ranges *r, int flush, bool *ended, wf_err *err)
{
    bool began = r->z.total_in > 0 || r->raw;
    size_t got;
    int rc;

    if (r->z.avail_in == 0) {
        WF_TRY(read_file(r, r->in, r->compressed, CHUNK, &got, err));
        r->z.next_in = r->compressed;
        r->z.avail_in = (unsigned)got;
        if (got == 0) {
            if (began || r->trailer)
                return wf_fail(err, WF_INVALID, "fetch the file again",
                               "%s: the file was cut short, after %" PRIu64 " bytes", r->path,
                               r->out);
            *ended = true;
            return WF_OK;
        }
    }
    if (r->trailer) {
        pass_trailer(r);
        return WF_OK;
    }
    {
        unsigned in = r->z.avail_in, out = r->z.avail_out;

        rc = inflate(&r->z, flush);
        r->in += in - r->z.avail_in;
        r->out += out - r->z.avail_out;
    }
    if (rc == Z_STREAM_END)
        end_member(r);
    else if (rc == Z_MEM_ERROR)
        return wf_fail_nomem(err, WINDOW);
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
        return damaged(r, err);
    return WF_OK;
}

static void drop_every_other(wf_ranges *r)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < r->n_points; i++) {
        if (i % 2 == 0)
            r->points[kept++] = r->points[i];
        else
            free(r->points[i].window);
    }
    r->n_points = kept;
    r->span *= 2;
}

/* After a deflate block has ended: what comes next can be read without what came before, but for
 * the window. */
static wf_status add_point(wf_ranges *r, wf_err *err)
{
    point p = {.in = r->in, .out = r->out, .bits = r->z.data_type & 7};
    unsigned n = 0;

    if (r->n_points == WF_RANGES_POINTS)
        drop_every_other(r);
    p.window = calloc(1, WINDOW);
    if (!p.window)
        return wf_fail_nomem(err, WINDOW);
    inflateGetDictionary(&r->z, p.window, &n);
    if (n < WINDOW) { /* zlib wants the newest bytes last */
        memmove(p.window + WINDOW - n, p.window, n);
        memset(p.window, 0, WINDOW - n);
    }
    r->points[r->n_points++] = p;
    return WF_OK;
}

/* Between two blocks of a member, and far enough from the last point. */
static bool wants_point(const wf_ranges *r)
{
    bool between = (r->z.data_type & 128) && !(r->z.data_type & 64) && r->z.total_in > 0;

    return between && r->out - r->points[r->n_points - 1].out >= r->span;
}

static wf_status scan_packed(wf_ranges *r,
                             wf_status (*take)(void *arg, const char *text, size_t n, wf_err *err),
                             void *arg, wf_err *err)
{
    bool ended = false;

    for (uint32_t i = 0; i < r->n_points; i++)
        free(r->points[i].window);
    r->points[0] = (point){0};
    r->n_points = 1;
    WF_TRY(begin_pass(r, &r->points[0], err));
    while (!ended) {
        r->z.next_out = r->content;
        r->z.avail_out = CHUNK;
        while (!ended && r->z.avail_out > 0) {
            WF_TRY(inflate_some(r, Z_BLOCK, &ended, err));
            if (!ended && wants_point(r))
                WF_TRY(add_point(r, err));
        }
        WF_TRY(take(arg, (const char *)r->content, CHUNK - r->z.avail_out, err));
    }
    return WF_OK;
}

/* Passes on to `begin`, from where the last read ended if that is nearer than any point. */
static wf_status pass_to(wf_ranges *r, uint64_t begin, bool *ended, wf_err *err)
{
    uint32_t at = 0;

    while (at + 1 < r->n_points && r->points[at + 1].out <= begin)
        at++;
    if (!r->has_z || r->out > begin || r->out < r->points[at].out)
        WF_TRY(begin_pass(r, &r->points[at], err));
    while (!*ended && r->out < begin) {
        r->z.next_out = r->content;
        r->z.avail_out = (unsigned)WF_MIN(begin - r->out, (uint64_t)CHUNK);
        WF_TRY(inflate_some(r, Z_NO_FLUSH, ended, err));
    }
    return WF_OK;
}

static wf_status read_packed(wf_ranges *r, uint64_t begin, size_t n, char *out, wf_err *err)
{
    bool ended = false;
    wf_status rc = pass_to(r, begin, &ended, err);

    r->z.next_out = (uint8_t *)out;
    r->z.avail_out = (unsigned)n;
    while (rc == WF_OK && !ended && r->z.avail_out > 0)
        rc = inflate_some(r, Z_NO_FLUSH, &ended, err);
    if (rc == WF_OK && !ended)
        return WF_OK;
    if (r->has_z)
        inflateEnd(&r->z);
    r->has_z = false; /* nothing goes on from here */
    return rc == WF_OK ? damaged(r, err) : rc;
}

/* ---- either ---- */

wf_status wf_ranges_scan(wf_ranges *r,
                         wf_status (*take)(void *arg, const char *text, size_t n, wf_err *err),
                         void *arg, wf_err *err)
{
    uint64_t at = 0;
    size_t got;

    if (r->packed)
        return scan_packed(r, take, arg, err);
    for (;; at += got) {
        WF_TRY(read_file(r, at, r->content, CHUNK, &got, err));
        if (got == 0)
            return WF_OK;
        WF_TRY(take(arg, (const char *)r->content, got, err));
    }
}

wf_status wf_ranges_read(wf_ranges *r, uint64_t begin, size_t n, char *out, wf_err *err)
{
    size_t got;

    wf_assert(n <= UINT32_MAX);
    if (r->packed)
        return read_packed(r, begin, n, out, err);
    for (size_t done = 0; done < n; done += got) {
        WF_TRY(read_file(r, begin + done, out + done, n - done, &got, err));
        if (got == 0)
            return wf_fail(err, WF_INVALID, "leave data files as they are while a job runs",
                           "%s has become shorter since it was opened", r->path);
    }
    return WF_OK;
}
