/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/spatial.c */
#include "common/graph/ops/nn/spatial.h"
#include "common/graph/infer.h"

const wf_attr_row wf_conv_rows[] = {{"auto_pad", WF_ATTR_STRING, false},
                                    {"dilations", WF_ATTR_INTS, false},
                                    {"group", WF_ATTR_INT, false},
                                    {"kernel_shape", WF_ATTR_INTS, false},
                                    {"pads", WF_ATTR_INTS, false},
                                    {"strides", WF_ATTR_INTS, false},
                                    {0}};

const wf_attr_row wf_conv_transpose_rows[] = {{"auto_pad", WF_ATTR_STRING, false},
                                              {"dilations", WF_ATTR_INTS, false},
                                              {"group", WF_ATTR_INT, false},
                                              {"kernel_shape", WF_ATTR_INTS, false},
                                              {"output_padding", WF_ATTR_INTS, false},
                                              {"output_shape", WF_ATTR_INTS, false},
                                              {"pads", WF_ATTR_INTS, false},
                                              {"strides", WF_ATTR_INTS, false},
                                              {0}};

void wf_kernel_of(const wf_value *weights, int64_t kernel[WF_WINDOW_AXES])
{
    for (int32_t i = 0; i < WF_WINDOW_AXES; i++)
        kernel[i] = i + 2 < weights->rank ? weights->axes[i + 2].size : -1;
}

wf_status wf_infer_pool(wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_axis axes[WF_MAX_RANK];
    wf_window w;

    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_window_read(n, (uint32_t)x->rank, NULL, &w, err));
    axes[0] = x->axes[0];
    axes[1] = x->axes[1];
    for (uint32_t i = 0; i < w.n; i++)
        WF_TRY(wf_window_axis(&w, i, &x->axes[i + 2], &axes[i + 2], err));
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

wf_status wf_grad_channel_bias(wf_grads *g, const wf_node *n, uint32_t i)
{
    wf_emit *e = wf_grads_emit(g);
    const wf_value *x = n->in[0];
    int64_t axes[WF_MAX_RANK];
    uint32_t count = 0;

    if (!wf_grads_wanted(g, n, i) || x->rank < 0)
        return WF_OK;
    for (int32_t k = 0; k < x->rank; k++)
        if (k != 1)
            axes[count++] = k;
    return wf_grads_add(g, n, i,
                        wf_emit_reduce_sum(e, wf_grads_upstream(g, n, 0), count, axes, false));
}

wf_status wf_grad_conv(wf_grads *g, const wf_node *n, const char *by_data, const char *by_weights)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);
    wf_value *data[] = {dy, n->in[1], n->in[0]}, *weights[] = {dy, n->in[0], n->in[1]};

    if (wf_grads_wanted(g, n, 0))
        WF_TRY(wf_grads_add(g, n, 0, wf_emit_op(e, by_data, 3, data, n->n_attrs, n->attrs)));
    if (wf_grads_wanted(g, n, 1))
        WF_TRY(wf_grads_add(g, n, 1, wf_emit_op(e, by_weights, 3, weights, n->n_attrs, n->attrs)));
    return wf_grad_channel_bias(g, n, 2);
}
