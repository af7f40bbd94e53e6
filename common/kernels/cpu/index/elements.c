/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/elements.c - GatherElements(data, ids), and ScatterElements(data, ids,
 * updates): element c of the ids names a place along one axis of data; the other places are c's
 * own. Scattering goes in the order of the ids, so that equal ones add up the same in every run. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/shape/places.h"

#include <inttypes.h>

typedef struct plan {
    wf_elements at;
    wf_scatter_way way;
} plan;

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    plan *p = wf_arena_alloc(prep->arena, sizeof *p);

    (void)out;
    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    p->at = wf_elements_of(prep->node, in[0], in[1]);
    p->way = wf_scatter_way_of(prep->node);
    prep->state = p;
    return WF_OK;
}

static wf_status check(const wf_tensor *ids, int64_t size, wf_err *err)
{
    int64_t n = wf_elems(ids);

    for (int64_t i = 0; i < n; i++) {
        int64_t id = wf_int_at(ids, i);

        if (id < -size || id >= size)
            return wf_fail(err, WF_INVALID, NULL,
                           "index %" PRId64 ", number %" PRId64
                           " of them, is not in an axis of %" PRId64,
                           id, i, size);
    }
    return WF_OK;
}

typedef struct job {
    const plan *plan;
    const wf_tensor *ids;
    const void *from; /* data, or the updates */
    void *to;
    wf_dtype dtype;
} job;

/* Element i of a span in data. */
static inline int64_t offset(const job *j, const wf_span *s, int64_t i)
{
    int64_t id = wf_int_at(j->ids, s->first + i);

    return s->at[0] + i * s->step[0] + (id < 0 ? id + j->plan->at.size : id) * j->plan->at.stride;
}

#define GATHER(T)                                                                                  \
    static void gather_##T(const job *j, const wf_span *s)                                         \
    {                                                                                              \
        T *to = (T *)j->to + s->first;                                                             \
                                                                                                   \
        for (int64_t i = 0; i < s->count; i++)                                                     \
            to[i] = ((const T *)j->from)[offset(j, s, i)];                                         \
    }                                                                                              \
    static void put_##T(const job *j, const wf_span *s)                                            \
    {                                                                                              \
        const T *from = (const T *)j->from + s->first;                                             \
                                                                                                   \
        for (int64_t i = 0; i < s->count; i++)                                                     \
            ((T *)j->to)[offset(j, s, i)] = from[i];                                               \
    }
WF_EACH_SIZE(GATHER)

/* NaN stays: it is neither larger nor smaller. */
#define REDUCE(T)                                                                                  \
    static void reduce_##T(const job *j, const wf_span *s)                                         \
    {                                                                                              \
        const T *from = (const T *)j->from + s->first;                                             \
                                                                                                   \
        for (int64_t i = 0; i < s->count; i++) {                                                   \
            T *to = (T *)j->to + offset(j, s, i), x = from[i];                                     \
                                                                                                   \
            switch (j->plan->way) {                                                                \
            case WF_SCATTER_ADD:                                                                   \
                *to = (T)(*to + x);                                                                \
                break;                                                                             \
            case WF_SCATTER_MULTIPLY:                                                              \
                *to = (T)(*to * x);                                                                \
                break;                                                                             \
            case WF_SCATTER_LARGEST:                                                               \
                *to = x > *to || x != x ? x : *to;                                                 \
                break;                                                                             \
            default:                                                                               \
                *to = x < *to || x != x ? x : *to;                                                 \
            }                                                                                      \
        }                                                                                          \
    }
WF_EACH_NUMBER(REDUCE)

static void gather_span(void *arg, const wf_span *s)
{
    const job *j = arg;

    WF_BY_SIZE(wf_dtype_size(j->dtype), gather, j, s);
}

static void put_span(void *arg, const wf_span *s)
{
    const job *j = arg;

    WF_BY_SIZE(wf_dtype_size(j->dtype), put, j, s);
}

static void reduce_span(void *arg, const wf_span *s)
{
    const job *j = arg;

    WF_BY_NUMBER(j->dtype, reduce)(j, s);
}

static void gather_range(void *arg, int64_t begin, int64_t end)
{
    wf_walk_range(&((const job *)arg)->plan->at.walk, begin, end, gather_span, arg);
}

static wf_status gather_elements(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    job j = {run->state, in[1], in[0]->data, out[0]->data, in[0]->dtype};

    WF_TRY(check(in[1], j.plan->at.size, err));
    wf_pool_for(run->pool, j.plan->at.walk.elems, WF_GRAIN, gather_range, &j);
    return WF_OK;
}

static wf_status scatter_elements(const wf_run *run, const wf_tensor *const in[],
                                  wf_tensor *const out[], wf_err *err)
{
    job j = {run->state, in[1], in[2]->data, out[0]->data, in[0]->dtype};
    bool plain = j.plan->way == WF_SCATTER_PUT;

    if (!plain && (j.dtype == WF_BOOL || j.dtype == WF_F16 || j.dtype == WF_BF16))
        return wf_fail(err, WF_UNSUPPORTED, "Cast it first", "there is no reduction of %s",
                       wf_dtype_name(j.dtype));
    WF_TRY(check(in[1], j.plan->at.size, err));
    wf_copy(out[0]->data, in[0]->data, wf_tensor_bytes(in[0]));
    wf_walk_range(&j.plan->at.walk, 0, j.plan->at.walk.elems, plain ? put_span : reduce_span, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_elements[] = {
    WF_ROW("GatherElements", WF_TYPES_ALL, gather_elements, .prepare = prepare),
    WF_ROW("ScatterElements", WF_TYPES_ALL, scatter_elements, .prepare = prepare, .in_place = 1),
    {0},
};
