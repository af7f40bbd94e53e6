/* SPDX-License-Identifier: Apache-2.0 */
/* master/store/journal_file.h - the journal's file: what a frame is, and how a file of them is
 * read. For journal.c alone. */
#ifndef WF_MASTER_STORE_JOURNAL_FILE_H
#define WF_MASTER_STORE_JOURNAL_FILE_H

#include "master/store/journal.h"

enum {
    WF_FRAME_HEAD = 8,                /* u32 length, u32 crc32c of the body */
    WF_FRAME_LARGEST = 16 << 20,      /* bytes of a body */
    WF_FRAME_RECORD = 8 << 20,        /* bytes of one record */
    WF_FRAME_GOAL = 4 << 20,          /* a batch that is longer takes several frames */
    WF_FRAME_MOST_SCANNED = 256 << 20 /* bytes that are checked in search of a whole frame */
};

/* Gives each record of the file at `path` to `replay`. *end is where its last whole frame ends; 0
 * for a file that is not there. Errors: WF_CORRUPT when what follows cannot be a torn last frame;
 * WF_IO; what replay returns. */
WF_MUST_USE wf_status wf_journal_read(wf_disk *disk, const char *path, wf_journal_replay *replay,
                                      void *arg, uint64_t *end, wf_err *err);

#endif
