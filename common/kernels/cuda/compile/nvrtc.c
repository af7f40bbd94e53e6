/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/compile/nvrtc.c */
#include "common/kernels/cuda/compile/nvrtc.h"
#include "common/base/cc.h"

#include <dlfcn.h>
#include <nvrtc.h>
#include <pthread.h>

/* What is used of the library; a member has the name and type of the function. */
#define FUNCTIONS(F)                                                                               \
    F(nvrtcVersion)                                                                                \
    F(nvrtcGetErrorString)                                                                         \
    F(nvrtcCreateProgram)                                                                          \
    F(nvrtcCompileProgram)                                                                         \
    F(nvrtcGetProgramLogSize)                                                                      \
    F(nvrtcGetProgramLog)                                                                          \
    F(nvrtcGetCUBINSize)                                                                           \
    F(nvrtcGetCUBIN)                                                                               \
    F(nvrtcDestroyProgram)

#define MEMBER(name) __typeof__(name) *name;
static struct {
    FUNCTIONS(MEMBER)
} nvrtc;
static bool is_open;

/* The library stays open. Of another one the functions are the same since CUDA 11.1. */
static void open_library(void)
{
    static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    void *library = NULL;

    for (size_t i = 0; !library && i < WF_COUNT(files); i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    is_open = library != NULL;
#define FIND(name)                                                                                 \
    if (is_open)                                                                                   \
        nvrtc.name = (__typeof__(name) *)(uintptr_t)dlsym(library, #name);                         \
    is_open = is_open && nvrtc.name;
    FUNCTIONS(FIND)
}

static int of_nvrtc(nvrtcResult result)
{
    return result == NVRTC_SUCCESS ? 0 : WF_CUDA_OF_NVRTC + (int)result;
}

int wf_cuda_nvrtc_version(int *major, int *minor)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_library);
    return is_open ? of_nvrtc(nvrtc.nvrtcVersion(major, minor)) : WF_CUDA_NO_NVRTC;
}

const char *wf_cuda_nvrtc_error_string(int error)
{
    if (error == WF_CUDA_NO_NVRTC)
        return "libnvrtc.so.13 is not found";
    return nvrtc.nvrtcGetErrorString((nvrtcResult)(error - WF_CUDA_OF_NVRTC));
}

int wf_cuda_nvrtc_new(wf_cuda_program **out, const char *source, const char *name)
{
    return of_nvrtc(nvrtc.nvrtcCreateProgram((nvrtcProgram *)out, source, name, 0, NULL, NULL));
}

int wf_cuda_nvrtc_compile(wf_cuda_program *p, int n, const char *const options[])
{
    return of_nvrtc(nvrtc.nvrtcCompileProgram((nvrtcProgram)p, n, options));
}

int wf_cuda_nvrtc_log_size(wf_cuda_program *p, size_t *bytes)
{
    return of_nvrtc(nvrtc.nvrtcGetProgramLogSize((nvrtcProgram)p, bytes));
}

int wf_cuda_nvrtc_log(wf_cuda_program *p, char *out)
{
    return of_nvrtc(nvrtc.nvrtcGetProgramLog((nvrtcProgram)p, out));
}

int wf_cuda_nvrtc_code_size(wf_cuda_program *p, size_t *bytes)
{
    return of_nvrtc(nvrtc.nvrtcGetCUBINSize((nvrtcProgram)p, bytes));
}

int wf_cuda_nvrtc_code(wf_cuda_program *p, char *out)
{
    return of_nvrtc(nvrtc.nvrtcGetCUBIN((nvrtcProgram)p, out));
}

int wf_cuda_nvrtc_free(wf_cuda_program *p)
{
    nvrtcProgram program = (nvrtcProgram)p;

    return of_nvrtc(nvrtc.nvrtcDestroyProgram(&program));
}
