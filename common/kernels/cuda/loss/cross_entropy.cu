/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/loss/cross_entropy.cu - SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss
 * over integer labels, and their gradients; the cpu's file of that name has the formulas. One block
 * looks at all labels, and sums weights and losses, so that the sums have one order. What a label
 * that is no class would name is left out; the wait that follows says it.
 *
 * Where classes are neighbours (inner is 1) a block computes a record, and reads its scores once
 * for the loss. */
#include "common/kernels/cuda/memory.h"
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

/* A record's loss and the weight of its label; 0 without a class. */
struct record {
    double loss, weight;
};

template <class T> WF_CODE record record_of(const T *weights, int64_t label, T log_prob)
{
    const double weight = label < 0 ? 0 : weight_of(weights, label);

    return {label < 0 ? 0 : -weight * (double)log_prob, weight};
}

/* Where the losses of records go: to be summed, or to the result if they are wanted one by one. */
template <class T> struct record_place {
    record *sums;
    T *each; /* NULL: they are summed */

    WF_CODE void put(int64_t i, record r) const
    {
        sums[i] = r;
        if (each)
            each[i] = (T)r.loss;
    }
};

/* Scores to losses and, where it is wanted, log p. */
template <class T>
__global__ void __launch_bounds__(WF_LARGE_BLOCK)
    score_lines(setting s, bool has_fours, const T *x, T *log_prob, const T *weights,
                record_place<T> to)
{
    for (int64_t i = blockIdx.x; i < s.a.outer; i += gridDim.x) {
        const int64_t n = s.a.axis, at = i * n;
        const wf_peak<T> p = wf_peak_of(x + at, at, n, has_fours);

        if (threadIdx.x == 0) {
            const int64_t label = class_of(s, i);

            to.put(i, record_of(weights, label,
                                label < 0 ? T(0) : x[at + label] - p.top - std::log(p.total)));
        }
        if (log_prob)
            wf_softmax_of<T, true>(x + at, log_prob + at, at, n, has_fours, p);
    }
}

/* The same from log p. */
template <class T>
__global__ void pick_losses(setting s, const T *log_prob, const T *weights, record_place<T> to)
{
    for (int64_t i = wf_first(); i < s.a.outer * s.a.inner; i += wf_all()) {
        const int64_t label = class_of(s, i);

        to.put(i, record_of(weights, label, label < 0 ? T(0) : log_prob[place_of(s, i, label)]));
    }
}

/* The sum over all records, by the threads of a block, which all get it. Of labels that are no
 * class the first is told of. */
template <class F> WF_CODE record sum_records(const setting &s, F of, wf_complaints c)
{
    const int64_t n = s.a.outer * s.a.inner;
    int64_t bad = n;
    record all = {0, 0};

    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const int64_t label = label_at(s, i);
        const record r = of(i);

        if (!is_ignored(s, label) && (label < 0 || label >= s.a.axis))
            bad = wf_lower()(bad, i);
        all.loss += r.loss;
        all.weight += r.weight;
    }
    bad = wf_join_block(bad, n, wf_lower());
    all.loss = wf_join_block(all.loss, 0.0, wf_plus());
    all.weight = wf_join_block(all.weight, 0.0, wf_plus());
    if (blockIdx.x == 0 && threadIdx.x == 0 && bad < n)
        wf_complain(c, WF_CUDA_BAD_LABEL, label_at(s, bad), bad / s.a.inner, s.a.axis);
    return all;
}

template <class T>
__global__ void __launch_bounds__(WF_LARGE_BLOCK)
    sum_losses(setting s, const record *records, T *loss, wf_complaints c)
{
    const record all = sum_records(
        s, [&](int64_t i) { return records[i]; }, c);

    if (threadIdx.x == 0 && s.how != NONE)
        loss[0] = (T)(s.how == MEAN ? all.loss / all.weight : all.loss);
}

/* Of labels the sum of weights. */
template <class T> WF_CODE double sum_weights(const setting &s, const T *weights, wf_complaints c)
{
    return sum_records(
               s, [&](int64_t i) { return record_of(weights, class_of(s, i), T(0)); }, c)
        .weight;
}

template <class T>
__global__ void __launch_bounds__(WF_LARGE_BLOCK)
    look_at_labels(setting s, const T *weights, double *total, wf_complaints c)
{
    const double sum = sum_weights(s, weights, c);

    if (threadIdx.x == 0)
        *total = sum;
}

/* What the gradients of all records have as a divisor. */
WF_CODE double divisor_of(const setting &s, double total)
{
    return s.how == MEAN ? total : 1.0;
}

/* What the gradient of record i is multiplied by; 0 without a class. */
template <class T>
WF_CODE double factor_of(const setting &s, int64_t i, const T *dloss, const T *weights,
                         double divisor)
{
    int64_t label = class_of(s, i);

    return label < 0 ? 0
                     : weight_of(weights, label) * (double)dloss[s.how == NONE ? i : 0] / divisor;
}

/* (exp(log p) - onehot) * factor of the record. */
template <class T, class R>
__global__ void differences(setting s, const T *dloss, const T *log_prob, const T *weights,
                            const double *total, wf_to<R> dx)
{
    for (int64_t i = blockIdx.x; i < s.a.outer * s.a.inner; i += gridDim.x) {
        int64_t label = class_of(s, i), at = wf_first_class(s.a, i);
        double factor = factor_of(s, i, dloss, weights, divisor_of(s, *total));

        for (int64_t k = threadIdx.x; k < s.a.axis; k += blockDim.x)
            dx[at + k * s.a.inner] =
                (std::exp(log_prob[at + k * s.a.inner]) - (k == label ? T(1) : T(0))) * (T)factor;
    }
}

/* The same where classes are neighbours. Without a sum of weights each block adds them up. */
template <class T, class R>
__global__ void __launch_bounds__(WF_LARGE_BLOCK)
    line_differences(setting s, bool has_fours, const T *dloss, const T *log_prob, const T *weights,
                     const double *total, wf_to<R> dx, wf_complaints c)
{
    const double divisor = divisor_of(s, total ? *total : sum_weights(s, weights, c));

    for (int64_t i = blockIdx.x; i < s.a.outer; i += gridDim.x) {
        const int64_t n = s.a.axis, at = i * n, label = class_of(s, i);
        const T factor = (T)factor_of(s, i, dloss, weights, divisor), *from = log_prob + at;
        const wf_to<R> to = dx + at;
        const auto of = [&](T x, int64_t k) {
            return (std::exp(x) - (k == label ? T(1) : T(0))) * factor;
        };

        wf_each_of_row(
            at, n, has_fours, [&](int64_t k) { to[k] = of(from[k], k); },
            [&](int64_t k) { return wf_load_four(from, k); },
            [&](int64_t k, wf_four<T> v) {
                WF_UNROLL
                for (int j = 0; j < 4; j++)
                    v.v[j] = of(v.v[j], k + j);
                wf_store_four(to, k, v);
            });
    }
}

/* -factor of the record at its label, 0 elsewhere. */
template <class T>
__global__ void at_labels(setting s, const T *dloss, const T *weights, const double *total, T *dx)
{
    for (int64_t e = wf_first(); e < s.a.outer * s.a.axis * s.a.inner; e += wf_all()) {
        int64_t i = e / (s.a.axis * s.a.inner) * s.a.inner + e % s.a.inner;

        dx[e] = e / s.a.inner % s.a.axis == class_of(s, i)
                    ? (T)-factor_of(s, i, dloss, weights, divisor_of(s, *total))
                    : T(0);
    }
}

/* Records come first in the workspace; their logarithms follow, where rows are not computed by
 * blocks and without an output for them. */
size_t log_prob_at(const wf_tensor *labels)
{
    return wf_align_up((size_t)wf_elems(labels) * sizeof(record), WF_ALIGNED);
}

bool is_by_lines(const wf_tensor *scores)
{
    return wf_around_axis(scores, 1).inner == 1;
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    (void)err;
    prep->workspace_bytes =
        log_prob_at(in[1]) + (out[1] || is_by_lines(in[0]) ? 0 : wf_tensor_bytes(in[0]));
    return WF_OK;
}

wf_status prepare_records(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                          wf_err *err)
{
    (void)out, (void)err;
    prep->workspace_bytes = log_prob_at(in[1]);
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
    return wf_launch_meeting(run, "labels", look_at_labels<T>, 1,
                             wf_large_threads(s.a.outer * s.a.inner), err, s, wf_in<T>(weights),
                             static_cast<double *>(run->workspace), wf_complaints_of(run));
}

template <class T>
record_place<T> place_of_records(const wf_run *run, const setting &s, const wf_tensor *loss)
{
    return {static_cast<record *>(run->workspace), s.how == NONE ? wf_out<T>(loss) : nullptr};
}

template <class T> wf_status sum(const wf_run *run, const setting &s, wf_tensor *loss, wf_err *err)
{
    return wf_launch_meeting(
        run, "losses", sum_losses<T>, 1, wf_large_threads(s.a.outer * s.a.inner), err, s,
        static_cast<const record *>(run->workspace), wf_out<T>(loss), wf_complaints_of(run));
}

/* From log p itself. */
template <class T>
wf_status losses(const wf_run *run, const setting &s, const void *log_prob,
                 const wf_tensor *weights, wf_tensor *loss, wf_err *err)
{
    const int64_t n = s.a.outer * s.a.inner;

    if (n)
        WF_TRY(wf_launch(run, "picked", pick_losses<T>, wf_blocks(run, n), err, s,
                         static_cast<const T *>(log_prob), wf_in<T>(weights),
                         place_of_records<T>(run, s, loss)));
    return sum<T>(run, s, loss, err);
}

/* Each record by a block. */
template <class T>
wf_status loss_by_lines(const wf_run *run, const setting &s, const wf_tensor *const in[],
                        wf_tensor *const out[], wf_err *err)
{
    const unsigned threads = wf_large_threads(s.a.axis);
    const int64_t twice = out[1] ? s.a.axis * (int64_t)sizeof(T) : 0;

    if (s.a.outer)
        WF_TRY(wf_launch_meeting(run, run->node->op->name, score_lines<T>,
                                 wf_blocks_of_lines(run, s.a.outer, threads, twice), threads, err,
                                 s, wf_has_fours(in[0]) && wf_has_fours(out[1]), wf_in<T>(in[0]),
                                 wf_out<T>(out[1]), wf_in<T>(in[2]),
                                 place_of_records<T>(run, s, out[0])));
    return sum<T>(run, s, out[0], err);
}

template <class T>
wf_status loss(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    setting s = setting_of(run->node, in[0], in[1]);
    void *log_prob =
        out[1] ? out[1]->data : static_cast<char *>(run->workspace) + log_prob_at(in[1]);

    if (s.a.inner == 1)
        return loss_by_lines<T>(run, s, in, out, err);
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

/* Labels of a thread that each block adds up by itself, rather than one block before the others. */
enum { FEW_LABELS = 16 };

template <class T, class R>
wf_status grad_by_lines(const wf_run *run, const setting &s, const wf_tensor *const in[],
                        wf_tensor *const out[], wf_err *err)
{
    const unsigned threads = wf_large_threads(s.a.axis);
    const bool few = s.a.outer <= (int64_t)threads * FEW_LABELS;

    if (!few)
        WF_TRY(look<T>(run, s, in[3], err));
    return wf_launch_meeting(run, "differences", line_differences<T, R>,
                             wf_blocks_of_lines(run, s.a.outer, threads, 0), threads, err, s,
                             wf_has_fours(in[1]) && wf_has_fours(out[0]), wf_in<T>(in[0]),
                             wf_in<T>(in[1]), wf_in<T>(in[3]),
                             few ? nullptr : static_cast<const double *>(run->workspace),
                             wf_write<R>(out[0]), wf_complaints_of(run));
}

/* From dloss, log p, labels and weights. */
template <class T, class R>
wf_status grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    setting s = setting_of(run->node, in[1], in[2]);

    if (wf_elems(out[0]) == 0)
        return WF_OK;
    if (s.a.inner == 1)
        return grad_by_lines<T, R>(run, s, in, out, err);
    WF_TRY(look<T>(run, s, in[3], err));
    return wf_launch(run, "differences", differences<T, R>, wf_blocks_of_rows(run, s.a), err, s,
                     wf_in<T>(in[0]), wf_in<T>(in[1]), wf_in<T>(in[3]),
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
    LOSS("NegativeLogLikelihoodLoss", WF_F32, prepare_records, likelihood_loss<float>),
    LOSS("NegativeLogLikelihoodLoss", WF_F64, prepare_records, likelihood_loss<double>),
    GRAD("SoftmaxCrossEntropyGrad", WF_F32, true, prepare_differences,
         wf_wide_or_narrow<grad<float, float>, grad<float, wf_narrow>>),
    GRAD("SoftmaxCrossEntropyGrad", WF_F64, false, prepare_sum, grad<double, double>),
    GRAD("NegativeLogLikelihoodLossGrad", WF_F32, false, prepare_sum, likelihood_grad<float>),
    GRAD("NegativeLogLikelihoodLossGrad", WF_F64, false, prepare_sum, likelihood_grad<double>),
    {},
};
