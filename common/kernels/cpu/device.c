/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/device.c - the rows of all files named in meson.build; units and libraries. */
#include "common/kernels/cpu/device.h"
#include "common/base/cc.h"
#include "common/kernels/cpu/product/blas.h"

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define WF_KERNELS(name, file) extern const wf_kernel wf_kernels_##name[];
#include "common/kernels/cpu/rows.def"
#undef WF_KERNELS

static const wf_kernel *const files[] = {
#define WF_KERNELS(name, file) wf_kernels_##name,
#include "common/kernels/cpu/rows.def"
#undef WF_KERNELS
};

const wf_device_rows wf_cpu_rows = {.device = &wf_cpu,
                                    .files = files,
                                    .n_files = WF_COUNT(files),
                                    .widened = &wf_cpu_widened,
                                    .narrow = WF_TYPE(WF_BF16)};

/* Of an OpenBLAS with threads, which calls it when the process forks or ends; no header declares
 * it. */
int blas_thread_shutdown_(void) __attribute__((weak));

void wf_kernels_own_process(void)
{
    openblas_set_num_threads(1);
    if (blas_thread_shutdown_) /* they have looked for work since the library was loaded */
        (void)blas_thread_shutdown_();
    wf_blas_choose_core();
}

/* ---- units ---- */

static wf_cpu_units units;

#if defined(__x86_64__)
/* Linux gives a process the state of tiles when it asks (Documentation/arch/x86/xstate.rst). */
enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
/* Of leaf 7 in edx; compilers' headers do not agree on names. */
enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };

static void look(void)
{
    unsigned a, b, c, d;

    units.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    units.bf16 = units.avx512 && __builtin_cpu_supports("avx512bf16");
    /* On an Emerald Rapids a VDPBF16PS takes four times as long as a VFMADD231PS, which has half as
     * many values (docs/decisions.md). */
    units.slow_bf16 = units.bf16 && __builtin_cpu_is("intel");
    units.tiles = units.bf16 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & AMX_BF16 &&
                  d & AMX_TILE &&
                  syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#else
static void look(void)
{
}
#endif

const wf_cpu_units *wf_cpu_has(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, look);
    return &units;
}

bool wf_kernels_have_bf16(void)
{
    return wf_cpu_has()->bf16;
}

/* ---- oneDNN ---- */

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

/* Of the libgomp that oneDNN is linked with; an omp.h would be that of the compiler. */
void omp_set_num_threads(int n);
int omp_get_max_threads(void);

int wf_onednn_stay(void)
{
    int before = omp_get_max_threads(); /* of the calling thread, as what is set is */

    if (before != 1)
        omp_set_num_threads(1);
    return before;
}

void wf_onednn_leave(int before)
{
    if (before != 1)
        omp_set_num_threads(before);
}
