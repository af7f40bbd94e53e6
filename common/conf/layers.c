/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/layers.c - the rows; names, options and defaults are Keras's. */
#include "common/conf/layers.h"

#define INT_OPTION(name_, required_, least_, most_)                                                \
    {                                                                                              \
        .name = name_, .kind = WF_CONF_INT, .required = required_, .least = least_, .most = most_  \
    }
#define NUMBER_OPTION(name_, required_, least_, most_)                                             \
    {                                                                                              \
        .name = name_, .kind = WF_CONF_NUMBER, .required = required_, .least = least_,             \
        .most = most_                                                                              \
    }
#define TEXT_OPTION(name_, required_, choice_)                                                     \
    {                                                                                              \
        .name = name_, .kind = WF_CONF_TEXT, .required = required_, .choice = choice_              \
    }
#define BOOL_OPTION(name_)                                                                         \
    {                                                                                              \
        .name = name_, .kind = WF_CONF_BOOL                                                        \
    }
#define INTS_OPTION(name_, required_, pairs_, least_, most_)                                       \
    {                                                                                              \
        .name = name_, .kind = WF_CONF_INTS, .required = required_, .pairs = pairs_,               \
        .least = least_, .most = most_                                                             \
    }
#define WORDS_OPTION(name_)                                                                        \
    {                                                                                              \
        .name = name_, .kind = WF_CONF_WORDS                                                       \
    }
#define ITEM_OPTION(name_, required_, items_)                                                      \
    {                                                                                              \
        .name = name_, .kind = WF_CONF_ITEM, .required = required_, .items = items_                \
    }
#define INITIALIZER(name_) ITEM_OPTION(name_ "_initializer", false, wf_initializer_rows)
#define REGULARIZER(name_) ITEM_OPTION(name_ "_regularizer", false, wf_regularizer_rows)
#define VARIABLE(name_) INITIALIZER(name_), REGULARIZER(name_)
#define ACTIVATION TEXT_OPTION("activation", false, NULL)
#define FORMAT TEXT_OPTION("data_format", false, data_formats)
#define WINDOW(paddings_)                                                                          \
    INTS_OPTION("kernel_size", true, false, 1, MOST_WINDOW),                                       \
        INTS_OPTION("strides", false, false, 1, MOST_WINDOW),                                      \
        TEXT_OPTION("padding", false, paddings_), FORMAT,                                          \
        INTS_OPTION("dilation_rate", false, false, 1, MOST_WINDOW)
/* What follows the product of a dense layer or a convolution. */
#define FINISH                                                                                     \
    ACTIVATION, BOOL_OPTION("use_bias"), VARIABLE("bias"), REGULARIZER("activity"), COMMON
#define EPSILON NUMBER_OPTION("epsilon", false, 1e-30, 1e30)
#define AFFINE                                                                                     \
    EPSILON, BOOL_OPTION("center"), BOOL_OPTION("scale"), VARIABLE("beta"), VARIABLE("gamma")
/* What every layer has. */
#define COMMON                                                                                     \
    TEXT_OPTION("name", false, NULL), WORDS_OPTION("inputs"), TEXT_OPTION("device", false, NULL),  \
    {                                                                                              \
        0                                                                                          \
    }

enum { MOST_SIZE = 1 << 24, MOST_WINDOW = 4096 };

static const char *const dtypes[] = {"float32", "float64", "int32", "int64", "uint8", NULL};
static const char *const data_formats[] = {"channels_last", "channels_first", NULL};
static const char *const paddings[] = {"valid", "same", NULL};
static const char *const causal_paddings[] = {"valid", "same", "causal", NULL};
static const char *const interpolations[] = {"nearest", "bilinear", NULL};
static const char *const merge_modes[] = {"concat", "sum", "mul", "ave", NULL};
static const char *const fan_modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
static const char *const distributions[] = {"truncated_normal", "untruncated_normal", "uniform",
                                            NULL};
/* The cells of common/kernels have these and no others. */
static const char *const only_tanh[] = {"tanh", NULL};
static const char *const only_sigmoid[] = {"sigmoid", NULL};
static const char *const only_unbounded[] = {"unbounded", NULL};
static const char *const combiners[] = {"sum", "mean", "sqrtn", "max", NULL};
static const char *const tanh_or_relu[] = {"tanh", "relu", NULL};

/* ---- initializers and regularizers ---- */

static const wf_option_row nothing[] = {{0}};
static const wf_option_row constant[] = {NUMBER_OPTION("value", false, -1e30, 1e30), {0}};
static const wf_option_row gain[] = {NUMBER_OPTION("gain", false, -1e30, 1e30), {0}};
static const wf_option_row range[] = {
    NUMBER_OPTION("minval", false, -1e30, 1e30),
    NUMBER_OPTION("maxval", false, -1e30, 1e30),
    {0},
};
static const wf_option_row bell[] = {
    NUMBER_OPTION("mean", false, -1e30, 1e30),
    NUMBER_OPTION("stddev", false, 0, 1e30),
    {0},
};
static const wf_option_row variance[] = {
    NUMBER_OPTION("scale", false, 1e-30, 1e30),
    TEXT_OPTION("mode", false, fan_modes),
    TEXT_OPTION("distribution", false, distributions),
    {0},
};

const wf_item_row wf_initializer_rows[] = {
    {"zeros", nothing},
    {"ones", nothing},
    {"constant", constant},
    {"glorot_uniform", nothing},
    {"glorot_normal", nothing},
    {"he_uniform", nothing},
    {"he_normal", nothing},
    {"lecun_uniform", nothing},
    {"lecun_normal", nothing},
    {"random_uniform", range},
    {"uniform", range},
    {"random_normal", bell},
    {"normal", bell},
    {"truncated_normal", bell},
    {"variance_scaling", variance},
    {"orthogonal", gain},
    {"identity", gain},
    {0},
};

static const wf_option_row l1[] = {NUMBER_OPTION("l1", false, 0, 1e30), {0}};
static const wf_option_row l2[] = {NUMBER_OPTION("l2", false, 0, 1e30), {0}};
static const wf_option_row l1_l2[] = {
    NUMBER_OPTION("l1", false, 0, 1e30),
    NUMBER_OPTION("l2", false, 0, 1e30),
    {0},
};

const wf_item_row wf_regularizer_rows[] = {
    {"l1", l1},
    {"l2", l2},
    {"l1_l2", l1_l2},
    {0},
};

/* ---- layers ---- */

static const wf_option_row dense[] = {
    INT_OPTION("units", true, 1, 2147483647),
    VARIABLE("kernel"),
    FINISH,
};
static const wf_option_row plain[] = {COMMON};
static const wf_option_row dropout[] = {NUMBER_OPTION("rate", true, 0, 0.999999), COMMON};
static const wf_option_row activation[] = {
    TEXT_OPTION("activation", true, NULL),
    REGULARIZER("activity"),
    COMMON,
};
static const wf_option_row relu[] = {
    NUMBER_OPTION("max_value", false, 0, 1e30),
    NUMBER_OPTION("negative_slope", false, 0, 1e30),
    COMMON,
};
static const wf_option_row leaky_relu[] = {NUMBER_OPTION("negative_slope", false, 0, 1e30), COMMON};
static const wf_option_row prelu[] = {
    INTS_OPTION("shared_axes", false, false, 1, 7),
    VARIABLE("alpha"),
    COMMON,
};
static const wf_option_row elu[] = {NUMBER_OPTION("alpha", false, 0, 1e30), COMMON};
static const wf_option_row gaussian_noise[] = {NUMBER_OPTION("stddev", true, 0, 1e30), COMMON};
static const wf_option_row axis[] = {INT_OPTION("axis", false, -7, 7), COMMON};
static const wf_option_row rescaling[] = {
    NUMBER_OPTION("scale", true, -1e30, 1e30),
    NUMBER_OPTION("offset", false, -1e30, 1e30),
    COMMON,
};

static const wf_option_row reshape[] = {
    INTS_OPTION("target_shape", true, false, -1, 1LL << 40),
    COMMON,
};
static const wf_option_row permute[] = {INTS_OPTION("dims", true, false, 1, 7), COMMON};
static const wf_option_row repeat_vector[] = {INT_OPTION("n", true, 1, MOST_SIZE), COMMON};

#define CONV(paddings_)                                                                            \
    INT_OPTION("filters", true, 1, MOST_SIZE), WINDOW(paddings_), VARIABLE("kernel")
static const wf_option_row conv1d[] = {
    CONV(causal_paddings),
    INT_OPTION("groups", false, 1, MOST_SIZE),
    FINISH,
};
static const wf_option_row conv[] = {
    CONV(paddings),
    INT_OPTION("groups", false, 1, MOST_SIZE),
    FINISH,
};
static const wf_option_row conv_transpose[] = {CONV(paddings), FINISH};
#define DEPTHWISE                                                                                  \
    WINDOW(paddings), INT_OPTION("depth_multiplier", false, 1, MOST_SIZE), VARIABLE("depthwise")
static const wf_option_row depthwise_conv[] = {DEPTHWISE, FINISH};
static const wf_option_row separable_conv[] = {
    INT_OPTION("filters", true, 1, MOST_SIZE),
    DEPTHWISE,
    VARIABLE("pointwise"),
    FINISH,
};
static const wf_option_row pooling[] = {
    INTS_OPTION("pool_size", false, false, 1, MOST_WINDOW),
    INTS_OPTION("strides", false, false, 1, MOST_WINDOW),
    TEXT_OPTION("padding", false, paddings),
    FORMAT,
    COMMON,
};
static const wf_option_row global_pooling[] = {
    FORMAT,
    BOOL_OPTION("keepdims"),
    COMMON,
};
static const wf_option_row zero_padding[] = {
    INTS_OPTION("padding", false, true, 0, MOST_SIZE),
    FORMAT,
    COMMON,
};
static const wf_option_row cropping[] = {
    INTS_OPTION("cropping", false, true, 0, MOST_SIZE),
    FORMAT,
    COMMON,
};
static const wf_option_row up_sampling1d[] = {
    INTS_OPTION("size", false, false, 1, MOST_WINDOW),
    COMMON,
};
static const wf_option_row up_sampling2d[] = {
    INTS_OPTION("size", false, false, 1, MOST_WINDOW),
    FORMAT,
    TEXT_OPTION("interpolation", false, interpolations),
    COMMON,
};

static const wf_option_row batch_normalization[] = {
    INT_OPTION("axis", false, -7, 7), NUMBER_OPTION("momentum", false, 0, 1), AFFINE,
    INITIALIZER("moving_mean"),       INITIALIZER("moving_variance"),         COMMON,
};
static const wf_option_row layer_normalization[] = {
    INT_OPTION("axis", false, -7, 7),
    AFFINE,
    COMMON,
};
static const wf_option_row group_normalization[] = {
    INT_OPTION("groups", false, -1, MOST_SIZE),
    INT_OPTION("axis", false, -7, 7),
    AFFINE,
    COMMON,
};
static const wf_option_row rms_normalization[] = {
    INT_OPTION("axis", false, -7, 7),
    EPSILON,
    COMMON,
};

static const wf_option_row embedding[] = {
    {.name = "input_dim",
     .kind = WF_CONF_INT_OR_WORD,
     .required = true,
     .least = 1,
     .most = 2147483647,
     .choice = only_unbounded},
    INT_OPTION("output_dim", true, 1, MOST_SIZE),
    TEXT_OPTION("combiner", false, combiners),
    VARIABLE("embeddings"),
    COMMON,
};
#define RECURRENT                                                                                  \
    INT_OPTION("units", true, 1, MOST_SIZE), BOOL_OPTION("use_bias"),                              \
        BOOL_OPTION("return_sequences"), BOOL_OPTION("go_backwards"), VARIABLE("kernel"),          \
        VARIABLE("recurrent"), VARIABLE("bias")
#define GATED                                                                                      \
    RECURRENT, TEXT_OPTION("activation", false, only_tanh),                                        \
        TEXT_OPTION("recurrent_activation", false, only_sigmoid)
static const wf_option_row lstm[] = {
    GATED,
    BOOL_OPTION("unit_forget_bias"),
    COMMON,
};
static const wf_option_row gru[] = {
    GATED,
    BOOL_OPTION("reset_after"),
    COMMON,
};
static const wf_option_row simple_rnn[] = {
    RECURRENT,
    TEXT_OPTION("activation", false, tanh_or_relu),
    COMMON,
};
static const wf_item_row recurrent_rows[] = {
    {"lstm", lstm},
    {"gru", gru},
    {"simple_rnn", simple_rnn},
    {0},
};
static const wf_option_row bidirectional[] = {
    ITEM_OPTION("layer", true, recurrent_rows),
    TEXT_OPTION("merge_mode", false, merge_modes),
    COMMON,
};
static const wf_option_row multi_head_attention[] = {
    INT_OPTION("num_heads", true, 1, MOST_WINDOW),
    INT_OPTION("key_dim", true, 1, MOST_SIZE),
    INT_OPTION("value_dim", false, 1, MOST_SIZE),
    NUMBER_OPTION("dropout", false, 0, 0.999999),
    BOOL_OPTION("use_bias"),
    INT_OPTION("output_shape", false, 1, MOST_SIZE),
    BOOL_OPTION("use_causal_mask"),
    VARIABLE("kernel"),
    VARIABLE("bias"),
    COMMON,
};
static const wf_option_row dot[] = {
    INTS_OPTION("axes", true, false, -2, 2),
    BOOL_OPTION("normalize"),
    COMMON,
};

static const wf_option_row dot_interaction[] = {BOOL_OPTION("self_interaction"), COMMON};
static const wf_option_row up_sampling3d[] = {
    INTS_OPTION("size", false, false, 1, MOST_WINDOW),
    FORMAT,
    COMMON,
};
static const wf_option_row time_distributed[] = {
    ITEM_OPTION("layer", true, wf_layer_rows),
    COMMON,
};

const wf_item_row wf_layer_rows[] = {
    {"dense", dense},
    {"flatten", plain},
    {"dropout", dropout},
    {"activation", activation},
    {"reshape", reshape},
    {"relu", relu},
    {"leaky_relu", leaky_relu},
    {"prelu", prelu},
    {"elu", elu},
    {"softmax", axis},
    {"rescaling", rescaling},
    {"permute", permute},
    {"repeat_vector", repeat_vector},
    {"conv1d", conv1d},
    {"conv2d", conv},
    {"conv3d", conv},
    {"conv1d_transpose", conv_transpose},
    {"conv2d_transpose", conv_transpose},
    {"conv3d_transpose", conv_transpose},
    {"depthwise_conv1d", depthwise_conv},
    {"depthwise_conv2d", depthwise_conv},
    {"separable_conv1d", separable_conv},
    {"separable_conv2d", separable_conv},
    {"max_pooling1d", pooling},
    {"max_pooling2d", pooling},
    {"max_pooling3d", pooling},
    {"average_pooling1d", pooling},
    {"average_pooling2d", pooling},
    {"average_pooling3d", pooling},
    {"global_max_pooling1d", global_pooling},
    {"global_max_pooling2d", global_pooling},
    {"global_max_pooling3d", global_pooling},
    {"global_average_pooling1d", global_pooling},
    {"global_average_pooling2d", global_pooling},
    {"global_average_pooling3d", global_pooling},
    {"zero_padding1d", zero_padding},
    {"zero_padding2d", zero_padding},
    {"zero_padding3d", zero_padding},
    {"cropping1d", cropping},
    {"cropping2d", cropping},
    {"cropping3d", cropping},
    {"up_sampling1d", up_sampling1d},
    {"up_sampling2d", up_sampling2d},
    {"up_sampling3d", up_sampling3d},
    {"batch_normalization", batch_normalization},
    {"layer_normalization", layer_normalization},
    {"group_normalization", group_normalization},
    {"rms_normalization", rms_normalization},
    {"unit_normalization", axis},
    {"embedding", embedding},
    {"lstm", lstm},
    {"gru", gru},
    {"simple_rnn", simple_rnn},
    {"bidirectional", bidirectional},
    {"multi_head_attention", multi_head_attention},
    {"add", plain},
    {"subtract", plain},
    {"multiply", plain},
    {"average", plain},
    {"maximum", plain},
    {"minimum", plain},
    {"concatenate", axis},
    {"dot", dot},
    {"dot_interaction", dot_interaction},
    {"factorization_machine", plain},
    {"gaussian_noise", gaussian_noise},
    {"gaussian_dropout", dropout},
    {"alpha_dropout", dropout},
    {"spatial_dropout1d", dropout},
    {"spatial_dropout2d", dropout},
    {"spatial_dropout3d", dropout},
    {"time_distributed", time_distributed},
    {"conv_lstm2d", NULL},
    {"masking", NULL},
    {0},
};

static const wf_option_row scale[] = {NUMBER_OPTION("factor", true, -1e30, 1e30), {0}};
static const wf_option_row shape[] = {
    {.name = "shape", .kind = WF_CONF_INTS, .required = true, .least = 0, .most = 1LL << 40},
    {0},
};
static const wf_option_row one_hot[] = {INT_OPTION("classes", true, 1, 1 << 24), {0}};
static const wf_option_row cast[] = {TEXT_OPTION("dtype", true, dtypes), {0}};

static const wf_option_row no_option[] = {{0}};
static const char *const hash_columns[] = {"shared", "separate", NULL};
static const wf_option_row hash[] = {
    INT_OPTION("bins", false, 1, 1 << 24), TEXT_OPTION("columns", false, hash_columns), {0}};
static const wf_option_row clip[] = {
    {.name = "bounds", .kind = WF_CONF_NUMBERS, .required = true, .least = -1e30, .most = 1e30},
    {0},
};
static const wf_option_row bucketise[] = {
    {.name = "bin_boundaries",
     .kind = WF_CONF_NUMBERS,
     .required = true,
     .least = -1e30,
     .most = 1e30},
    {0},
};
static const wf_option_row vocabulary[] = {
    {.name = "vocabulary",
     .kind = WF_CONF_INT_OR_PATH,
     .required = true,
     .least = 1,
     .most = 1 << 20},
    {0},
};
static const char *const standards[] = {"lower_and_strip_punctuation", "lower", "strip_punctuation",
                                        "none", NULL};
static const char *const splits[] = {"whitespace", "character", "bytes", NULL};
static const wf_option_row text_vectorization[] = {
    INT_OPTION("max_tokens", false, 3, (1 << 20) + 2),
    TEXT_OPTION("standardize", false, standards),
    TEXT_OPTION("split", false, splits),
    INT_OPTION("output_sequence_length", false, 1, 1 << 16),
    {.name = "vocabulary", .kind = WF_CONF_PATH},
    INT_OPTION("hash", false, 2, 1 << 24),
    {0},
};
static const wf_option_row fill[] = {NUMBER_OPTION("value", true, -1e30, 1e30), {0}};
static const wf_option_row crop[] = {INTS_OPTION("size", true, false, 1, MOST_SIZE),
                                     INT_OPTION("padding", false, 0, MOST_WINDOW),
                                     {0}};
static const wf_option_row resize[] = {INTS_OPTION("size", true, false, 1, MOST_SIZE), {0}};
static const char *const directions[] = {"horizontal", "vertical", NULL};
static const wf_option_row flip[] = {TEXT_OPTION("direction", false, directions), {0}};

const wf_item_row wf_step_rows[] = {
    {"scale", scale},
    {"standardise", no_option},
    {"reshape", shape},
    {"one_hot", one_hot},
    {"cast", cast},
    {"crop", crop},
    {"resize", resize},
    {"flip", flip},
    {"fill", fill},
    {"clip", clip},
    {"hash", hash},
    {"log1p", no_option},
    {"bucketise", bucketise},
    {"vocabulary", vocabulary},
    {"text_vectorization", text_vectorization},
    {0},
};

static const char *const modes[] = {"auto", "min", "max", NULL};
static const wf_option_row early_stopping[] = {
    TEXT_OPTION("monitor", false, NULL),
    NUMBER_OPTION("min_delta", false, -1e30, 1e30),
    INT_OPTION("patience", false, 0, 1000000),
    TEXT_OPTION("mode", false, modes),
    NUMBER_OPTION("baseline", false, -1e30, 1e30),
    BOOL_OPTION("restore_best_weights"),
    INT_OPTION("start_from_epoch", false, 0, 1000000),
    {0},
};
static const wf_option_row reduce_lr_on_plateau[] = {
    TEXT_OPTION("monitor", false, NULL),
    NUMBER_OPTION("factor", false, 0, 0.999999),
    INT_OPTION("patience", false, 0, 1000000),
    TEXT_OPTION("mode", false, modes),
    NUMBER_OPTION("min_delta", false, -1e30, 1e30),
    INT_OPTION("cooldown", false, 0, 1000000),
    NUMBER_OPTION("min_lr", false, 0, 1e30),
    {0},
};
static const wf_option_row model_checkpoint[] = {
    TEXT_OPTION("monitor", false, NULL),
    TEXT_OPTION("mode", false, modes),
    BOOL_OPTION("save_best_only"),
    {0},
};

const wf_item_row wf_callback_rows[] = {
    {"early_stopping", early_stopping},
    {"reduce_lr_on_plateau", reduce_lr_on_plateau},
    {"model_checkpoint", model_checkpoint},
    {"terminate_on_nan", nothing}, /* what on_nan: stop, the default, does */
    {"learning_rate_scheduler", NULL},
    {"backup_and_restore", NULL},
    {"csv_logger", NULL},
    {"tensor_board", NULL},
    {0},
};
