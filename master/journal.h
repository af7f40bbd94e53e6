/* SPDX-License-Identifier: Apache-2.0 */
/* master/journal.h - what the master must not forget: views, jobs, generations, finished splits,
 * commits.
 *
 * A file of records, each u32 length, u32 crc32c, protobuf Record. A record is on disk before what
 * it says is announced: wf_journal_append returns after the sync. A torn last record is cut off at
 * the next start; anything else that does not check is WF_CORRUPT. Records that later ones say
 * again are left out when it opens, and when it has grown to four times its length since: a replay
 * comes to the same. The shorter file takes the place of the longer in one rename.
 */
#ifndef WF_MASTER_JOURNAL_H
#define WF_MASTER_JOURNAL_H

#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/wire/control.pb-c.h"

typedef struct wf_journal wf_journal;

/* Opens (or makes) the journal in `folder`, and gives each record to `replay` in order. *out is the
 * caller's. Errors: WF_IO, WF_CORRUPT, and what replay returns. */
WF_MUST_USE wf_status wf_journal_open(wf_disk *disk, const char *folder,
                                      wf_status (*replay)(void *arg, const Weft__Record *record,
                                                          wf_err *err),
                                      void *arg, wf_journal **out, wf_err *err);
/* Closes *j; NULL is fine. */
void wf_journal_close(wf_journal **j);
/* Appends and syncs. After an error the journal takes no more: the master ends, and starts again
 * from what is on disk. */
WF_MUST_USE wf_status wf_journal_append(wf_journal *j, const Weft__Record *record, wf_err *err);

#endif
