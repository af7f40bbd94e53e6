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
#include "common/kernels/cpu/norm/rows.h"

#include <math.h>
#include <string.h>

typedef struct job {
    int64_t batch, channels, inner;
    double epsilon, momentum;
    bool training;
    const void *dy, *x, *scale, *bias, *mean, *var; /* mean and var of what is not training */
    void *y;                                        /* or dx */
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
    return j->momentum == 0 ? now : number(old, c, f64) * j->momentum + now * (1 - j->momentum);
}

/* Channels that are done together: one after the other in each image, so that small planes are
 * walked as they lie in memory. A channel's own sums run over the images in order all the same. */
enum { TOGETHER = 64, TOGETHER_ELEMS = 4096 };

static int64_t channels_at_once(const job *j)
{
    int64_t n = TOGETHER_ELEMS / WF_MAX(j->inner, (int64_t)1);

    return WF_MIN(WF_MAX(n, (int64_t)1), (int64_t)TOGETHER);
}

static int64_t plane(const job *j, int64_t n, int64_t c)
{
    return (n * j->channels + c) * j->inner;
}

#define T float
#define SUFFIX f32
#define IS_F64 false
#include "common/kernels/cpu/norm/batch_norm_template.h"

#define T double
#define SUFFIX f64
#define IS_F64 true
#include "common/kernels/cpu/norm/batch_norm_template.h"

/* Every channel's tensor has one element a channel. */
static wf_status check(const wf_tensor *x, const wf_tensor *const in[], uint32_t from, uint32_t to,
                       wf_err *err)
{
    if (x->rank < 2)
        return wf_fail(err, WF_SHAPE, NULL, "X has %u axes, and must have [batch, channels, ...]",
                       x->rank);
    for (uint32_t i = from; i < to; i++)
        if (in[i] && (in[i]->rank != 1 || in[i]->dims[0] != x->dims[1]))
            return wf_fail(err, WF_SHAPE, NULL, "input %u must have one element a channel", i);
    return WF_OK;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    (void)prep, (void)out;
    return check(in[0], in, 1, 5, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    (void)out;
    WF_TRY(check(in[1], in, 2, 5, err));
    if (!wf_node_int(prep->node, "training_mode", 0) && !(in[3] && in[4]))
        return wf_fail(err, WF_INVALID, NULL, "without training_mode mean and var must be given");
    return (!in[3]) == (!in[4]) ? WF_OK
                                : wf_fail(err, WF_INVALID, NULL, "mean and var come together");
}

static job begin(const wf_run *run, const wf_tensor *x)
{
    job j = {.batch = x->dims[0], .channels = x->dims[1], .inner = 1, .x = x->data};

    for (uint32_t i = 2; i < x->rank; i++)
        j.inner *= x->dims[i];
    j.epsilon = (double)wf_node_float(run->node, "epsilon", 1e-5f);
    j.momentum = (double)wf_node_float(run->node, "momentum", 0.9f);
    j.training = wf_node_int(run->node, "training_mode", 0) != 0;
    return j;
}

static wf_status over_channels(const wf_run *run, job *j, wf_pool_fn *fn)
{
    int64_t work = WF_MAX(j->batch * j->inner, (int64_t)1);

    wf_pool_for(run->pool, j->channels, WF_GRAIN / work + 1, fn, j);
    return WF_OK;
}

static wf_status batch_norm(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    job j = begin(run, in[0]);

    (void)err;
    j.scale = in[1]->data;
    j.bias = in[2]->data;
    j.mean = wf_data_of(in[3]);
    j.var = wf_data_of(in[4]);
    if (!j.mean) { /* BatchNormalizationTrain */
        j.training = true;
        j.momentum = 0;
    }
    j.y = wf_data_of(out[0]);
    j.means = wf_data_of(out[1]);
    j.vars = wf_data_of(out[2]);
    return over_channels(run, &j, in[0]->dtype == WF_F32 ? forward_f32 : forward_f64);
}

static wf_status batch_norm_grad(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    job j = begin(run, in[1]);

    (void)err;
    j.dy = in[0]->data;
    j.scale = in[2]->data;
    j.mean = wf_data_of(in[3]);
    j.var = wf_data_of(in[4]);
    j.y = wf_data_of(out[0]);
    j.dscale = wf_data_of(out[1]);
    j.dbias = wf_data_of(out[2]);
    return over_channels(run, &j, in[0]->dtype == WF_F32 ? backward_f32 : backward_f64);
}

const wf_kernel wf_kernels_batch_norm[] = {
    WF_ROW("BatchNormalization", WF_TYPES_FLOAT, batch_norm, .prepare = prepare),
    WF_ROW("BatchNormalizationGrad", WF_TYPES_FLOAT, batch_norm_grad, .prepare = prepare_grad,
           .domain = WF_DOMAIN_WEFT),
    WF_ROW("BatchNormalizationTrain", WF_TYPES_FLOAT, batch_norm, .prepare = prepare,
           .domain = WF_DOMAIN_WEFT),
    {0},
};
