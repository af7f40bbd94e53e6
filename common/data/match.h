/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/match.h - which files a pattern of the key `hosts` means. */
#ifndef WF_DATA_MATCH_H
#define WF_DATA_MATCH_H

#include "common/base/status.h"
#include <stdbool.h>

/* Whether a file, "#NAME" behind its path or not, is the one that `match` names, or one of those
 * that it means as a pattern (fnmatch(3), where * and ? stand for no "/"). */
bool wf_data_matches(const char *match, const char *file);

/* Whether any of the files that a path of a job names, itself or by a pattern, matches. *any is
 * left as it is where none does. Errors: those of wf_format_find_files. */
WF_MUST_USE wf_status wf_data_match(const char *format, const char *path, const char *match,
                                    bool *any, wf_err *err);

#endif
