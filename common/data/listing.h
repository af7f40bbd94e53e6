/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/listing.h - the files that patterns of a job name at this moment, for data that
 * grows.
 *
 * A name that begins with "_" or "." is of a file that is being written: it is left out. Whoever
 * writes such files renames them when they are whole.
 */
#ifndef WF_DATA_LISTING_H
#define WF_DATA_LISTING_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_listed {
    const char *path;
    uint64_t bytes;
    int64_t changed_ns; /* its modification time */
} wf_listed;

/* The files that n patterns name, each once, in the order of the bytes of their paths; in the
 * arena. A pattern that nothing matches is fine. Errors: WF_NOTFOUND or WF_IO for a folder that is
 * not there or cannot be read; WF_INVALID for too many files, or a name that is not
 * UTF-8; WF_NOMEM. */
WF_MUST_USE wf_status wf_data_list(const char *const patterns[], size_t n, wf_arena *a,
                                   wf_listed **out, size_t *n_out, wf_err *err);

/* What stands for a path in long lists: two of a hundred thousand paths have the same one with a
 * chance of 1 in 4 billion (XXH3). */
uint64_t wf_listed_id(const char *path);

/* Where "#NAME" begins in a path that names an array of a file, or its end. */
const char *wf_listed_member(const char *path);

/* That a file is there with as many bytes as it was taken with. Errors: WF_NOTFOUND; WF_INVALID,
 * with both sizes; WF_IO. */
WF_MUST_USE wf_status wf_data_check_listed(const char *path, uint64_t bytes, wf_err *err);

#endif
