/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/calls_dnn.c - the table's functions over cuDNN, which is opened when the
 * first handle is made: a host without it computes all the same. Its header need not be there
 * either; where it is, the numbers of calls_dnn.h are held against it. */
#include "common/kernels/cuda/calls_real.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>

#define SAME(ours, cudnns)                                                                         \
    _Static_assert((int)(ours) == (int)(cudnns), "calls_dnn.h has cuDNN's number")
SAME(WF_CUDA_DNN_VERSION, CUDNN_MAJOR);
SAME(WF_CUDA_DNN_REFUSES - WF_CUDA_OF_DNN, CUDNN_STATUS_NOT_SUPPORTED);
SAME(WF_DNN_POINTWISE, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
SAME(WF_DNN_CONVOLUTION, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
SAME(WF_DNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(WF_DNN_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(WF_DNN_HEURISTIC, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(WF_DNN_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(WF_DNN_DO_FORWARD, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(WF_DNN_DO_WEIGHTS, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
SAME(WF_DNN_DO_DATA, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
SAME(WF_DNN_DO_POINTWISE, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SAME(WF_DNN_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(WF_DNN_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(WF_DNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(WF_DNN_IS_HANDLE, CUDNN_TYPE_HANDLE);
SAME(WF_DNN_IS_DATA_TYPE, CUDNN_TYPE_DATA_TYPE);
SAME(WF_DNN_IS_BOOL, CUDNN_TYPE_BOOLEAN);
SAME(WF_DNN_IS_INT64, CUDNN_TYPE_INT64);
SAME(WF_DNN_IS_FLOAT, CUDNN_TYPE_FLOAT);
SAME(WF_DNN_IS_DOUBLE, CUDNN_TYPE_DOUBLE);
SAME(WF_DNN_IS_POINTER, CUDNN_TYPE_VOID_PTR);
SAME(WF_DNN_IS_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE);
SAME(WF_DNN_IS_HEUR_MODE, CUDNN_TYPE_HEUR_MODE);
SAME(WF_DNN_IS_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(WF_DNN_IS_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE);
SAME(WF_DNN_IS_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(WF_DNN_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MODE);
SAME(WF_DNN_POINTWISE_TYPE, CUDNN_ATTR_POINTWISE_MATH_PREC);
SAME(WF_DNN_CONV_TYPE, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
SAME(WF_DNN_CONV_MODE, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
SAME(WF_DNN_CONV_DILATIONS, CUDNN_ATTR_CONVOLUTION_DILATIONS);
SAME(WF_DNN_CONV_STRIDES, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
SAME(WF_DNN_CONV_AFTER, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
SAME(WF_DNN_CONV_BEFORE, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
SAME(WF_DNN_CONV_AXES, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME(WF_DNN_HEURISTIC_MODE, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(WF_DNN_HEURISTIC_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(WF_DNN_HEURISTIC_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(WF_DNN_CONFIG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(WF_DNN_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
SAME(WF_DNN_PLAN_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(WF_DNN_PLAN_WORKSPACE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(WF_DNN_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
SAME(WF_DNN_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
SAME(WF_DNN_FORWARD_CONV, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME(WF_DNN_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(WF_DNN_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(WF_DNN_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(WF_DNN_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
SAME(WF_DNN_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
SAME(WF_DNN_DATA_CONV, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
SAME(WF_DNN_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
SAME(WF_DNN_DATA_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
SAME(WF_DNN_DATA_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
SAME(WF_DNN_WEIGHTS_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
SAME(WF_DNN_WEIGHTS_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
SAME(WF_DNN_WEIGHTS_CONV, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
SAME(WF_DNN_WEIGHTS_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
SAME(WF_DNN_WEIGHTS_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
SAME(WF_DNN_WEIGHTS_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
SAME(WF_DNN_EACH_POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
SAME(WF_DNN_EACH_X, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
SAME(WF_DNN_EACH_B, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
SAME(WF_DNN_EACH_Y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
SAME(WF_DNN_GRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
SAME(WF_DNN_GRAPH_OPERATIONS, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(WF_DNN_TENSOR_ALIGNED, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(WF_DNN_TENSOR_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(WF_DNN_TENSOR_DIMS, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(WF_DNN_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES);
SAME(WF_DNN_TENSOR_ID, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(WF_DNN_TENSOR_VIRTUAL, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
SAME(WF_DNN_PACK_IDS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(WF_DNN_PACK_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(WF_DNN_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(WF_DNN_ENGINE_NOTES, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(WF_DNN_F32, CUDNN_DATA_FLOAT);
SAME(WF_DNN_F64, CUDNN_DATA_DOUBLE);
SAME(WF_DNN_CORRELATION, CUDNN_CROSS_CORRELATION);
SAME(WF_DNN_ADD, CUDNN_POINTWISE_ADD);
SAME(WF_DNN_MODE_FALLBACK, CUDNN_HEUR_MODE_FALLBACK);
SAME(WF_DNN_MODE_A, CUDNN_HEUR_MODE_A);
SAME(WF_DNN_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
SAME(WF_DNN_NOTE_DOWN_CONVERTS, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
SAME(WF_DNN_NOTE_REDUCED_SUMS, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
SAME(WF_DNN_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
_Static_assert((int)CUDNN_NUMERICAL_NOTE_TYPE_COUNT <= (int)WF_DNN_NOTES,
               "there is room for notes");
_Static_assert(sizeof(cudnnStatus_t) == sizeof(int) && sizeof(cudnnDataType_t) == sizeof(int),
               "enumerations are passed as int");
#endif

/* The library's functions, found once. Its enumerations are int. */
static struct {
    bool usable;
    const char *(*error_string)(int status);
    int (*create)(wf_cuda_dnn **out);
    int (*destroy)(wf_cuda_dnn *dnn);
    int (*set_stream)(wf_cuda_dnn *dnn, wf_cuda_stream *s);
    int (*make)(int kind, wf_cuda_descriptor **out);
    int (*unmake)(wf_cuda_descriptor *d);
    int (*set)(wf_cuda_descriptor *d, int attribute, int type, int64_t n, const void *values);
    int (*get)(wf_cuda_descriptor *d, int attribute, int type, int64_t most, int64_t *n,
               void *values);
    int (*finish)(wf_cuda_descriptor *d);
    int (*execute)(wf_cuda_dnn *dnn, wf_cuda_descriptor *plan, wf_cuda_descriptor *pack);
} cudnn;

/* It stays open: handles of GPUs are in use until the process ends. */
static void open_library(void)
{
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    size_t (*version)(void) = NULL;
    const struct {
        const char *name;
        void *to;
    } functions[] = {{"cudnnGetErrorString", &cudnn.error_string},
                     {"cudnnCreate", &cudnn.create},
                     {"cudnnDestroy", &cudnn.destroy},
                     {"cudnnSetStream", &cudnn.set_stream},
                     {"cudnnBackendCreateDescriptor", &cudnn.make},
                     {"cudnnBackendDestroyDescriptor", &cudnn.unmake},
                     {"cudnnBackendSetAttribute", &cudnn.set},
                     {"cudnnBackendGetAttribute", &cudnn.get},
                     {"cudnnBackendFinalize", &cudnn.finish},
                     {"cudnnBackendExecute", &cudnn.execute},
                     {"cudnnGetVersion", &version}};
    void *found = library;

    for (size_t i = 0; found && i < sizeof functions / sizeof functions[0]; i++) {
        found = dlsym(library, functions[i].name);
        memcpy(functions[i].to, &found, sizeof found);
    }
    cudnn.usable = found && version() / 10000 == WF_CUDA_DNN_VERSION;
}

static int of_dnn(int status)
{
    return status == 0 ? 0 : WF_CUDA_OF_DNN + status;
}

const char *wf_cuda_real_dnn_error_string(int error)
{
    return error == WF_CUDA_NO_DNN ? "libcudnn.so.9 is missing, or is another version than 9"
                                   : cudnn.error_string(error - WF_CUDA_OF_DNN);
}

int wf_cuda_real_dnn_new(wf_cuda_dnn **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_library);
    return cudnn.usable ? of_dnn(cudnn.create(out)) : WF_CUDA_NO_DNN;
}

int wf_cuda_real_dnn_free(wf_cuda_dnn *dnn)
{
    return of_dnn(cudnn.destroy(dnn));
}

int wf_cuda_real_dnn_stream(wf_cuda_dnn *dnn, wf_cuda_stream *s)
{
    return of_dnn(cudnn.set_stream(dnn, s));
}

int wf_cuda_real_dnn_make(int kind, wf_cuda_descriptor **out)
{
    return of_dnn(cudnn.make(kind, out));
}

int wf_cuda_real_dnn_unmake(wf_cuda_descriptor *d)
{
    return of_dnn(cudnn.unmake(d));
}

int wf_cuda_real_dnn_set(wf_cuda_descriptor *d, int attribute, int type, int64_t n,
                         const void *values)
{
    return of_dnn(cudnn.set(d, attribute, type, n, values));
}

int wf_cuda_real_dnn_get(wf_cuda_descriptor *d, int attribute, int type, int64_t most, int64_t *n,
                         void *values)
{
    return of_dnn(cudnn.get(d, attribute, type, most, n, values));
}

int wf_cuda_real_dnn_finish(wf_cuda_descriptor *d)
{
    return of_dnn(cudnn.finish(d));
}

int wf_cuda_real_dnn_execute(wf_cuda_dnn *dnn, wf_cuda_descriptor *plan, wf_cuda_descriptor *pack)
{
    return of_dnn(cudnn.execute(dnn, plan, pack));
}
