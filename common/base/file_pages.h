/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/file_pages.h - memory whose pages lie in a file: for data that may be larger than
 * memory, and that nobody needs after the process.
 *
 * The file has no name and no open descriptor: only the mapping holds it, so its space comes back
 * when the mapping ends, by whatever way the process dies. All of it is reserved when it is made,
 * so that a full disk is an error then and not a signal at a later write.
 */
#ifndef WF_BASE_FILE_PAGES_H
#define WF_BASE_FILE_PAGES_H

#include "common/base/status.h"
#include <stddef.h>

/* Zeros [bytes] in a file of a folder that is there, until wf_file_pages_free. bytes is above 0.
 * Errors: WF_FULL when the disk, a quota or a limit of file sizes has no room; WF_IO, WF_NOMEM. */
WF_MUST_USE wf_status wf_file_pages_new(const char *folder, size_t bytes, void **out, wf_err *err);
/* NULL is fine. */
void wf_file_pages_free(void *data, size_t bytes);
/* Pages of this memory are touched in no order: a touch reads its page alone. */
void wf_file_pages_expect_no_order(void *data, size_t bytes);
/* Begins to read the pages of a range that is touched soon, without waiting for them. */
void wf_file_pages_fetch(const void *data, size_t bytes);

#endif
