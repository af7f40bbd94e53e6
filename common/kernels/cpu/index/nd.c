/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/nd.c - GatherND(data, ids), ScatterND(data, ids, updates) and
 * GatherNDGrad(dy, ids, data): the last axis of the ids holds a tuple of places, which names a
 * slice of data. Scattering goes in the order of the tuples. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/shape/places.h"

#include <inttypes.h>
#include <string.h>

/* Where the slice of tuple i begins in data; the tuple was checked. */
static int64_t slice_at(const wf_slices *s, const wf_tensor *ids, int64_t i)
{
    int64_t at = i / s->per_batch * s->batch_elems;

    for (uint32_t k = 0; k < s->depth; k++) {
        int64_t id = wf_int_at(ids, i * s->depth + k);

        at += (id < 0 ? id + s->sizes[k] : id) * s->strides[k];
    }
    return at;
}

static wf_status check(const wf_slices *s, const wf_tensor *ids, wf_err *err)
{
    for (int64_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->depth; k++) {
            int64_t id = wf_int_at(ids, i * s->depth + k);

            if (id < -s->sizes[k] || id >= s->sizes[k])
                return wf_fail(err, WF_INVALID, NULL,
                               "index %" PRId64 ", place %u of tuple %" PRId64
                               ", is not in an axis of %" PRId64,
                               id, k, i, s->sizes[k]);
        }
    return WF_OK;
}

typedef struct job {
    wf_slices s;
    const wf_tensor *ids;
    const char *from;
    char *to;
    size_t bytes; /* of a slice */
} job;

static void gather_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    size_t size = j->s.inner ? j->bytes / (size_t)j->s.inner : 0;

    for (int64_t i = begin; i < end; i++)
        wf_copy(j->to + (size_t)i * j->bytes, j->from + (size_t)slice_at(&j->s, j->ids, i) * size,
                j->bytes);
}

static wf_status gather_nd(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                           wf_err *err)
{
    job j = {wf_slices_of(run->node, in[0], in[1]), in[1], in[0]->data, out[0]->data, 0};

    j.bytes = (size_t)j.s.inner * wf_dtype_size(in[0]->dtype);
    WF_TRY(check(&j.s, in[1], err));
    wf_pool_for(run->pool, j.s.n, WF_GRAIN / WF_MAX(j.s.inner, (int64_t)1) + 1, gather_range, &j);
    return WF_OK;
}

#define LOOP(expr)                                                                                 \
    for (int64_t i = 0; i < n; i++)                                                                \
        to[i] = (expr);

/* NaN stays: it is neither larger nor smaller. */
#define REDUCE(T)                                                                                  \
    WF_MULTIVERSION static void fold_##T(wf_scatter_way r, T *to, const T *x, int64_t n)           \
    {                                                                                              \
        if (r == WF_SCATTER_ADD)                                                                   \
            LOOP((T)(to[i] + x[i]))                                                                \
        else if (r == WF_SCATTER_MULTIPLY)                                                         \
            LOOP((T)(to[i] * x[i]))                                                                \
        else if (r == WF_SCATTER_LARGEST)                                                          \
            LOOP(x[i] > to[i] || x[i] != x[i] ? x[i] : to[i])                                      \
        else                                                                                       \
            LOOP(x[i] < to[i] || x[i] != x[i] ? x[i] : to[i])                                      \
    }                                                                                              \
    static void reduce_##T(const wf_slices *s, const wf_tensor *ids, wf_scatter_way r,             \
                           const void *from, void *to)                                             \
    {                                                                                              \
        for (int64_t i = 0; i < s->n; i++)                                                         \
            fold_##T(r, (T *)to + slice_at(s, ids, i), (const T *)from + i * s->inner, s->inner);  \
    }
WF_EACH_NUMBER(REDUCE)

static wf_status reduce(const wf_slices *s, const wf_tensor *ids, wf_scatter_way r,
                        const wf_tensor *from, wf_tensor *to, wf_err *err)
{
    if (!((WF_TYPES_NUMBER | WF_TYPE(WF_U8)) & WF_TYPE(to->dtype)))
        return wf_fail(err, WF_UNSUPPORTED, "Cast it first", "there is no reduction of %s",
                       wf_dtype_name(to->dtype));
    WF_BY_NUMBER(to->dtype, reduce)(s, ids, r, from->data, to->data);
    return WF_OK;
}

static wf_status scatter_nd(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    wf_slices s = wf_slices_of(run->node, in[0], in[1]);
    wf_scatter_way way = wf_scatter_way_of(run->node);
    size_t size = wf_dtype_size(in[0]->dtype), bytes = (size_t)s.inner * size;

    WF_TRY(check(&s, in[1], err));
    wf_copy(out[0]->data, in[0]->data, wf_tensor_bytes(in[0]));
    if (way != WF_SCATTER_PUT)
        return reduce(&s, in[1], way, in[2], out[0], err);
    for (int64_t i = 0; i < s.n; i++)
        wf_copy((char *)out[0]->data + (size_t)slice_at(&s, in[1], i) * size,
                (const char *)in[2]->data + (size_t)i * bytes, bytes);
    return WF_OK;
}

static wf_status gather_nd_grad(const wf_run *run, const wf_tensor *const in[],
                                wf_tensor *const out[], wf_err *err)
{
    wf_slices s = wf_slices_of(run->node, out[0], in[1]);

    WF_TRY(check(&s, in[1], err));
    if (wf_tensor_bytes(out[0]))
        memset(out[0]->data, 0, wf_tensor_bytes(out[0]));
    return reduce(&s, in[1], WF_SCATTER_ADD, in[0], out[0], err);
}

const wf_kernel wf_kernels_nd[] = {
    WF_ROW("GatherND", WF_TYPES_ALL, gather_nd),
    WF_ROW("GatherNDGrad", WF_TYPES_FLOAT, gather_nd_grad, .domain = WF_DOMAIN_WEFT),
    WF_ROW("ScatterND", WF_TYPES_ALL, scatter_nd, .in_place = 1),
    {0},
};
