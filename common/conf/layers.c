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
#define NAME_OPTION TEXT_OPTION("name", false, NULL)

static const char *const dtypes[] = {"float32", "float64", "int32", "int64", "uint8", NULL};

static const wf_option_row dense[] = {
    INT_OPTION("units", true, 1, 2147483647),
    TEXT_OPTION("activation", false, NULL),
    {.name = "use_bias", .kind = WF_CONF_BOOL},
    TEXT_OPTION("kernel_initializer", false, NULL),
    TEXT_OPTION("bias_initializer", false, NULL),
    NAME_OPTION,
    {0},
};
static const wf_option_row flatten[] = {NAME_OPTION, {0}};
static const wf_option_row dropout[] = {NUMBER_OPTION("rate", true, 0, 0.999999), NAME_OPTION, {0}};
static const wf_option_row activation[] = {TEXT_OPTION("activation", true, NULL), NAME_OPTION, {0}};
static const wf_option_row reshape[] = {
    {.name = "target_shape",
     .kind = WF_CONF_INTS,
     .required = true,
     .least = -1,
     .most = 1LL << 40},
    NAME_OPTION,
    {0},
};

const wf_item_row wf_layer_rows[] = {
    {"dense", dense},
    {"flatten", flatten},
    {"dropout", dropout},
    {"activation", activation},
    {"reshape", reshape},
    {"conv1d", NULL},
    {"conv2d", NULL},
    {"max_pooling2d", NULL},
    {"average_pooling2d", NULL},
    {"global_average_pooling2d", NULL},
    {"batch_normalization", NULL},
    {"layer_normalization", NULL},
    {"embedding", NULL},
    {"lstm", NULL},
    {"gru", NULL},
    {"add", NULL},
    {"multiply", NULL},
    {"concatenate", NULL},
    {0},
};

static const wf_option_row scale[] = {NUMBER_OPTION("factor", true, -1e30, 1e30), {0}};
static const wf_option_row shape[] = {
    {.name = "shape", .kind = WF_CONF_INTS, .required = true, .least = 0, .most = 1LL << 40},
    {0},
};
static const wf_option_row one_hot[] = {INT_OPTION("classes", true, 1, 1 << 24), {0}};
static const wf_option_row cast[] = {TEXT_OPTION("dtype", true, dtypes), {0}};

const wf_item_row wf_step_rows[] = {
    {"scale", scale},
    {"reshape", shape},
    {"one_hot", one_hot},
    {"cast", cast},
    {"hash", NULL},
    {"bucketise", NULL},
    {"crop", NULL},
    {"flip", NULL},
    {"fill", NULL},
    {"log1p", NULL},
    {0},
};

#define FLAG_OPTION(name_)                                                                         \
    {                                                                                              \
        .name = name_, .kind = WF_CONF_BOOL                                                        \
    }

static const char *const modes[] = {"auto", "min", "max", NULL};
static const wf_option_row early_stopping[] = {
    TEXT_OPTION("monitor", false, NULL),
    NUMBER_OPTION("min_delta", false, -1e30, 1e30),
    INT_OPTION("patience", false, 0, 1000000),
    TEXT_OPTION("mode", false, modes),
    NUMBER_OPTION("baseline", false, -1e30, 1e30),
    FLAG_OPTION("restore_best_weights"),
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
    FLAG_OPTION("save_best_only"),
    {0},
};
static const wf_option_row nothing[] = {{0}};

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
