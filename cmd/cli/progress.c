/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/progress.c */
#include "cmd/cli/progress.h"

#include <string.h>

static const int64_t REDRAW_NS = 100000000, LINE_NS = INT64_C(10000000000);

wf_progress wf_progress_new(FILE *f)
{
    return (wf_progress){.f = f, .term = wf_term_of(f)};
}

static void draw_bar(wf_progress *p, double part, const char *label, const char *facts)
{
    int room = p->term.columns - (int)strlen(label) - (int)strlen(facts) - 4;
    int cells = room < 8 ? 0 : room > 30 ? 30 : room, full = (int)(part * cells);

    fprintf(p->f, "\r\033[K%s%s%s ", wf_term_style(&p->term, WF_BOLD), label,
            wf_term_style(&p->term, WF_PLAIN));
    fputs(wf_term_style(&p->term, WF_GREEN), p->f);
    for (int i = 0; i < cells; i++) {
        if (i == full)
            fputs(wf_term_style(&p->term, WF_PLAIN), p->f);
        fputs(i < full ? (p->term.utf8 ? "━" : "=") : (p->term.utf8 ? "─" : "-"), p->f);
    }
    fprintf(p->f, "%s %.*s", wf_term_style(&p->term, WF_PLAIN),
            p->term.columns > (int)strlen(label) + 3
                ? p->term.columns - (int)strlen(label) - 3 - cells
                : 0,
            facts);
    fflush(p->f);
    p->drawn = true;
}

void wf_progress_show(wf_progress *p, int64_t now_ns, double part, const char *label,
                      const char *facts)
{
    int64_t since = now_ns - p->last_ns;
    bool first = p->last_ns == 0;

    part = part < 0 ? 0 : part > 1 ? 1 : part;
    if (p->term.tty) {
        if (!first && since < REDRAW_NS && part < 1)
            return;
        p->term = wf_term_of(p->f); /* its width may have changed */
        draw_bar(p, part, label, facts);
    } else {
        if (!first && since < LINE_NS && part - p->last_part < 0.05)
            return;
        fprintf(p->f, "%s  %3.0f %%  %s\n", label, 100 * part, facts);
        fflush(p->f);
    }
    p->last_ns = now_ns;
    p->last_part = part;
}

void wf_progress_clear(wf_progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", p->f);
    p->drawn = false;
    p->last_ns = p->term.tty ? 0 : p->last_ns;
}
