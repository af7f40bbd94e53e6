/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/train/choose.cu - Choose: copies the results of one branch. Only the device
 * knows which; a chosen result of another shape than the output is not copied, and the wait that
 * follows says it. */
#include "common/kernels/cuda/shape/move.h"

namespace
{

/* One result of both branches; fits: it has the output's bytes. */
template <class T> struct branches {
    const T *of[2];
    bool fits[2];
};

template <class T>
__global__ void take(const uint8_t *condition, branches<T> b, T *out, int64_t n, int64_t number,
                     wf_complaints c)
{
    const int which = *condition ? 0 : 1;

    if (!b.fits[which]) {
        if (wf_first() == 0)
            wf_complain(c, WF_CUDA_BAD_BRANCH, number, 0, 0);
        return;
    }
    for (int64_t i = wf_first(); i < n; i += wf_all())
        out[i] = b.of[which][i];
}

template <class T>
wf_status take_one(const wf_run *run, const wf_tensor *const in[], uint32_t i, wf_tensor *out,
                   wf_err *err)
{
    const wf_tensor *a = in[1 + i], *b = in[1 + run->node->n_out + i];
    branches<T> both = {
        {static_cast<const T *>(a->data), static_cast<const T *>(b->data)},
        {wf_tensor_bytes(a) == wf_tensor_bytes(out), wf_tensor_bytes(b) == wf_tensor_bytes(out)}};

    return wf_launch(run, "Choose", take<T>, wf_blocks(run, wf_elems(out)), err,
                     static_cast<const uint8_t *>(in[0]->data), both, static_cast<T *>(out->data),
                     wf_elems(out), (int64_t)i, wf_complaints_of(run));
}

wf_status choose(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    if (wf_elems(in[0]) != 1)
        return wf_fail(err, WF_SHAPE, NULL, "the condition must be one bool");
    for (uint32_t i = 0; i < run->node->n_out; i++)
        if (out[i])
            WF_TRY(WF_BY_SIZE(out[i]->dtype, take_one<T>(run, in, i, out[i], err)));
    return WF_OK;
}

} // namespace

WF_CUDA_ROWS(choose){
    {.op = "Choose",
     .domain = WF_DOMAIN_WEFT,
     .typed_by = 1,
     .dtypes = WF_TYPES_ALL,
     .run = choose},
    {},
};
