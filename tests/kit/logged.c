/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/logged.c */
#include "tests/kit/logged.h"
#include "ps/dense.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct wf_logged {
    wf_dense dense; /* first */
    wf_logged_line *lines;
    uint64_t n, room;
    float *spread; /* [count]: a part with rows as a dense one, while it is applied */
} wf_logged;

static const wf_logged *logged(const wf_slice *s)
{
    return (const wf_logged *)s;
}

static void logged_close(wf_slice *s)
{
    wf_logged *l = (wf_logged *)s;

    free(l->lines);
    free(l->spread);
    wf_dense_close(s);
}

static wf_status logged_check(const wf_slice *s, const wf_slice_part *p, wf_err *err)
{
    uint64_t width;

    if (p->rows.n == 0)
        return wf_dense_check(s, p, err);
    width = p->n / p->rows.n;
    for (uint64_t i = 0; i < p->rows.n; i++)
        if (wf_row_id(&p->rows, i) >= s->count / width)
            return wf_fail(err, WF_SHAPE, NULL, "row %" PRIu64 " is not in slice %u",
                           wf_row_id(&p->rows, i), s->id);
    return WF_OK;
}

static wf_status make_room(wf_logged *l, wf_err *err)
{
    uint64_t room = l->room ? 2 * l->room : 64;
    wf_logged_line *lines;

    if (l->n < l->room)
        return WF_OK;
    lines = realloc(l->lines, room * sizeof *lines);
    if (!lines)
        return wf_fail_nomem(err, room * sizeof *lines);
    l->lines = lines;
    l->room = room;
    return WF_OK;
}

/* Rows become a gradient for all elements. */
static wf_status spread(wf_logged *l, wf_slice_part *p, wf_err *err)
{
    uint64_t width = p->n / p->rows.n, count = l->dense.base.count;

    if (!l->spread)
        l->spread = malloc(count * sizeof *l->spread);
    if (!l->spread)
        return wf_fail_nomem(err, count * sizeof *l->spread);
    memset(l->spread, 0, count * sizeof *l->spread);
    for (uint64_t i = 0; i < p->rows.n; i++)
        for (uint64_t k = 0; k < width; k++)
            l->spread[wf_row_id(&p->rows, i) * width + k] +=
                *wf_slice_part_values(p, i * width + k, 1, &(float){0});
    p->values = l->spread;
    p->n = count;
    return WF_OK;
}

static wf_status logged_begin(wf_slice_update *u, wf_err *err)
{
    wf_logged *l = (wf_logged *)u->slice;
    wf_logged_line line = {u->part.incarnation, u->part.step, u->part.generation, u->part.rows.n};

    WF_TRY(make_room(l, err));
    if (u->part.rows.n > 0)
        WF_TRY(spread(l, &u->part, err));
    WF_TRY(wf_dense_apply_begin(u, err));
    l->lines[l->n++] = line;
    return WF_OK;
}

static wf_status logged_fork(const wf_slice *s, wf_slice *to, wf_err *err)
{
    const wf_logged *from = logged(s);
    wf_logged *copy = (wf_logged *)to;

    WF_TRY(wf_dense_fork(s, to, err));
    copy->lines = malloc(from->n * sizeof *copy->lines + 1);
    if (!copy->lines)
        return wf_fail_nomem(err, from->n * sizeof *copy->lines);
    if (from->n)
        memcpy(copy->lines, from->lines, from->n * sizeof *copy->lines);
    copy->n = copy->room = from->n;
    return WF_OK;
}

static uint32_t logged_save(const wf_slice *s, wf_slice_array out[WF_SLICE_ARRAYS])
{
    const wf_logged *l = logged(s);
    uint32_t n = wf_dense_save(s, out);

    out[n] = (wf_slice_array){
        .slot = "log", .dtype = WF_I64, .data = l->lines, .bytes = l->n * sizeof *l->lines};
    return n + 1;
}

static wf_status logged_load(wf_slice *s, const wf_slice_source *from, bool values_only,
                             wf_err *err)
{
    wf_logged *l = (wf_logged *)s;
    uint64_t bytes = 0;
    void *lines = NULL;

    WF_TRY(wf_dense_load(s, from, values_only, err));
    if (values_only)
        return WF_OK;
    WF_TRY(from->read_all(from->arg, s, "log", &lines, &bytes, err));
    if (bytes % sizeof *l->lines) {
        free(lines);
        return wf_fail(err, WF_CORRUPT, NULL, "a log of %" PRIu64 " bytes", bytes);
    }
    free(l->lines);
    l->lines = lines;
    l->n = l->room = bytes / sizeof *l->lines;
    return WF_OK;
}

static uint64_t logged_digest(const wf_slice *s)
{
    const wf_logged *l = logged(s);

    return XXH3_64bits_withSeed(l->lines, l->n * sizeof *l->lines, wf_dense_digest(s));
}

const wf_slice_ops wf_slice_logged = {
    .name = "logged",
    .size = sizeof(wf_logged),
    .init = wf_dense_init,
    .close = logged_close,
    .check = logged_check,
    .apply_begin = logged_begin,
    .apply_range = wf_dense_apply_range,
    .apply_end = wf_dense_apply_end,
    .answer = wf_dense_answer,
    .fork = logged_fork,
    .save = logged_save,
    .load = logged_load,
    .digest = logged_digest,
};

const wf_slice_ops *const wf_logged_kinds[] = {&wf_slice_logged, NULL};

const wf_logged_line *wf_logged_lines(const wf_slice *s, uint64_t *n)
{
    *n = s->ops == &wf_slice_logged ? logged(s)->n : 0;
    return *n ? logged(s)->lines : NULL;
}
