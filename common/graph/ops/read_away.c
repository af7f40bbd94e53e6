/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/read_away.c - operations that no graph has, for the listing: reading a file puts
 * what they mean in their place (onnx_function.c, onnx_ml.c, onnx_loop.c, onnx_sequence.c). */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_fail(err, WF_UNSUPPORTED, NULL, "%s is gone once a file is read", n->op->name);
}

/* Gradients are those of what comes in its place. */
static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)g;
    return wf_fail(err, WF_UNSUPPORTED, NULL, "%s is gone once a file is read", n->op->name);
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
static const wf_attr_row concat[] = {
    {"axis", WF_ATTR_INT, true}, {"new_axis", WF_ATTR_INT, false}, {0}};
static const wf_attr_row loop[] = {{"body", WF_ATTR_GRAPH, true}, {0}};
static const wf_attr_row scan[] = {{"body", WF_ATTR_GRAPH, true},
                                   {"num_scan_inputs", WF_ATTR_INT, true},
                                   {"scan_input_axes", WF_ATTR_INTS, false},
                                   {"scan_input_directions", WF_ATTR_INTS, false},
                                   {"scan_output_axes", WF_ATTR_INTS, false},
                                   {"scan_output_directions", WF_ATTR_INTS, false},
                                   {0}};
static const wf_attr_row empty[] = {{"dtype", WF_ATTR_INT, false}, {0}};
static const wf_attr_row split[] = {
    {"axis", WF_ATTR_INT, false}, {"keepdims", WF_ATTR_INT, false}, {0}};

#define OPERATION(domain_, id, name_, since_, least_in, most_in, most_out, note_, ...)             \
    const wf_op wf_op_##id = {.name = name_,                                                       \
                              .domain = domain_,                                                   \
                              .since = since_,                                                     \
                              .n_in_min = least_in,                                                \
                              .n_in_max = most_in,                                                 \
                              .n_out_min = 1,                                                      \
                              .n_out_max = most_out,                                               \
                              .flags = WF_OP_READ_AWAY,                                            \
                              .note = note_,                                                       \
                              .infer = infer,                                                      \
                              __VA_ARGS__};
#define ROW(...) OPERATION(WF_DOMAIN_ONNX, __VA_ARGS__, .grad = grad)
/* Of what carries no gradient. */
#define FIXED(...) OPERATION(WF_DOMAIN_ONNX, __VA_ARGS__, .no_grad_in = 1)
#define WRITTEN_OUT "written out in other operations"
#define UNROLLED "its turns become part of the graph; their number must be known when it is read"
#define FOLLOWED "sequences are gone once a file is read; positions and counts must be known then"

ROW(affine_grid, "AffineGrid", 20, 2, 2, 1, WRITTEN_OUT, .attrs = affine_grid)
ROW(attention, "Attention", 23, 3, 6, 4, WRITTEN_OUT "; softcap before the mask",
    .attrs = attention)
FIXED(blackman_window, "BlackmanWindow", 17, 1, 1, 1, WRITTEN_OUT, .attrs = window)
ROW(col2im, "Col2Im", 18, 3, 3, 1, WRITTEN_OUT "; shapes known when it is read, up to three axes",
    .attrs = col2im)
ROW(concat_from_sequence, "ConcatFromSequence", 11, 1, 1, 1, FOLLOWED, .attrs = concat)
ROW(global_lp_pool, "GlobalLpPool", 2, 1, 1, 1, WRITTEN_OUT, .attrs = global_lp_pool)
FIXED(hamming_window, "HammingWindow", 17, 1, 1, 1, WRITTEN_OUT, .attrs = window)
FIXED(hann_window, "HannWindow", 17, 1, 1, 1, WRITTEN_OUT, .attrs = window)
ROW(loop, "Loop", 16, 2, WF_ANY_NUMBER, WF_ANY_NUMBER, UNROLLED, .attrs = loop)
ROW(lp_normalization, "LpNormalization", 1, 1, 1, 1, WRITTEN_OUT, .attrs = lp_normalization)
ROW(max_unpool, "MaxUnpool", 11, 2, 3, 1, WRITTEN_OUT "; shapes known when it is read",
    .attrs = max_unpool)
ROW(mean_variance_normalization, "MeanVarianceNormalization", 13, 1, 1, 1, WRITTEN_OUT,
    .attrs = mean_variance)
ROW(rotary_embedding, "RotaryEmbedding", 23, 3, 4, 1, WRITTEN_OUT, .attrs = rotary_embedding)
ROW(scan, "Scan", 16, 1, WF_ANY_NUMBER, WF_ANY_NUMBER, UNROLLED, .attrs = scan)
ROW(sequence_at, "SequenceAt", 11, 2, 2, 1, FOLLOWED)
ROW(sequence_construct, "SequenceConstruct", 11, 1, WF_ANY_NUMBER, 1, FOLLOWED)
FIXED(sequence_empty, "SequenceEmpty", 11, 0, 0, 1, FOLLOWED, .attrs = empty)
ROW(sequence_erase, "SequenceErase", 11, 1, 2, 1, FOLLOWED)
ROW(sequence_insert, "SequenceInsert", 11, 2, 3, 1, FOLLOWED)
FIXED(sequence_length, "SequenceLength", 11, 1, 1, 1, FOLLOWED)
ROW(split_to_sequence, "SplitToSequence", 11, 1, 2, 1, FOLLOWED, .attrs = split)

/* As scikit-learn's models are exported. */
static const wf_attr_row threshold[] = {{"threshold", WF_ATTR_FLOAT, false}, {0}};
static const wf_attr_row imputer[] = {{"imputed_value_floats", WF_ATTR_FLOATS, true},
                                      {"replaced_value_float", WF_ATTR_FLOAT, false},
                                      {0}};
static const wf_attr_row classifier[] = {{"classlabels_ints", WF_ATTR_INTS, false},
                                         {"classlabels_strings", WF_ATTR_STRINGS, false},
                                         {"coefficients", WF_ATTR_FLOATS, true},
                                         {"intercepts", WF_ATTR_FLOATS, false},
                                         {"multi_class", WF_ATTR_INT, false},
                                         {"post_transform", WF_ATTR_STRING, false},
                                         {0}};
static const wf_attr_row regressor[] = {{"coefficients", WF_ATTR_FLOATS, true},
                                        {"intercepts", WF_ATTR_FLOATS, false},
                                        {"post_transform", WF_ATTR_STRING, false},
                                        {"targets", WF_ATTR_INT, false},
                                        {0}};
static const wf_attr_row normalizer[] = {{"norm", WF_ATTR_STRING, false}, {0}};
static const wf_attr_row scaler[] = {
    {"offset", WF_ATTR_FLOATS, true}, {"scale", WF_ATTR_FLOATS, true}, {0}};
static const wf_attr_row zip_map[] = {{"classlabels_int64s", WF_ATTR_INTS, false},
                                      {"classlabels_strings", WF_ATTR_STRINGS, false},
                                      {0}};

#define ML(...) OPERATION(WF_DOMAIN_ML, __VA_ARGS__, .grad = grad)
#define ML_FIXED(...) OPERATION(WF_DOMAIN_ML, __VA_ARGS__, .no_grad_in = 1)
#define TRAINED "its coefficients and intercepts become variables"

ML(array_feature_extractor, "ArrayFeatureExtractor", 1, 2, 2, 1, WRITTEN_OUT)
ML_FIXED(binarizer, "Binarizer", 1, 1, 1, 1, WRITTEN_OUT, .attrs = threshold)
ML(imputer, "Imputer", 1, 1, 1, 1, WRITTEN_OUT, .attrs = imputer)
ML(linear_classifier, "LinearClassifier", 1, 1, 1, 2,
   TRAINED "; of labels that are words, the numbers", .attrs = classifier)
ML(linear_regressor, "LinearRegressor", 1, 1, 1, 1, TRAINED, .attrs = regressor)
ML(normalizer, "Normalizer", 1, 1, 1, 1, WRITTEN_OUT, .attrs = normalizer)
ML(scaler, "Scaler", 1, 1, 1, 1, WRITTEN_OUT, .attrs = scaler)
ML(zip_map, "ZipMap", 1, 1, 1, 1, "a tensor, in the order of the labels", .attrs = zip_map)
