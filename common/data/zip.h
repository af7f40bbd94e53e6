/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/zip.h - the members of a zip file, one read at a time, through minizip. For this room
 * only.
 *
 * Members are streamed, and no path of a member is ever used as one. What the directory of the file
 * claims of a member is held against the size of the file before anything is allocated.
 */
#ifndef WF_DATA_ZIP_H
#define WF_DATA_ZIP_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { WF_ZIP_MOST = 65536 /* members */, WF_ZIP_NAME = 256 /* bytes of a name, with its end */ };

typedef struct wf_zip wf_zip;

/* Opens a file; the caller owns *out. Errors: WF_NOTFOUND, WF_IO; WF_INVALID for what is no zip
 * file, or has too many members; WF_NOMEM. */
WF_MUST_USE wf_status wf_zip_open(const char *path, wf_zip **out, wf_err *err);
/* Sets *z to NULL; NULL is fine. */
void wf_zip_close(wf_zip **z);

/* The names of all members, in the order of the file; in the arena. Errors: WF_INVALID, WF_NOMEM.
 */
WF_MUST_USE wf_status wf_zip_names(wf_zip *z, wf_arena *a, const char *const **out, size_t *n,
                                   wf_err *err);
/* Begins to read a member. *most: bytes that can come out of it. Errors: WF_NOTFOUND when there is
 * none of that name; WF_INVALID for a damaged one; WF_UNSUPPORTED for an encrypted one, or one that
 * is packed in another way than numpy's. */
WF_MUST_USE wf_status wf_zip_begin(wf_zip *z, const char *name, uint64_t *most, wf_err *err);
/* Up to n bytes of the member; fewer only at its end. Errors: WF_INVALID. */
WF_MUST_USE wf_status wf_zip_read(wf_zip *z, void *out, size_t n, size_t *got, wf_err *err);
/* After the last byte: that the checksum is right. Errors: WF_INVALID. */
WF_MUST_USE wf_status wf_zip_end(wf_zip *z, wf_err *err);

#endif
