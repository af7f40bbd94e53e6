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

#define PICK(T)                                                                                    \
    static void pick_##T(const int64_t *at, int64_t begin, int64_t end, const T *from, T filler,   \
                         T *to)                                                                    \
    {                                                                                              \
        for (int64_t i = begin; i < end; i++)                                                      \
            to[i] = from && at[i] >= 0 ? from[at[i]] : filler;                                     \
    }
PICK(uint8_t)
PICK(uint16_t)
PICK(uint32_t)
PICK(uint64_t)

#define PICK_CASE(T)                                                                               \
    {                                                                                              \
        T filler;                                                                                  \
                                                                                                   \
        memcpy(&filler, j->filler, sizeof filler);                                                 \
        pick_##T(at, begin, end, (const T *)from, filler, (T *)to);                                \
    }

/* from NULL: filler everywhere. */
static void pick(const job *j, int64_t begin, int64_t end, const char *from, char *to)
{
    const int64_t *at = j->m->at[j->m->rank - 1];

    if (j->size == 4)
        PICK_CASE(uint32_t)
    else if (j->size == 8)
        PICK_CASE(uint64_t)
    else if (j->size == 2)
        PICK_CASE(uint16_t)
    else
        PICK_CASE(uint8_t)
}

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
            pick(j, 0, columns, NULL, to);
            continue;
        }
        from = j->other + (size_t)base * j->size;
        pick(j, 0, m->run_first, from, to);
        if (m->run_length)
            wf_copy(to + (size_t)m->run_first * j->size,
                    from + (size_t)m->at[m->rank - 1][m->run_first] * j->size,
                    (size_t)m->run_length * j->size);
        pick(j, run_end, columns, from, to);
    }
}

void wf_maps_gather(const wf_maps *m, size_t size, const void *other, const void *filler,
                    void *walked, wf_pool *pool)
{
    job j = {m, size, other, filler, walked};
    int64_t columns = WF_MAX(m->dims[m->rank - 1], (int64_t)1);

    wf_pool_for(pool, m->rows, WF_GRAIN / columns + 1, rows, &j);
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

void wf_maps_add(const wf_maps *m, const wf_tensor *walked, wf_tensor *other)
{
    if (wf_tensor_bytes(other))
        memset(other->data, 0, wf_tensor_bytes(other));
    if (other->dtype == WF_F32)
        add_float(m, walked->data, other->data);
    else
        add_double(m, walked->data, other->data);
}
