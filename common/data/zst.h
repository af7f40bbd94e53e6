/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/zst.h - the content of a zstd file. For this room only.
 *
 * A zstd file cannot be entered in its middle, unlike gzip (ranges.h), so its content goes into a
 * temporary file. That has no name: it is gone when it is closed, or when the process dies.
 */
#ifndef WF_DATA_ZST_H
#define WF_DATA_ZST_H

#include "common/base/status.h"
#include <stdbool.h>

/* Whether a path is of such a file: it ends with ".zst". */
bool wf_is_zst(const char *path);
/* Opens a zstd file, of one frame or several, and unpacks it into a temporary file in the folder
 * TMPDIR, or /tmp; *fd is that file at its begin, which the caller closes; -1 after a failure.
 * Errors: WF_NOTFOUND; WF_INVALID for a folder, for what is no zstd, is damaged or cut short;
 * WF_IO, also when the disk would have less than 256 MiB (of a small one a 16th) left; WF_NOMEM. */
WF_MUST_USE wf_status wf_zst_open(const char *path, int *fd, wf_err *err);

#endif
