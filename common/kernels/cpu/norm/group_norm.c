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

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct group_norm {
    int64_t images, groups, each, inner; /* each: channels of a group */
    double epsilon;
    bool per_group; /* scale and bias */
} group_norm;

typedef struct job {
    const group_norm *v;
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
    group_norm *v = wf_arena_alloc(prep->arena, sizeof *v);
    int64_t channels = x->rank >= 2 ? x->dims[1] : 0, groups, n;

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    groups = wf_node_int(prep->node, "num_groups", channels);
    n = scale->rank == 1 ? scale->dims[0] : -1;
    if (x->rank < 2 || (channels && (groups < 1 || channels % groups)) ||
        (n != groups && n != channels) || (bias && (bias->rank != 1 || bias->dims[0] != n)))
        return wf_fail(err, WF_SHAPE, NULL,
                       "%" PRId64 " channels, %" PRId64 " groups and %" PRId64
                       " scales do not fit each other",
                       channels, groups, n);
    *v = (group_norm){.images = x->dims[0],
                      .groups = groups,
                      .inner = 1,
                      .each = groups ? channels / groups : 0,
                      .per_group = n != channels};
    for (uint32_t i = 2; i < x->rank; i++)
        v->inner *= x->dims[i];
    v->epsilon = (double)wf_node_float(prep->node, "epsilon", 1e-5f);
    prep->state = v;
    return WF_OK;
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
    const group_norm *v = run->state;
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
