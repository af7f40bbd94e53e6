/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/transpose.c - Transpose: output axis i is input axis perm[i]. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/move.h"

enum { TILE = 16 };

/* Where the innermost axis of the input is not that of the output, the two are gone through in
 * tiles that fit in the first-level cache, for each place of the other axes. */
typedef struct plan {
    wf_walk walk; /* of the output; operand 0 is the input */
    bool is_tiled;
    wf_walk outer;              /* of the other axes; operand 0 is the input, 1 the output */
    int64_t rows, row_out;      /* the input's inner axis, and how far the output moves along it */
    int64_t columns, column_in; /* the output's inner axis, and how far the input moves along it */
} plan;

static void plan_tiles(plan *p)
{
    const wf_walk *w = &p->walk;
    uint32_t inner = w->rank - 1, row = inner, n = 0;
    int64_t own[WF_MAX_RANK], dims[WF_MAX_RANK], strides[2][WF_MAX_RANK];

    for (uint32_t i = 0; i < inner; i++)
        if (w->strides[0][i] == 1)
            row = i;
    if (row == inner || w->strides[0][inner] == 1)
        return;
    wf_strides(w->rank, w->dims, own);
    for (uint32_t i = 0; i < inner; i++) {
        if (i == row)
            continue;
        dims[n] = w->dims[i];
        strides[0][n] = w->strides[0][i];
        strides[1][n++] = own[i];
    }
    wf_walk_strided(&p->outer, n, dims, 2, (const int64_t(*)[WF_MAX_RANK])strides);
    p->rows = w->dims[row];
    p->row_out = own[row];
    p->columns = w->dims[inner];
    p->column_in = w->strides[0][inner];
    p->is_tiled = true;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    plan *p = wf_arena_alloc(prep->arena, sizeof *p);
    int64_t own[WF_MAX_RANK], strides[1][WF_MAX_RANK] = {{0}};
    const int64_t *perm;
    size_t count;

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    perm = wf_node_ints(prep->node, "perm", &count);
    wf_strides(in[0]->rank, in[0]->dims, own);
    for (uint32_t i = 0; i < in[0]->rank; i++)
        strides[0][i] = own[perm ? (uint32_t)perm[i] : in[0]->rank - 1 - i];
    wf_walk_strided(&p->walk, out[0]->rank, out[0]->dims, 1,
                    (const int64_t(*)[WF_MAX_RANK])strides);
    plan_tiles(p);
    prep->state = p;
    return WF_OK;
}

typedef struct job {
    const plan *plan;
    const char *in;
    char *out;
    size_t size;
    int64_t begin, end; /* of the input's inner axis */
} job;

#define TILES(T)                                                                                   \
    static void tiles_##T(const job *j, const T *in, T *out)                                       \
    {                                                                                              \
        const plan *p = j->plan;                                                                   \
                                                                                                   \
        for (int64_t r = j->begin; r < j->end; r += TILE)                                          \
            for (int64_t c = 0; c < p->columns; c += TILE)                                         \
                for (int64_t i = r; i < WF_MIN(r + TILE, j->end); i++)                             \
                    for (int64_t k = c; k < WF_MIN(c + TILE, p->columns); k++)                     \
                        out[i * p->row_out + k] = in[i + k * p->column_in];                        \
    }
WF_EACH_SIZE(TILES)

static void span(void *arg, const wf_span *s)
{
    const job *j = arg;

    for (int64_t i = 0; i < s->count; i++) {
        const void *from = j->in + (s->at[0] + i * s->step[0]) * (int64_t)j->size;
        void *to = j->out + (s->at[1] + i * s->step[1]) * (int64_t)j->size;

        WF_BY_SIZE(j->size, tiles, j, from, to);
    }
}

/* Places of the outer axes. */
static void outer_range(void *arg, int64_t begin, int64_t end)
{
    wf_walk_range(&((job *)arg)->plan->outer, begin, end, span, arg);
}

/* Stripes of the input's inner axis, TILE wide, at every place of the outer axes. */
static void stripe_range(void *arg, int64_t begin, int64_t end)
{
    job j = *(const job *)arg;

    j.begin = begin * TILE;
    j.end = WF_MIN(end * TILE, j.plan->rows);
    wf_walk_range(&j.plan->outer, 0, j.plan->outer.elems, span, &j);
}

static wf_status transpose(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                           wf_err *err)
{
    const plan *p = run->state;
    job j = {p, in[0]->data, out[0]->data, wf_dtype_size(in[0]->dtype), 0, p->rows};
    int64_t tile = p->rows * p->columns, stripes = (p->rows + TILE - 1) / TILE;

    (void)err;
    if (p->walk.elems == 0)
        return WF_OK;
    if (!p->is_tiled)
        wf_gather_walk_over(run->pool, &p->walk, j.size, j.in, j.out);
    else if (p->outer.elems >= (int64_t)wf_pool_threads(run->pool))
        wf_pool_for(run->pool, p->outer.elems, WF_GRAIN / tile + 1, outer_range, &j);
    else
        wf_pool_for(run->pool, stripes, WF_GRAIN / (TILE * p->columns * p->outer.elems) + 1,
                    stripe_range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_transpose[] = {
    WF_ROW("Transpose", WF_TYPES_ALL, transpose, .prepare = prepare),
    {0},
};
