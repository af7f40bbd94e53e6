/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/reduce/top_k.c - TopK: a heap of the k best indices of each lane, its root the
 * worst of them, sorted at the end. Of equals the first is better; NaN counts as larger than any
 * number, as numpy sorts. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

typedef struct job {
    const void *x;
    void *values;     /* may be NULL */
    int64_t *indices; /* may be NULL */
    int64_t *heaps;   /* [lanes, k] */
    wf_around around; /* of x */
    int64_t k;
    bool largest;
} job;

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    const wf_tensor *y = out[0] ? out[0] : out[1];

    (void)in;
    return wf_prep_workspace(prep, (size_t)wf_elems(y), sizeof(int64_t), err);
}

#define TOP_K(T)                                                                                   \
    /* Whether element a of a lane comes before b. */                                              \
    static inline bool before_##T(const job *j, const T *x, int64_t a, int64_t b)                  \
    {                                                                                              \
        T u = x[a * j->around.inner], v = x[b * j->around.inner];                                  \
        bool above = u > v || (u != u && v == v), below = v > u || (v != v && u == u);             \
                                                                                                   \
        return above || below ? above == j->largest : a < b;                                       \
    }                                                                                              \
    /* Puts `id` at the root and lets it sink below those that come after it. */                   \
    static void sink_##T(const job *j, const T *x, int64_t *heap, int64_t n, int64_t at,           \
                         int64_t id)                                                               \
    {                                                                                              \
        for (;;) {                                                                                 \
            int64_t child = 2 * at + 1;                                                            \
                                                                                                   \
            if (child >= n)                                                                        \
                break;                                                                             \
            if (child + 1 < n && before_##T(j, x, heap[child], heap[child + 1]))                   \
                child++;                                                                           \
            if (!before_##T(j, x, id, heap[child]))                                                \
                break;                                                                             \
            heap[at] = heap[child];                                                                \
            at = child;                                                                            \
        }                                                                                          \
        heap[at] = id;                                                                             \
    }                                                                                              \
    static void lane_##T(const job *j, const T *x, int64_t *heap)                                  \
    {                                                                                              \
        for (int64_t i = 0; i < j->k; i++)                                                         \
            heap[i] = i;                                                                           \
        for (int64_t i = j->k / 2; i-- > 0;)                                                       \
            sink_##T(j, x, heap, j->k, i, heap[i]);                                                \
        for (int64_t i = j->k; i < j->around.axis; i++)                                            \
            if (before_##T(j, x, i, heap[0]))                                                      \
                sink_##T(j, x, heap, j->k, 0, i);                                                  \
        for (int64_t n = j->k - 1; n > 0; n--) {                                                   \
            int64_t worst = heap[0], last = heap[n];                                               \
                                                                                                   \
            sink_##T(j, x, heap, n, 0, last);                                                      \
            heap[n] = worst;                                                                       \
        }                                                                                          \
    }                                                                                              \
    static void lanes_##T(void *arg, int64_t begin, int64_t end)                                   \
    {                                                                                              \
        const job *j = arg;                                                                        \
        int64_t inner = j->around.inner;                                                           \
                                                                                                   \
        for (int64_t lane = begin; lane < end; lane++) {                                           \
            const T *x = (const T *)j->x + lane / inner * j->around.axis * inner + lane % inner;   \
            int64_t *heap = j->heaps + lane * j->k;                                                \
            int64_t to = lane / inner * j->k * inner + lane % inner;                               \
                                                                                                   \
            lane_##T(j, x, heap);                                                                  \
            for (int64_t i = 0; i < j->k; i++, to += inner) {                                      \
                if (j->values)                                                                     \
                    ((T *)j->values)[to] = x[heap[i] * inner];                                     \
                if (j->indices)                                                                    \
                    j->indices[to] = heap[i];                                                      \
            }                                                                                      \
        }                                                                                          \
    }
WF_EACH_NUMBER(TOP_K)

static wf_status top_k(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    int64_t axis = wf_node_int(run->node, "axis", -1), lanes;
    const wf_tensor *y = out[0] ? out[0] : out[1];
    job j = {.x = in[0]->data,
             .values = out[0] ? out[0]->data : NULL,
             .indices = out[1] ? out[1]->data : NULL,
             .heaps = run->workspace,
             .around = wf_around_axis(in[0], axis),
             .k = wf_around_axis(y, axis).axis,
             .largest = wf_node_int(run->node, "largest", 1) != 0};
    wf_pool_fn *fn = WF_BY_NUMBER(in[0]->dtype, lanes);

    if (j.k > j.around.axis)
        return wf_fail(err, WF_SHAPE, NULL, "k is %lld, along an axis of %lld", (long long)j.k,
                       (long long)j.around.axis);
    lanes = j.around.outer * j.around.inner;
    if (j.k > 0)
        wf_pool_for(run->pool, lanes, WF_GRAIN / (4 * j.around.axis) + 1, fn, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_top_k[] = {
    WF_ROW("TopK", WF_TYPES_NUMBER | WF_TYPE(WF_U8), top_k, .prepare = prepare),
    {0},
};
