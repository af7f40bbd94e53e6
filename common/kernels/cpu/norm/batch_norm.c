/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/batch_norm.c - BatchNormalization in both forms, weft's own training
 * form, and the gradient of all.
 *
 * In training one pass for both moments (about a channel's first element, so that a large mean
 * costs no digits), one for y; backwards one for both sums, one for dx. Channels are split over the
 * pool.
 */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/narrow.h"
#include "common/kernels/cpu/norm/rows.h"
#include "common/kernels/shape/norm.h"

#include <math.h>
#include <string.h>

typedef struct job {
    wf_batch_norm v;
    const void *dy, *x, *scale, *bias, *mean, *var; /* mean and var of what is not training */
    void *y;                                        /* or dx */
    bool y_is_bf16;
    void *means, *vars; /* training: what the running values become; may be NULL */
    void *dscale, *dbias;
} job;

static double number(const void *p, int64_t i, bool f64)
{
    return f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static void put(void *p, int64_t i, double value, bool f64)
{
    if (p && f64)
        ((double *)p)[i] = value;
    else if (p)
        ((float *)p)[i] = (float)value;
}

/* The running value after a batch; with momentum 0 it is the batch's, whatever it was. */
static double moved(const job *j, const void *old, int64_t c, double now, bool f64)
{
    return j->v.momentum == 0 ? now
                              : number(old, c, f64) * j->v.momentum + now * (1 - j->v.momentum);
}

/* Channels that are done together: one after the other in each image, so that small planes are
 * walked as they lie in memory. A channel's own sums run over the images in order all the same. */
enum { TOGETHER = 64, TOGETHER_ELEMS = 4096 };

static int64_t channels_at_once(const job *j)
{
    int64_t n = TOGETHER_ELEMS / WF_MAX(j->v.inner, (int64_t)1);

    return WF_MIN(WF_MAX(n, (int64_t)1), (int64_t)TOGETHER);
}

static int64_t plane(const job *j, int64_t n, int64_t c)
{
    return (n * j->v.channels + c) * j->v.inner;
}

#define T float
#define SUFFIX f32
#define NARROW wf_narrow
#define IS_F64 false
#include "common/kernels/cpu/norm/batch_norm_template.h"

/* Nothing of double is narrowed. */
#define T double
#define SUFFIX f64
#define NARROW(...) wf_assert(false)
#define IS_F64 true
#include "common/kernels/cpu/norm/batch_norm_template.h"

typedef wf_status read_fn(const wf_node *n, const wf_tensor *const in[], wf_batch_norm *v,
                          wf_err *err);

static wf_status make(wf_prep *prep, const wf_tensor *const in[], read_fn *read, wf_err *err)
{
    wf_batch_norm *v = wf_arena_alloc(prep->arena, sizeof *v);

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    prep->state = v;
    return read(prep->node, in, v, err);
}

/* Whether output 0 alone may be of bfloat16. */
static bool takes(uint32_t n_in, const wf_tensor *const in[], const wf_tensor *const out[])
{
    for (uint32_t i = 0; i < n_in; i++)
        if (wf_is_bf16(in[i]))
            return false;
    return !wf_is_bf16(out[1]) && !wf_is_bf16(out[2]);
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    prep->widens = !takes(5, in, out);
    return make(prep, in, wf_batch_norm_of, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    prep->widens = !takes(5, in, out);
    return make(prep, in, wf_batch_norm_grad_of, err);
}

static wf_status over_channels(const wf_run *run, job *j, wf_pool_fn *fn)
{
    int64_t work = WF_MAX(j->v.batch * j->v.inner, (int64_t)1);

    wf_pool_for(run->pool, j->v.channels, WF_GRAIN / work + 1, fn, j);
    return WF_OK;
}

static wf_status batch_norm(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    job j = {.v = *(const wf_batch_norm *)run->state, .x = in[0]->data};

    (void)err;
    j.scale = in[1]->data;
    j.bias = in[2]->data;
    j.mean = wf_data_of(in[3]);
    j.var = wf_data_of(in[4]);
    j.y = wf_data_of(out[0]);
    j.y_is_bf16 = wf_is_bf16(out[0]);
    j.means = wf_data_of(out[1]);
    j.vars = wf_data_of(out[2]);
    return over_channels(run, &j, in[0]->dtype == WF_F32 ? forward_f32 : forward_f64);
}

static wf_status batch_norm_grad(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    job j = {.v = *(const wf_batch_norm *)run->state, .x = in[1]->data};

    (void)err;
    j.dy = in[0]->data;
    j.scale = in[2]->data;
    j.mean = wf_data_of(in[3]);
    j.var = wf_data_of(in[4]);
    j.y = wf_data_of(out[0]);
    j.y_is_bf16 = wf_is_bf16(out[0]);
    j.dscale = wf_data_of(out[1]);
    j.dbias = wf_data_of(out[2]);
    return over_channels(run, &j, in[0]->dtype == WF_F32 ? backward_f32 : backward_f64);
}

const wf_kernel wf_kernels_batch_norm[] = {
    WF_ROW("BatchNormalization", WF_TYPES_FLOAT, batch_norm, .prepare = prepare, .is_narrow = true),
    WF_ROW("BatchNormalizationGrad", WF_TYPES_FLOAT, batch_norm_grad, .prepare = prepare_grad,
           .domain = WF_DOMAIN_WEFT, .is_narrow = true),
    WF_ROW("BatchNormalizationTrain", WF_TYPES_FLOAT, batch_norm, .prepare = prepare,
           .domain = WF_DOMAIN_WEFT, .is_narrow = true),
    {0},
};
