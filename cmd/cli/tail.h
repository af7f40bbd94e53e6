/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/tail.h - the end of a file that grows by lines. */
#ifndef WF_CMD_CLI_TAIL_H
#define WF_CMD_CLI_TAIL_H

#include "common/base/bytes.h"
#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

/* The last bytes of a file, `most` of them and no more, from the beginning of a line; *out must be
 * empty and is the caller's. *end, unless it is NULL, is where in the file they end. Errors: those
 * of wf_file_open. */
WF_MUST_USE wf_status wf_tail_read(const char *path, size_t most, wf_bytes *out, uint64_t *end,
                                   wf_err *err);

#endif
