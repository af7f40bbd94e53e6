/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/reduce/arg_max.c - ArgMax and ArgMin along one axis: the first of equals, or
 * the last with select_last_index. A NaN is more extreme than any number, as numpy has it. */
#include "common/kernels/cpu/cpu.h"

enum { TILE = 256 };

/* Along axis a.axis of `count` neighbours (at most TILE), or of one row. */
typedef void arg_fn(const void *x, int64_t *to, int64_t axis, int64_t inner, int64_t count,
                    bool last);

typedef struct job {
    const char *x;
    int64_t *to;
    wf_around around;
    size_t size;
    arg_fn *fn;
    bool last;
} job;

/* sign is > or <. */
#define ARG(name, T, sign)                                                                         \
    WF_MULTIVERSION static void name##_tile(const T *x, int64_t *to, int64_t axis, int64_t inner,  \
                                            int64_t count, bool last)                              \
    {                                                                                              \
        T best[TILE];                                                                              \
                                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            best[i] = x[i];                                                                        \
            to[i] = 0;                                                                             \
        }                                                                                          \
        for (int64_t k = 1; k < axis; k++)                                                         \
            for (int64_t i = 0; i < count; i++) {                                                  \
                T v = x[k * inner + i];                                                            \
                bool is_first_nan = v != v && (best[i] == best[i] || last);                        \
                bool beats = v sign best[i] || is_first_nan || (last && v == best[i]);             \
                                                                                                   \
                best[i] = beats ? v : best[i];                                                     \
                to[i] = beats ? k : to[i];                                                         \
            }                                                                                      \
    }                                                                                              \
    static void name(const void *x, int64_t *to, int64_t axis, int64_t inner, int64_t count,       \
                     bool last)                                                                    \
    {                                                                                              \
        name##_tile(x, to, axis, inner, count, last);                                              \
    }
#define ARGS(T)                                                                                    \
    ARG(max_##T, T, >)                                                                             \
    ARG(min_##T, T, <)
WF_EACH_NUMBER(ARGS)

/* Outputs [begin, end) of [outer, inner]. */
static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_around a = j->around;

    while (begin < end) {
        int64_t o = begin / a.inner, i = begin % a.inner;
        int64_t count = WF_MIN(WF_MIN(a.inner - i, end - begin), (int64_t)TILE);

        j->fn(j->x + (size_t)(o * a.axis * a.inner + i) * j->size, j->to + begin, a.axis, a.inner,
              count, j->last);
        begin += count;
    }
}

static wf_status run_arg(const wf_run *run, const wf_tensor *in, wf_tensor *out, arg_fn *fn,
                         wf_err *err)
{
    job j = {.x = in->data,
             .to = out->data,
             .around = wf_around_axis(in, wf_node_int(run->node, "axis", 0)),
             .size = wf_dtype_size(in->dtype),
             .fn = fn,
             .last = wf_node_int(run->node, "select_last_index", 0) != 0};

    if (j.around.axis == 0 && wf_elems(out))
        return wf_fail(err, WF_INVALID, NULL, "there is no element to choose from");
    wf_pool_for(run->pool, wf_elems(out), WF_GRAIN / WF_MAX(j.around.axis, (int64_t)1) + 1, range,
                &j);
    return WF_OK;
}

static wf_status arg_max(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    return run_arg(run, in[0], out[0], WF_BY_NUMBER(in[0]->dtype, max), err);
}

static wf_status arg_min(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    return run_arg(run, in[0], out[0], WF_BY_NUMBER(in[0]->dtype, min), err);
}

const wf_kernel wf_kernels_arg_max[] = {
    WF_ROW("ArgMax", WF_TYPES_NUMBER | WF_TYPE(WF_U8), arg_max),
    WF_ROW("ArgMin", WF_TYPES_NUMBER | WF_TYPE(WF_U8), arg_min),
    {0},
};
