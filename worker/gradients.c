/* SPDX-License-Identifier: Apache-2.0 */
/* worker/gradients.c */
#include "worker/gradients.h"
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/tensor/buf.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 1 << 16, PIECE = 1 << 12, LANES = 16 }; /* PIECE: of a sum, stays in the cache */

/* A variable's gradient of one replica. */
typedef struct part {
    float *push;   /* of the step in hand */
    wf_buf *batch; /* [count], made when a step's gradient is a sum */
} part;

typedef struct variable {
    int64_t count;
    bool clipped, apart, waits; /* waits: its gradient is whole and has not left */
    part *parts;                /* [n_replicas] */
    float *push;                /* of a part, the last that was asked for */
} variable;

struct wf_gradients {
    variable *variables;
    part *parts; /* [n * n_replicas] */
    uint32_t n, n_replicas;
    const wf_device **devices; /* [n_replicas] */
    float *weights; /* [n_replicas], of the batch in hand; 0: the replica has no records */
    wf_pool *pool;
    double clipvalue, clipnorm, global_clipnorm; /* 0: not */
    bool first, last, checked;
    double *sums; /* of blocks, room for those of the largest variable */
};

uint64_t wf_gradients_batches(const wf_opt *opt)
{
    double n = opt->shared[WF_OPT_ACCUMULATION];

    return n > 1 ? (uint64_t)n : 1;
}

static wf_status make_room(wf_gradients *g, const wf_gradients_conf *conf, wf_err *err)
{
    size_t n_parts = (size_t)g->n * g->n_replicas;
    int64_t most = 0;

    g->variables = calloc(g->n + (size_t)1, sizeof *g->variables);
    g->parts = calloc(n_parts + 1, sizeof *g->parts);
    g->devices = calloc(g->n_replicas, sizeof(*g->devices));
    g->weights = calloc(g->n_replicas, sizeof *g->weights);
    if (!g->variables || !g->parts || !g->devices || !g->weights)
        return wf_fail_nomem(err, n_parts * sizeof *g->parts);
    for (uint32_t i = 0; i < g->n; i++) {
        const wf_gradients_variable *v = &conf->variables[i];

        wf_assert(!v->apart || conf->devices);
        g->variables[i] = (variable){.count = v->count,
                                     .clipped = v->clipped && !v->apart,
                                     .apart = v->apart,
                                     .parts = g->parts + (size_t)i * g->n_replicas};
        most = WF_MAX(most, v->count);
    }
    for (uint32_t r = 0; r < g->n_replicas; r++)
        g->devices[r] = conf->devices ? conf->devices[r] : &wf_cpu;
    g->sums = calloc((size_t)(most / BLOCK) + 1, sizeof *g->sums);
    return g->sums ? WF_OK : wf_fail_nomem(err, (size_t)(most / BLOCK) * sizeof *g->sums);
}

wf_status wf_gradients_new(const wf_gradients_conf *conf, wf_gradients **out, wf_err *err)
{
    wf_gradients *g = calloc(1, sizeof *g);
    wf_status rc;

    if (!g)
        return wf_fail_nomem(err, sizeof *g);
    g->pool = conf->pool;
    g->n = conf->n;
    g->n_replicas = WF_MAX(conf->n_replicas, 1u);
    g->checked = conf->checked;
    g->clipvalue = conf->opt->shared[WF_OPT_CLIPVALUE];
    g->clipnorm = conf->opt->shared[WF_OPT_CLIPNORM];
    g->global_clipnorm = conf->opt->shared[WF_OPT_GLOBAL_CLIPNORM];
    rc = make_room(g, conf, err);
    if (rc != WF_OK)
        wf_gradients_free(&g);
    *out = g;
    return rc;
}

void wf_gradients_free(wf_gradients **g)
{
    wf_gradients *it = *g;

    *g = NULL;
    if (!it)
        return;
    for (size_t i = 0; it->parts && i < (size_t)it->n * it->n_replicas; i++)
        wf_buf_unref(&it->parts[i].batch);
    free(it->variables);
    free(it->parts);
    free(it->devices);
    free(it->weights);
    free(it->sums);
    free(it);
}

void wf_gradients_begin(wf_gradients *g, const uint64_t records[], uint64_t of, bool first,
                        bool last)
{
    for (uint32_t r = 0; r < g->n_replicas; r++)
        g->weights[r] = (float)((double)records[r] / (double)of);
    g->first = first;
    g->last = last;
}

/* Whether the step's gradient is more than what one plan writes once. */
static bool is_sum(const wf_gradients *g)
{
    return !g->first || !g->last || g->n_replicas > 1;
}

float *wf_gradients_into(wf_gradients *g, uint32_t replica, uint32_t i, float *push)
{
    variable *v = &g->variables[i];
    part *p = &v->parts[replica];

    v->push = p->push = push;
    v->waits = false;
    if (!is_sum(g))
        return push;
    if (!p->batch)
        p->batch = wf_buf_new_on(v->apart ? g->devices[replica] : &wf_cpu,
                                 (size_t)v->count * sizeof(float));
    return push && p->batch ? p->batch->data : NULL;
}

float wf_gradients_weight(const wf_gradients *g, uint32_t replica)
{
    return g->weights[replica];
}

bool wf_gradients_is_first(const wf_gradients *g)
{
    return g->first;
}

bool wf_gradients_is_last(const wf_gradients *g)
{
    return g->last;
}

float *wf_gradients_of_step(const wf_gradients *g, uint32_t replica, uint32_t i)
{
    return g->variables[i].parts[replica].push;
}

/* ---- loops over blocks ---- */

typedef struct loop {
    const wf_gradients *g;
    const variable *v;
    float *to;
    float by;
    int64_t count;
    double *sums;
} loop;

WF_MULTIVERSION
static void add(float *restrict to, const float *restrict from, float by, bool first, int64_t n)
{
    if (first)
        for (int64_t i = 0; i < n; i++)
            to[i] = by * from[i];
    else
        for (int64_t i = 0; i < n; i++)
            to[i] += by * from[i];
}

static void add_parts(void *arg, int64_t begin, int64_t end)
{
    const loop *l = arg;
    const wf_gradients *g = l->g;

    for (int64_t at = begin, n; at < end; at += n) {
        bool first = g->first;

        n = WF_MIN(end - at, (int64_t)PIECE);
        for (uint32_t r = 0; r < g->n_replicas; r++) {
            if (g->weights[r] == 0)
                continue;
            add(l->to + at, (const float *)l->v->parts[r].batch->data + at, g->weights[r], first,
                n);
            first = false;
        }
    }
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
    loop l = {.g = g, .v = v, .to = v->push, .by = (float)by};

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

    if (is_sum(g) && !v->apart)
        over(g, v, add_parts, 1);
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
        if (g->variables[i].waits && !g->variables[i].apart &&
            !wf_all_finite(g->variables[i].push, (size_t)g->variables[i].count))
            return false;
    return true;
}

bool wf_gradients_waits(const wf_gradients *g, uint32_t i)
{
    return g->variables[i].waits;
}

void wf_gradients_squares(const wf_gradients *g, double out[])
{
    for (uint32_t i = 0; i < g->n; i++) {
        const variable *v = &g->variables[i];

        out[i] = g->global_clipnorm > 0 && v->waits && v->clipped ? square_norm(g, v) : 0;
    }
}

wf_status wf_gradients_end_by(wf_gradients *g, double norm,
                              wf_status (*leave)(void *arg, uint32_t variable, wf_err *err),
                              void *arg, wf_err *err)
{
    bool scales = g->global_clipnorm > 0 && norm > g->global_clipnorm;

    for (uint32_t i = 0; i < g->n; i++) {
        variable *v = &g->variables[i];

        if (!v->waits)
            continue;
        v->waits = false;
        if (scales && v->clipped)
            over(g, v, scale, g->global_clipnorm / norm);
        WF_TRY(leave(arg, i, err));
    }
    return WF_OK;
}

wf_status wf_gradients_end(wf_gradients *g,
                           wf_status (*leave)(void *arg, uint32_t variable, wf_err *err), void *arg,
                           wf_err *err)
{
    double sum = 0;

    for (uint32_t i = 0; i < g->n && g->global_clipnorm > 0; i++)
        if (g->variables[i].waits && g->variables[i].clipped)
            sum += square_norm(g, &g->variables[i]);
    return wf_gradients_end_by(g, sqrt(sum), leave, arg, err);
}
