/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/build_info.h - what this weft was built from and with, and what it runs on. */
#ifndef WF_CMD_CLI_BUILD_INFO_H
#define WF_CMD_CLI_BUILD_INFO_H

#include <stddef.h>

enum { WF_BUILD_TEXT = 96 };

/* The commit of the sources, short, or "" when they were not in git. */
const char *wf_build_commit(void);
/* "gcc 12.2.0". */
const char *wf_build_compiler(void);

/* Library i in the order of README's table, and its version as it is loaded; NULL past the end. */
const char *wf_build_library(size_t i, char version[static WF_BUILD_TEXT]);
/* The version of a library by its name, or "". Returns version. */
const char *wf_build_version_of(const char *library, char version[static WF_BUILD_TEXT]);

/* Unit i that kernels use and this processor has ("avx2", "avx512", "amx"); NULL past the end. */
const char *wf_build_unit(size_t i);

#endif
