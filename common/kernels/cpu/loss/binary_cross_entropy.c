/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/loss/binary_cross_entropy.c - ai.weft SigmoidCrossEntropy(x, z): from logits x
 * and labels z, max(x, 0) - x z + log(1 + exp(-|x|)), and its gradient (sigmoid(x) - z) dloss.
 * Labels broadcast over the logits. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/vmath.h"
#include "common/kernels/shape/walk.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024 };

typedef struct job {
    const wf_walk *walk;
    const wf_tensor *x, *z, *dloss;
    wf_tensor *out;
    bool each; /* reduction none */
    double scale;
    double *sums; /* of the blocks: added up in their order, whatever the number of threads */
} job;

typedef struct block {
    const job *job;
    double sum;
} block;

static wf_status prepare(wf_prep *prep, const wf_tensor *const x, const wf_tensor *const z,
                         wf_err *err)
{
    wf_walk *walk = wf_arena_alloc(prep->arena, sizeof *walk);
    const wf_tensor *operands[2] = {x, z};

    if (!walk)
        return wf_fail_nomem(err, sizeof *walk);
    wf_walk_broadcast(walk, x, 2, operands);
    prep->state = walk;
    return WF_OK;
}

static wf_status prepare_loss(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    (void)out;
    prep->workspace_bytes = (size_t)(wf_elems(in[0]) / BLOCK + 1) * sizeof(double);
    return prepare(prep, in[0], in[1], err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    (void)out;
    return prepare(prep, in[1], in[2], err);
}

static void store(wf_tensor *t, int64_t i, double value)
{
    if (t->dtype == WF_F32)
        ((float *)t->data)[i] = (float)value;
    else
        ((double *)t->data)[i] = value;
}

WF_MULTIVERSION static void losses_f32(const float *x, const float *z, int64_t step_z, double *to,
                                       int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = wf_softplus_wide((double)x[i]) - (double)x[i] * (double)z[i * step_z];
}

static void losses_f64(const double *x, const double *z, int64_t step_z, double *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = fmax(x[i], 0) - x[i] * z[i * step_z] + log1p(exp(-fabs(x[i])));
}

/* A stretch of one block of elements; its sum goes to the block's. */
static void loss_span(void *arg, const wf_span *s)
{
    block *b = arg;
    const job *j = b->job;
    double each[BLOCK];

    if (j->x->dtype == WF_F32)
        losses_f32((const float *)j->x->data + s->first, (const float *)j->z->data + s->at[1],
                   s->step[1], each, s->count);
    else
        losses_f64((const double *)j->x->data + s->first, (const double *)j->z->data + s->at[1],
                   s->step[1], each, s->count);
    for (int64_t i = 0; i < s->count; i++) {
        if (j->each)
            store(j->out, s->first + i, each[i]);
        b->sum += each[i];
    }
}

static void loss_blocks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t i = begin; i < end; i++) {
        block b = {j, 0};

        wf_walk_range(j->walk, i * BLOCK, WF_MIN((i + 1) * BLOCK, j->walk->elems), loss_span, &b);
        j->sums[i] = b.sum;
    }
}

static bool reduces(const wf_node *node)
{
    return strcmp(wf_node_string(node, "reduction", "mean"), "none") != 0;
}

static bool is_mean(const wf_node *node)
{
    return strcmp(wf_node_string(node, "reduction", "mean"), "mean") == 0;
}

static wf_status loss(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    const wf_walk *walk = run->state;
    job j = {.walk = walk,
             .x = in[0],
             .z = in[1],
             .out = out[0],
             .each = !reduces(run->node),
             .sums = run->workspace};
    int64_t blocks = (walk->elems + BLOCK - 1) / BLOCK;
    double sum = 0;

    (void)err;
    wf_pool_for(run->pool, blocks, WF_GRAIN / BLOCK / 8, loss_blocks, &j);
    for (int64_t i = 0; i < blocks; i++)
        sum += j.sums[i];
    if (!j.each)
        store(out[0], 0, is_mean(run->node) ? sum / (double)walk->elems : sum);
    return WF_OK;
}

WF_MULTIVERSION static void span_f32(const float *x, const float *z, int64_t step_z, float *dx,
                                     float factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = (wf_sigmoid_f32(x[i]) - z[i * step_z]) * factor;
}

static void grad_span(void *arg, const wf_span *s)
{
    const job *j = arg;

    if (!j->each && j->x->dtype == WF_F32 && s->step[0] == 1) {
        span_f32((const float *)j->x->data + s->at[0], (const float *)j->z->data + s->at[1],
                 s->step[1], (float *)j->out->data + s->first,
                 (float)(j->scale * wf_number_at(j->dloss, 0)), s->count);
        return;
    }
    for (int64_t i = 0; i < s->count; i++) {
        double x = wf_number_at(j->x, s->at[0] + i * s->step[0]);
        double z = wf_number_at(j->z, s->at[1] + i * s->step[1]);

        store(j->out, s->first + i,
              (1 / (1 + exp(-x)) - z) * j->scale *
                  wf_number_at(j->dloss, j->each ? s->first + i : 0));
    }
}

static void grad_range(void *arg, int64_t begin, int64_t end)
{
    wf_walk_range(((job *)arg)->walk, begin, end, grad_span, arg);
}

static wf_status loss_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                           wf_err *err)
{
    const wf_walk *walk = run->state;
    job j = {.walk = walk,
             .x = in[1],
             .z = in[2],
             .dloss = in[0],
             .out = out[0],
             .each = !reduces(run->node),
             .scale = is_mean(run->node) ? 1 / (double)walk->elems : 1};

    (void)err;
    wf_pool_for(run->pool, walk->elems, WF_GRAIN / 4, grad_range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_binary_cross_entropy[] = {
    WF_ROW("SigmoidCrossEntropy", WF_TYPES_FLOAT, loss, .domain = WF_DOMAIN_WEFT,
           .prepare = prepare_loss),
    WF_ROW("SigmoidCrossEntropyGrad", WF_TYPES_FLOAT, loss_grad, .domain = WF_DOMAIN_WEFT,
           .typed_by = 1, .prepare = prepare_grad),
    {0},
};
