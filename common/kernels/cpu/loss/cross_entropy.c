/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/loss/cross_entropy.c - SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss
 * over integer labels, and their gradients.
 *
 *   loss of one record  -w[label] log p[label]   (log p = log_softmax of the scores, or given)
 *   reduction mean      divided by the sum of w[label]; sum: not; none: one loss a record
 *
 * A record whose label is ignore_index counts for nothing. Labels are checked first, by one thread;
 * what follows is shared. The sums run in double, over BLOCK records at a time and then over the
 * blocks, so that they do not depend on the number of threads.
 */
#include "common/graph/graph.h"
#include "common/kernels/cpu/narrow.h"
#include "common/kernels/cpu/nn/softmax.h"
#include "common/kernels/cpu/vmath.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 1024, TILE = 256 };

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

static double weight_of(const setting *s, int64_t label)
{
    return s->weights ? wf_number_at(s->weights, label) : 1;
}

/* The class of record i, or -1 when it is ignored. */
static int64_t class_of(const setting *s, int64_t i)
{
    int64_t label = wf_int_at(s->labels, i);

    return s->may_ignore && label == s->ignored ? -1 : label;
}

/* Every label is a class or ignored; *total is the sum of their weights. */
static wf_status check_labels(const setting *s, double *total, wf_err *err)
{
    *total = 0;
    for (int64_t i = 0; i < wf_elems(s->labels); i++) {
        int64_t label = wf_int_at(s->labels, i);

        if (s->may_ignore && label == s->ignored)
            continue;
        if (label < 0 || label >= s->a.axis)
            return wf_fail(
                err, WF_INVALID, "check the labels, or the number of units of the last layer",
                "label %" PRId64 " of record %" PRId64 " is none of the %" PRId64 " classes", label,
                i / WF_MAX(s->a.inner, (int64_t)1), s->a.axis);
        *total += weight_of(s, label);
    }
    return WF_OK;
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

typedef struct job {
    setting s;
    const wf_tensor *log_prob;
    wf_tensor *out;
    double *sums;           /* of the blocks of records */
    const wf_tensor *dloss; /* of the gradients, from here on */
    double scale;
} job;

static int64_t blocks_of(const wf_tensor *labels)
{
    return (wf_elems(labels) + BLOCK - 1) / BLOCK;
}

static void loss_blocks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t block = begin; block < end; block++) {
        int64_t last = WF_MIN((block + 1) * BLOCK, wf_elems(j->s.labels));
        double sum = 0;

        for (int64_t i = block * BLOCK; i < last; i++) {
            int64_t label = class_of(&j->s, i);
            double one = 0;

            if (label >= 0)
                one =
                    -weight_of(&j->s, label) * wf_number_at(j->log_prob, place_of(&j->s, i, label));
            sum += one;
            if (j->s.reduction == NONE)
                store(j->out, i, one);
        }
        j->sums[block] = sum;
    }
}

static wf_status losses(const wf_run *run, const setting *s, const wf_tensor *log_prob,
                        double *sums, wf_tensor *loss, wf_err *err)
{
    job j = {.s = *s, .log_prob = log_prob, .out = loss, .sums = sums};
    double sum = 0, total;

    WF_TRY(check_labels(s, &total, err));
    wf_pool_for(run->pool, blocks_of(s->labels), 4, loss_blocks, &j);
    for (int64_t block = 0; block < blocks_of(s->labels); block++)
        sum += sums[block];
    if (s->reduction != NONE)
        store(loss, 0, s->reduction == MEAN ? sum / total : sum);
    return WF_OK;
}

/* Sums of blocks come first in the workspace; without the log_prob output, the logarithms follow.
 */
static size_t bytes_of_sums(const wf_tensor *labels)
{
    return wf_align_up((size_t)blocks_of(labels) * sizeof(double), WF_BUF_ALIGN);
}

static wf_status prepare_softmax(wf_prep *prep, const wf_tensor *const in[],
                                 const wf_tensor *const out[], wf_err *err)
{
    (void)err;
    prep->workspace_bytes = bytes_of_sums(in[1]) + (out[1] ? 0 : wf_tensor_bytes(in[0]));
    return WF_OK;
}

static wf_status prepare_likelihood(wf_prep *prep, const wf_tensor *const in[],
                                    const wf_tensor *const out[], wf_err *err)
{
    (void)out, (void)err;
    prep->workspace_bytes = bytes_of_sums(in[1]);
    return WF_OK;
}

static wf_status softmax_loss(const wf_run *run, const wf_tensor *const in[],
                              wf_tensor *const out[], wf_err *err)
{
    setting s = setting_of(run->node, in[0], in[1], in[2]);
    wf_tensor log_prob = *in[0];

    log_prob.data = out[1] ? out[1]->data : (char *)run->workspace + bytes_of_sums(in[1]);
    wf_log_softmax(run->pool, in[0], log_prob.data, s.a);
    return losses(run, &s, &log_prob, run->workspace, out[0], err);
}

static wf_status likelihood_loss(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    setting s = setting_of(run->node, in[0], in[1], in[2]);

    return losses(run, &s, in[0], run->workspace, out[0], err);
}

/* What the gradient of record i is multiplied by; 0 when it is ignored. */
static double factor_of(const job *j, int64_t i)
{
    int64_t label = class_of(&j->s, i);

    if (label < 0)
        return 0;
    return j->scale * weight_of(&j->s, label) *
           wf_number_at(j->dloss, j->s.reduction == NONE ? i : 0);
}

/* (exp(log p) - onehot) * factor, of a row of classes, or of a tile of neighbours. */
#define DIFFERENCES(type, T, exponential)                                                          \
    WF_MULTIVERSION static void exp_##type(const T *log_prob, T *dx, int64_t n, T factor)          \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            dx[i] = exponential(log_prob[i]) * factor;                                             \
    }                                                                                              \
    WF_MULTIVERSION static void exp_tile_##type(const T *log_prob, T *dx, int64_t n,               \
                                                const T *factor)                                   \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            dx[i] = exponential(log_prob[i]) * factor[i];                                          \
    }                                                                                              \
    static void tile_##type(const job *j, int64_t record, int64_t count)                           \
    {                                                                                              \
        int64_t first = place_of(&j->s, record, 0), inner = j->s.a.inner;                          \
        const T *x = (const T *)j->log_prob->data + first;                                         \
        T *dx = (T *)j->out->data + first, factor[TILE];                                           \
                                                                                                   \
        for (int64_t i = 0; i < count; i++)                                                        \
            factor[i] = (T)factor_of(j, record + i);                                               \
        if (inner == 1)                                                                            \
            for (int64_t i = 0; i < count; i++)                                                    \
                exp_##type(x + i * j->s.a.axis, dx + i * j->s.a.axis, j->s.a.axis, factor[i]);     \
        else                                                                                       \
            for (int64_t k = 0; k < j->s.a.axis; k++)                                              \
                exp_tile_##type(x + k * inner, dx + k * inner, count, factor);                     \
        for (int64_t i = 0; i < count; i++) {                                                      \
            int64_t label = class_of(&j->s, record + i);                                           \
                                                                                                   \
            if (label >= 0)                                                                        \
                ((T *)j->out->data)[place_of(&j->s, record + i, label)] -= factor[i];              \
        }                                                                                          \
    }
DIFFERENCES(f32, float, wf_exp_f32)
DIFFERENCES(f64, double, exp)

/* The same of record i, rounded to bfloat16; classes are neighbours. */
static void narrow_row(const job *j, int64_t i)
{
    const int64_t first = place_of(&j->s, i, 0), classes = j->s.a.axis, label = class_of(&j->s, i);
    const float factor = (float)factor_of(j, i), *x = (const float *)j->log_prob->data + first;
    float made[WF_NARROW_TILE];

    for (int64_t k = 0; k < classes; k += WF_NARROW_TILE) {
        int64_t n = WF_MIN(classes - k, (int64_t)WF_NARROW_TILE);

        exp_f32(x + k, made, n, factor);
        if (label >= k && label < k + n)
            made[label - k] -= factor;
        wf_narrow(j->out->data, true, first + k, n, made);
    }
}

static void narrow_range(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        narrow_row(arg, i);
}

/* Records [begin, end). Neighbours along the inner axis go together, and so do whole rows. */
static void difference_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t inner = j->s.a.inner;

    while (begin < end) {
        int64_t together = inner == 1 ? end - begin : WF_MIN(inner - begin % inner, end - begin);
        int64_t count = WF_MIN(together, (int64_t)TILE);

        if (j->out->dtype == WF_F32)
            tile_f32(j, begin, count);
        else
            tile_f64(j, begin, count);
        begin += count;
    }
}

/* 0 everywhere but at the labels of outer places [begin, end). */
static void likelihood_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_around a = j->s.a;
    size_t each = (size_t)(a.axis * a.inner) * wf_dtype_size(j->out->dtype);

    memset((char *)j->out->data + (size_t)begin * each, 0, (size_t)(end - begin) * each);
    for (int64_t i = begin * a.inner; i < end * a.inner; i++) {
        int64_t label = class_of(&j->s, i);

        if (label >= 0)
            store(j->out, place_of(&j->s, i, label), -factor_of(j, i));
    }
}

static wf_status gradient(const wf_run *run, const wf_tensor *const in[], wf_tensor *out,
                          bool of_softmax, wf_err *err)
{
    job j = {.s = setting_of(run->node, in[1], in[2], in[3]),
             .log_prob = in[1],
             .out = out,
             .dloss = in[0],
             .scale = 1};
    double total;
    wf_around a = j.s.a;

    WF_TRY(check_labels(&j.s, &total, err));
    if (j.s.reduction == MEAN)
        j.scale = 1 / total;
    if (wf_elems(out) == 0)
        return WF_OK;
    if (of_softmax)
        wf_pool_for(run->pool, a.outer * a.inner, WF_GRAIN / 8 / a.axis + 1,
                    wf_is_bf16(out) ? narrow_range : difference_range, &j);
    else
        wf_pool_for(run->pool, a.outer, WF_GRAIN / (a.axis * a.inner) + 1, likelihood_range, &j);
    return WF_OK;
}

/* The result alone may be bfloat16, and only where the classes of a record are neighbours. */
static wf_status prepare_softmax_grad(wf_prep *prep, const wf_tensor *const in[],
                                      const wf_tensor *const out[], wf_err *err)
{
    (void)err;
    prep->widens = wf_is_bf16(in[0]) || wf_is_bf16(in[1]) || wf_is_bf16(in[3]) ||
                   (wf_is_bf16(out[0]) && wf_around_axis(in[1], 1).inner != 1);
    return WF_OK;
}

static wf_status softmax_loss_grad(const wf_run *run, const wf_tensor *const in[],
                                   wf_tensor *const out[], wf_err *err)
{
    return gradient(run, in, out[0], true, err);
}

static wf_status likelihood_loss_grad(const wf_run *run, const wf_tensor *const in[],
                                      wf_tensor *const out[], wf_err *err)
{
    return gradient(run, in, out[0], false, err);
}

const wf_kernel wf_kernels_cross_entropy[] = {
    WF_ROW("SoftmaxCrossEntropyLoss", WF_TYPES_FLOAT, softmax_loss, .prepare = prepare_softmax),
    WF_ROW("NegativeLogLikelihoodLoss", WF_TYPES_FLOAT, likelihood_loss,
           .prepare = prepare_likelihood),
    WF_ROW("SoftmaxCrossEntropyGrad", WF_TYPES_FLOAT, softmax_loss_grad,
           .prepare = prepare_softmax_grad, .domain = WF_DOMAIN_WEFT, .is_narrow = true,
           .typed_by = 1),
    WF_ROW("NegativeLogLikelihoodLossGrad", WF_TYPES_FLOAT, likelihood_loss_grad,
           .domain = WF_DOMAIN_WEFT, .typed_by = 1),
    {0},
};
