/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/curves.h - the history of a run as numbers: what history.csv in its folder holds. */
#ifndef WF_CMD_CLI_CURVES_H
#define WF_CMD_CLI_CURVES_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/conf/conf.h"
#include <stddef.h>
#include <stdio.h>

/* The first columns of each history; metrics follow, those of the evaluation as val_NAME. */
enum {
    WF_CURVE_EPOCH = 0,
    WF_CURVE_STEP,
    WF_CURVE_GENERATION,
    WF_CURVE_ELAPSED,
    WF_CURVE_RATE,
    WF_CURVE_METRICS
};

/* Of one run; in an arena. */
typedef struct wf_curves {
    char run[WF_RUN_NAME];
    const char **columns; /* [n_columns] */
    size_t n_columns;
    double *rows; /* [n_rows][n_columns]; NaN where there is no number */
    size_t n_rows;
} wf_curves;

/* Reads the history of a job's newest run, or of the run that the word names. An epoch that a later
 * generation has trained again is the later one. Errors: WF_NOTFOUND without a history; WF_CORRUPT
 * naming the line; WF_IO, WF_NOMEM. */
WF_MUST_USE wf_status wf_curves_read(const wf_cluster_conf *conf, const char *word, wf_arena *arena,
                                     wf_curves *out, wf_err *err);
/* Prints the last `most` epochs as a table. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_curves_print(const wf_curves *c, size_t most, FILE *f, wf_arena *arena,
                                      wf_err *err);
/* The column of that name, or -1. */
long wf_curves_find(const wf_curves *c, const char *name);
static inline double wf_curves_at(const wf_curves *c, size_t row, size_t column)
{
    return c->rows[row * c->n_columns + column];
}

#endif
