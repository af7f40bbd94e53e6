/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/svg.c - panels as an SVG picture: lines, ticks and a legend, without a font of its own.
 */
#include "cmd/cli/plot.h"
#include "common/base/size.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 300, LEFT = 64, RIGHT = 16, TOP = 36, BOTTOM = 40, LEGEND = 16 };

/* Told apart by people with any colour vision (Okabe and Ito, "Color Universal Design", 2008). */
static const char *const palette[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000"};

static void put_text(wf_bytes *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            wf_bytes_puts(out, "&lt;");
        else if (*text == '&')
            wf_bytes_puts(out, "&amp;");
        else if ((unsigned char)*text >= 0x20)
            wf_bytes_add(out, text, 1);
    }
}

static double place_x(const double x[2], double v)
{
    return LEFT + (x[1] > x[0] ? (v - x[0]) / (x[1] - x[0]) : 0.5) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const double y[2], double v, double top)
{
    return top + TOP + (y[1] - v) / (y[1] - y[0]) * (HEIGHT - TOP - BOTTOM);
}

static void put_ticks(wf_bytes *out, const double x[2], const double y[2], double top)
{
    double dx = fmax(wf_plot_tick(x[0], x[1], 8), 1), dy = wf_plot_tick(y[0], y[1], 5);

    for (double v = ceil(y[0] / dy) * dy; v <= y[1] + dy * 1e-9; v += dy) {
        wf_bytes_printf(out,
                        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                        LEFT, WIDTH - RIGHT, place_y(y, v, top), place_y(y, v, top));
        wf_bytes_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n",
                        LEFT - 6, place_y(y, v, top) + 4, fabs(v) < dy * 1e-9 ? 0 : v);
    }
    for (double v = ceil(x[0] / dx) * dx; v <= x[1] + dx * 1e-9; v += dx)
        wf_bytes_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.0f</text>\n",
                        place_x(x, v), top + HEIGHT - BOTTOM + 16, v);
    wf_bytes_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">epoch</text>\n",
                    WIDTH - RIGHT, top + HEIGHT - BOTTOM + 32);
}

static void put_style(wf_bytes *out, const wf_plot_series *s)
{
    wf_bytes_printf(out, "fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"%s",
                    palette[s->color % WF_COUNT(palette)],
                    s->dashed ? " stroke-dasharray=\"5 3\"" : "");
}

/* A run of points between two gaps; one alone is a dot. */
static size_t put_piece(wf_bytes *out, const wf_plot_series *s, size_t i, const double x[2],
                        const double y[2], double top)
{
    size_t first = i;

    while (i < s->n && isfinite(s->y[i]))
        i++;
    if (i == first + 1)
        wf_bytes_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" ", place_x(x, s->x[first]),
                        place_y(y, s->y[first], top));
    else
        wf_bytes_puts(out, "<polyline points=\"");
    for (size_t k = first; i > first + 1 && k < i; k++)
        wf_bytes_printf(out, "%s%.1f,%.1f", k > first ? " " : "", place_x(x, s->x[k]),
                        place_y(y, s->y[k], top));
    wf_bytes_puts(out, i > first + 1 ? "\" " : "");
    put_style(out, s);
    wf_bytes_puts(out, "/>\n");
    return i;
}

static void put_panel(wf_bytes *out, const wf_plot_panel *p, double top)
{
    double x[2], y[2];

    wf_bytes_printf(out, "<text x=\"%d\" y=\"%.1f\" font-weight=\"bold\">", LEFT, top + 20);
    put_text(out, p->title);
    wf_bytes_puts(out, "</text>\n");
    if (!wf_plot_bounds(p, x, y))
        return;
    put_ticks(out, x, y, top);
    for (size_t i = 0; i < p->n_series; i++) {
        const wf_plot_series *s = &p->series[i];
        double line = top + HEIGHT + LEGEND * (double)i;

        for (size_t k = 0; k < s->n;)
            k = isfinite(s->y[k]) ? put_piece(out, s, k, x, y, top) : k + 1;
        wf_bytes_printf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" ", LEFT, LEFT + 24,
                        line, line);
        put_style(out, s);
        wf_bytes_printf(out, "/>\n<text x=\"%d\" y=\"%.1f\">", LEFT + 32, line + 4);
        put_text(out, s->label);
        wf_bytes_puts(out, "</text>\n");
    }
}

static double height_of(const wf_plot_panel *p)
{
    return HEIGHT + LEGEND * (double)p->n_series + 8;
}

void wf_svg_write(const wf_plot_panel panels[], size_t n, wf_bytes *out)
{
    double height = 0, top = 0;

    for (size_t i = 0; i < n; i++)
        height += height_of(&panels[i]);
    wf_bytes_printf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                    "viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                    WIDTH, height, WIDTH, height);
    for (size_t i = 0; i < n; i++) {
        put_panel(out, &panels[i], top);
        top += height_of(&panels[i]);
    }
    wf_bytes_puts(out, "</svg>\n");
}
