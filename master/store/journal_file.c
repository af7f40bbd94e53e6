/* SPDX-License-Identifier: Apache-2.0 */
/* master/store/journal_file.c - a journal is read frame by frame through a window that holds one.
 */
#include "master/store/journal_file.h"
#include "common/base/bytes.h"
#include "common/base/crc32c.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/header.h"

enum { WINDOW = 1 << 20 /* bytes that are read at once, if frames are shorter */ };

typedef struct reader {
    wf_disk_file *file;
    const char *path;
    uint64_t size;
    uint64_t from; /* where the window begins in the file */
    wf_bytes window;
} reader;

/* Brings [at, at + n) of the file, which must have them, into the window. */
static wf_status look_at(reader *r, uint64_t at, size_t n, const uint8_t **out, wf_err *err)
{
    if (at < r->from || at + n > r->from + r->window.size) {
        size_t want = (size_t)WF_MIN(WF_MAX((uint64_t)n, (uint64_t)WINDOW), r->size - at);
        uint8_t *to;

        wf_bytes_clear(&r->window);
        to = wf_bytes_extend(&r->window, want);
        if (!to)
            return wf_fail_nomem(err, want);
        r->from = at;
        WF_TRY(wf_disk_read(r->file, at, to, want, err));
    }
    *out = r->window.data + (at - r->from);
    return WF_OK;
}

/* The body of the frame at `at`; NULL when there is no whole one. */
static wf_status look_at_frame(reader *r, uint64_t at, const uint8_t **body, size_t *n, wf_err *err)
{
    const uint8_t *head;
    uint32_t sum;

    *body = NULL;
    if (r->size - at < WF_FRAME_HEAD)
        return WF_OK;
    WF_TRY(look_at(r, at, WF_FRAME_HEAD, &head, err));
    *n = wf_get_u32(head);
    sum = wf_get_u32(head + 4);
    if (*n > WF_FRAME_LARGEST || *n > r->size - at - WF_FRAME_HEAD)
        return WF_OK;
    WF_TRY(look_at(r, at, WF_FRAME_HEAD + *n, &head, err));
    if (wf_crc32c(0, head + WF_FRAME_HEAD, *n) == sum)
        *body = head + WF_FRAME_HEAD;
    return WF_OK;
}

static wf_status replay_frame(const uint8_t *body, size_t n, wf_journal_replay *replay, void *arg,
                              wf_err *err)
{
    Weft__Record *frame = NULL;
    wf_status rc = wf_control_unpack(body, n, &weft__record__descriptor, &frame, err);

    if (rc == WF_OK && frame->n_batch == 0)
        rc = replay(arg, frame, err);
    for (size_t i = 0; rc == WF_OK && i < frame->n_batch; i++)
        rc = replay(arg, frame->batch[i], err);
    wf_control_free(&frame);
    return rc;
}

static wf_status damaged(const reader *r, uint64_t at, wf_err *err)
{
    return wf_fail(err, WF_CORRUPT,
                   "move the file away to start anew; jobs go on with \"weft recover\"",
                   "%s: the record at byte %lu is damaged", r->path, (unsigned long)at);
}

/* Whether there may be a frame at p, by its first bytes: a length that fits, and a body that begins
 * with one of Record's fields. */
static bool looks_like_frame(const uint8_t *p, size_t left)
{
    size_t n = left > WF_FRAME_HEAD ? wf_get_u32(p) : 0;
    uint8_t field;

    if (n == 0 || n > left - WF_FRAME_HEAD)
        return false;
    field = p[WF_FRAME_HEAD] >> 3;
    return field >= 1 && field <= 15;
}

/* Only the last frame can be torn. A rest that is longer than any frame, or has a whole frame in
 * it, means that bytes have changed. */
static wf_status check_torn(reader *r, uint64_t bad, wf_err *err)
{
    size_t rest = (size_t)WF_MIN(r->size - bad, (uint64_t)WF_FRAME_HEAD + WF_FRAME_LARGEST);
    size_t scanned = 0;
    const uint8_t *p;

    if (rest < r->size - bad)
        return damaged(r, bad, err);
    WF_TRY(look_at(r, bad, rest, &p, err));
    for (size_t i = 1; i < rest; i++) {
        size_t n;

        if (!looks_like_frame(p + i, rest - i))
            continue;
        n = wf_get_u32(p + i);
        scanned += n;
        if (wf_crc32c(0, p + i + WF_FRAME_HEAD, n) == wf_get_u32(p + i + 4) ||
            scanned > WF_FRAME_MOST_SCANNED)
            return damaged(r, bad, err);
    }
    WF_LOG_WARN("journal.torn", "path=%s bytes=%zu", r->path, rest);
    return WF_OK;
}

static wf_status read_frames(reader *r, wf_journal_replay *replay, void *arg, uint64_t *end,
                             wf_err *err)
{
    while (*end < r->size) {
        const uint8_t *body;
        size_t n = 0;

        WF_TRY(look_at_frame(r, *end, &body, &n, err));
        if (!body)
            return check_torn(r, *end, err);
        WF_TRY(wf_err_wrap(err, replay_frame(body, n, replay, arg, err), "%s, byte %lu", r->path,
                           (unsigned long)*end));
        *end += WF_FRAME_HEAD + n;
    }
    return WF_OK;
}

wf_status wf_journal_read(wf_disk *disk, const char *path, wf_journal_replay *replay, void *arg,
                          uint64_t *end, wf_err *err)
{
    reader r = {.path = path};
    wf_status rc;

    *end = 0;
    rc = wf_disk_open(disk, path, WF_DISK_READ, &r.file, err);
    if (rc == WF_NOTFOUND) /* and nothing else: a disk that cannot be read is not an empty one */
        return WF_OK;
    if (rc == WF_OK)
        rc = wf_disk_size(r.file, &r.size, err);
    if (rc == WF_OK)
        rc = read_frames(&r, replay, arg, end, err);
    wf_bytes_close(&r.window);
    wf_disk_drop(&r.file);
    return rc;
}
