/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/random/dropout.cu - Dropout and its gradient. Element i is kept when number i
 * of the run's random key is at least `ratio`; kept ones are divided by 1 - ratio, as in the cpu's
 * file of that name. Ratio and training_mode are read by the device. With a ratio that is none,
 * nothing is written, and the wait that follows says it. */
#include "common/kernels/cuda/elementwise/number.h"
#include "common/kernels/cuda/random/draw.h"

#include <cstring>

namespace
{

WF_CODE double ratio_of(const wf_numbers &ratio)
{
    return ratio.data ? wf_number_of(ratio, 0) : 0.5;
}

template <class T>
__global__ void drop(const wf_rng_key *key, wf_numbers ratio, const uint8_t *training, const T *x,
                     T *y, uint8_t *mask, int64_t n, wf_complaints c)
{
    const double share = ratio_of(ratio);
    const bool trains = training && *training, drops = trains && share != 0;
    const T factor = (T)(1 / (1 - share));

    if (trains && !(share >= 0 && share < 1)) {
        if (wf_first() == 0)
            wf_complain(c, WF_CUDA_BAD_RATIO, __double_as_longlong(share), 0, 0);
        return;
    }
    for (int64_t block = wf_first(); block * WF_DRAWN < n; block += wf_all()) {
        float u[WF_DRAWN] = {};

        if (drops)
            wf_draw(*key, block, u);
        for (int k = 0; k < WF_DRAWN; k++) {
            int64_t i = block * WF_DRAWN + k;
            bool keeps = !drops || u[k] >= (float)share;

            if (i >= n)
                break;
            y[i] = !keeps ? T(0) : drops ? x[i] * factor : x[i];
            if (mask)
                mask[i] = keeps;
        }
    }
}

template <class T>
wf_status dropout(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    int64_t n = wf_elems(out[0]);

    return wf_launch(run, "Dropout", drop<T>, wf_blocks_of_draws(run, n), err, run->key_there,
                     wf_numbers_of(in[1]), in[2] ? static_cast<const uint8_t *>(in[2]->data) : NULL,
                     static_cast<const T *>(in[0]->data), static_cast<T *>(out[0]->data),
                     out[1] ? static_cast<uint8_t *>(out[1]->data) : nullptr, n,
                     wf_complaints_of(run));
}

/* mask ? dy * factor : 0. A product with 0 would keep a NaN or an infinity that was dropped. */
template <class T>
__global__ void drop_grad(const T *dy, const uint8_t *mask, wf_numbers ratio,
                          const uint8_t *training, T *dx, int64_t n)
{
    const double share = ratio_of(ratio);
    const bool trains = !training || *training;
    const T factor = (T)(share < 1 ? 1 / (1 - share) : 0.0);

    for (int64_t i = wf_first(); i < n; i += wf_all())
        dx[i] = !trains ? dy[i] : mask[i] ? dy[i] * factor : T(0);
}

/* From dy, mask, ratio and training_mode. */
template <class T>
wf_status dropout_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    int64_t n = wf_elems(out[0]);

    if (n == 0)
        return WF_OK;
    return wf_launch(run, "DropoutGrad", drop_grad<T>, wf_blocks(run, n), err,
                     static_cast<const T *>(in[0]->data), static_cast<const uint8_t *>(in[1]->data),
                     wf_numbers_of(in[2]),
                     in[3] ? static_cast<const uint8_t *>(in[3]->data) : nullptr,
                     static_cast<T *>(out[0]->data), n);
}

} // namespace

#define ROW(name, domain_, dtype, fn)                                                              \
    {                                                                                              \
        .op = name, .domain = domain_, .dtypes = WF_TYPE(dtype), .in_place = 1, .run = fn          \
    }

WF_CUDA_ROWS(dropout){
    ROW("Dropout", nullptr, WF_F32, dropout<float>),
    ROW("Dropout", nullptr, WF_F64, dropout<double>),
    ROW("DropoutGrad", WF_DOMAIN_WEFT, WF_F32, dropout_grad<float>),
    ROW("DropoutGrad", WF_DOMAIN_WEFT, WF_F64, dropout_grad<double>),
    {},
};
