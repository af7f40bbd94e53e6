/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/lrn.c - LRN and LRNGrad; shape/norm.h has the formula. Planes are split
 * over the pool. */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/shape/norm.h"

#include <math.h>

typedef struct job {
    wf_lrn v;
    const void *dy, *x;
    void *s, *t, *out; /* s: powers of the sums; t: dy x s^(-beta - 1); [batch channels inner] */
} job;

#define T float
#define SUFFIX f32
#define POWER powf
#include "common/kernels/cpu/norm/lrn_template.h"

#define T double
#define SUFFIX f64
#define POWER pow
#include "common/kernels/cpu/norm/lrn_template.h"

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    wf_lrn *v = wf_arena_alloc(prep->arena, sizeof *v);

    (void)out;
    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    prep->state = v;
    return wf_lrn_of(prep->node, in[0], v, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    wf_lrn *v = wf_arena_alloc(prep->arena, sizeof *v);

    (void)out;
    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    prep->state = v;
    WF_TRY(wf_lrn_grad_of(prep->node, in[0], in[1], v, err));
    return wf_prep_workspace(prep, wf_tensor_bytes(in[0]), 2, err);
}

static void over_planes(const wf_run *run, const wf_tensor *x, job *j, wf_pool_fn *fn)
{
    wf_pool_for(run->pool, x->dims[0] * x->dims[1],
                WF_GRAIN / 16 / WF_MAX(j->v.inner, (int64_t)1) + 1, fn, j);
}

static wf_status lrn(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                     wf_err *err)
{
    job j = {.v = *(const wf_lrn *)run->state, .x = in[0]->data};

    (void)err;
    j.out = out[0]->data;
    over_planes(run, in[0], &j, in[0]->dtype == WF_F32 ? forward_f32 : forward_f64);
    return WF_OK;
}

static wf_status lrn_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    job j = {.v = *(const wf_lrn *)run->state, .x = in[1]->data};
    bool f32 = in[0]->dtype == WF_F32;

    (void)err;
    j.dy = in[0]->data;
    j.out = out[0]->data;
    j.s = run->workspace;
    j.t = (char *)run->workspace + wf_tensor_bytes(in[0]);
    over_planes(run, in[1], &j, f32 ? first_f32 : first_f64);
    over_planes(run, in[1], &j, f32 ? second_f32 : second_f64);
    return WF_OK;
}

const wf_kernel wf_kernels_lrn[] = {
    WF_ROW("LRN", WF_TYPES_FLOAT, lrn, .prepare = prepare),
    WF_ROW("LRNGrad", WF_TYPES_FLOAT, lrn_grad, .prepare = prepare_grad, .domain = WF_DOMAIN_WEFT),
    {0},
};
