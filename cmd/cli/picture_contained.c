/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/picture_contained.c - the table of variables of sessions. */
#include "cmd/cli/contained.h"
#include "cmd/cli/picture.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 20 }; /* unless all are wanted */

static const char *shape_text(const json_t *shape, char *out, size_t size)
{
    json_t *dim;
    size_t at = 0, i;

    at += (size_t)snprintf(out, size, "[");
    json_array_foreach(shape, i, dim)
    {
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? ", " : "",
                                   (long long)json_integer_value(dim));
    }
    if (at < size)
        snprintf(out + at, size - at, "]");
    return out;
}

/* The container and its sessions stand in the first row of its variables. */
static void add_row(wf_rows *t, const json_t *container, const json_t *v, bool is_first)
{
    char bytes[32], shape[256], sessions[24];

    wf_bytes_text((unsigned long long)wf_number_of(v, "bytes"), bytes, sizeof bytes);
    snprintf(sessions, sizeof sessions, "%.0f", wf_number_of(container, "sessions"));
    wf_rows_add(t,
                (const char *[]){is_first ? wf_text_of(container, "container") : "",
                                 is_first ? sessions : "", wf_text_of(v, "name"),
                                 wf_text_of(v, "dtype"),
                                 shape_text(json_object_get(v, "shape"), shape, sizeof shape),
                                 bytes, wf_text_of(v, "ps")},
                7);
}

static double total_of(const json_t *picture)
{
    double n = 0;
    json_t *task;
    size_t i;

    json_array_foreach(json_object_get(picture, "tasks"), i, task)
    {
        n += wf_number_of(task, "session_variables");
    }
    return n;
}

wf_status wf_picture_contained(FILE *f, const json_t *picture, bool all, wf_err *err)
{
    wf_rows t = {0};
    json_t *c, *v, *missing;
    size_t i, k, n = 0;
    double others;

    wf_rows_add(
        &t, (const char *[]){"CONTAINER", "SESSIONS", "VARIABLE", "DTYPE", "SHAPE", "BYTES", "PS"},
        7);
    json_array_foreach(json_object_get(picture, "containers"), i, c)
    {
        json_array_foreach(json_object_get(c, "variables"), k, v)
        {
            if (all || n < SHOWN)
                add_row(&t, c, v, k == 0 || n == 0);
            n++;
        }
    }
    missing = json_object_get(picture, "containers_missing");
    if (n == 0 && json_array_size(missing) == 0) {
        wf_rows_close(&t);
        return WF_OK;
    }
    fprintf(f, "\n");
    if (n)
        WF_TRY(wf_rows_print(&t, f, err));
    else
        wf_rows_close(&t);
    others = total_of(picture) - SHOWN;
    if (!all && n > SHOWN)
        wf_term_print(f, "%.0f other%s; all of them: weft status --all\n", others,
                      others == 1 ? "" : "s");
    json_array_foreach(missing, i, c)
    {
        wf_term_print(f, "the variables of sessions on %s are not known: %s\n", wf_text_of(c, "ps"),
                      wf_text_of(c, "why"));
    }
    return WF_OK;
}
