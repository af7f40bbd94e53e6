/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/gather.c - Gather(data, ids) along one axis, and GatherGrad(dy, ids,
 * data), which adds dy's slices where they came from, in the order of the ids. Negative ids count
 * from the end. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/lanes.h"

#include <inttypes.h>
#include <string.h>

enum {
    LINE = 64,       /* bytes that are fetched at once */
    AHEAD = 16,      /* slices that are fetched before they are worked on */
    MARKS = 1 << 17, /* the most slices of which is known which have been written */
    CHECKED = 512    /* ids that are looked at at once, before a bad one is searched for */
};

/* The slices of data along an axis that ids name, and a tensor that has one for each id. */
typedef struct rows {
    const wf_tensor *ids;
    char *data, *taken; /* [outer, axis, inner], [outer, n, inner] */
    wf_around around;
    int64_t n;
    size_t bytes; /* of inner elements */
    wf_dtype dtype;
} rows;

static rows rows_of(const wf_run *run, const wf_tensor *data, const wf_tensor *ids,
                    const wf_tensor *taken)
{
    wf_around a = wf_around_axis(data, wf_node_int(run->node, "axis", 0));

    return (rows){.ids = ids,
                  .data = data->data,
                  .taken = taken->data,
                  .around = a,
                  .n = wf_elems(ids),
                  .bytes = (size_t)a.inner * wf_dtype_size(data->dtype),
                  .dtype = data->dtype};
}

static WF_INLINE int64_t row_at(const rows *r, int64_t i)
{
    int64_t id =
        r->ids->dtype == WF_I64 ? ((const int64_t *)r->ids->data)[i] : wf_int_at(r->ids, i);

    return id < 0 ? id + r->around.axis : id;
}

/* Whether one of n ids is not in the axis. */
WF_MULTIVERSION
static bool any_beyond(const int64_t *restrict ids, int64_t n, int64_t axis)
{
    uint64_t beyond = 0;

    for (int64_t i = 0; i < n; i++)
        beyond |= (uint64_t)ids[i] + (ids[i] < 0 ? (uint64_t)axis : 0) >= (uint64_t)axis;
    return beyond;
}

/* All of them, before one is used. */
static wf_status check_ids(const rows *r, wf_err *err)
{
    int64_t axis = r->around.axis;

    for (int64_t i = 0; i < r->n; i++) {
        if (i % CHECKED == 0 && r->ids->dtype == WF_I64 && i + CHECKED <= r->n &&
            !any_beyond((const int64_t *)r->ids->data + i, CHECKED, axis)) {
            i += CHECKED - 1;
            continue;
        }
        if (WF_UNLIKELY((uint64_t)row_at(r, i) >= (uint64_t)axis))
            return wf_fail(err, WF_INVALID, NULL,
                           "index %" PRId64 ", number %" PRId64
                           " of them, is not in an axis of %" PRId64,
                           wf_int_at(r->ids, i), i, axis);
    }
    return WF_OK;
}

/* A call of memcpy costs as much as a slice of one or two cache lines. */
static WF_INLINE void copy_slice(char *to, const char *from, size_t bytes)
{
    if (bytes == sizeof(float))
        memcpy(to, from, sizeof(float));
    else if (bytes % LINE == 0)
        for (size_t k = 0; k < bytes; k += LINE)
            memcpy(to + k, from + k, LINE);
    else
        wf_copy(to, from, bytes);
}

/* The slice of data, which begins at `data`, that id i + AHEAD names: ids name slices in any order,
 * which no processor foresees. It fetches the rest of a long slice by itself. */
static WF_INLINE void fetch_ahead(const rows *r, const char *data, int64_t i)
{
    const char *slice;

    if (i + AHEAD >= r->n)
        return;
    slice = data + (size_t)row_at(r, i + AHEAD) * r->bytes;
    for (size_t k = 0; k < WF_MIN(r->bytes, (size_t)4 * LINE); k += LINE)
        WF_PREFETCH(slice + k);
}

/* Ids [begin, end). */
static void take_slices(void *arg, int64_t begin, int64_t end)
{
    const rows *r = arg;

    for (int64_t o = 0; o < r->around.outer; o++) {
        const char *from = r->data + (size_t)(o * r->around.axis) * r->bytes;
        char *to = r->taken + (size_t)(o * r->n) * r->bytes;

        for (int64_t i = begin; i < end; i++) {
            fetch_ahead(r, from, i);
            copy_slice(to + (size_t)i * r->bytes, from + (size_t)row_at(r, i) * r->bytes, r->bytes);
        }
    }
}

static wf_status gather(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    rows r = rows_of(run, in[0], in[1], out[0]);
    int64_t each = WF_MAX(r.around.outer * r.around.inner, (int64_t)1);

    WF_TRY(check_ids(&r, err));
    wf_pool_for(run->pool, r.n, WF_MAX(WF_GRAIN / each, (int64_t)1), take_slices, &r);
    return WF_OK;
}

/* y = x (+ y), of a cache line; without y 0 is added, which makes -0 to 0. */
static WF_INLINE void add_line(const char *from, char *to, bool first)
{
    wf_lanes_f32 x, y = {0};

    memcpy(&x, from, sizeof x);
    if (!first)
        memcpy(&y, to, sizeof y);
    y += x;
    memcpy(to, &y, sizeof y);
}

/* A part of the result's slices, [begin, end), and which of them have been written: the others hold
 * anything. */
typedef struct part {
    const rows *r;
    int64_t begin, end;
    uint64_t marks[MARKS / 64];
} part;

/* Slices of whole cache lines are worth a mark: zeros that are written first are read again from
 * far away. */
static bool marks(const rows *r, int64_t n)
{
    return r->dtype == WF_F32 && r->bytes && r->bytes % LINE == 0 && n <= MARKS;
}

WF_MULTIVERSION
static void add_marked(part *p, const char *from, char *to)
{
    const rows *r = p->r;

    for (int64_t i = 0; i < r->n; i++, from += r->bytes) {
        int64_t row = row_at(r, i), at = row - p->begin;
        bool first;

        fetch_ahead(r, to, i);
        if (row < p->begin || row >= p->end)
            continue;
        first = !(p->marks[at / 64] >> at % 64 & 1);
        p->marks[at / 64] |= UINT64_C(1) << at % 64;
        for (size_t k = 0; k < r->bytes; k += LINE)
            add_line(from + k, to + (size_t)row * r->bytes + k, first);
    }
}

static void clear_unmarked(const part *p, char *to)
{
    for (int64_t row = p->begin; row < p->end; row++)
        if (!(p->marks[(row - p->begin) / 64] >> (row - p->begin) % 64 & 1))
            memset(to + (size_t)row * p->r->bytes, 0, p->r->bytes);
}

static void add_unmarked(const rows *r, const char *from, char *to, int64_t begin, int64_t end)
{
    if (r->bytes)
        memset(to + (size_t)begin * r->bytes, 0, (size_t)(end - begin) * r->bytes);
    for (int64_t i = 0; i < r->n; i++, from += r->bytes) {
        int64_t row = row_at(r, i);

        if (row < begin || row >= end)
            continue;
        if (r->bytes == sizeof(float))
            ((float *)(void *)to)[row] += *(const float *)(const void *)from;
        else
            wf_add(r->dtype, from, to + (size_t)row * r->bytes, r->around.inner);
    }
}

/* Slices [begin, end) of the result: what comes to them added in the order of the ids, zeros where
 * nothing does. Each thread passes over the ids of others. */
static void add_slices(void *arg, int64_t begin, int64_t end)
{
    const rows *r = arg;

    for (int64_t o = 0; o < r->around.outer; o++) {
        const char *from = r->taken + (size_t)(o * r->n) * r->bytes;
        char *to = r->data + (size_t)(o * r->around.axis) * r->bytes;

        if (marks(r, end - begin)) {
            part p = {.r = r, .begin = begin, .end = end};

            add_marked(&p, from, to);
            clear_unmarked(&p, to);
        } else {
            add_unmarked(r, from, to, begin, end);
        }
    }
}

static wf_status gather_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    rows r = rows_of(run, out[0], in[1], in[0]);
    int64_t threads = wf_pool_threads(run->pool), axis = r.around.axis;
    int64_t work = WF_MAX(wf_elems(out[0]), wf_elems(in[0]));

    WF_TRY(check_ids(&r, err));
    /* One range for each thread at most, and none for little work. */
    wf_pool_for(run->pool, axis,
                WF_MAX(wf_ceil_div(axis, WF_MIN(threads, work / WF_GRAIN + 1)), (int64_t)1),
                add_slices, &r);
    return WF_OK;
}

const wf_kernel wf_kernels_gather[] = {
    WF_ROW("Gather", WF_TYPES_ALL, gather),
    WF_ROW("GatherGrad", WF_TYPES_FLOAT, gather_grad, .domain = WF_DOMAIN_WEFT),
    {0},
};
