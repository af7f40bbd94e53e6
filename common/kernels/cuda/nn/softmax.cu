/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/softmax.cu - Softmax, LogSoftmax and their gradients. */
#include "common/kernels/cuda/nn/softmax.h"

namespace
{

/* From dy and y: y (dy - sum of y dy), and of the logarithm dy - exp(y) (sum of dy). */
template <class T, bool LOGARITHM>
__global__ void softmax_grad(const T *dy, const T *y, T *dx, wf_around a)
{
    for (int64_t row = blockIdx.x; row < a.outer * a.inner; row += gridDim.x) {
        const int64_t at = wf_first_class(a, row);
        T total = 0;

        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x)
            total += LOGARITHM ? dy[at + i * a.inner] : dy[at + i * a.inner] * y[at + i * a.inner];
        total = wf_join_block(total, T(0), wf_plus());
        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x) {
            T of_y = y[at + i * a.inner], of_dy = dy[at + i * a.inner];

            dx[at + i * a.inner] =
                LOGARITHM ? of_dy - std::exp(of_y) * total : of_y * (of_dy - total);
        }
    }
}

template <class T, bool LOGARITHM>
wf_status run_softmax(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    wf_around a = wf_around_axis(in[0], wf_node_int(run->node, "axis", -1));

    return wf_elems(out[0]) ? wf_softmax<T, LOGARITHM>(run, in[0]->data, out[0]->data, a, err)
                            : WF_OK;
}

template <class T, bool LOGARITHM>
wf_status run_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    wf_around a = wf_around_axis(in[0], wf_node_int(run->node, "axis", -1));

    if (wf_elems(out[0]) == 0)
        return WF_OK;
    return wf_launch_meeting(
        run, run->node->op->name, softmax_grad<T, LOGARITHM>, wf_blocks_of_rows(run, a),
        wf_threads(a.axis), err, static_cast<const T *>(in[0]->data),
        static_cast<const T *>(in[1]->data), static_cast<T *>(out[0]->data), a);
}

} // namespace

#define FORWARD(name, dtype, T, logarithm)                                                         \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .in_place = 1, .run = run_softmax<T, logarithm>      \
    }
#define GRAD(name, dtype, T, logarithm)                                                            \
    {                                                                                              \
        .op = name, .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype), .in_place = 3,             \
        .run = run_grad<T, logarithm>                                                              \
    }

WF_CUDA_ROWS(softmax){
    FORWARD("Softmax", WF_F32, float, false),
    FORWARD("Softmax", WF_F64, double, false),
    FORWARD("LogSoftmax", WF_F32, float, true),
    FORWARD("LogSoftmax", WF_F64, double, true),
    GRAD("SoftmaxGrad", WF_F32, float, false),
    GRAD("SoftmaxGrad", WF_F64, double, false),
    GRAD("LogSoftmaxGrad", WF_F32, float, true),
    GRAD("LogSoftmaxGrad", WF_F64, double, true),
    {},
};
