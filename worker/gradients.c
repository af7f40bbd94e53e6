/* SPDX-License-Identifier: Apache-2.0 */
/* worker/gradients.c */
#include "worker/gradients.h"
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/tensor/buf.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 1 << 16, LANES = 16 };

typedef struct variable {
    int64_t count;
    bool clipped, waits; /* waits: its gradient is whole and has not left */
    const wf_device *device;
    float *push;   /* of the step in hand */
    wf_buf *batch; /* [count], made when a step has several batches */
} variable;

struct wf_gradients {
    variable *variables;
    uint32_t n;
    wf_pool *pool;
    double clipvalue, clipnorm, global_clipnorm; /* 0: not */
    float weight;                                /* of the batch in hand */
    bool first, last, checked;
    double *sums; /* of blocks, room for those of the largest variable */
};

uint64_t wf_gradients_batches(const wf_opt *opt)
{
    double n = opt->shared[WF_OPT_ACCUMULATION];

    return n > 1 ? (uint64_t)n : 1;
}

wf_status wf_gradients_new(const wf_opt *opt, const wf_gradients_variable variables[], uint32_t n,
                           bool checked, wf_pool *pool, wf_gradients **out, wf_err *err)
{
    wf_gradients *g = calloc(1, sizeof *g);
    int64_t most = 0;

    if (!g)
        return wf_fail_nomem(err, sizeof *g);
    g->pool = pool;
    g->n = n;
    g->checked = checked;
    g->clipvalue = opt->shared[WF_OPT_CLIPVALUE];
    g->clipnorm = opt->shared[WF_OPT_CLIPNORM];
    g->global_clipnorm = opt->shared[WF_OPT_GLOBAL_CLIPNORM];
    g->variables = calloc(n + 1, sizeof *g->variables);
    for (uint32_t i = 0; g->variables && i < n; i++) {
        const wf_device *device = variables[i].device ? variables[i].device : &wf_cpu;

        g->variables[i] = (variable){.count = variables[i].count,
                                     .clipped = variables[i].clipped && device->is_host,
                                     .device = device};
        most = WF_MAX(most, variables[i].count);
    }
    g->sums = calloc((size_t)(most / BLOCK) + 1, sizeof *g->sums);
    if (!g->variables || !g->sums) {
        wf_gradients_free(&g);
        return wf_fail_nomem(err, n * sizeof *g->variables);
    }
    *out = g;
    return WF_OK;
}

void wf_gradients_free(wf_gradients **g)
{
    wf_gradients *it = *g;

    *g = NULL;
    if (!it)
        return;
    for (uint32_t i = 0; it->variables && i < it->n; i++)
        wf_buf_unref(&it->variables[i].batch);
    free(it->variables);
    free(it->sums);
    free(it);
}

void wf_gradients_begin(wf_gradients *g, uint64_t records, uint64_t of, bool first, bool last)
{
    g->weight = (float)((double)records / (double)of);
    g->first = first;
    g->last = last;
}

float *wf_gradients_into(wf_gradients *g, uint32_t i, float *push)
{
    variable *v = &g->variables[i];

    v->push = push;
    v->waits = false;
    if (g->first && g->last)
        return push;
    if (!v->batch)
        v->batch = wf_buf_new_on(v->device, (size_t)v->count * sizeof(float));
    return push && v->batch ? v->batch->data : NULL;
}

float wf_gradients_weight(const wf_gradients *g)
{
    return g->weight;
}

bool wf_gradients_is_first(const wf_gradients *g)
{
    return g->first;
}

bool wf_gradients_is_last(const wf_gradients *g)
{
    return g->last;
}

float *wf_gradients_of_step(const wf_gradients *g, uint32_t i)
{
    return g->variables[i].push;
}

/* ---- loops over blocks ---- */

typedef struct loop {
    float *to;
    const float *from;
    float by;
    int64_t count;
    bool first;
    double *sums;
} loop;

WF_MULTIVERSION
static void add_batch(void *arg, int64_t begin, int64_t end)
{
    const loop *l = arg;
    const float *restrict from = l->from;
    float *restrict to = l->to;
    float by = l->by;

    if (l->first)
        for (int64_t i = begin; i < end; i++)
            to[i] = by * from[i];
    else
        for (int64_t i = begin; i < end; i++)
            to[i] += by * from[i];
}

WF_MULTIVERSION
static void scale(void *arg, int64_t begin, int64_t end)
{
    const loop *l = arg;
    float *restrict to = l->to;
    float by = l->by;

    for (int64_t i = begin; i < end; i++)
        to[i] *= by;
}

/* NaN stays: it is for whoever looks at the numbers, not for a comparison to hide. */
WF_MULTIVERSION
static void bound(void *arg, int64_t begin, int64_t end)
{
    const loop *l = arg;
    float *restrict to = l->to;
    float most = l->by;

    for (int64_t i = begin; i < end; i++) {
        float x = to[i] > most ? most : to[i];

        to[i] = x < -most ? -most : x;
    }
}

/* Squares of n <= LANES elements. */
static WF_INLINE void add_squares(const float *restrict x, int64_t n, double *restrict lanes)
{
    for (int64_t i = 0; i < n; i++)
        lanes[i] += (double)x[i] * (double)x[i];
}

WF_MULTIVERSION
static double squares_of(const float *x, int64_t n)
{
    double lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        add_squares(x + i, LANES, lanes);
    add_squares(x + i, n - i, lanes);
    for (i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}

static void sum_blocks(void *arg, int64_t begin, int64_t end)
{
    const loop *l = arg;

    for (int64_t i = begin; i < end; i++)
        l->sums[i] = squares_of(l->to + i * BLOCK, WF_MIN(l->count - i * BLOCK, (int64_t)BLOCK));
}

static double square_norm(const wf_gradients *g, const variable *v)
{
    loop l = {.to = v->push, .count = v->count, .sums = g->sums};
    int64_t n = (v->count + BLOCK - 1) / BLOCK;
    double sum = 0;

    wf_pool_for(g->pool, n, 1, sum_blocks, &l);
    for (int64_t i = 0; i < n; i++)
        sum += g->sums[i];
    return sum;
}

static void over(const wf_gradients *g, const variable *v, wf_pool_fn *fn, double by)
{
    loop l = {.to = v->push,
              .from = v->batch ? v->batch->data : NULL,
              .by = (float)by,
              .first = g->first};

    wf_pool_for(g->pool, v->count, BLOCK, fn, &l);
}

/* ---- what is done ---- */

static void clip(wf_gradients *g, const variable *v)
{
    double norm;

    if (g->clipvalue > 0)
        over(g, v, bound, g->clipvalue);
    if (g->clipnorm <= 0)
        return;
    norm = sqrt(square_norm(g, v));
    if (norm > g->clipnorm)
        over(g, v, scale, g->clipnorm / norm);
}

bool wf_gradients_take(wf_gradients *g, uint32_t i)
{
    variable *v = &g->variables[i];

    if ((!g->first || !g->last) && v->device->is_host)
        over(g, v, add_batch, (double)g->weight);
    if (!g->last)
        return false;
    if (v->clipped)
        clip(g, v);
    v->waits = g->checked || (v->clipped && g->global_clipnorm > 0);
    return !v->waits;
}

bool wf_gradients_finite(const wf_gradients *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->variables[i].waits && g->variables[i].device->is_host &&
            !wf_all_finite(g->variables[i].push, (size_t)g->variables[i].count))
            return false;
    return true;
}

wf_status wf_gradients_end(wf_gradients *g,
                           wf_status (*leave)(void *arg, uint32_t variable, wf_err *err), void *arg,
                           wf_err *err)
{
    double sum = 0, norm;

    for (uint32_t i = 0; i < g->n && g->global_clipnorm > 0; i++)
        if (g->variables[i].waits && g->variables[i].clipped)
            sum += square_norm(g, &g->variables[i]);
    norm = sqrt(sum);
    for (uint32_t i = 0; i < g->n; i++) {
        variable *v = &g->variables[i];

        if (!v->waits)
            continue;
        v->waits = false;
        if (v->clipped && g->global_clipnorm > 0 && norm > g->global_clipnorm)
            over(g, v, scale, g->global_clipnorm / norm);
        WF_TRY(leave(arg, i, err));
    }
    return WF_OK;
}
