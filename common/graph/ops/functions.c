/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/functions.c - operations that are few nodes of others, for the listing: reading
 * a file writes them out (onnx_function.c), so that no graph has one. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_fail(err, WF_UNSUPPORTED, NULL, "%s is written out once a file is read", n->op->name);
}

/* For the listing: gradients are those of what comes in its place. */
static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)g;
    return wf_fail(err, WF_UNSUPPORTED, NULL, "%s is written out once a file is read", n->op->name);
}

static const wf_attr_row affine_grid[] = {{"align_corners", WF_ATTR_INT, false}, {0}};
static const wf_attr_row attention[] = {
    {"is_causal", WF_ATTR_INT, false},         {"kv_num_heads", WF_ATTR_INT, false},
    {"q_num_heads", WF_ATTR_INT, false},       {"qk_matmul_output_mode", WF_ATTR_INT, false},
    {"scale", WF_ATTR_FLOAT, false},           {"softcap", WF_ATTR_FLOAT, false},
    {"softmax_precision", WF_ATTR_INT, false}, {0}};
static const wf_attr_row col2im[] = {{"dilations", WF_ATTR_INTS, false},
                                     {"pads", WF_ATTR_INTS, false},
                                     {"strides", WF_ATTR_INTS, false},
                                     {0}};
static const wf_attr_row global_lp_pool[] = {{"p", WF_ATTR_INT, false}, {0}};
static const wf_attr_row lp_normalization[] = {
    {"axis", WF_ATTR_INT, false}, {"p", WF_ATTR_INT, false}, {0}};
static const wf_attr_row max_unpool[] = {{"kernel_shape", WF_ATTR_INTS, true},
                                         {"pads", WF_ATTR_INTS, false},
                                         {"strides", WF_ATTR_INTS, false},
                                         {0}};
static const wf_attr_row mean_variance[] = {{"axes", WF_ATTR_INTS, false}, {0}};
static const wf_attr_row rotary_embedding[] = {{"interleaved", WF_ATTR_INT, false},
                                               {"num_heads", WF_ATTR_INT, false},
                                               {"rotary_embedding_dim", WF_ATTR_INT, false},
                                               {0}};
static const wf_attr_row window[] = {
    {"output_datatype", WF_ATTR_INT, false}, {"periodic", WF_ATTR_INT, false}, {0}};

#define ROW(id, name_, since_, least_in, most_in, most_out, attrs_, more)                          \
    const wf_op wf_op_##id = {                                                                     \
        .name = name_,                                                                             \
        .domain = WF_DOMAIN_ONNX,                                                                  \
        .since = since_,                                                                           \
        .n_in_min = least_in,                                                                      \
        .n_in_max = most_in,                                                                       \
        .n_out_min = 1,                                                                            \
        .n_out_max = most_out,                                                                     \
        .flags = WF_OP_READ_AWAY,                                                                  \
        .note = "written out in other operations" more,                                            \
        .attrs = attrs_,                                                                           \
        .infer = infer,                                                                            \
        .grad = grad,                                                                              \
    };
/* Of what carries no gradient. */
#define FIXED(id, name_, since_)                                                                   \
    const wf_op wf_op_##id = {                                                                     \
        .name = name_,                                                                             \
        .domain = WF_DOMAIN_ONNX,                                                                  \
        .since = since_,                                                                           \
        .n_in_min = 1,                                                                             \
        .n_in_max = 1,                                                                             \
        .n_out_min = 1,                                                                            \
        .n_out_max = 1,                                                                            \
        .flags = WF_OP_READ_AWAY,                                                                  \
        .note = "written out in other operations",                                                 \
        .no_grad_in = 1,                                                                           \
        .attrs = window,                                                                           \
        .infer = infer,                                                                            \
    };

ROW(affine_grid, "AffineGrid", 20, 2, 2, 1, affine_grid, "")
ROW(attention, "Attention", 23, 3, 6, 4, attention, "; softcap before the mask")
FIXED(blackman_window, "BlackmanWindow", 17)
ROW(col2im, "Col2Im", 18, 3, 3, 1, col2im, "; shapes known when it is read, up to three axes")
ROW(global_lp_pool, "GlobalLpPool", 2, 1, 1, 1, global_lp_pool, "")
FIXED(hamming_window, "HammingWindow", 17)
FIXED(hann_window, "HannWindow", 17)
ROW(lp_normalization, "LpNormalization", 1, 1, 1, 1, lp_normalization, "")
ROW(max_unpool, "MaxUnpool", 11, 2, 3, 1, max_unpool, "; shapes known when it is read")
ROW(mean_variance_normalization, "MeanVarianceNormalization", 13, 1, 1, 1, mean_variance, "")
ROW(rotary_embedding, "RotaryEmbedding", 23, 3, 4, 1, rotary_embedding, "")
