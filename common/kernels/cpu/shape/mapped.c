/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/mapped.c */
#include "common/kernels/cpu/shape/mapped.h"
#include "common/kernels/cpu/cpu.h"

#include <string.h>

/* Where row r of the walked side leads; -1: nowhere. */
static int64_t row_base(const wf_maps *m, int64_t r)
{
    int64_t base = 0;

    for (uint32_t i = m->rank - 1; i-- > 0; r /= m->dims[i]) {
        int64_t to = m->at[i][r % m->dims[i]];

        if (to < 0)
            return -1;
        base += to;
    }
    return base;
}

typedef struct job {
    const wf_maps *m;
    size_t size;
    const char *other, *filler;
    char *walked;
} job;

/* from NULL: filler everywhere. */
#define PICK(T)                                                                                    \
    static void pick_##T(const job *j, int64_t begin, int64_t end, const void *from, void *to)     \
    {                                                                                              \
        const int64_t *at = j->m->at[j->m->rank - 1];                                              \
        T filler;                                                                                  \
                                                                                                   \
        memcpy(&filler, j->filler, sizeof filler);                                                 \
        for (int64_t i = begin; i < end; i++)                                                      \
            ((T *)to)[i] = from && at[i] >= 0 ? ((const T *)from)[at[i]] : filler;                 \
    }
WF_EACH_SIZE(PICK)

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_maps *m = j->m;
    int64_t columns = m->dims[m->rank - 1], run_end = m->run_first + m->run_length;

    for (int64_t r = begin; r < end; r++) {
        int64_t base = row_base(m, r);
        char *to = j->walked + (size_t)(r * columns) * j->size;
        const char *from;

        if (base < 0) {
            WF_BY_SIZE(j->size, pick, j, 0, columns, NULL, to);
            continue;
        }
        from = j->other + (size_t)base * j->size;
        WF_BY_SIZE(j->size, pick, j, 0, m->run_first, from, to);
        if (m->run_length)
            wf_copy(to + (size_t)m->run_first * j->size,
                    from + (size_t)m->at[m->rank - 1][m->run_first] * j->size,
                    (size_t)m->run_length * j->size);
        WF_BY_SIZE(j->size, pick, j, run_end, columns, from, to);
    }
}

wf_status wf_run_gather(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    static const uint64_t zero;
    const wf_maps *m = run->state;
    job j = {m, wf_dtype_size(in[0]->dtype), in[0]->data, (const char *)&zero, out[0]->data};
    int64_t columns = WF_MAX(m->dims[m->rank - 1], (int64_t)1);

    (void)err;
    if (in[2] && wf_elems(in[2]))
        j.filler = in[2]->data;
    wf_pool_for(run->pool, m->rows, WF_GRAIN / columns + 1, rows, &j);
    return WF_OK;
}

#define ADD(T)                                                                                     \
    WF_MULTIVERSION static void add_run_##T(const T *from, T *to, int64_t n)                       \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] += from[i];                                                                      \
    }                                                                                              \
    static void add_some_##T(const int64_t *at, int64_t begin, int64_t end, const T *from, T *to)  \
    {                                                                                              \
        for (int64_t i = begin; i < end; i++)                                                      \
            if (at[i] >= 0)                                                                        \
                to[at[i]] += from[i];                                                              \
    }                                                                                              \
    static void add_##T(const wf_maps *m, const T *walked, T *other)                               \
    {                                                                                              \
        const int64_t *at = m->at[m->rank - 1];                                                    \
        int64_t columns = m->dims[m->rank - 1], run_end = m->run_first + m->run_length;            \
                                                                                                   \
        for (int64_t r = 0; r < m->rows; r++, walked += columns) {                                 \
            int64_t base = row_base(m, r);                                                         \
                                                                                                   \
            if (base < 0)                                                                          \
                continue;                                                                          \
            add_some_##T(at, 0, m->run_first, walked, other + base);                               \
            if (m->run_length)                                                                     \
                add_run_##T(walked + m->run_first, other + base + at[m->run_first],                \
                            m->run_length);                                                        \
            add_some_##T(at, run_end, columns, walked, other + base);                              \
        }                                                                                          \
    }
ADD(float)
ADD(double)

wf_status wf_run_gather_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    (void)err;
    if (wf_tensor_bytes(out[0]))
        memset(out[0]->data, 0, wf_tensor_bytes(out[0]));
    if (out[0]->dtype == WF_F32)
        add_float(run->state, in[0]->data, out[0]->data);
    else
        add_double(run->state, in[0]->data, out[0]->data);
    return WF_OK;
}
