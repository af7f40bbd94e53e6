/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/cross_entropy.c - SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss over
 * integer labels, and their gradients.
 *
 *   loss of one record  -w[label] log p[label]   (log p = log_softmax of the scores, or given)
 *   reduction mean      divided by the sum of w[label]; sum: not; none: one loss a record
 *
 * A record whose label is ignore_index counts for nothing. The sums run in double, in the order of
 * the records.
 */
#include "common/graph/graph.h"
#include "common/kernels/cpu/softmax.h"
#include "common/kernels/cpu/vmath.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef enum reduction { MEAN, SUM, NONE } reduction;

/* Scores are [outer, classes, inner], labels [outer, inner]. */
typedef struct setting {
    wf_around a;
    reduction reduction;
    bool may_ignore;
    int64_t ignored;
    const wf_tensor *labels, *weights;
} setting;

static setting setting_of(const wf_node *node, const wf_tensor *scores, const wf_tensor *labels,
                          const wf_tensor *weights)
{
    const char *word = wf_node_string(node, "reduction", "mean");

    return (setting){
        .a = wf_around_axis(scores, 1),
        .reduction = strcmp(word, "none") == 0  ? NONE
                     : strcmp(word, "sum") == 0 ? SUM
                                                : MEAN,
        .may_ignore = wf_node_attr(node, "ignore_index") != NULL,
        .ignored = wf_node_int(node, "ignore_index", 0),
        .labels = labels,
        .weights = weights,
    };
}

/* The label of record i as a class, or -1 when it is ignored. */
static wf_status class_of(const setting *s, int64_t i, int64_t *out, wf_err *err)
{
    int64_t label = wf_int_at(s->labels, i);

    *out = -1;
    if (s->may_ignore && label == s->ignored)
        return WF_OK;
    if (label < 0 || label >= s->a.axis)
        return wf_fail(err, WF_INVALID,
                       "check the labels, or the number of units of the last layer",
                       "label %" PRId64 " of record %" PRId64 " is none of the %" PRId64 " classes",
                       label, i / WF_MAX(s->a.inner, (int64_t)1), s->a.axis);
    *out = label;
    return WF_OK;
}

static double weight_of(const setting *s, int64_t label)
{
    return s->weights ? wf_number_at(s->weights, label) : 1;
}

/* The element of [outer, classes, inner] of record i's label. */
static int64_t place_of(const setting *s, int64_t i, int64_t label)
{
    return (i / s->a.inner * s->a.axis + label) * s->a.inner + i % s->a.inner;
}

static void store(wf_tensor *t, int64_t i, double value)
{
    if (t->dtype == WF_F32)
        ((float *)t->data)[i] = (float)value;
    else
        ((double *)t->data)[i] = value;
}

static wf_status losses(const setting *s, const wf_tensor *log_prob, wf_tensor *loss, wf_err *err)
{
    double sum = 0, total = 0;

    for (int64_t i = 0; i < wf_elems(s->labels); i++) {
        int64_t label;
        double one = 0;

        WF_TRY(class_of(s, i, &label, err));
        if (label >= 0) {
            double w = weight_of(s, label);

            one = -w * wf_number_at(log_prob, place_of(s, i, label));
            total += w;
        }
        sum += one;
        if (s->reduction == NONE)
            store(loss, i, one);
    }
    if (s->reduction != NONE)
        store(loss, 0, s->reduction == MEAN ? sum / total : sum);
    return WF_OK;
}

/* Without the log_prob output the logarithms go into the workspace. */
static wf_status prepare_softmax(wf_prep *prep, const wf_tensor *const in[],
                                 const wf_tensor *const out[], wf_err *err)
{
    (void)err;
    prep->workspace_bytes = out[1] ? 0 : wf_tensor_bytes(in[0]);
    return WF_OK;
}

static wf_status softmax_loss(const wf_run *run, const wf_tensor *const in[],
                              wf_tensor *const out[], wf_err *err)
{
    setting s = setting_of(run->node, in[0], in[1], in[2]);
    wf_tensor log_prob = *in[0];

    log_prob.data = out[1] ? out[1]->data : run->workspace;
    if (in[0]->dtype == WF_F32)
        wf_log_softmax_f32(in[0]->data, log_prob.data, s.a);
    else
        wf_log_softmax_f64(in[0]->data, log_prob.data, s.a);
    return losses(&s, &log_prob, out[0], err);
}

static wf_status likelihood_loss(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    setting s = setting_of(run->node, in[0], in[1], in[2]);

    return losses(&s, in[0], out[0], err);
}

/* What record i's gradient is multiplied by, apart from its weight. */
static wf_status scale_of(const setting *s, double *out, wf_err *err)
{
    double total = 0;

    *out = 1;
    if (s->reduction != MEAN)
        return WF_OK;
    for (int64_t i = 0; i < wf_elems(s->labels); i++) {
        int64_t label;

        WF_TRY(class_of(s, i, &label, err));
        total += label < 0 ? 0 : weight_of(s, label);
    }
    *out = 1 / total;
    return WF_OK;
}

/* dx of one record: (exp(log p) - onehot) * factor, `step` apart. */
WF_MULTIVERSION static void row_f32(const float *log_prob, float *dx, int64_t classes, int64_t step,
                                    float factor)
{
    if (step == 1) {
        WF_NO_OVERLAP
        for (int64_t k = 0; k < classes; k++)
            dx[k] = wf_exp_f32(log_prob[k]) * factor;
        return;
    }
    for (int64_t k = 0; k < classes; k++)
        dx[k * step] = wf_exp_f32(log_prob[k * step]) * factor;
}

static void row_f64(const double *log_prob, double *dx, int64_t classes, int64_t step,
                    double factor)
{
    for (int64_t k = 0; k < classes; k++)
        dx[k * step] = exp(log_prob[k * step]) * factor;
}

static wf_status softmax_loss_grad(const wf_run *run, const wf_tensor *const in[],
                                   wf_tensor *const out[], wf_err *err)
{
    setting s = setting_of(run->node, in[1], in[2], in[3]);
    double scale;

    WF_TRY(scale_of(&s, &scale, err));
    for (int64_t i = 0; i < wf_elems(s.labels); i++) {
        int64_t label, first = place_of(&s, i, 0);
        double factor = 0;

        WF_TRY(class_of(&s, i, &label, err));
        if (label >= 0)
            factor =
                scale * weight_of(&s, label) * wf_number_at(in[0], s.reduction == NONE ? i : 0);
        if (out[0]->dtype == WF_F32) {
            float *dx = (float *)out[0]->data + first;

            row_f32((const float *)in[1]->data + first, dx, s.a.axis, s.a.inner, (float)factor);
            if (label >= 0)
                dx[label * s.a.inner] -= (float)factor;
        } else {
            double *dx = (double *)out[0]->data + first;

            row_f64((const double *)in[1]->data + first, dx, s.a.axis, s.a.inner, factor);
            if (label >= 0)
                dx[label * s.a.inner] -= factor;
        }
    }
    return WF_OK;
}

static wf_status likelihood_loss_grad(const wf_run *run, const wf_tensor *const in[],
                                      wf_tensor *const out[], wf_err *err)
{
    setting s = setting_of(run->node, in[1], in[2], in[3]);
    double scale;

    WF_TRY(scale_of(&s, &scale, err));
    if (wf_tensor_bytes(out[0]))
        memset(out[0]->data, 0, wf_tensor_bytes(out[0]));
    for (int64_t i = 0; i < wf_elems(s.labels); i++) {
        int64_t label;

        WF_TRY(class_of(&s, i, &label, err));
        if (label >= 0)
            store(out[0], place_of(&s, i, label),
                  -scale * weight_of(&s, label) * wf_number_at(in[0], s.reduction == NONE ? i : 0));
    }
    return WF_OK;
}

const wf_kernel wf_kernels_cross_entropy[] = {
    WF_ROW("SoftmaxCrossEntropyLoss", WF_TYPES_FLOAT, softmax_loss, .prepare = prepare_softmax),
    WF_ROW("NegativeLogLikelihoodLoss", WF_TYPES_FLOAT, likelihood_loss),
    WF_ROW("SoftmaxCrossEntropyGrad", WF_TYPES_FLOAT, softmax_loss_grad, .domain = WF_DOMAIN_WEFT,
           .typed_by = 1),
    WF_ROW("NegativeLogLikelihoodLossGrad", WF_TYPES_FLOAT, likelihood_loss_grad,
           .domain = WF_DOMAIN_WEFT, .typed_by = 1),
    {0},
};
