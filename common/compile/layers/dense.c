/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/dense.c - dense: x kernel + bias along the last axis. */
#include "common/compile/layers/layer.h"

static wf_flow build(wf_layer *l)
{
    wf_value *x = wf_layer_in(l, 0), *kernel, *bias = NULL, *y;
    int64_t units = wf_conf_int(l->item, "units", 0), dims[2];

    if (!x)
        return (wf_flow){0};
    if (units < 1)
        return wf_layer_refuse(l, WF_USAGE, NULL, "\"units\" is %lld, and must be at least 1",
                               (long long)units);
    if (x->rank < 2)
        return wf_layer_refuse(l, WF_USAGE, "give the input an axis, such as [1]",
                               "it needs an axis besides the batch to work on");
    dims[0] = x->axes[x->rank - 1].size;
    dims[1] = units;
    kernel = wf_layer_variable(l, "kernel", 2, dims, "glorot_uniform", NULL);
    if (wf_layer_flag(l, "use_bias", true))
        bias = wf_layer_variable(l, "bias", 1, &dims[1], "zeros", NULL);
    if (x->rank == 2) {
        y = wf_emit_gemm(&l->e, x, kernel, bias, 1.0f, 1.0f, false, false);
    } else {
        y = wf_emit_matmul(&l->e, x, kernel);
        if (bias)
            y = wf_emit_add(&l->e, y, bias);
    }
    return wf_layer_activate(l, wf_layer_give(y), "activation", "linear");
}

const wf_layer_row wf_layer_dense = {"dense", 1, 1, build};
