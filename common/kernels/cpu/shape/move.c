/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/move.c */
#include "common/kernels/cpu/shape/move.h"
#include "common/kernels/cpu/cpu.h"

typedef struct move {
    const char *from;
    char *to;
    size_t size;
} move;

#define STRIDED(T)                                                                                 \
    static void strided_##T(const T *from, int64_t step_from, T *to, int64_t step_to, int64_t n)   \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i * step_to] = from[i * step_from];                                                 \
    }
WF_EACH_SIZE(STRIDED)

static void strided(size_t size, const void *from, int64_t step_from, void *to, int64_t step_to,
                    int64_t n)
{
    if (step_from == 1 && step_to == 1)
        wf_copy(to, from, (size_t)n * size);
    else
        WF_BY_SIZE(size, strided, from, step_from, to, step_to, n);
}

static void gather_span(void *arg, const wf_span *s)
{
    const move *m = arg;

    strided(m->size, m->from + s->at[0] * (ptrdiff_t)m->size, s->step[0],
            m->to + (size_t)s->first * m->size, 1, s->count);
}

static void scatter_span(void *arg, const wf_span *s)
{
    const move *m = arg;

    strided(m->size, m->from + (size_t)s->first * m->size, 1, m->to + s->at[0] * (ptrdiff_t)m->size,
            s->step[0], s->count);
}

void wf_gather_walk(const wf_walk *w, size_t size, const void *from, void *to)
{
    move m = {from, to, size};

    wf_walk_range(w, 0, w->elems, gather_span, &m);
}

typedef struct shared_move {
    const wf_walk *walk;
    move move;
} shared_move;

static void gather_range(void *arg, int64_t begin, int64_t end)
{
    shared_move *m = arg;

    wf_walk_range(m->walk, begin, end, gather_span, &m->move);
}

void wf_gather_walk_over(wf_pool *pool, const wf_walk *w, size_t size, const void *from, void *to)
{
    shared_move m = {w, {from, to, size}};

    wf_pool_for(pool, w->elems, WF_GRAIN, gather_range, &m);
}

void wf_scatter_walk(const wf_walk *w, size_t size, const void *from, void *to)
{
    move m = {from, to, size};

    wf_walk_range(w, 0, w->elems, scatter_span, &m);
}

typedef struct rows_job {
    const char *from;
    char *to;
    size_t bytes, from_row, to_row;
} rows_job;

static void copy_range(void *arg, int64_t begin, int64_t end)
{
    const rows_job *j = arg;

    for (int64_t r = begin; r < end; r++)
        wf_copy(j->to + (size_t)r * j->to_row, j->from + (size_t)r * j->from_row, j->bytes);
}

void wf_copy_rows(wf_pool *pool, int64_t rows, size_t bytes, const void *from, size_t from_row,
                  void *to, size_t to_row)
{
    rows_job j = {from, to, bytes, from_row, to_row};

    wf_pool_for(pool, rows, WF_GRAIN * 4 / (int64_t)WF_MAX(bytes, (size_t)4) + 1, copy_range, &j);
}
