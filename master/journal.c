/* SPDX-License-Identifier: Apache-2.0 */
/* master/journal.c - records are appended, and those that later ones say again are left out now and
 * then: of a long job nearly all of them say that a split is done, in epochs that are over.
 */
#include "master/journal.h"
#include "common/base/bytes.h"
#include "common/base/crc32c.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAME = 8,
    LARGEST = 8 << 20,
    FILE_LIMIT = 1 << 30,
    PATH_ROOM = 4096,
    MOST_JOBS = 4096,
    SHORT = 4 << 10, /* bytes that are not worth the effort */
    GROWTH = 4       /* so many times its length since, and it is made shorter again */
};

struct wf_journal {
    wf_disk *disk;
    wf_disk_file *file;
    wf_bytes record;
    bool failed;
    size_t size, shorten_at;
    char path[PATH_ROOM];
};

/* Replays the whole records in bytes; *end is where the last one ends. */
static wf_status replay_all(const wf_bytes *bytes, const char *path,
                            wf_status (*replay)(void *arg, const Weft__Record *record, wf_err *err),
                            void *arg, size_t *end, wf_err *err)
{
    size_t at = 0;

    while (bytes->size - at >= FRAME) {
        size_t n = wf_get_u32(bytes->data + at);
        const uint8_t *body = bytes->data + at + FRAME;
        Weft__Record *record = NULL;
        wf_status rc;

        if (n > LARGEST || n > bytes->size - at - FRAME ||
            wf_crc32c(0, body, n) != wf_get_u32(bytes->data + at + 4))
            break;
        rc = wf_control_unpack(body, n, &weft__record__descriptor, &record, err);
        if (rc == WF_OK)
            rc = replay(arg, record, err);
        wf_control_free(&record);
        if (rc != WF_OK)
            return wf_err_wrap(err, rc, "%s, byte %zu", path, at);
        at += FRAME + n;
    }
    *end = at;
    return WF_OK;
}

/* ---- shortening ---- */

typedef struct entry {
    size_t at, bytes;     /* with its frame */
    uint32_t number;      /* of the job */
    uint64_t incarnation; /* of a record of splits done: the worker's */
    bool finished, epoch, goes;
} entry;

static wf_status note_entry(wf_bytes *entries, const wf_bytes *from, size_t at, wf_err *err)
{
    entry e = {.at = at, .bytes = FRAME + wf_get_u32(from->data + at)};
    Weft__Record *record = NULL;

    WF_TRY(wf_control_unpack(from->data + at + FRAME, e.bytes - FRAME, &weft__record__descriptor,
                             &record, err));
    e.number = record->number;
    e.epoch = record->epoch != NULL;
    e.finished = record->finished && !record->view && !record->job && !record->epoch &&
                 !record->cut && !record->session[0];
    e.incarnation = record->finished ? record->finished->incarnation : 0;
    wf_control_free(&record);
    wf_bytes_add(entries, &e, sizeof e);
    return WF_OK;
}

/* Whether a later record says more of what that worker has done. */
static bool is_said_again(const entry e[], size_t i, size_t n)
{
    for (size_t k = i + 1; k < n; k++)
        if (e[k].finished && e[k].number == e[i].number && e[k].incarnation == e[i].incarnation)
            return true;
    return false;
}

/* The records that a replay needs, in their order. A record of splits done goes when a later one
 * begins an epoch of the same job, which says what of it is done, and another one has the steps of
 * the same worker. Views all stay: who was in one and is not any more never comes back (M2). */
static wf_status keep_needed(const wf_bytes *from, size_t end, wf_bytes *to, wf_err *err)
{
    wf_bytes entries = {0};
    entry *e;
    uint8_t later[MOST_JOBS + 1] = {0}; /* by number of a job: an epoch begins further on */
    size_t n;
    wf_status rc = WF_OK;

    for (size_t at = 0; rc == WF_OK && at < end; at += FRAME + wf_get_u32(from->data + at))
        rc = note_entry(&entries, from, at, err);
    e = (entry *)(void *)entries.data;
    n = entries.size / sizeof *e;
    for (size_t i = n; i-- > 0;) {
        if (e[i].number > MOST_JOBS)
            continue;
        later[e[i].number] |= e[i].epoch;
        e[i].goes = e[i].finished && later[e[i].number] && is_said_again(e, i, n);
    }
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        if (!e[i].goes)
            wf_bytes_add(to, from->data + e[i].at, e[i].bytes);
    if (rc == WF_OK && (entries.failed || to->failed))
        rc = wf_fail_nomem(err, end);
    wf_bytes_close(&entries);
    return rc;
}

/* Whether the file is still the long one. */
static bool is_long(const wf_journal *j, size_t end)
{
    wf_bytes bytes = {0};
    bool same =
        wf_disk_read_all(j->disk, j->path, FILE_LIMIT, &bytes, NULL) == WF_OK && bytes.size == end;

    wf_bytes_close(&bytes);
    return same;
}

/* The first `end` bytes as a new file, if it is half as long at most; *end is its length then. A
 * disk that has no room for both keeps the long one. */
static wf_status shorten(wf_journal *j, const wf_bytes *bytes, size_t *end, wf_err *err)
{
    wf_bytes kept = {0};
    wf_status rc = keep_needed(bytes, *end, &kept, err);

    if (rc == WF_OK && kept.size <= *end / 2) {
        rc = wf_disk_replace(j->disk, j->path, kept.data, kept.size, err);
        if (rc == WF_OK) {
            WF_LOG_INFO("journal.shortened", "path=%s bytes=%zu before=%zu", j->path, kept.size,
                        *end);
            *end = kept.size;
        } else if (is_long(j, *end)) {
            WF_LOG_WARN("journal.long", "path=%s bytes=%zu", j->path, *end);
            rc = WF_OK;
        }
    }
    wf_bytes_close(&kept);
    return rc;
}

static void plan_shortening(wf_journal *j, size_t size)
{
    j->size = size;
    j->shorten_at = GROWTH * (size > SHORT ? size : SHORT);
}

static wf_status shorten_now(wf_journal *j, wf_err *err)
{
    wf_bytes bytes = {0};
    size_t end = j->size;
    wf_status rc = wf_disk_read_all(j->disk, j->path, FILE_LIMIT, &bytes, err);

    if (rc == WF_OK && bytes.size != end)
        rc = wf_fail(err, WF_CORRUPT, NULL, "%s has %zu bytes, where %zu were written", j->path,
                     bytes.size, end);
    if (rc == WF_OK)
        rc = shorten(j, &bytes, &end, err);
    wf_bytes_close(&bytes);
    wf_disk_drop(&j->file);
    if (rc == WF_OK)
        rc = wf_disk_open(j->disk, j->path, WF_DISK_APPEND, &j->file, err);
    plan_shortening(j, end);
    return rc;
}

/* ---- reading and writing ---- */

/* A torn record can only be the last: whole records behind a bad one mean that bytes have changed.
 */
static bool records_follow(const wf_bytes *bytes, size_t bad)
{
    for (size_t at = bad + 1; at + FRAME < bytes->size; at++) {
        size_t n = wf_get_u32(bytes->data + at);

        if (n > 0 && n <= LARGEST && n <= bytes->size - at - FRAME &&
            wf_crc32c(0, bytes->data + at + FRAME, n) == wf_get_u32(bytes->data + at + 4))
            return true;
    }
    return false;
}

static wf_status read_old(wf_disk *disk, wf_journal *j,
                          wf_status (*replay)(void *arg, const Weft__Record *record, wf_err *err),
                          void *arg, size_t *end, wf_err *err)
{
    wf_bytes bytes = {0};
    wf_status rc;

    *end = 0;
    rc = wf_disk_read_all(disk, j->path, FILE_LIMIT, &bytes, err);
    if (rc == WF_NOTFOUND) /* and nothing else: a disk that cannot be read is not an empty one */
        return WF_OK;
    if (rc == WF_OK)
        rc = replay_all(&bytes, j->path, replay, arg, end, err);
    if (rc == WF_OK && *end < bytes.size && records_follow(&bytes, *end))
        rc = wf_fail(err, WF_CORRUPT,
                     "move the file away to start anew; jobs go on with \"weft recover\"",
                     "%s: the record at byte %zu is damaged", j->path, *end);
    if (rc == WF_OK && *end < bytes.size)
        WF_LOG_WARN("journal.torn", "path=%s bytes=%zu", j->path, bytes.size - *end);
    if (rc == WF_OK && *end > SHORT)
        rc = shorten(j, &bytes, end, err);
    wf_bytes_close(&bytes);
    return rc;
}

wf_status wf_journal_open(wf_disk *disk, const char *folder,
                          wf_status (*replay)(void *arg, const Weft__Record *record, wf_err *err),
                          void *arg, wf_journal **out, wf_err *err)
{
    wf_journal *j = calloc(1, sizeof *j);
    wf_status rc;
    size_t end;

    if (!j)
        return wf_fail_nomem(err, sizeof *j);
    j->disk = disk;
    snprintf(j->path, sizeof j->path, "%s/journal", folder);
    rc = wf_disk_make_dirs(disk, folder, err);
    if (rc == WF_OK)
        rc = read_old(disk, j, replay, arg, &end, err);
    if (rc == WF_OK)
        rc = wf_disk_open(disk, j->path, WF_DISK_APPEND, &j->file, err);
    if (rc == WF_OK)
        rc = wf_disk_cut(j->file, end, err);
    if (rc == WF_OK)
        rc = wf_disk_sync(j->file, err);
    if (rc == WF_OK)
        rc = wf_disk_sync_dir(disk, folder, err);
    if (rc == WF_OK)
        plan_shortening(j, end);
    else
        wf_journal_close(&j);
    *out = j;
    return wf_err_wrap(err, rc, "the master's journal");
}

void wf_journal_close(wf_journal **j)
{
    if (!*j)
        return;
    wf_disk_drop(&(*j)->file);
    wf_bytes_close(&(*j)->record);
    free(*j);
    *j = NULL;
}

wf_status wf_journal_append(wf_journal *j, const Weft__Record *record, wf_err *err)
{
    size_t n = weft__record__get_packed_size(record);
    uint8_t *to;
    wf_status rc;

    if (j->failed)
        return wf_fail(err, WF_IO, NULL, "the journal failed before");
    if (n > LARGEST) /* it could not be read back */
        return wf_fail(err, WF_FULL, NULL,
                       "the master's journal: a record of %zu bytes, where %d are allowed", n,
                       LARGEST);
    wf_bytes_clear(&j->record);
    to = wf_bytes_extend(&j->record, FRAME + n);
    if (!to)
        return wf_fail_nomem(err, n);
    weft__record__pack(record, to + FRAME);
    wf_put_u32(to, (uint32_t)n);
    wf_put_u32(to + 4, wf_crc32c(0, to + FRAME, n));
    rc = wf_disk_write(j->file, to, FRAME + n, err);
    if (rc == WF_OK)
        rc = wf_disk_sync(j->file, err);
    j->size += FRAME + n;
    if (rc == WF_OK && j->size > j->shorten_at)
        rc = shorten_now(j, err);
    j->failed = rc != WF_OK;
    return wf_err_wrap(err, rc, "the master's journal");
}
