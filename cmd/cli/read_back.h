/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/read_back.h - whether a model that was written reads back with the weights that it was
 * written with.
 *
 * Where the file has all of them as they are, their sums stand for them, so that they can be given
 * back before it is read: a large table is not held twice. A file whose weights are halves is
 * compared number by number.
 */
#ifndef WF_CMD_CLI_READ_BACK_H
#define WF_CMD_CLI_READ_BACK_H

#include "cmd/cli/library.h"
#include <stddef.h>

typedef struct wf_read_back {
    char origin[64];      /* of the weights */
    size_t n;             /* of weights, without ids of tables */
    double most;          /* the largest difference */
    struct wf_kept *kept; /* [n_kept]; NULL: the weights are there yet */
    size_t n_kept;
} wf_read_back;

/* Before the file is read: notes what t->weights are, and frees them where it can. *r is all zero
 * before, and to be closed also after a failure. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_read_back_begin(wf_read_back *r, wf_trained *t, const weft_model *m,
                                         wf_err *err);
/* Compares the model as it reads back. Errors: WF_CORRUPT. */
WF_MUST_USE wf_status wf_read_back_compare(wf_read_back *r, const wf_trained *t,
                                           const weft_model *back, const char *file, wf_err *err);
void wf_read_back_close(wf_read_back *r);

#endif
