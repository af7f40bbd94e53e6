/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/calls_dnn.h - cuDNN's objects and numbers, as far as weft uses its graph
 * interface (cuDNN 9, "Graph API"); calls_dnn.c holds them against its header. */
#ifndef WF_KERNELS_CUDA_CALLS_DNN_H
#define WF_KERNELS_CUDA_CALLS_DNN_H

typedef struct wf_cuda_dnn wf_cuda_dnn;               /* cudnnHandle_t */
typedef struct wf_cuda_descriptor wf_cuda_descriptor; /* cudnnBackendDescriptor_t */

enum {
    WF_CUDA_OF_DNN = 20000, /* its errors are these and its own number */
    WF_CUDA_NO_DNN = WF_CUDA_OF_DNN,
    WF_CUDA_DNN_REFUSES = WF_CUDA_OF_DNN + 3000, /* and the next 999: a case is not supported */
    WF_CUDA_DNN_VERSION = 9                      /* the major one */
};

/* Kinds of descriptors. */
enum {
    WF_DNN_POINTWISE = 0,
    WF_DNN_CONVOLUTION = 1,
    WF_DNN_ENGINE = 2,
    WF_DNN_CONFIG = 3,
    WF_DNN_HEURISTIC = 4,
    WF_DNN_PLAN = 5,
    WF_DNN_KNOB = 7,
    WF_DNN_DO_FORWARD = 10,
    WF_DNN_DO_WEIGHTS = 11,
    WF_DNN_DO_DATA = 12,
    WF_DNN_DO_POINTWISE = 13,
    WF_DNN_GRAPH = 15,
    WF_DNN_PACK = 16,
    WF_DNN_TENSOR = 17,
    WF_DNN_PRODUCT = 18,
    WF_DNN_DO_PRODUCT = 19,
    WF_DNN_REDUCTION = 21,
    WF_DNN_DO_REDUCTION = 22,
    WF_DNN_DO_NORM = 29,
    WF_DNN_DO_NORM_GRAD = 30,
    WF_DNN_DO_RESHAPE = 31
};

/* Types of attributes. */
enum {
    WF_DNN_IS_HANDLE = 0,
    WF_DNN_IS_DATA_TYPE = 1,
    WF_DNN_IS_BOOL = 2,
    WF_DNN_IS_INT64 = 3,
    WF_DNN_IS_FLOAT = 4,
    WF_DNN_IS_DOUBLE = 5,
    WF_DNN_IS_POINTER = 6,
    WF_DNN_IS_CONV_MODE = 7,
    WF_DNN_IS_HEUR_MODE = 8,
    WF_DNN_IS_KNOB_KIND = 9,
    WF_DNN_IS_NOTE = 11,
    WF_DNN_IS_POINTWISE_MODE = 14,
    WF_DNN_IS_DESCRIPTOR = 15,
    WF_DNN_IS_REDUCTION = 18,
    WF_DNN_IS_BEHAVIOUR = 19,
    WF_DNN_IS_NORM_MODE = 27,
    WF_DNN_IS_NORM_PHASE = 28
};

/* Attributes. */
enum {
    WF_DNN_POINTWISE_MODE = 0,
    WF_DNN_POINTWISE_TYPE = 1,
    WF_DNN_POINTWISE_AXIS = 9,
    WF_DNN_CONV_TYPE = 100,
    WF_DNN_CONV_MODE = 101,
    WF_DNN_CONV_DILATIONS = 102,
    WF_DNN_CONV_STRIDES = 103,
    WF_DNN_CONV_AFTER = 104,
    WF_DNN_CONV_BEFORE = 105,
    WF_DNN_CONV_AXES = 106,
    WF_DNN_HEURISTIC_MODE = 200,
    WF_DNN_HEURISTIC_GRAPH = 201,
    WF_DNN_HEURISTIC_RESULTS = 202,
    WF_DNN_CONFIG_ENGINE = 300,
    WF_DNN_CONFIG_KNOBS = 302,
    WF_DNN_PLAN_HANDLE = 400,
    WF_DNN_PLAN_CONFIG = 401,
    WF_DNN_PLAN_WORKSPACE = 402,
    WF_DNN_KNOB_KIND = 600,
    WF_DNN_KNOB_VALUE = 601,
    WF_DNN_FORWARD_ALPHA = 700,
    WF_DNN_FORWARD_BETA = 701,
    WF_DNN_FORWARD_CONV = 702,
    WF_DNN_FORWARD_W = 703,
    WF_DNN_FORWARD_X = 704,
    WF_DNN_FORWARD_Y = 705,
    WF_DNN_DATA_ALPHA = 706,
    WF_DNN_DATA_BETA = 707,
    WF_DNN_DATA_CONV = 708,
    WF_DNN_DATA_W = 709,
    WF_DNN_DATA_X = 710,
    WF_DNN_DATA_Y = 711,
    WF_DNN_WEIGHTS_ALPHA = 712,
    WF_DNN_WEIGHTS_BETA = 713,
    WF_DNN_WEIGHTS_CONV = 714,
    WF_DNN_WEIGHTS_W = 715,
    WF_DNN_WEIGHTS_X = 716,
    WF_DNN_WEIGHTS_Y = 717,
    WF_DNN_EACH_POINTWISE = 750,
    WF_DNN_EACH_X = 751,
    WF_DNN_EACH_B = 752,
    WF_DNN_EACH_Y = 753,
    WF_DNN_EACH_CHOICE = 758, /* where not, b is taken in the place of x */
    WF_DNN_GRAPH_HANDLE = 800,
    WF_DNN_GRAPH_OPERATIONS = 801,
    WF_DNN_TENSOR_ALIGNED = 900,
    WF_DNN_TENSOR_TYPE = 901,
    WF_DNN_TENSOR_DIMS = 902,
    WF_DNN_TENSOR_STRIDES = 903,
    WF_DNN_TENSOR_ID = 906,
    WF_DNN_TENSOR_VIRTUAL = 907,
    WF_DNN_TENSOR_BY_VALUE = 908,
    WF_DNN_PACK_IDS = 1000,
    WF_DNN_PACK_POINTERS = 1001,
    WF_DNN_PACK_WORKSPACE = 1003,
    WF_DNN_ENGINE_INDEX = 1301,
    WF_DNN_ENGINE_NOTES = 1303,
    WF_DNN_ENGINE_BEHAVIOURS = 1305,
    WF_DNN_PRODUCT_TYPE = 1500,
    WF_DNN_PRODUCT_A = 1520,
    WF_DNN_PRODUCT_B = 1521,
    WF_DNN_PRODUCT_C = 1522,
    WF_DNN_PRODUCT_HOW = 1523,
    WF_DNN_REDUCTION_OPERATOR = 1600,
    WF_DNN_REDUCTION_TYPE = 1601,
    WF_DNN_REDUCTION_X = 1610,
    WF_DNN_REDUCTION_Y = 1611,
    WF_DNN_REDUCTION_HOW = 1612,
    WF_DNN_NORM_MODE = 2000,
    WF_DNN_NORM_PHASE = 2001,
    WF_DNN_NORM_X = 2002,
    WF_DNN_NORM_MEAN = 2003,
    WF_DNN_NORM_INVERSE = 2004,
    WF_DNN_NORM_SCALE = 2005,
    WF_DNN_NORM_BIAS = 2006,
    WF_DNN_NORM_EPSILON = 2007,
    WF_DNN_NORM_Y = 2013,
    WF_DNN_NORM_GRAD_MODE = 2100,
    WF_DNN_NORM_GRAD_X = 2101,
    WF_DNN_NORM_GRAD_MEAN = 2102,
    WF_DNN_NORM_GRAD_INVERSE = 2103,
    WF_DNN_NORM_GRAD_DY = 2104,
    WF_DNN_NORM_GRAD_SCALE = 2105,
    WF_DNN_NORM_GRAD_DSCALE = 2107,
    WF_DNN_NORM_GRAD_DBIAS = 2108,
    WF_DNN_NORM_GRAD_DX = 2109,
    WF_DNN_RESHAPE_X = 2200,
    WF_DNN_RESHAPE_Y = 2201
};

/* Values. */
enum {
    WF_DNN_F32 = 0,
    WF_DNN_F64 = 1,
    WF_DNN_F16 = 2,
    WF_DNN_I32 = 4,
    WF_DNN_BF16 = 9,
    WF_DNN_BOOL = 11,
    WF_DNN_CORRELATION = 1,
    WF_DNN_ADD = 0,
    WF_DNN_MUL = 1,
    WF_DNN_DIV = 6,
    WF_DNN_SUB = 9,
    WF_DNN_EXP = 13,
    WF_DNN_LOG = 15,
    WF_DNN_AT_LEAST = 303,
    WF_DNN_INDEX = 501, /* of its place along an axis */
    WF_DNN_SELECT = 601,
    WF_DNN_SUM_OF = 0,
    WF_DNN_MOST_OF = 3,
    WF_DNN_OF_BATCH = 2,
    WF_DNN_TRAINS = 1,
    WF_DNN_MODE_FALLBACK = 2,
    WF_DNN_MODE_A = 3
};

/* What an engine's notes say of its numbers. */
enum {
    WF_DNN_NOTE_TENSOR_CORE = 0,
    WF_DNN_NOTE_DOWN_CONVERTS = 1,
    WF_DNN_NOTE_REDUCED_SUMS = 2,
    WF_DNN_NOTE_NONDETERMINISTIC = 4,
    WF_DNN_NOTES = 32 /* room for those of later releases */
};

/* What they say of its code: it is compiled when a plan is finished, for that plan. */
enum { WF_DNN_BEHAVIOUR_COMPILES = 0 };

#endif
