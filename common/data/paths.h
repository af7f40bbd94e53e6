/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/paths.h - the files that paths of a job name. For this room only.
 *
 * A path whose last part has *, ? or [ names all files of its folder that match, in the order of
 * their bytes, unless there is a file of just that name. glob(3) is not used: glibc's frees twice
 * when memory ends. Of formats whose files hold several arrays, "FILE#NAME" is one of them.
 */
#ifndef WF_DATA_PATHS_H
#define WF_DATA_PATHS_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>

enum { WF_PATHS_MOST = 65536 /* files */ };

/* The files of n paths, in order; text and list in the arena. With `members` each has the "#NAME"
 * of its path. Errors: WF_NOTFOUND for a pattern that nothing matches; WF_INVALID for too many
 * files; WF_NOMEM. */
WF_MUST_USE wf_status wf_paths_expand(const char *const paths[], size_t n, bool members,
                                      wf_arena *a, const char *const **out, size_t *n_out,
                                      wf_err *err);
/* Where "#NAME" begins in a path, or its end. */
const char *wf_paths_member(const char *path);

#endif
