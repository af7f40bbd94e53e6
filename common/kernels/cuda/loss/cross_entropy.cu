/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/loss/cross_entropy.cu - SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss
 * over integer labels, and their gradients; the cpu's file of that name has the formulas. One block
 * looks at all labels first, and one sums the losses, so that the sums have one order. What a label
 * that is no class would name is left out; the wait that follows says it. */
#include "common/kernels/cuda/narrow.h"
#include "common/kernels/cuda/nn/softmax.h"

#include <cstring>

namespace
{

enum reduction { MEAN, SUM, NONE };

/* Scores are [outer, classes, inner], labels [outer, inner]. */
struct setting {
    wf_around a;
    reduction how;
    bool may_ignore, wide; /* wide: labels are i64, and not i32 */
    int64_t ignored;
    const void *labels;
};

setting setting_of(const wf_node *node, const wf_tensor *scores, const wf_tensor *labels)
{
    const char *word = wf_node_string(node, "reduction", "mean");
    setting s = {};

    s.a = wf_around_axis(scores, 1);
    s.how = std::strcmp(word, "none") == 0 ? NONE : std::strcmp(word, "sum") == 0 ? SUM : MEAN;
    s.may_ignore = wf_node_attr(node, "ignore_index") != NULL;
    s.ignored = wf_node_int(node, "ignore_index", 0);
    s.wide = labels->dtype == WF_I64;
    s.labels = labels->data;
    return s;
}

WF_CODE int64_t label_at(const setting &s, int64_t i)
{
    return s.wide ? static_cast<const int64_t *>(s.labels)[i]
                  : static_cast<const int32_t *>(s.labels)[i];
}

WF_CODE bool is_ignored(const setting &s, int64_t label)
{
    return s.may_ignore && label == s.ignored;
}

/* The class of record i, or -1 when it is ignored, or none. */
WF_CODE int64_t class_of(const setting &s, int64_t i)
{
    int64_t label = label_at(s, i);

    return is_ignored(s, label) || label < 0 || label >= s.a.axis ? -1 : label;
}

WF_CODE int64_t place_of(const setting &s, int64_t i, int64_t label)
{
    return wf_first_class(s.a, i) + label * s.a.inner;
}

template <class T> WF_CODE double weight_of(const T *weights, int64_t label)
{
    return weights ? (double)weights[label] : 1;
}

/* *total = the sum of the labels' weights. Of labels that are no class the first is told of. */
template <class T>
__global__ void look_at_labels(setting s, const T *weights, double *total, wf_complaints c)
{
    const int64_t n = s.a.outer * s.a.inner;
    int64_t bad = n;
    double sum = 0;

    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        int64_t label = class_of(s, i);

        if (label >= 0)
            sum += weight_of(weights, label);
        else if (!is_ignored(s, label_at(s, i)))
            bad = wf_lower()(bad, i);
    }
    bad = wf_join_block(bad, n, wf_lower());
    sum = wf_join_block(sum, 0.0, wf_plus());
    if (threadIdx.x == 0) {
        *total = sum;
        if (bad < n)
            wf_complain(c, WF_CUDA_BAD_LABEL, label_at(s, bad), bad / s.a.inner, s.a.axis);
    }
}

template <class T>
__global__ void sum_losses(setting s, const T *log_prob, const T *weights, const double *total,
                           T *loss)
{
    const int64_t n = s.a.outer * s.a.inner;
    double sum = 0;

    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        int64_t label = class_of(s, i);
        double one =
            label < 0 ? 0 : -weight_of(weights, label) * (double)log_prob[place_of(s, i, label)];

        sum += one;
        if (s.how == NONE)
            loss[i] = (T)one;
    }
    sum = wf_join_block(sum, 0.0, wf_plus());
    if (threadIdx.x == 0 && s.how != NONE)
        loss[0] = (T)(s.how == MEAN ? sum / *total : sum);
}

/* What the gradient of record i is multiplied by; 0 without a class. */
template <class T>
WF_CODE double factor_of(const setting &s, int64_t i, const T *dloss, const T *weights,
                         const double *total)
{
    int64_t label = class_of(s, i);

    return label < 0 ? 0
                     : weight_of(weights, label) * (double)dloss[s.how == NONE ? i : 0] /
                           (s.how == MEAN ? *total : 1.0);
}

/* (exp(log p) - onehot) * factor of the record. */
template <class T, class R>
__global__ void differences(setting s, const T *dloss, const T *log_prob, const T *weights,
                            const double *total, wf_to<R> dx)
{
    for (int64_t i = blockIdx.x; i < s.a.outer * s.a.inner; i += gridDim.x) {
        int64_t label = class_of(s, i), at = wf_first_class(s.a, i);
        double factor = factor_of(s, i, dloss, weights, total);

        for (int64_t k = threadIdx.x; k < s.a.axis; k += blockDim.x)
            dx[at + k * s.a.inner] =
                (std::exp(log_prob[at + k * s.a.inner]) - (k == label ? T(1) : T(0))) * (T)factor;
    }
}

/* -factor of the record at its label, 0 elsewhere. */
template <class T>
__global__ void at_labels(setting s, const T *dloss, const T *weights, const double *total, T *dx)
{
    for (int64_t e = wf_first(); e < s.a.outer * s.a.axis * s.a.inner; e += wf_all()) {
        int64_t i = e / (s.a.axis * s.a.inner) * s.a.inner + e % s.a.inner;

        dx[e] = e / s.a.inner % s.a.axis == class_of(s, i)
                    ? (T)-factor_of(s, i, dloss, weights, total)
                    : T(0);
    }
}

/* The sum of weights comes first in the workspace; the logarithms follow, without an output for
 * them. */
wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    (void)err;
    prep->workspace_bytes = WF_ALIGNED + (out[1] ? 0 : wf_tensor_bytes(in[0]));
    return WF_OK;
}

/* For the sum of weights alone. */
wf_status prepare_sum(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                      wf_err *err)
{
    (void)in, (void)out, (void)err;
    prep->workspace_bytes = WF_ALIGNED;
    return WF_OK;
}

/* The result alone may be narrow. */
wf_status prepare_differences(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    const wf_tensor *none[WF_KERNEL_PORTS] = {};

    prep->widens = wf_narrow_of(prep->node, in, none) != WF_NONE;
    return prepare_sum(prep, in, out, err);
}

template <class T>
wf_status look(const wf_run *run, const setting &s, const wf_tensor *weights, wf_err *err)
{
    return wf_launch_meeting(run, "labels", look_at_labels<T>, 1, wf_threads(s.a.outer * s.a.inner),
                             err, s, weights ? static_cast<const T *>(weights->data) : nullptr,
                             static_cast<double *>(run->workspace), wf_complaints_of(run));
}

template <class T>
wf_status losses(const wf_run *run, const setting &s, const void *log_prob,
                 const wf_tensor *weights, wf_tensor *loss, wf_err *err)
{
    WF_TRY(look<T>(run, s, weights, err));
    return wf_launch_meeting(
        run, "losses", sum_losses<T>, 1, wf_threads(s.a.outer * s.a.inner), err, s,
        static_cast<const T *>(log_prob), weights ? static_cast<const T *>(weights->data) : nullptr,
        static_cast<const double *>(run->workspace), static_cast<T *>(loss->data));
}

template <class T>
wf_status loss(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    setting s = setting_of(run->node, in[0], in[1]);
    void *log_prob = out[1] ? out[1]->data : static_cast<char *>(run->workspace) + WF_ALIGNED;

    if (wf_elems(in[0]))
        WF_TRY((wf_softmax<T, true>(run, in[0]->data, log_prob, s.a, err)));
    return losses<T>(run, s, log_prob, in[2], out[0], err);
}

/* From log p itself. */
template <class T>
wf_status likelihood_loss(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    return losses<T>(run, setting_of(run->node, in[0], in[1]), in[0]->data, in[2], out[0], err);
}

/* From dloss, log p, labels and weights. */
template <class T, class R>
wf_status grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    setting s = setting_of(run->node, in[1], in[2]);

    if (wf_elems(out[0]) == 0)
        return WF_OK;
    WF_TRY(look<T>(run, s, in[3], err));
    return wf_launch(run, "differences", differences<T, R>, wf_blocks_of_rows(run, s.a), err, s,
                     static_cast<const T *>(in[0]->data), static_cast<const T *>(in[1]->data),
                     in[3] ? static_cast<const T *>(in[3]->data) : nullptr,
                     static_cast<const double *>(run->workspace), wf_write<R>(out[0]));
}

template <class T>
wf_status likelihood_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    setting s = setting_of(run->node, in[1], in[2]);
    int64_t n = wf_elems(out[0]);

    if (n == 0)
        return WF_OK;
    WF_TRY(look<T>(run, s, in[3], err));
    return wf_launch(run, "at labels", at_labels<T>, wf_blocks(run, n), err, s,
                     static_cast<const T *>(in[0]->data),
                     in[3] ? static_cast<const T *>(in[3]->data) : nullptr,
                     static_cast<const double *>(run->workspace), static_cast<T *>(out[0]->data));
}

} // namespace

#define LOSS(name, dtype, prepares, fn)                                                            \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .prepare = prepares, .run = fn                       \
    }
#define GRAD(name, dtype, narrow, prepares, ...)                                                   \
    {                                                                                              \
        .op = name, .domain = WF_DOMAIN_WEFT, .typed_by = 1, .dtypes = WF_TYPE(dtype),             \
        .is_narrow = narrow, .prepare = prepares, .run = __VA_ARGS__                               \
    }

WF_CUDA_ROWS(cross_entropy){
    LOSS("SoftmaxCrossEntropyLoss", WF_F32, prepare, loss<float>),
    LOSS("SoftmaxCrossEntropyLoss", WF_F64, prepare, loss<double>),
    LOSS("NegativeLogLikelihoodLoss", WF_F32, prepare_sum, likelihood_loss<float>),
    LOSS("NegativeLogLikelihoodLoss", WF_F64, prepare_sum, likelihood_loss<double>),
    GRAD("SoftmaxCrossEntropyGrad", WF_F32, true, prepare_differences,
         wf_wide_or_narrow<grad<float, float>, grad<float, wf_narrow>>),
    GRAD("SoftmaxCrossEntropyGrad", WF_F64, false, prepare_sum, grad<double, double>),
    GRAD("NegativeLogLikelihoodLossGrad", WF_F32, false, prepare_sum, likelihood_grad<float>),
    GRAD("NegativeLogLikelihoodLossGrad", WF_F64, false, prepare_sum, likelihood_grad<double>),
    {},
};
