/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/plot.h - lines in panels, one panel per metric, as a picture or in the terminal. */
#ifndef WF_CMD_CLI_PLOT_H
#define WF_CMD_CLI_PLOT_H

#include "cmd/cli/term.h"
#include "common/base/bytes.h"
#include <stdbool.h>
#include <stddef.h>

enum { WF_PLOT_SERIES = 32, WF_PLOT_PANELS = 16 };

typedef struct wf_plot_series {
    char label[96];      /* "digits#2 val_loss" */
    bool dashed;         /* of training */
    uint32_t color;      /* which of the palette: one for each run */
    const double *x, *y; /* [n]; y may hold NaN, which leaves a gap */
    size_t n;
} wf_plot_series;

typedef struct wf_plot_panel {
    const char *title; /* the metric */
    wf_plot_series series[WF_PLOT_SERIES];
    size_t n_series;
} wf_plot_panel;

/* The smallest and largest finite values of all series: x into x[2], y into y[2]; y is widened
 * where all are one. False when there is no point. */
bool wf_plot_bounds(const wf_plot_panel *p, double x[2], double y[2]);
/* A round distance between ticks (1, 2 or 5 times a power of ten) of which about `wanted` fit. */
double wf_plot_tick(double low, double high, int wanted);

/* All panels as one SVG picture (W3C, SVG 1.1) at the end of `out`. */
void wf_svg_write(const wf_plot_panel panels[], size_t n, wf_bytes *out);
/* A panel in characters at the end of `out`: coloured braille where the terminal can, else a letter
 * for each series. */
void wf_canvas_write(const wf_plot_panel *panel, const wf_term *term, wf_bytes *out);

#endif
