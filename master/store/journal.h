/* SPDX-License-Identifier: Apache-2.0 */
/* master/store/journal.h - what the master must not forget: views, jobs, generations, finished
 * splits, commits.
 *
 * One file: a snapshot of the state, and behind it the log of what has happened since. Both are
 * frames, each u32 length, u32 crc32c, protobuf Record; a frame holds all records of one batch, or
 * one record in files of older releases. When the log has outgrown the snapshot, a new snapshot is
 * written under a temporary name, synced and renamed over the file, and the log begins anew behind
 * it: a crash leaves the old file or the new one.
 *
 * Group commit: wf_journal_append only packs a record into memory. What has gathered there becomes
 * one batch (wf_journal_take), which is written and synced on any thread (wf_journal_write) and
 * settled on the owner's (wf_journal_settle). Only then is it durable, and may what depends on it
 * leave the process. One batch is out at a time.
 *
 * Only the frame that was written last can be torn by a crash; it is cut off at the next start.
 * Anything else that does not check is WF_CORRUPT. Reading takes the memory of one frame, whatever
 * the size of the file.
 */
#ifndef WF_MASTER_STORE_JOURNAL_H
#define WF_MASTER_STORE_JOURNAL_H

#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/wire/control.pb-c.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_journal wf_journal;
typedef struct wf_journal_batch wf_journal_batch;

typedef wf_status wf_journal_replay(void *arg, const Weft__Record *record, wf_err *err);

/* Opens (or makes) the journal in `folder`, and gives each record to `replay` in order. *out is the
 * caller's. A snapshot is due once the log is longer than `least_bytes` (0: 256 KiB) and four times
 * the snapshot. Errors: WF_IO, WF_CORRUPT, and what replay returns. */
WF_MUST_USE wf_status wf_journal_open(wf_disk *disk, const char *folder, size_t least_bytes,
                                      wf_journal_replay *replay, void *arg, wf_journal **out,
                                      wf_err *err);
/* Closes *j; NULL is fine. A batch that is out is freed by whoever has it. */
void wf_journal_close(wf_journal **j);

/* Packs a record into memory. Errors: WF_FULL for a record that could not be read back; WF_NOMEM;
 * WF_IO after a batch has failed: the master ends, and starts again from what is on disk. */
WF_MUST_USE wf_status wf_journal_append(wf_journal *j, const Weft__Record *record, wf_err *err);
/* How many records were appended, and how many of them are on disk. */
uint64_t wf_journal_appended(const wf_journal *j);
uint64_t wf_journal_durable(const wf_journal *j);

/* Whether the next batch should begin with a snapshot. */
bool wf_journal_wants_snapshot(const wf_journal *j);
/* Records appended between these two are the snapshot: with them alone a replay comes to the state
 * as it is now. The next batch then replaces the file. `whole`: they are all there; else there is
 * no snapshot, and the next one is tried when the log is twice as long. */
void wf_journal_begin_snapshot(wf_journal *j);
void wf_journal_end_snapshot(wf_journal *j, bool whole);

/* All that is not on disk yet, for the caller to write and settle; NULL when there is nothing, or a
 * batch is out already. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_journal_take(wf_journal *j, wf_journal_batch **out, wf_err *err);
/* Writes and syncs; on any thread. How it went is kept in the batch. */
void wf_journal_write(wf_journal_batch *b);
/* The owner has the batch back, and frees it. Errors: WF_IO; the journal takes no more. */
WF_MUST_USE wf_status wf_journal_settle(wf_journal *j, wf_journal_batch **b, wf_err *err);
/* Frees a batch whose journal is closed; NULL is fine. */
void wf_journal_batch_free(wf_journal_batch **b);
/* Take, write and settle in one. */
WF_MUST_USE wf_status wf_journal_commit(wf_journal *j, wf_err *err);

#endif
