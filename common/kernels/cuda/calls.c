/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/calls.c - the table over CUDA's runtime. */
#include "common/kernels/cuda/calls_real.h"
#include "common/kernels/cuda/compile/nvrtc.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#define SAME(ours, cudas) _Static_assert((int)(ours) == (int)(cudas), "calls.h has CUDA's number")
SAME(WF_CUDA_NO_MEMORY, cudaErrorMemoryAllocation);
SAME(WF_CUDA_OLD_DRIVER, cudaErrorInsufficientDriver);
SAME(WF_CUDA_NO_DEVICE, cudaErrorNoDevice);
SAME(WF_CUDA_NOT_READY, cudaErrorNotReady);
SAME(WF_CUDA_TO_DEVICE, cudaMemcpyHostToDevice);
SAME(WF_CUDA_TO_HOST, cudaMemcpyDeviceToHost);
SAME(WF_CUDA_WITHIN, cudaMemcpyDeviceToDevice);
SAME(WF_CUDA_F32, CUDA_R_32F);
SAME(WF_CUDA_F64, CUDA_R_64F);
SAME(WF_CUDA_F16, CUDA_R_16F);
SAME(WF_CUDA_BF16, CUDA_R_16BF);
SAME(WF_CUDA_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(WF_CUDA_COMPUTE_F64, CUBLAS_COMPUTE_64F);
SAME(WF_CUDA_COMPUTE_F32_OF_F16, CUBLAS_COMPUTE_32F_FAST_16F);
SAME(WF_CUDA_COMPUTE_F32_OF_BF16, CUBLAS_COMPUTE_32F_FAST_16BF);
SAME(WF_CUDA_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(WF_CUDA_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(WF_CUDA_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(WF_CUDA_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(WF_CUDA_TRANSPOSED, CUBLAS_OP_T);
SAME(WF_CUDA_THEN_NOTHING, CUBLASLT_EPILOGUE_DEFAULT);
SAME(WF_CUDA_THEN_RELU, CUBLASLT_EPILOGUE_RELU);
SAME(WF_CUDA_THEN_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(WF_CUDA_THEN_RELU | WF_CUDA_THEN_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(WF_CUDA_BATCH, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(WF_CUDA_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
_Static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof((wf_cuda_algorithm *)0)->of,
               "calls.h has room for an algorithm");

static int real_count(int *n)
{
    return (int)cudaGetDeviceCount(n);
}

static int real_properties(int device, wf_cuda_properties *out)
{
    struct cudaDeviceProp p;
    int error = (int)cudaGetDeviceProperties(&p, device);

    if (error != 0)
        return error;
    *out = (wf_cuda_properties){.major = p.major,
                                .minor = p.minor,
                                .processors = p.multiProcessorCount,
                                .memory = p.totalGlobalMem};
    snprintf(out->name, sizeof out->name, "%s", p.name);
    return 0;
}

static int real_use(int device)
{
    return (int)cudaSetDevice(device);
}

static int real_memory_left(size_t *left, size_t *all)
{
    return (int)cudaMemGetInfo(left, all);
}

static const char *real_error_string(int error)
{
    if (error >= WF_CUDA_OF_NCCL)
        return wf_cuda_real_nccl_error_string(error);
    if (error >= WF_CUDA_OF_NVRTC)
        return wf_cuda_nvrtc_error_string(error);
    if (error >= WF_CUDA_OF_DNN)
        return wf_cuda_real_dnn_error_string(error);
    return error >= WF_CUDA_OF_BLAS
               ? cublasLtGetStatusString((cublasStatus_t)(error - WF_CUDA_OF_BLAS))
               : cudaGetErrorString((cudaError_t)error);
}

static int real_alloc(void **out, size_t bytes)
{
    return (int)cudaMalloc(out, bytes);
}

static int real_free(void *data)
{
    return (int)cudaFree(data);
}

static int real_alloc_seen(void **out, size_t bytes)
{
    return (int)cudaHostAlloc(out, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
}

static int real_free_seen(void *data)
{
    return (int)cudaFreeHost(data);
}

/* A refusal is no failure of later calls. */
static int real_pin(void *at, size_t bytes)
{
    cudaError_t error = cudaHostRegister(at, bytes, cudaHostRegisterPortable);

    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return (int)error;
}

static int real_unpin(void *at)
{
    return (int)cudaHostUnregister(at);
}

static int real_stream_new(wf_cuda_stream **out)
{
    return (int)cudaStreamCreateWithFlags(out, cudaStreamNonBlocking);
}

static int real_stream_free(wf_cuda_stream *s)
{
    return (int)cudaStreamDestroy(s);
}

static int real_stream_wait(wf_cuda_stream *s)
{
    return (int)cudaStreamSynchronize(s);
}

static int real_stream_after(wf_cuda_stream *s, wf_cuda_event *e)
{
    return (int)cudaStreamWaitEvent(s, e, 0);
}

static int real_copy(void *to, const void *from, size_t bytes, wf_cuda_way way, wf_cuda_stream *s)
{
    return (int)cudaMemcpyAsync(to, from, bytes, (enum cudaMemcpyKind)way, s);
}

static int real_fill(void *to, int byte, size_t bytes, wf_cuda_stream *s)
{
    return (int)cudaMemsetAsync(to, byte, bytes, s);
}

static int real_event_new(wf_cuda_event **out)
{
    return (int)cudaEventCreateWithFlags(out, cudaEventDisableTiming);
}

static int real_event_free(wf_cuda_event *e)
{
    return (int)cudaEventDestroy(e);
}

static int real_event_record(wf_cuda_event *e, wf_cuda_stream *s)
{
    return (int)cudaEventRecord(e, s);
}

static int real_event_wait(wf_cuda_event *e)
{
    return (int)cudaEventSynchronize(e);
}

static int real_event_query(wf_cuda_event *e)
{
    return (int)cudaEventQuery(e);
}

static int real_timer_new(wf_cuda_event **out)
{
    return (int)cudaEventCreate(out);
}

static int real_timer_ms(float *ms, wf_cuda_event *from, wf_cuda_event *to)
{
    return (int)cudaEventElapsedTime(ms, from, to);
}

static int real_launch(const wf_cuda_function *f, wf_cuda_dim grid, wf_cuda_dim block, void **args,
                       size_t shared, wf_cuda_stream *s)
{
    dim3 of_grid = {grid.x, grid.y, grid.z}, of_block = {block.x, block.y, block.z};

    return (int)cudaLaunchKernel(f->kernel, of_grid, of_block, args, shared, s);
}

/* ---- cuBLASLt ---- */

enum { MOST_FOUND = 8 };

static int of_blas(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? 0 : WF_CUDA_OF_BLAS + (int)status;
}

static int real_lt_new(wf_cuda_lt **out)
{
    return of_blas(cublasLtCreate((cublasLtHandle_t *)out));
}

static int real_lt_free(wf_cuda_lt *lt)
{
    return of_blas(cublasLtDestroy((cublasLtHandle_t)lt));
}

static int real_product_new(wf_cuda_product **out, int compute, int scale)
{
    return of_blas(cublasLtMatmulDescCreate((cublasLtMatmulDesc_t *)out,
                                            (cublasComputeType_t)compute, (cudaDataType)scale));
}

static int real_product_set(wf_cuda_product *p, int attribute, const void *value, size_t bytes)
{
    return of_blas(cublasLtMatmulDescSetAttribute(
        (cublasLtMatmulDesc_t)p, (cublasLtMatmulDescAttributes_t)attribute, value, bytes));
}

static int real_product_free(wf_cuda_product *p)
{
    return of_blas(cublasLtMatmulDescDestroy((cublasLtMatmulDesc_t)p));
}

static int real_layout_new(wf_cuda_layout **out, int type, uint64_t rows, uint64_t columns,
                           int64_t ld)
{
    return of_blas(cublasLtMatrixLayoutCreate((cublasLtMatrixLayout_t *)out, (cudaDataType)type,
                                              rows, columns, ld));
}

static int real_layout_set(wf_cuda_layout *l, int attribute, const void *value, size_t bytes)
{
    return of_blas(cublasLtMatrixLayoutSetAttribute(
        (cublasLtMatrixLayout_t)l, (cublasLtMatrixLayoutAttribute_t)attribute, value, bytes));
}

static int real_layout_free(wf_cuda_layout *l)
{
    return of_blas(cublasLtMatrixLayoutDestroy((cublasLtMatrixLayout_t)l));
}

static uint64_t real_lt_version(void)
{
    return cublasLtGetVersion();
}

/* Parts of a sum are joined in float32, and in an order of their own: the scheme in place adds them
 * as they come, and that in the type of the output rounds each. */
static cublasStatus_t prefer(cublasLtMatmulPreference_t prefer, size_t workspace, uint32_t aligned)
{
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    static const cublasLtMatmulPreferenceAttributes_t of[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(
        prefer, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulPreferenceSetAttribute(
            prefer, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
    for (size_t i = 0; status == CUBLAS_STATUS_SUCCESS && i < sizeof of / sizeof of[0]; i++)
        status = cublasLtMatmulPreferenceSetAttribute(prefer, of[i], &aligned, sizeof aligned);
    return status;
}

static int real_choose(wf_cuda_lt *lt, wf_cuda_product *p, wf_cuda_layout *a, wf_cuda_layout *b,
                       wf_cuda_layout *c, size_t workspace, uint32_t aligned, int most,
                       wf_cuda_algorithm out[], int *n)
{
    cublasLtMatmulHeuristicResult_t found[MOST_FOUND] = {0};
    cublasLtMatmulPreference_t preference;
    cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference);

    *n = 0;
    if (most > MOST_FOUND)
        most = MOST_FOUND;
    if (status != CUBLAS_STATUS_SUCCESS)
        return of_blas(status);
    status = prefer(preference, workspace, aligned);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulAlgoGetHeuristic(
            (cublasLtHandle_t)lt, (cublasLtMatmulDesc_t)p, (cublasLtMatrixLayout_t)a,
            (cublasLtMatrixLayout_t)b, (cublasLtMatrixLayout_t)c, (cublasLtMatrixLayout_t)c,
            preference, most, found, n);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    if (status == CUBLAS_STATUS_SUCCESS && *n == 0)
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < *n; i++) {
        memcpy(out[i].of, &found[i].algo, sizeof out[i].of);
        out[i].workspace = found[i].workspaceSize;
    }
    return of_blas(status);
}

static int real_multiply(wf_cuda_lt *lt, wf_cuda_product *p, const void *alpha, const void *a,
                         wf_cuda_layout *of_a, const void *b, wf_cuda_layout *of_b,
                         const void *beta, void *c, wf_cuda_layout *of_c,
                         const wf_cuda_algorithm *algorithm, void *workspace, wf_cuda_stream *s)
{
    return of_blas(cublasLtMatmul(
        (cublasLtHandle_t)lt, (cublasLtMatmulDesc_t)p, alpha, a, (cublasLtMatrixLayout_t)of_a, b,
        (cublasLtMatrixLayout_t)of_b, beta, c, (cublasLtMatrixLayout_t)of_c, c,
        (cublasLtMatrixLayout_t)of_c, (const cublasLtMatmulAlgo_t *)(const void *)algorithm->of,
        workspace, algorithm->workspace, s));
}

/* ---- libraries of kernels ---- */

static int real_library_load(wf_cuda_library **out, const void *code)
{
    return (int)cudaLibraryLoadData((cudaLibrary_t *)out, code, NULL, NULL, 0, NULL, NULL, 0);
}

static int real_library_kernel(const void **out, wf_cuda_library *l, const char *name)
{
    return (int)cudaLibraryGetKernel((cudaKernel_t *)out, (cudaLibrary_t)l, name);
}

static int real_library_free(wf_cuda_library *l)
{
    return (int)cudaLibraryUnload((cudaLibrary_t)l);
}

/* ---- graphs ---- */

static int real_capture_begin(wf_cuda_stream *s)
{
    return (int)cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
}

/* A failed capture is no failure of the work that follows: libraries ask for the last error. */
static int real_capture_end(wf_cuda_stream *s, wf_cuda_graph **out)
{
    int error = (int)cudaStreamEndCapture(s, out);

    if (error != 0)
        (void)cudaGetLastError();
    return error;
}

static int real_graph_free(wf_cuda_graph *g)
{
    return (int)cudaGraphDestroy(g);
}

static int real_replay_new(wf_cuda_replayed **out, wf_cuda_graph *g)
{
    int error = (int)cudaGraphInstantiate(out, g, 0);

    if (error != 0)
        (void)cudaGetLastError();
    return error;
}

static int real_replay_free(wf_cuda_replayed *r)
{
    return (int)cudaGraphExecDestroy(r);
}

static int real_replay(wf_cuda_replayed *r, wf_cuda_stream *s)
{
    return (int)cudaGraphLaunch(r, s);
}

const wf_cuda_calls wf_cuda_real = {
    .count = real_count,
    .properties = real_properties,
    .use = real_use,
    .memory_left = real_memory_left,
    .error_string = real_error_string,
    .alloc = real_alloc,
    .free = real_free,
    .alloc_seen = real_alloc_seen,
    .free_seen = real_free_seen,
    .pin = real_pin,
    .unpin = real_unpin,
    .stream_new = real_stream_new,
    .stream_free = real_stream_free,
    .stream_wait = real_stream_wait,
    .stream_after = real_stream_after,
    .copy = real_copy,
    .fill = real_fill,
    .event_new = real_event_new,
    .event_free = real_event_free,
    .event_record = real_event_record,
    .event_wait = real_event_wait,
    .event_query = real_event_query,
    .timer_new = real_timer_new,
    .timer_ms = real_timer_ms,
    .launch = real_launch,
    .lt_new = real_lt_new,
    .lt_free = real_lt_free,
    .product_new = real_product_new,
    .product_set = real_product_set,
    .product_free = real_product_free,
    .layout_new = real_layout_new,
    .layout_set = real_layout_set,
    .layout_free = real_layout_free,
    .lt_version = real_lt_version,
    .choose = real_choose,
    .multiply = real_multiply,
    .nccl_new = wf_cuda_real_nccl_new,
    .nccl_free = wf_cuda_real_nccl_free,
    .nccl_begin = wf_cuda_real_nccl_begin,
    .nccl_end = wf_cuda_real_nccl_end,
    .nccl_sum = wf_cuda_real_nccl_sum,
    .dnn_new = wf_cuda_real_dnn_new,
    .dnn_free = wf_cuda_real_dnn_free,
    .dnn_version = wf_cuda_real_dnn_version,
    .dnn_stream = wf_cuda_real_dnn_stream,
    .dnn_make = wf_cuda_real_dnn_make,
    .dnn_unmake = wf_cuda_real_dnn_unmake,
    .dnn_set = wf_cuda_real_dnn_set,
    .dnn_get = wf_cuda_real_dnn_get,
    .dnn_finish = wf_cuda_real_dnn_finish,
    .dnn_execute = wf_cuda_real_dnn_execute,
    .compiler_version = wf_cuda_nvrtc_version,
    .program_new = wf_cuda_nvrtc_new,
    .program_compile = wf_cuda_nvrtc_compile,
    .program_log_size = wf_cuda_nvrtc_log_size,
    .program_log = wf_cuda_nvrtc_log,
    .program_code_size = wf_cuda_nvrtc_code_size,
    .program_code = wf_cuda_nvrtc_code,
    .program_free = wf_cuda_nvrtc_free,
    .library_load = real_library_load,
    .library_kernel = real_library_kernel,
    .library_free = real_library_free,
    .capture_begin = real_capture_begin,
    .capture_end = real_capture_end,
    .graph_free = real_graph_free,
    .replay_new = real_replay_new,
    .replay_free = real_replay_free,
    .replay = real_replay,
};
