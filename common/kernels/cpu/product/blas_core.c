/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/blas_core.c */
#include "common/kernels/cpu/device.h"
#include "common/kernels/cpu/product/blas.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define CORE "OPENBLAS_CORETYPE"

/* Of OpenBLAS where it is built for several processors (DYNAMIC_ARCH): drops its choice, and makes
 * one, by the variable CORE if there is one. No header declares them. */
void gotoblas_dynamic_quit(void) __attribute__((weak));
void gotoblas_dynamic_init(void) __attribute__((weak));

/* What has all that this processor has; NULL: no more than what OpenBLAS takes in any case. */
static const char *core_by_features(void)
{
    if (wf_cpu_has()->avx512)
        return "SkylakeX";
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "Haswell" : NULL;
}

void wf_blas_choose_core(void)
{
    const char *core = core_by_features();

    if (!core || strcmp(openblas_get_corename(), "Prescott") != 0 || getenv(CORE) ||
        !gotoblas_dynamic_quit || !gotoblas_dynamic_init || setenv(CORE, core, 1) != 0)
        return;
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv(CORE);
}
#else
void wf_blas_choose_core(void)
{
}
#endif
