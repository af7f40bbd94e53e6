/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/curves.c */
#include "cmd/cli/curves.h"
#include "cmd/cli/place.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20, MOST_COLUMNS = 256 };

static const char *const first_columns[WF_CURVE_METRICS] = {"epoch", "step", "generation",
                                                            "elapsed_s", "learning_rate"};

static size_t count(const char *text, char of)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == of;
    return n;
}

/* Cuts a line at its commas. */
static wf_status read_head(char *line, wf_arena *arena, wf_curves *out, const char *path,
                           wf_err *err)
{
    const char *name;

    out->columns = wf_arena_array(arena, MOST_COLUMNS, sizeof *out->columns);
    if (!out->columns)
        return wf_fail_nomem(err, MOST_COLUMNS * sizeof *out->columns);
    while ((name = strsep(&line, ",")) && out->n_columns < MOST_COLUMNS)
        out->columns[out->n_columns++] = name;
    for (size_t i = 0; i < WF_CURVE_METRICS; i++)
        if (i >= out->n_columns || strcmp(out->columns[i], first_columns[i]) != 0)
            return wf_fail(err, WF_CORRUPT, "move it away", "%s:1: it is no history of a run",
                           path);
    return WF_OK;
}

static bool read_row(char *line, const wf_curves *c, double *row)
{
    char *cell, *end;
    size_t n = 0;

    while ((cell = strsep(&line, ","))) {
        if (n == c->n_columns)
            return false;
        row[n] = cell[0] ? strtod(cell, &end) : (double)NAN;
        if (cell[0] && *end)
            return false;
        n++;
    }
    return n == c->n_columns && row[WF_CURVE_EPOCH] >= 1;
}

static wf_status read_rows(char *rest, wf_arena *arena, wf_curves *c, const char *path, wf_err *err)
{
    size_t line_number = 1, most = count(rest, '\n') + 1;
    char *line;

    c->rows = wf_arena_array(arena, most * c->n_columns, sizeof *c->rows);
    if (!c->rows)
        return wf_fail_nomem(err, most * c->n_columns * sizeof *c->rows);
    while ((line = strsep(&rest, "\n"))) {
        double *row = &c->rows[c->n_rows * c->n_columns];
        double *kept = row;

        line_number++;
        if (!line[0])
            continue;
        if (!rest) /* a line that has no end was cut short by a crash */
            break;
        if (!read_row(line, c, row))
            return wf_fail(err, WF_CORRUPT, "correct the line, or remove it",
                           "%s:%zu: it is no row of %zu numbers", path, line_number, c->n_columns);
        while (c->n_rows > 0 && kept[-(long)c->n_columns] >= row[WF_CURVE_EPOCH]) {
            kept -= c->n_columns;
            c->n_rows--;
        }
        memmove(kept, row, c->n_columns * sizeof *row);
        c->n_rows++;
    }
    return WF_OK;
}

wf_status wf_curves_read(const wf_cluster_conf *conf, const char *word, wf_arena *arena,
                         wf_curves *out, wf_err *err)
{
    char path[PATH_MAX + 96], *text, *rest;
    wf_bytes bytes = {0};
    wf_status rc;

    *out = (wf_curves){0};
    WF_TRY(wf_place_run(conf, word, out->run, err));
    snprintf(path, sizeof path, "%s/jobs/%s/history.csv", conf->state_dir, out->run);
    rc = wf_file_read(path, MOST_BYTES, &bytes, err);
    if (rc == WF_NOTFOUND)
        return wf_fail(err, rc, "its first epoch is not over, or see the names with: weft status",
                       "%s has no history", out->run);
    WF_TRY(rc);
    text = wf_arena_strndup(arena, wf_bytes_str(&bytes), bytes.size);
    wf_bytes_close(&bytes);
    if (!text)
        return wf_fail_nomem(err, bytes.size);
    rest = text;
    text = strsep(&rest, "\n");
    WF_TRY(read_head(text, arena, out, path, err));
    return rest ? read_rows(rest, arena, out, path, err) : WF_OK;
}

long wf_curves_find(const wf_curves *c, const char *name)
{
    for (size_t i = 0; i < c->n_columns; i++)
        if (strcmp(c->columns[i], name) == 0)
            return (long)i;
    return -1;
}

wf_status wf_curves_print(const wf_curves *c, size_t most, FILE *f, wf_arena *arena, wf_err *err)
{
    const char **cells = wf_arena_array(arena, c->n_columns, sizeof *cells);
    wf_rows t = {0};

    if (!cells)
        return wf_fail_nomem(err, c->n_columns * sizeof *cells);
    wf_rows_add(&t, c->columns, c->n_columns);
    for (size_t i = c->n_rows > most ? c->n_rows - most : 0; i < c->n_rows; i++) {
        for (size_t k = 0; k < c->n_columns; k++) {
            double v = wf_curves_at(c, i, k);
            char *text = wf_arena_alloc(arena, 32);

            if (!text) {
                wf_rows_close(&t);
                return wf_fail_nomem(err, 32);
            }
            if (isnan(v))
                snprintf(text, 32, "-");
            else if (k == WF_CURVE_ELAPSED)
                wf_seconds_text(v, text, 32);
            else
                snprintf(text, 32, k < WF_CURVE_ELAPSED ? "%.0f" : "%.4g", v);
            cells[k] = text;
        }
        wf_rows_add(&t, cells, c->n_columns);
    }
    return wf_rows_print(&t, f, err);
}
