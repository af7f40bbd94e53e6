/* SPDX-License-Identifier: Apache-2.0 */
/* master/journal.c */
#include "master/journal.h"
#include "common/base/bytes.h"
#include "common/base/crc32c.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "common/wire/header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME = 8, LARGEST = 8 << 20, FILE_LIMIT = 1 << 30, PATH_ROOM = 4096 };

struct wf_journal {
    wf_disk_file *file;
    wf_bytes record;
    bool failed;
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
    if (rc != WF_OK)
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
    j->failed = rc != WF_OK;
    return wf_err_wrap(err, rc, "the master's journal");
}
