/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/plot.c - scales, and panels in characters and as a picture. */
#include "cmd/cli/plot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double epochs[] = {1, 2, 3, 4, 5};
static const double falls[] = {5, 4, 3, 2, 1};
static const double gap[] = {1, 2, (double)NAN, (double)INFINITY, 4};

static wf_plot_panel panel_of(const double *y, size_t n)
{
    wf_plot_panel p = {.title = "loss <&>", .n_series = 1};

    p.series[0] = (wf_plot_series){.label = "a#1 loss", .x = epochs, .y = y, .n = n};
    return p;
}

static void ticks_are_round(void **state)
{
    (void)state;
    assert_true(fabs(wf_plot_tick(0, 10, 5) - 2) < 1e-12);
    assert_true(fabs(wf_plot_tick(0, 0.9, 5) - 0.2) < 1e-12);
    assert_true(fabs(wf_plot_tick(0.0011, 0.0012, 4) - 5e-5) < 1e-12);
    assert_true(fabs(wf_plot_tick(-3e6, 4e6, 7) - 1e6) < 1e-3);
    assert_true(wf_plot_tick(3, 3, 5) > 0);
    assert_true(wf_plot_tick((double)NAN, 3, 5) > 0);
}

static void bounds_leave_out_what_is_no_number(void **state)
{
    wf_plot_panel p = panel_of(gap, 5), none = panel_of(&gap[2], 1);
    double x[2], y[2];

    (void)state;
    assert_true(wf_plot_bounds(&p, x, y));
    assert_true(x[0] == 1 && x[1] == 5 && y[0] == 1 && y[1] == 4);
    assert_false(wf_plot_bounds(&none, x, y));
    p = panel_of(falls, 1);
    assert_true(wf_plot_bounds(&p, x, y));
    assert_true(y[0] < 5 && y[1] > 5); /* one value has a scale, too */
}

static uint32_t count(const char *text, const char *words)
{
    uint32_t n = 0;

    for (; (text = strstr(text, words)); text += strlen(words))
        n++;
    return n;
}

static void a_falling_line_falls(void **state)
{
    const wf_term plain = {.columns = 60};
    wf_plot_panel p = panel_of(falls, 5);
    wf_bytes out = {0};
    const char *line;
    long before = -1;
    int rows = 0;

    (void)state;
    wf_canvas_write(&p, &plain, &out);
    line = strchr(wf_bytes_str(&out), '\n') + 1;
    for (; *line && strcspn(line, "|") < strcspn(line, "\n"); line = strchr(line, '\n') + 1) {
        long first = (long)strcspn(line, "*");

        assert_true(first > before && first < (long)strcspn(line, "\n"));
        before = first;
        rows++;
    }
    assert_int_equal(rows, 12);
    assert_non_null(strstr(wf_bytes_str(&out), "* a#1 loss"));
    wf_bytes_close(&out);
}

static void colours_bring_braille(void **state)
{
    const wf_term color = {.columns = 20, .color = true, .utf8 = true, .tty = true};
    wf_plot_panel p = panel_of(falls, 5);
    wf_bytes out = {0};

    (void)state;
    p.series[1] = p.series[0];
    p.series[1].dashed = true;
    p.n_series = 2;
    wf_canvas_write(&p, &color, &out);
    assert_true(count(wf_bytes_str(&out), "\xe2\xa0") + count(wf_bytes_str(&out), "\xe2\xa1") +
                    count(wf_bytes_str(&out), "\xe2\xa2") + count(wf_bytes_str(&out), "\xe2\xa3") >=
                10);
    assert_int_equal(count(wf_bytes_str(&out), "\033[2;36m"),
                     count(wf_bytes_str(&out), "\033[0m") - 1);
    wf_bytes_close(&out);
}

static void a_picture_has_gaps_and_no_loose_characters(void **state)
{
    wf_plot_panel p[2] = {panel_of(gap, 5), panel_of(&gap[2], 1)};
    wf_bytes out = {0};
    const char *text;

    (void)state;
    wf_svg_write(p, 2, &out);
    text = wf_bytes_str(&out);
    assert_int_equal(count(text, "<polyline"), 1); /* 1 to 2; 5 is alone */
    assert_int_equal(count(text, "<circle"), 1);
    assert_int_equal(count(text, "loss &lt;&amp;>"), 2);
    assert_int_equal(count(text, "nan") + count(text, "inf"), 0);
    assert_int_equal(count(text, "<svg"), 1);
    assert_int_equal(count(text, "</svg>"), 1);
    wf_bytes_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(bounds_leave_out_what_is_no_number),
        cmocka_unit_test(a_falling_line_falls),
        cmocka_unit_test(colours_bring_braille),
        cmocka_unit_test(a_picture_has_gaps_and_no_loose_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
