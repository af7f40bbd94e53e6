/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/calls_nccl.c - the table's functions over NCCL, which is opened when the
 * first GPUs are joined: one GPU computes without it. Its header need not be there either; where it
 * is, the numbers below are held against it. */
#include "common/kernels/cuda/calls_real.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { IS_FLOAT = 7, IS_SUM = 0, MAJOR = 2 };

#if __has_include(<nccl.h>)
#include <nccl.h>
_Static_assert((int)IS_FLOAT == (int)ncclFloat32 && (int)IS_SUM == (int)ncclSum &&
                   (int)MAJOR == NCCL_MAJOR,
               "these are NCCL's numbers");
_Static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int) &&
                   sizeof(ncclRedOp_t) == sizeof(int),
               "enumerations are passed as int");
#endif

/* The library's functions, found once. Its enumerations are int. */
static struct {
    bool usable;
    const char *(*error_string)(int status);
    int (*create)(wf_cuda_comm *out[], int n, const int devices[]);
    int (*destroy)(wf_cuda_comm *comm);
    int (*begin)(void);
    int (*end)(void);
    int (*reduce)(const void *from, void *to, size_t n, int type, int operation, wf_cuda_comm *comm,
                  wf_cuda_stream *s);
} nccl;

/* It stays open: groups are in use until the process ends. */
static void open_library(void)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        void *to;
    } functions[] = {{"ncclGetErrorString", &nccl.error_string},
                     {"ncclCommInitAll", &nccl.create},
                     {"ncclCommDestroy", &nccl.destroy},
                     {"ncclGroupStart", &nccl.begin},
                     {"ncclGroupEnd", &nccl.end},
                     {"ncclAllReduce", &nccl.reduce}};
    void *found = library;

    for (size_t i = 0; found && i < sizeof functions / sizeof functions[0]; i++) {
        found = dlsym(library, functions[i].name);
        memcpy(functions[i].to, &found, sizeof found);
    }
    nccl.usable = found != NULL;
}

static int of_nccl(int status)
{
    return status == 0 ? 0 : WF_CUDA_OF_NCCL + status;
}

const char *wf_cuda_real_nccl_error_string(int error)
{
    return error == WF_CUDA_NO_NCCL ? "libnccl.so.2 is missing"
                                    : nccl.error_string(error - WF_CUDA_OF_NCCL);
}

int wf_cuda_real_nccl_new(wf_cuda_comm *out[], int n, const int devices[])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_library);
    return nccl.usable ? of_nccl(nccl.create(out, n, devices)) : WF_CUDA_NO_NCCL;
}

int wf_cuda_real_nccl_free(wf_cuda_comm *comm)
{
    return of_nccl(nccl.destroy(comm));
}

int wf_cuda_real_nccl_begin(void)
{
    return of_nccl(nccl.begin());
}

int wf_cuda_real_nccl_end(void)
{
    return of_nccl(nccl.end());
}

int wf_cuda_real_nccl_sum(const float *from, float *to, size_t n, wf_cuda_comm *comm,
                          wf_cuda_stream *s)
{
    return of_nccl(nccl.reduce(from, to, n, IS_FLOAT, IS_SUM, comm, s));
}
