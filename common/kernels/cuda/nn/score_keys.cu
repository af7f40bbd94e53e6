/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/score_keys.cu - ScoreKeys(scores, labels): the bin of each score in a
 * histogram by class (shape/score_key.h). Labels are of any number type. */
#include "common/kernels/cuda/memory.h"
#include "common/kernels/shape/score_key.h"

#include <cinttypes>

namespace
{

template <class T, class L>
__global__ void find_keys(const T *scores, const L *labels, int64_t n, bool logits, int64_t *keys)
{
    for (int64_t i = wf_first(); i < n; i += wf_all())
        keys[i] = wf_score_key((double)scores[i], logits, (double)labels[i] > 0.5);
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    (void)prep, (void)out;
    if (wf_elems(in[0]) != wf_elems(in[1]))
        return wf_fail(err, WF_SHAPE, NULL, "%" PRId64 " scores and %" PRId64 " labels",
                       wf_elems(in[0]), wf_elems(in[1]));
    return WF_OK;
}

template <class T, class L>
wf_status keys_by(const wf_run *run, const wf_tensor *const in[], wf_tensor *out, wf_err *err)
{
    const int64_t n = wf_elems(in[0]);

    return wf_launch(run, "ScoreKeys", find_keys<T, L>, wf_blocks(run, n), err, wf_in<T>(in[0]),
                     wf_in<L>(in[1]), n, wf_node_int(run->node, "logits", 0) != 0,
                     wf_out<int64_t>(out));
}

template <class T>
wf_status score_keys(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                     wf_err *err)
{
    switch (in[1]->dtype) {
    case WF_F32:
        return keys_by<T, float>(run, in, out[0], err);
    case WF_F64:
        return keys_by<T, double>(run, in, out[0], err);
    case WF_I32:
        return keys_by<T, int32_t>(run, in, out[0], err);
    case WF_I64:
        return keys_by<T, int64_t>(run, in, out[0], err);
    default:
        return keys_by<T, uint8_t>(run, in, out[0], err);
    }
}

} // namespace

#define ROW(dtype, T)                                                                              \
    {                                                                                              \
        .op = "ScoreKeys", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype), .prepare = prepare, \
        .run = score_keys<T>                                                                       \
    }

WF_CUDA_ROWS(score_keys){ROW(WF_F32, float), ROW(WF_F64, double), {}};
