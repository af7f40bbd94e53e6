/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/onednn.c */
#include "common/kernels/cpu/onednn.h"
#include "common/base/status.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdlib.h>

static dnnl_engine_t engine; /* NULL: there is none */

static void open_engine(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
}

static void close_engine(void) __attribute__((destructor));
static void close_engine(void)
{
    if (engine)
        dnnl_engine_destroy(engine);
    engine = NULL;
}

dnnl_engine_t wf_onednn_engine(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_engine);
    return engine;
}

/* oneDNN would start a team of its own threads in each of ours. The setting is one of a thread. */
void wf_onednn_stay(void)
{
    static _Thread_local bool set;

    if (!set)
        omp_set_num_threads(1);
    set = true;
}

bool wf_onednn_has_f32(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#else
    return false;
#endif
}
