/* SPDX-License-Identifier: Apache-2.0 */
/* master/store/journal.c - records gather in memory, batches go to disk, and now and then a
 * snapshot takes the place of the log. */
#include "master/store/journal.h"
#include "common/base/bytes.h"
#include "common/base/crc32c.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/header.h"
#include "master/store/journal_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_ROOM = 4096,
    LEAST = 256 << 10,     /* bytes of log that are not worth a snapshot */
    GROWTH = 4,            /* a log so many times as long as its snapshot is due to be replaced */
    BATCH_TAG = 8 << 3 | 2 /* of Record.batch in a packed Record */
};

/* Frames in memory, the last of them open: its head is filled in when it is sealed. */
typedef struct frames {
    wf_bytes bytes;
    size_t last; /* where the open frame begins */
    bool open;
} frames;

struct wf_journal {
    wf_disk *disk;
    wf_disk_file *file; /* the batch's while one is out */
    frames log, snapshot;
    bool in_snapshot, has_snapshot, out, failed;
    uint64_t appended, durable;
    uint64_t log_bytes, snapshot_bytes; /* of the file */
    uint64_t due_bytes;                 /* of log: then a snapshot is wanted */
    size_t least_bytes;
    char path[PATH_ROOM], folder[PATH_ROOM];
};

struct wf_journal_batch {
    wf_disk *disk;
    wf_disk_file *file;  /* borrowed: the journal's */
    wf_disk_file *fresh; /* the new file, with the snapshot in it */
    wf_bytes log, snapshot;
    uint64_t appended; /* is durable once this is written */
    bool wrote_snapshot;
    wf_status rc;
    wf_err err;
    char path[PATH_ROOM], folder[PATH_ROOM];
};

/* ---- frames in memory ---- */

static void seal(frames *f)
{
    uint8_t *head;
    size_t n;

    if (!f->open)
        return;
    wf_assert(f->bytes.size >= f->last + WF_FRAME_HEAD);
    head = f->bytes.data + f->last;
    n = f->bytes.size - f->last - WF_FRAME_HEAD;
    wf_put_u32(head, (uint32_t)n);
    wf_put_u32(head + 4, wf_crc32c(0, head + WF_FRAME_HEAD, n));
    f->open = false;
}

static void open_frame(frames *f)
{
    f->last = f->bytes.size;
    f->open = wf_bytes_extend(&f->bytes, WF_FRAME_HEAD) != NULL;
}

static size_t put_varint(uint8_t to[10], size_t n)
{
    size_t at = 0;

    for (; n >= 0x80; n >>= 7)
        to[at++] = (uint8_t)(n | 0x80);
    to[at++] = (uint8_t)n;
    return at;
}

static wf_status add_record(frames *f, const Weft__Record *record, size_t most, wf_err *err)
{
    size_t n = weft__record__get_packed_size(record);
    uint8_t head[11] = {BATCH_TAG}, *to;
    size_t head_bytes = 1 + put_varint(head + 1, n);

    if (n > most) /* a frame of it could not be read back */
        return wf_fail(err, WF_FULL, NULL,
                       "the master's journal: a record of %zu bytes, where %zu are allowed", n,
                       most);
    if (f->open && f->bytes.size - f->last + n > WF_FRAME_GOAL)
        seal(f);
    if (!f->open)
        open_frame(f);
    wf_bytes_add(&f->bytes, head, head_bytes);
    to = wf_bytes_extend(&f->bytes, n);
    if (!to)
        return wf_fail_nomem(err, n);
    weft__record__pack(record, to);
    return WF_OK;
}

static void close_frames(frames *f)
{
    wf_bytes_close(&f->bytes);
    *f = (frames){0};
}

/* ---- what gathers in memory ---- */

wf_status wf_journal_append(wf_journal *j, const Weft__Record *record, wf_err *err)
{
    wf_status rc;

    if (j->failed)
        return wf_fail(err, WF_IO, NULL, "the master's journal failed before");
    if (j->in_snapshot) /* a job's text with all that is said of it since it was submitted */
        return add_record(&j->snapshot, record, WF_FRAME_RECORD + WF_FRAME_GOAL, err);
    rc = add_record(&j->log, record, WF_FRAME_RECORD, err);
    if (rc == WF_OK)
        j->appended++;
    return rc;
}

uint64_t wf_journal_appended(const wf_journal *j)
{
    return j->appended;
}

uint64_t wf_journal_durable(const wf_journal *j)
{
    return j->durable;
}

bool wf_journal_wants_snapshot(const wf_journal *j)
{
    return !j->out && !j->failed && j->log_bytes + j->log.bytes.size > j->due_bytes;
}

void wf_journal_begin_snapshot(wf_journal *j)
{
    wf_assert(!j->in_snapshot && !j->out);
    close_frames(&j->snapshot);
    j->in_snapshot = true;
}

static void put_off_snapshot(wf_journal *j)
{
    j->due_bytes = 2 * (j->log_bytes + j->log.bytes.size);
}

void wf_journal_end_snapshot(wf_journal *j, bool whole)
{
    j->in_snapshot = false;
    j->has_snapshot = whole && j->snapshot.bytes.size > 0;
    if (j->has_snapshot)
        return;
    close_frames(&j->snapshot);
    put_off_snapshot(j);
}

wf_status wf_journal_take(wf_journal *j, wf_journal_batch **out, wf_err *err)
{
    wf_journal_batch *b;

    *out = NULL;
    if (j->out || (j->durable == j->appended && !j->has_snapshot))
        return WF_OK;
    WF_TRY(wf_bytes_check(&j->log.bytes, err));
    WF_TRY(wf_bytes_check(&j->snapshot.bytes, err));
    b = calloc(1, sizeof *b);
    if (!b)
        return wf_fail_nomem(err, sizeof *b);
    seal(&j->log);
    seal(&j->snapshot);
    b->disk = j->disk;
    b->file = j->file;
    b->log = j->log.bytes;
    b->snapshot = j->snapshot.bytes;
    b->appended = j->appended;
    memcpy(b->path, j->path, sizeof b->path);
    memcpy(b->folder, j->folder, sizeof b->folder);
    j->log = j->snapshot = (frames){0};
    j->has_snapshot = false;
    j->out = true;
    *out = b;
    return WF_OK;
}

/* ---- what goes to disk, on any thread ---- */

/* Frame by frame: only one that is not synced yet may be torn. */
static wf_status write_log(wf_journal_batch *b, wf_err *err)
{
    for (size_t at = 0; at < b->log.size;) {
        size_t n = WF_FRAME_HEAD + wf_get_u32(b->log.data + at);

        WF_TRY(wf_disk_write(b->file, b->log.data + at, n, err));
        WF_TRY(wf_disk_sync(b->file, err));
        at += n;
    }
    return WF_OK;
}

static wf_status write_temporary(wf_journal_batch *b, const char *path, wf_err *err)
{
    wf_disk_file *f = NULL;
    wf_status rc = wf_disk_open(b->disk, path, WF_DISK_CREATE, &f, err);

    if (rc == WF_OK)
        rc = wf_disk_write(f, b->snapshot.data, b->snapshot.size, err);
    if (rc == WF_OK)
        rc = wf_disk_sync(f, err);
    if (rc == WF_OK)
        return wf_disk_close(&f, err);
    wf_disk_drop(&f);
    return rc;
}

/* Until the rename the old file is as it was, and the log goes on in it: a disk that has no room
 * for both files costs the snapshot alone. */
static wf_status write_snapshot(wf_journal_batch *b, wf_err *err)
{
    char path[PATH_ROOM + 8];
    wf_err why;

    snprintf(path, sizeof path, "%s.new", b->path);
    if (write_temporary(b, path, &why) != WF_OK) {
        WF_LOG_WARN("journal.snapshot_failed", "path=%s why=\"%s\"", path, why.what);
        (void)!wf_disk_remove(b->disk, path, NULL); /* else the next snapshot takes its place */
        return write_log(b, err);
    }
    WF_TRY(wf_disk_rename(b->disk, path, b->path, err));
    WF_TRY(wf_disk_sync_dir(b->disk, b->folder, err));
    WF_TRY(wf_disk_open(b->disk, b->path, WF_DISK_APPEND, &b->fresh, err));
    b->wrote_snapshot = true;
    return WF_OK;
}

void wf_journal_write(wf_journal_batch *b)
{
    b->rc = b->snapshot.size ? write_snapshot(b, &b->err) : write_log(b, &b->err);
}

/* ---- what comes back ---- */

static void plan_snapshot(wf_journal *j)
{
    j->due_bytes = WF_MAX((uint64_t)j->least_bytes, GROWTH * j->snapshot_bytes);
}

static void take_lengths(wf_journal *j, const wf_journal_batch *b)
{
    if (!b->wrote_snapshot) {
        j->log_bytes += b->log.size;
        if (b->snapshot.size) /* it failed */
            put_off_snapshot(j);
        return;
    }
    WF_LOG_INFO("journal.snapshot", "path=%s bytes=%zu before=%lu", j->path, b->snapshot.size,
                (unsigned long)(j->snapshot_bytes + j->log_bytes));
    j->snapshot_bytes = b->snapshot.size;
    j->log_bytes = 0;
    plan_snapshot(j);
}

wf_status wf_journal_settle(wf_journal *j, wf_journal_batch **b, wf_err *err)
{
    wf_status rc = (*b)->rc;

    wf_assert(j->out && (*b)->appended >= j->durable && (*b)->appended <= j->appended);
    j->out = false;
    if (rc != WF_OK) {
        j->failed = true;
        if (err)
            *err = (*b)->err;
    } else {
        j->durable = (*b)->appended;
        take_lengths(j, *b);
    }
    if ((*b)->fresh) {
        wf_disk_drop(&j->file);
        j->file = (*b)->fresh;
        (*b)->fresh = NULL;
    }
    wf_journal_batch_free(b);
    return wf_err_wrap(err, rc, "the master's journal");
}

void wf_journal_batch_free(wf_journal_batch **b)
{
    if (!*b)
        return;
    wf_disk_drop(&(*b)->fresh);
    wf_bytes_close(&(*b)->log);
    wf_bytes_close(&(*b)->snapshot);
    free(*b);
    *b = NULL;
}

wf_status wf_journal_commit(wf_journal *j, wf_err *err)
{
    wf_journal_batch *b;

    WF_TRY(wf_journal_take(j, &b, err));
    if (!b)
        return WF_OK;
    wf_journal_write(b);
    return wf_journal_settle(j, &b, err);
}

/* ---- beginning and end ---- */

/* The file is open for what follows, its torn end is cut off, and all of that is on disk. */
static wf_status open_end(wf_journal *j, uint64_t end, wf_err *err)
{
    WF_TRY(wf_disk_open(j->disk, j->path, WF_DISK_APPEND, &j->file, err));
    WF_TRY(wf_disk_cut(j->file, end, err));
    WF_TRY(wf_disk_sync(j->file, err));
    return wf_disk_sync_dir(j->disk, j->folder, err);
}

wf_status wf_journal_open(wf_disk *disk, const char *folder, size_t least_bytes,
                          wf_journal_replay *replay, void *arg, wf_journal **out, wf_err *err)
{
    wf_journal *j = calloc(1, sizeof *j);
    uint64_t end = 0;
    wf_status rc;

    *out = NULL;
    if (!j)
        return wf_fail_nomem(err, sizeof *j);
    j->disk = disk;
    j->least_bytes = least_bytes ? least_bytes : LEAST;
    snprintf(j->folder, sizeof j->folder, "%s", folder);
    if ((size_t)snprintf(j->path, sizeof j->path, "%s/journal", folder) >= sizeof j->path)
        rc = wf_fail(err, WF_INVALID, "choose a shorter state_dir", "the path %.80s... is too long",
                     folder);
    else
        rc = wf_disk_make_dirs(disk, folder, err);
    if (rc == WF_OK)
        rc = wf_journal_read(disk, j->path, replay, arg, &end, err);
    if (rc == WF_OK)
        rc = open_end(j, end, err);
    if (rc == WF_OK) {
        j->log_bytes = end; /* where its snapshot ends is not told: at worst one is made early */
        plan_snapshot(j);
    } else {
        wf_journal_close(&j);
    }
    *out = j;
    return wf_err_wrap(err, rc, "the master's journal");
}

void wf_journal_close(wf_journal **j)
{
    if (!*j)
        return;
    wf_disk_drop(&(*j)->file);
    close_frames(&(*j)->log);
    close_frames(&(*j)->snapshot);
    free(*j);
    *j = NULL;
}
