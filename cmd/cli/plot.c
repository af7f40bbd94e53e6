/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/plot.c - curves of one or several runs. */
#include "cmd/cli/plot.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/curves.h"
#include "cmd/cli/place.h"
#include "cmd/cli/png.h"
#include "common/base/file.h"
#include "common/base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_RUNS = WF_PLOT_SERIES / 2 };

/* ---- the scales ---- */

bool wf_plot_bounds(const wf_plot_panel *p, double x[2], double y[2])
{
    bool any = false;

    for (size_t i = 0; i < p->n_series; i++) {
        const wf_plot_series *s = &p->series[i];

        for (size_t k = 0; k < s->n; k++) {
            if (!isfinite(s->y[k]))
                continue;
            x[0] = any ? fmin(x[0], s->x[k]) : s->x[k];
            x[1] = any ? fmax(x[1], s->x[k]) : s->x[k];
            y[0] = any ? fmin(y[0], s->y[k]) : s->y[k];
            y[1] = any ? fmax(y[1], s->y[k]) : s->y[k];
            any = true;
        }
    }
    if (any && y[1] - y[0] <= 1e-12 * fmax(fabs(y[0]), 1)) {
        y[0] -= 0.5;
        y[1] += 0.5;
    }
    return any;
}

double wf_plot_tick(double low, double high, int wanted)
{
    double each = (high - low) / wanted, power;

    if (!(each > 0))
        return 1;
    power = pow(10, floor(log10(each)));
    return each <= power       ? power
           : each <= 2 * power ? 2 * power
           : each <= 5 * power ? 5 * power
                               : 10 * power;
}

/* ---- from histories to panels ---- */

typedef struct plot {
    wf_plot_panel panels[WF_PLOT_PANELS];
    size_t n;
    const char *only; /* a metric, or NULL: all */
    wf_arena *arena;
} plot;

static wf_plot_panel *panel_of(plot *p, const char *metric)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->panels[i].title, metric) == 0)
            return &p->panels[i];
    if (p->n == WF_PLOT_PANELS)
        return NULL;
    p->panels[p->n].title = metric;
    return &p->panels[p->n++];
}

static const double *column(plot *p, const wf_curves *c, size_t at, wf_err *err)
{
    double *out = wf_arena_array(p->arena, c->n_rows + 1, sizeof *out);

    if (!out)
        (void)wf_fail_nomem(err, c->n_rows * sizeof *out);
    for (size_t i = 0; out && i < c->n_rows; i++)
        out[i] = wf_curves_at(c, i, at);
    return out;
}

/* A series for each column of metrics; those of training and evaluation share a panel. */
static wf_status add_run(plot *p, const wf_curves *c, uint32_t color, wf_err *err)
{
    for (size_t k = WF_CURVE_METRICS; k < c->n_columns; k++) {
        bool val = strncmp(c->columns[k], "val_", 4) == 0;
        const char *metric = c->columns[k] + (val ? 4 : 0);
        wf_plot_panel *panel;
        wf_plot_series *s;

        if (p->only && strcmp(p->only, metric) != 0 && strcmp(p->only, c->columns[k]) != 0)
            continue;
        panel = panel_of(p, metric);
        if (!panel || panel->n_series == WF_PLOT_SERIES)
            continue;
        s = &panel->series[panel->n_series++];
        *s = (wf_plot_series){.dashed = !val, .color = color, .n = c->n_rows};
        snprintf(s->label, sizeof s->label, "%s %.26s", c->run, c->columns[k]);
        s->x = column(p, c, WF_CURVE_EPOCH, err);
        s->y = s->x ? column(p, c, k, err) : NULL;
        if (!s->y)
            return WF_NOMEM;
    }
    return WF_OK;
}

static wf_status collect(const wf_cluster_conf *conf, const wf_words *jobs, plot *p, wf_err *err)
{
    if (jobs->n > MOST_RUNS)
        return wf_fail(err, WF_USAGE, NULL, "%zu runs are more than the %d of a picture", jobs->n,
                       MOST_RUNS);
    for (size_t i = 0; i < jobs->n; i++) {
        wf_curves c;

        WF_TRY(wf_curves_read(conf, jobs->word[i], p->arena, &c, err));
        WF_TRY(add_run(p, &c, (uint32_t)i, err));
    }
    if (p->n == 0)
        return wf_fail(err, WF_NOTFOUND, "weft history shows the names",
                       "there is no metric \"%.64s\"", p->only ? p->only : "");
    return WF_OK;
}

/* ---- out ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static wf_status draw(const plot *p, const char *file, wf_err *err)
{
    wf_term term = wf_term_of(stdout);
    wf_bytes out = {0};
    wf_status rc;

    for (size_t i = 0; !file && i < p->n; i++)
        wf_canvas_write(&p->panels[i], &term, &out);
    if (file)
        wf_svg_write(p->panels, p->n, &out);
    rc = wf_bytes_check(&out, err);
    if (rc == WF_OK && file)
        rc = ends_with(file, ".png") ? wf_png_write(&out, file, err)
                                     : wf_file_write(file, out.data, out.size, err);
    else if (rc == WF_OK)
        fwrite(out.data, 1, out.size, stdout);
    if (rc == WF_OK && file)
        wf_term_print(stdout, "%s: %zu metrics\n", file, p->n);
    wf_bytes_close(&out);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL, *file = NULL;
    wf_cluster_conf *conf = NULL;
    static plot p; /* large */
    wf_words words;
    const wf_flag flags[] = {{"output", 'o', .value = &file},
                             {"metric", 0, .value = &p.only},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    p = (plot){0};
    WF_TRY(wf_args(flags, argc, argv, 1, WF_COUNT(words.word), &words, err));
    if (file && !ends_with(file, ".svg") && !ends_with(file, ".png"))
        return wf_fail(err, WF_USAGE, "write -o FILE.svg or -o FILE.png",
                       "%.200s is the name of neither an SVG nor a PNG file", file);
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    p.arena = wf_arena_new(0);
    rc = p.arena ? collect(conf, &words, &p, err) : wf_fail_nomem(err, 0);
    if (rc == WF_OK)
        rc = draw(&p, file, err);
    wf_arena_free(&p.arena);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_plot = {
    .name = "plot",
    .help = "learning curves, in the terminal or as a picture",
    .usage =
        "weft plot JOB|JOB#N ... [--metric NAME] [-o FILE.svg|FILE.png] [--cluster FILE]\n"
        "\n"
        "Draws the metrics of one or several runs over the epochs, one panel per metric: training\n"
        "dashed (or dim), evaluation solid. No cluster need be up.\n"
        "  -o FILE.svg     write a picture instead; FILE.png needs the program rsvg-convert\n"
        "                  (package librsvg2-bin)\n"
        "  --metric NAME   draw only this metric\n"
        "\n"
        "  weft plot digits\n"
        "  weft plot digits#1 digits#2 --metric loss -o loss.svg\n",
    .run = run,
};
