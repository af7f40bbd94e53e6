/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/canvas.c - a panel in characters. A cell of braille is 2 x 4 dots (Unicode, block
 * U+2800: bit k is dot k+1); without UTF-8 a cell is one dot. */
#include "cmd/cli/plot.h"
#include "common/base/size.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 12, COLUMNS_MOST = 100, LABEL = 9 };

typedef struct canvas {
    uint8_t bits[ROWS][COLUMNS_MOST];
    uint8_t color[ROWS][COLUMNS_MOST]; /* 1 + the series that was drawn last */
    int columns, across, down;         /* cells; dots of a cell */
} canvas;

static const int styles[] = {36, 33, 35, 32, 34, 31}; /* of the palette's runs, as ANSI colours */

static void set_dot(canvas *c, long x, long y, size_t series)
{
    static const uint8_t braille[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    long column = x / c->across, row = y / c->down;

    if (column < 0 || column >= c->columns || row < 0 || row >= ROWS)
        return;
    c->bits[row][column] |= c->down == 4 ? braille[y % 4][x % 2] : 1;
    c->color[row][column] = (uint8_t)(series + 1);
}

static void draw_line(canvas *c, double x0, double y0, double x1, double y1, size_t series)
{
    long steps = lround(fmax(fmax(fabs(x1 - x0), fabs(y1 - y0)), 1));

    for (long i = 0; i <= steps; i++)
        set_dot(c, lround(x0 + (x1 - x0) * (double)i / (double)steps),
                lround(y0 + (y1 - y0) * (double)i / (double)steps), series);
}

static void draw(canvas *c, const wf_plot_series *s, size_t at, const double x[2],
                 const double y[2])
{
    double width = c->columns * c->across - 1, height = ROWS * c->down - 1;
    double last_x = 0, last_y = 0;
    bool any = false;

    for (size_t i = 0; i < s->n; i++) {
        double px = x[1] > x[0] ? (s->x[i] - x[0]) / (x[1] - x[0]) * width : 0;
        double py = (y[1] - s->y[i]) / (y[1] - y[0]) * height;

        if (!isfinite(s->y[i])) {
            any = false;
            continue;
        }
        draw_line(c, any ? last_x : px, any ? last_y : py, px, py, at);
        last_x = px;
        last_y = py;
        any = true;
    }
}

static void put_cell(wf_bytes *out, const canvas *c, int row, int column)
{
    uint32_t code = 0x2800U | c->bits[row][column];

    if (!c->bits[row][column])
        wf_bytes_puts(out, " ");
    else if (c->down == 4)
        wf_bytes_printf(out, "%c%c%c", (int)(0xe0 | code >> 12), (int)(0x80 | (code >> 6 & 63)),
                        (int)(0x80 | (code & 63)));
    else
        wf_bytes_printf(out, "%c", "*+ox#@%&"[(c->color[row][column] - 1) % 8]);
}

static void put_row(wf_bytes *out, const canvas *c, const wf_plot_panel *p, const wf_term *term,
                    int row)
{
    for (int k = 0; k < c->columns; k++) {
        uint8_t series = c->color[row][k];

        if (term->color && series) {
            const wf_plot_series *s = &p->series[series - 1];

            wf_bytes_printf(out, "\033[%s%dm", s->dashed ? "2;" : "",
                            styles[s->color % WF_COUNT(styles)]);
            put_cell(out, c, row, k);
            wf_bytes_puts(out, "\033[0m");
        } else {
            put_cell(out, c, row, k);
        }
    }
    while (out->size && out->data[out->size - 1] == ' ')
        out->size--;
    wf_bytes_puts(out, "\n");
}

void wf_canvas_write(const wf_plot_panel *panel, const wf_term *term, wf_bytes *out)
{
    bool braille = term->utf8 && term->color; /* dots have no letters to be told apart by */
    canvas c = {.columns = WF_MIN(term->columns - LABEL - 2, (int)COLUMNS_MOST),
                .across = braille ? 2 : 1,
                .down = braille ? 4 : 1};
    double x[2], y[2];

    c.columns = WF_MAX(c.columns, 10);
    wf_bytes_printf(out, "%s\n", panel->title);
    if (!wf_plot_bounds(panel, x, y)) {
        wf_bytes_puts(out, "  no numbers yet\n");
        return;
    }
    for (size_t i = 0; i < panel->n_series; i++)
        draw(&c, &panel->series[i], i, x, y);
    for (int row = 0; row < ROWS; row++) {
        if (row == 0 || row == ROWS - 1 || row == ROWS / 2)
            wf_bytes_printf(out, "%*.4g ", LABEL,
                            y[1] - (y[1] - y[0]) * (double)row / (double)(ROWS - 1));
        else
            wf_bytes_printf(out, "%*s ", LABEL, "");
        wf_bytes_puts(out, term->utf8 ? "│" : "|");
        put_row(out, &c, panel, term, row);
    }
    wf_bytes_printf(out, "%*s %-*.0f%*.0f  epoch\n", LABEL, "", c.columns / 2, x[0],
                    c.columns - c.columns / 2, x[1]);
    for (size_t i = 0; i < panel->n_series; i++) {
        const wf_plot_series *s = &panel->series[i];

        if (term->color)
            wf_bytes_printf(out, "%*s \033[%s%dm%s\033[0m %s\n", LABEL, "", s->dashed ? "2;" : "",
                            styles[s->color % WF_COUNT(styles)], term->utf8 ? "━━" : "--",
                            s->label);
        else
            wf_bytes_printf(out, "%*s %c %s\n", LABEL, "", "*+ox#@%&"[i % 8], s -> label);
    }
}
