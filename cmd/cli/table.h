/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/table.h - rows of text in aligned columns. Cells are copied, with control characters
 * escaped; the last column is not padded.
 *
 *   wf_rows t = {0};
 *   wf_rows_add(&t, (const char *[]){"TASK", "STATE", "PID"}, 3);
 *   wf_rows_add(&t, (const char *[]){"ps/0", "ready", "4711"}, 3);
 *   rc = wf_rows_print(&t, stdout, err);
 */
#ifndef WF_CMD_CLI_TABLE_H
#define WF_CMD_CLI_TABLE_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdio.h>

enum { WF_MAX_COLUMNS = 16 };

typedef struct wf_rows {
    char *(*cells)[WF_MAX_COLUMNS];
    size_t n, room;
    int failed; /* no memory: what is there is not all */
} wf_rows;

/* The first row is the heading. Beyond WF_MAX_COLUMNS cells are dropped; NULL is "-". */
void wf_rows_add(wf_rows *t, const char *const cell[], size_t n);
/* Prints what was added and frees it; *t is empty then. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_rows_print(wf_rows *t, FILE *f, wf_err *err);
/* Frees without printing. */
void wf_rows_close(wf_rows *t);

#endif
