/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/loss/binary_cross_entropy.cu - ai.weft SigmoidCrossEntropy(x, z): from logits
 * x and labels z, max(x, 0) - x z + log(1 + exp(-|x|)), and its gradient (sigmoid(x) - z) dloss.
 * Labels broadcast over the logits. */
#include "common/kernels/cuda/elementwise/each.h"
#include "common/kernels/cuda/reduce/total.h"

#include <cmath>
#include <cstring>

namespace
{

/* Of operands 0, x, and 1, z. */
template <class T> struct losses {
    const T *x, *z;
    wf_walk w;
    T *each; /* where losses are wanted one by one, else NULL */

    /* What is small is added last: a logit far on its label's side has no other loss. */
    WF_CODE double operator()(int64_t i) const
    {
        T v = x[wf_at(w, 0, i)];
        double label = (double)z[wf_at(w, 1, i)];
        double loss = (v > T(0) ? (double)v : 0.0) - (double)v * label +
                      (double)std::log1p(std::exp(-std::fabs(v)));

        if (each)
            each[i] = (T)loss;
        return loss;
    }
};

/* sigmoid(x) - z; of a positive x by way of sigmoid(-x), so that nothing near 1 is subtracted. */
template <class T> WF_CODE T difference(T x, T z)
{
    T other = T(1) / (T(1) + std::exp(std::fabs(x)));

    return x > T(0) ? (T(1) - z) - other : other - z;
}

/* each: a dloss for each element. */
template <class T>
__global__ void differences(const T *x, const T *z, const T *dloss, T *dx, wf_walk w, bool each,
                            double scale)
{
    for (int64_t i = wf_first(); i < w.elems; i += wf_all()) {
        T factor = (T)(scale * (double)dloss[each ? i : 0]);

        dx[i] = difference(x[wf_at(w, 0, i)], z[wf_at(w, 1, i)]) * factor;
    }
}

bool reduces(const wf_node *node)
{
    return std::strcmp(wf_node_string(node, "reduction", "mean"), "none") != 0;
}

bool is_mean(const wf_node *node)
{
    return std::strcmp(wf_node_string(node, "reduction", "mean"), "mean") == 0;
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    (void)out, (void)err;
    prep->workspace_bytes = wf_total_bytes<double>(wf_elems(in[0]));
    return WF_OK;
}

template <class T>
wf_status loss(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    double *sums = static_cast<double *>(run->workspace);
    losses<T> of = {
        static_cast<const T *>(in[0]->data), static_cast<const T *>(in[1]->data), {}, nullptr};
    int64_t n = wf_elems(in[0]);

    wf_walk_broadcast(&of.w, in[0], 2, in);
    if (!reduces(run->node))
        of.each = static_cast<T *>(out[0]->data);
    WF_TRY(wf_total_chunks(run, of, n, sums, err));
    if (of.each)
        return WF_OK;
    return wf_total(run, sums, n, static_cast<T *>(out[0]->data),
                    is_mean(run->node) ? (double)n : 1.0, err);
}

/* From dloss, x and z. */
template <class T>
wf_status grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    wf_walk w;

    wf_walk_broadcast(&w, in[1], 2, in + 1);
    if (w.elems == 0)
        return WF_OK;
    return wf_launch(run, "differences", differences<T>, wf_blocks(run, w.elems), err,
                     static_cast<const T *>(in[1]->data), static_cast<const T *>(in[2]->data),
                     static_cast<const T *>(in[0]->data), static_cast<T *>(out[0]->data), w,
                     !reduces(run->node), is_mean(run->node) ? 1 / (double)w.elems : 1.0);
}

} // namespace

#define LOSS(dtype, T)                                                                             \
    {                                                                                              \
        .op = "SigmoidCrossEntropy", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype),           \
        .prepare = prepare, .run = loss<T>                                                         \
    }
#define GRAD(dtype, T)                                                                             \
    {                                                                                              \
        .op = "SigmoidCrossEntropyGrad", .domain = WF_DOMAIN_WEFT, .typed_by = 1,                  \
        .dtypes = WF_TYPE(dtype), .run = grad<T>                                                   \
    }

WF_CUDA_ROWS(binary_cross_entropy){
    LOSS(WF_F32, float), LOSS(WF_F64, double), GRAD(WF_F32, float), GRAD(WF_F64, double), {},
};
