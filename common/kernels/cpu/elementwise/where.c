/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/where.c - Where: condition ? x : y, all three broadcast. Chosen
 * bit by bit, so one loop per size of element serves all dtypes. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/shape/walk.h"

typedef struct job {
    const uint8_t *condition;
    const char *x, *y;
    char *out;
    const wf_walk *walk;
    size_t size;
} job;

#define CHOOSE(T)                                                                                  \
    WF_MULTIVERSION static void choose_##T(const uint8_t *c, const T *x, const T *y, T *out,       \
                                           const int64_t step[3], int64_t n)                       \
    {                                                                                              \
        int64_t sc = step[0], sx = step[1], sy = step[2];                                          \
                                                                                                   \
        if (sc == 1 && sx == 1 && sy == 1)                                                         \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] = c[i] ? x[i] : y[i];                                                       \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] = c[i * sc] ? x[i * sx] : y[i * sy];                                        \
    }
WF_EACH_SIZE(CHOOSE)

static void span(void *arg, const wf_span *s)
{
    const job *j = arg;
    const uint8_t *c = j->condition + s->at[0];
    const void *x = j->x + (size_t)s->at[1] * j->size, *y = j->y + (size_t)s->at[2] * j->size;
    void *out = j->out + (size_t)s->first * j->size;

    WF_BY_SIZE(j->size, choose, c, x, y, out, s->step, s->count);
}

static void range(void *arg, int64_t begin, int64_t end)
{
    wf_walk_range(((job *)arg)->walk, begin, end, span, arg);
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    wf_walk *walk = wf_arena_alloc(prep->arena, sizeof *walk);

    if (!walk)
        return wf_fail_nomem(err, sizeof *walk);
    wf_walk_broadcast(walk, out[0], 3, in);
    prep->state = walk;
    return WF_OK;
}

static wf_status where(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    job j = {in[0]->data,  in[1]->data, in[2]->data,
             out[0]->data, run->state,  wf_dtype_size(out[0]->dtype)};

    (void)err;
    wf_pool_for(run->pool, j.walk->elems, WF_GRAIN, range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_where[] = {
    WF_ROW("Where", WF_TYPES_ALL, where, .typed_by = 1, .prepare = prepare),
    {0},
};
