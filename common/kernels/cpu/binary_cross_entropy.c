/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/binary_cross_entropy.c - ai.weft SigmoidCrossEntropy(x, z): from logits x and
 * labels z, max(x, 0) - x z + log(1 + exp(-|x|)), and its gradient (sigmoid(x) - z) dloss. Labels
 * broadcast over the logits. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/vmath.h"
#include "common/kernels/cpu/walk.h"

#include <math.h>
#include <string.h>

typedef struct job {
    const wf_tensor *x, *z, *dloss;
    wf_tensor *out;
    bool each; /* reduction none */
    double scale, sum;
} job;

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

static void loss_span(void *arg, const wf_span *s)
{
    job *j = arg;

    for (int64_t i = 0; i < s->count; i++) {
        double x = wf_number_at(j->x, s->at[0] + i * s->step[0]);
        double z = wf_number_at(j->z, s->at[1] + i * s->step[1]);
        double one = (x > 0 ? x : 0) - x * z + log1p(exp(-fabs(x)));

        if (j->each)
            store(j->out, s->first + i, one);
        j->sum += one;
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
    job j = {.x = in[0], .z = in[1], .out = out[0], .each = !reduces(run->node)};

    (void)err;
    wf_walk_range(walk, 0, walk->elems, loss_span, &j);
    if (!j.each)
        store(out[0], 0, is_mean(run->node) ? j.sum / (double)walk->elems : j.sum);
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

static wf_status loss_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                           wf_err *err)
{
    const wf_walk *walk = run->state;
    job j = {.x = in[1],
             .z = in[2],
             .dloss = in[0],
             .out = out[0],
             .each = !reduces(run->node),
             .scale = is_mean(run->node) ? 1 / (double)walk->elems : 1};

    (void)err;
    wf_walk_range(walk, 0, walk->elems, grad_span, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_binary_cross_entropy[] = {
    WF_ROW("SigmoidCrossEntropy", WF_TYPES_FLOAT, loss, .domain = WF_DOMAIN_WEFT,
           .prepare = prepare_loss),
    WF_ROW("SigmoidCrossEntropyGrad", WF_TYPES_FLOAT, loss_grad, .domain = WF_DOMAIN_WEFT,
           .typed_by = 1, .prepare = prepare_grad),
    {0},
};
