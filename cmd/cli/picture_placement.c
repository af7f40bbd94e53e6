/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/picture_placement.c - which slices are on which ps, and what they cost there. */
#include "cmd/cli/picture.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"

#include <string.h>

enum { BUSIEST = 3 /* slices of a ps in the table */ };

static const char *rate_text(double bytes, char *text, size_t size)
{
    wf_bytes_text((unsigned long long)(bytes + 0.5), text, size);
    snprintf(text + strlen(text), size - strlen(text), "/s");
    return text;
}

/* "fc1/w[3] 41%, fc1/w[0] 20%": of the ps's traffic. */
static const char *busiest_text(const json_t *ps, char *out, size_t size)
{
    const json_t *list = json_object_get(ps, "busiest"), *slice;
    double all = wf_number_of(ps, "bytes_per_sec");
    size_t at = 0, i;

    snprintf(out, size, "-");
    json_array_foreach(list, i, slice)
    {
        double load = wf_number_of(slice, "bytes_per_sec");

        if (i == BUSIEST || load <= 0 || at + 300 > size)
            break;
        at += (size_t)snprintf(out + at, size - at, "%s%.200s[%lld] %.0f%%", at ? ", " : "",
                               wf_text_of(slice, "variable"),
                               (long long)json_integer_value(json_object_get(slice, "at")),
                               all > 0 ? 100 * load / all : 0);
    }
    return out;
}

static void add_ps(wf_rows *t, const json_t *ps)
{
    bool told = !json_is_null(json_object_get(ps, "told_s"));
    char slices[24], held[32] = "-", pulled[40] = "-", pushed[40] = "-", mean[32] = "-",
                     applying[24] = "-", busiest[1024];

    snprintf(slices, sizeof slices, "%lld",
             (long long)json_integer_value(json_object_get(ps, "slices")));
    if (told) {
        wf_bytes_text((unsigned long long)wf_number_of(ps, "held_bytes"), held, sizeof held);
        rate_text(wf_number_of(ps, "pulled_per_sec"), pulled, sizeof pulled);
        rate_text(wf_number_of(ps, "pushed_per_sec"), pushed, sizeof pushed);
        snprintf(mean, sizeof mean, "%.2f%s", wf_number_of(ps, "of_mean"),
                 json_is_true(json_object_get(ps, "hot")) ? " HOT" : "");
        snprintf(applying, sizeof applying, "%.0f%%", 100 * wf_number_of(ps, "applying"));
    }
    wf_rows_add(t,
                (const char *[]){wf_text_of(ps, "task"), slices, held, pulled, pushed, mean,
                                 applying, busiest_text(ps, busiest, sizeof busiest)},
                8);
}

/* "ps/0: 3, ps/1: 4", or "ps/0" of a variable that is on one; of many, as many as fit. */
static void add_variable(wf_rows *t, const json_t *v)
{
    json_t *on = json_object_get(v, "on"), *n;
    char slices[24], where[512] = "-";
    bool alone = json_object_size(on) == 1;
    size_t at = 0;
    const char *ps;

    json_object_foreach(on, ps, n)
    {
        if (at + 40 > sizeof where) {
            snprintf(where + at, sizeof where - at, ", ...");
            break;
        }
        if (alone)
            snprintf(where, sizeof where, "%s%s", ps,
                     json_is_true(json_object_get(v, "pinned")) ? " (pinned)" : "");
        else
            at += (size_t)snprintf(where + at, sizeof where - at, "%s%s: %lld", at ? ", " : "", ps,
                                   (long long)json_integer_value(n));
    }
    snprintf(slices, sizeof slices, "%lld",
             (long long)json_integer_value(json_object_get(v, "slices")));
    wf_rows_add(t, (const char *[]){wf_text_of(v, "name"), slices, where}, 3);
}

static void print_head(FILE *f, const json_t *picture)
{
    const json_t *moving = json_object_get(picture, "moving");
    long long moves = json_integer_value(json_object_get(picture, "moves"));
    char line[512];
    size_t at;

    at = (size_t)snprintf(line, sizeof line, "job %s: placement.balance is %s",
                          wf_text_of(picture, "job"),
                          json_is_true(json_object_get(picture, "balance")) ? "true" : "false");
    if (moves)
        at += (size_t)snprintf(
            line + at, sizeof line - at, "; %lld slice%s moved, not served for at most %.1f ms",
            moves, moves == 1 ? " has" : "s have", wf_number_of(picture, "frozen_most_ms"));
    if (json_is_object(moving))
        snprintf(line + at, sizeof line - at, "; slice %lld is on its way from %s to %s",
                 (long long)json_integer_value(json_object_get(moving, "slice")),
                 wf_text_of(moving, "from"), wf_text_of(moving, "to"));
    wf_term_print(f, "%s\n\n", line);
}

wf_status wf_picture_placement(FILE *f, const json_t *picture, wf_err *err)
{
    wf_rows t = {0};
    json_t *row;
    size_t i;

    print_head(f, picture);
    wf_rows_add(&t,
                (const char *[]){"PS", "SLICES", "HOLDS", "PULLED", "PUSHED", "OF MEAN", "APPLIES",
                                 "BUSIEST"},
                8);
    json_array_foreach(json_object_get(picture, "ps"), i, row) add_ps(&t, row);
    WF_TRY(wf_rows_print(&t, f, err));
    fprintf(f, "\n");
    wf_rows_add(&t, (const char *[]){"VARIABLE", "SLICES", "ON"}, 3);
    json_array_foreach(json_object_get(picture, "variables"), i, row) add_variable(&t, row);
    return wf_rows_print(&t, f, err);
}
