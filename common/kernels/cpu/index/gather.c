/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/gather.c - Gather(data, ids) along one axis, and GatherGrad(dy, ids,
 * data), which adds dy's slices where they came from, in the order of the ids. Negative ids count
 * from the end. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <inttypes.h>
#include <string.h>

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

/* All of them, before one is used. */
static wf_status check_ids(const rows *r, wf_err *err)
{
    int64_t axis = r->around.axis;

    for (int64_t i = 0; i < r->n; i++)
        if (WF_UNLIKELY((uint64_t)row_at(r, i) >= (uint64_t)axis))
            return wf_fail(err, WF_INVALID, NULL,
                           "index %" PRId64 ", number %" PRId64
                           " of them, is not in an axis of %" PRId64,
                           wf_int_at(r->ids, i), i, axis);
    return WF_OK;
}

/* A call of memcpy costs as much as a slice of one or two cache lines. */
static WF_INLINE void copy_slice(char *to, const char *from, size_t bytes)
{
    enum { LINE = 64 };

    if (bytes == sizeof(float))
        memcpy(to, from, sizeof(float));
    else if (bytes % LINE == 0)
        for (size_t k = 0; k < bytes; k += LINE)
            memcpy(to + k, from + k, LINE);
    else
        wf_copy(to, from, bytes);
}

/* Ids [begin, end). */
static void take_slices(void *arg, int64_t begin, int64_t end)
{
    const rows *r = arg;

    for (int64_t o = 0; o < r->around.outer; o++) {
        const char *from = r->data + (size_t)(o * r->around.axis) * r->bytes;
        char *to = r->taken + (size_t)(o * r->n) * r->bytes;

        for (int64_t i = begin; i < end; i++)
            copy_slice(to + (size_t)i * r->bytes, from + (size_t)row_at(r, i) * r->bytes, r->bytes);
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

/* Slices [begin, end) of the result, zeroed, and what comes to them added in the order of the ids:
 * each thread passes over the ids of others. */
static void add_slices(void *arg, int64_t begin, int64_t end)
{
    const rows *r = arg;

    for (int64_t o = 0; o < r->around.outer; o++) {
        const char *from = r->taken + (size_t)(o * r->n) * r->bytes;
        char *to = r->data + (size_t)(o * r->around.axis) * r->bytes;

        if (r->bytes)
            memset(to + (size_t)begin * r->bytes, 0, (size_t)(end - begin) * r->bytes);
        for (int64_t i = 0; i < r->n; i++) {
            int64_t row = row_at(r, i);

            if (row < begin || row >= end)
                continue;
            if (r->bytes == sizeof(float))
                ((float *)to)[row] += ((const float *)from)[i];
            else
                wf_add(r->dtype, from + (size_t)i * r->bytes, to + (size_t)row * r->bytes,
                       r->around.inner);
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
