/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/group_norm.c - GroupNormalization, InstanceNormalization and their
 * gradient.
 *
 * A group of channels of one image is normalised by its own mean and variance; scale and bias are
 * per channel or, as opset 18 has it, per group. Groups of images are split over the pool; the sums
 * over images follow in order.
 */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/norm/rows.h"
#include "common/kernels/shape/norm.h"

#include <math.h>
#include <string.h>

typedef struct job {
    const wf_group_norm *v;
    const void *dy, *x, *scale, *bias;
    void *y;
    double (*sums)[2]; /* [images channels]: of dy, and of dy times the normalised x */
} job;

#define T float
#define SUFFIX f32
#include "common/kernels/cpu/norm/group_norm_template.h"

#define T double
#define SUFFIX f64
#include "common/kernels/cpu/norm/group_norm_template.h"

static wf_status make(wf_prep *prep, const wf_tensor *x, const wf_tensor *scale,
                      const wf_tensor *bias, wf_err *err)
{
    wf_group_norm *v = wf_arena_alloc(prep->arena, sizeof *v);

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    prep->state = v;
    return wf_group_norm_of(prep->node, x, scale, bias, v, err);
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    (void)out;
    return make(prep, in[0], in[1], in[2], err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    (void)out;
    WF_TRY(make(prep, in[1], in[2], NULL, err));
    return wf_prep_workspace(prep, (size_t)(in[1]->dims[0] * in[1]->dims[1]), 2 * sizeof(double),
                             err);
}

static void over_groups(const wf_run *run, job *j, wf_pool_fn *fn)
{
    const wf_group_norm *v = run->state;
    int64_t work = WF_MAX(v->each * v->inner, (int64_t)1);

    j->v = v;
    wf_pool_for(run->pool, v->images * v->groups, WF_GRAIN / work + 1, fn, j);
}

static wf_status group_norm_forward(const wf_run *run, const wf_tensor *const in[],
                                    wf_tensor *const out[], wf_err *err)
{
    job j = {.x = in[0]->data, .scale = in[1]->data, .bias = in[2]->data, .y = out[0]->data};

    (void)err;
    over_groups(run, &j, in[0]->dtype == WF_F32 ? forward_f32 : forward_f64);
    return WF_OK;
}

static wf_status group_norm_grad(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    job j = {.dy = in[0]->data, .x = in[1]->data, .scale = in[2]->data, .sums = run->workspace};
    void *dscale = wf_data_of(out[1]), *dbias = wf_data_of(out[2]);

    (void)err;
    j.y = wf_data_of(out[0]);
    over_groups(run, &j, in[0]->dtype == WF_F32 ? backward_f32 : backward_f64);
    if (in[0]->dtype == WF_F32)
        parameters_f32(&j, dscale, dbias);
    else
        parameters_f64(&j, dscale, dbias);
    return WF_OK;
}

const wf_kernel wf_kernels_group_norm[] = {
    WF_ROW("GroupNormalization", WF_TYPES_FLOAT, group_norm_forward, .prepare = prepare),
    WF_ROW("GroupNormalizationGrad", WF_TYPES_FLOAT, group_norm_grad, .prepare = prepare_grad,
           .domain = WF_DOMAIN_WEFT),
    WF_ROW("InstanceNormalization", WF_TYPES_FLOAT, group_norm_forward, .prepare = prepare),
    {0},
};
