/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/widened.c - the cpu's row for narrow nodes. */
#include "common/kernels/widened.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/device.h"
#include "common/tensor/halves.h"

typedef struct job {
    wf_dtype from, to;
    const char *x;
    char *y;
} job;

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const void *x = j->x + (size_t)begin * wf_dtype_size(j->from);
    void *y = j->y + (size_t)begin * wf_dtype_size(j->to);
    size_t n = (size_t)(end - begin);

    if (j->from == WF_BF16)
        wf_f32_of_bf16s(x, n, y);
    else if (j->from == WF_F16)
        wf_f32_of_f16s(x, n, y);
    else if (j->to == WF_BF16)
        wf_bf16_of_f32s(x, n, y);
    else
        wf_f16_of_f32s(x, n, y);
}

static wf_status convert(const wf_run *run, wf_dtype from, const void *x, wf_dtype to, void *y,
                         int64_t n, wf_err *err)
{
    (void)err;
    wf_pool_for(run->pool, n, WF_GRAIN, range, &(job){from, to, x, y});
    return WF_OK;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    return wf_widened_prepare(prep, &wf_cpu_rows, in, out, err);
}

static wf_status run(const wf_run *r, const wf_tensor *const in[], wf_tensor *const out[],
                     wf_err *err)
{
    return wf_widened_run(r, convert, in, out, err);
}

const wf_kernel wf_cpu_widened = {.prepare = prepare, .run = run};
