/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/layer_norm.c - LayerNormalization, RMSNormalization and their gradients.
 *
 * A row is all from attr axis on, and lies together: its moments, then y, from cache. RMS is the
 * same about 0 and without a bias. Rows are split over the pool; the gradients of scale and bias,
 * sums over rows, by columns.
 */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/lanes.h"
#include "common/kernels/cpu/narrow.h"
#include "common/kernels/cpu/norm/rows.h"
#include "common/kernels/shape/norm.h"

#include <math.h>
#include <string.h>

/* The columns of BLOCK rows are summed by themselves before they join the others: an error that
 * grows with BLOCK + rows / BLOCK, not with rows. */
enum { TILE = 256, BLOCK = 32 };

typedef struct job {
    const wf_layer_norm *v;
    const void *dy, *x, *scale, *bias;
    void *y, *dscale, *dbias;
    bool y_is_bf16;
    float *mean, *inv;    /* outputs, [rows]; may be NULL */
    double (*moments)[2]; /* backwards: mean and 1 / deviation of each row */
} job;

#define T float
#define SUFFIX f32
#define NARROW wf_narrow
#include "common/kernels/cpu/norm/layer_norm_template.h"

/* Nothing of double is narrowed. */
#define T double
#define SUFFIX f64
#define NARROW(...) wf_assert(false)
#include "common/kernels/cpu/norm/layer_norm_template.h"

static wf_status make(wf_prep *prep, const wf_tensor *x, const wf_tensor *scale,
                      const wf_tensor *bias, wf_err *err)
{
    wf_layer_norm *v = wf_arena_alloc(prep->arena, sizeof *v);

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    prep->state = v;
    return wf_layer_norm_of(prep->node, x, scale, bias, v, err);
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    prep->widens = wf_is_bf16(in[0]) || wf_is_bf16(in[1]) || wf_is_bf16(in[2]) ||
                   wf_is_bf16(out[1]) || wf_is_bf16(out[2]);
    return make(prep, in[0], in[1], in[2], err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    const wf_layer_norm *v;

    prep->widens = wf_is_bf16(in[0]) || wf_is_bf16(in[1]) || wf_is_bf16(in[2]) ||
                   wf_is_bf16(out[1]) || wf_is_bf16(out[2]);
    WF_TRY(make(prep, in[1], in[2], NULL, err));
    v = prep->state;
    return wf_prep_workspace(prep, (size_t)v->rows, 2 * sizeof(double), err);
}

static wf_status layer_norm_forward(const wf_run *run, const wf_tensor *const in[],
                                    wf_tensor *const out[], wf_err *err)
{
    const wf_layer_norm *v = run->state;
    job j = {.v = v, .x = in[0]->data, .scale = in[1]->data, .bias = wf_data_of(in[2])};

    (void)err;
    j.y = wf_data_of(out[0]);
    j.y_is_bf16 = wf_is_bf16(out[0]);
    j.mean = wf_data_of(out[1]);
    j.inv = wf_data_of(out[2]);
    wf_pool_for(run->pool, v->rows, WF_GRAIN / 4 / WF_MAX(v->n, (int64_t)1) + 1,
                in[0]->dtype == WF_F32 ? forward_f32 : forward_f64, &j);
    return WF_OK;
}

static wf_status layer_norm_grad(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    const wf_layer_norm *v = run->state;
    job j = {.v = v, .dy = in[0]->data, .x = in[1]->data, .scale = in[2]->data};
    bool f32 = in[0]->dtype == WF_F32;

    (void)err;
    j.moments = run->workspace;
    j.y = wf_data_of(out[0]);
    j.y_is_bf16 = wf_is_bf16(out[0]);
    j.dscale = wf_data_of(out[1]);
    j.dbias = wf_data_of(out[2]);
    wf_pool_for(run->pool, v->rows, WF_GRAIN / 8 / WF_MAX(v->n, (int64_t)1) + 1,
                f32 ? backward_f32 : backward_f64, &j);
    if (j.dscale || j.dbias)
        wf_pool_for(run->pool, v->n, WF_GRAIN / WF_MAX(v->rows, (int64_t)1) + WF_LANES,
                    f32 ? columns_f32 : columns_f64, &j);
    return WF_OK;
}

#define ROW(op, fn) WF_ROW(op, WF_TYPES_FLOAT, fn, .prepare = prepare, .is_narrow = true)
#define GRAD(op, fn)                                                                               \
    WF_ROW(op, WF_TYPES_FLOAT, fn, .prepare = prepare_grad, .domain = WF_DOMAIN_WEFT,              \
           .is_narrow = true)

const wf_kernel wf_kernels_layer_norm[] = {
    ROW("LayerNormalization", layer_norm_forward),
    GRAD("LayerNormalizationGrad", layer_norm_grad),
    ROW("RMSNormalization", layer_norm_forward),
    GRAD("RMSNormalizationGrad", layer_norm_grad),
    {0},
};
