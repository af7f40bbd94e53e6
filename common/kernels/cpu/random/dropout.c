/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/random/dropout.c - Dropout and its gradient. Element i is kept when number i
 * of the run's random key is at least `ratio`; kept ones are divided by 1 - ratio (Srivastava et
 * al. 2014, section 10, "inverted"). The key is a pure function of (seed, node, epoch, split,
 * batch), so a split that is dealt again trains as it would have. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <string.h>

enum { BLOCK = 1024 };

static double ratio_of(const wf_tensor *ratio)
{
    return ratio ? wf_number_at(ratio, 0) : 0.5;
}

/* mask ? x * factor : 0. A product with 0 would keep a NaN or an infinity that was dropped. */
#define APPLY(name, T)                                                                             \
    WF_MULTIVERSION static void name(const T *x, const uint8_t *mask, T *y, T factor, int64_t n)   \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = mask[i] ? x[i] * factor : 0;                                                    \
    }
APPLY(apply_f32, float)
APPLY(apply_f64, double)

static void apply(const wf_tensor *x, const uint8_t *mask, wf_tensor *y, double ratio, int64_t from,
                  int64_t n)
{
    double factor = ratio < 1 ? 1 / (1 - ratio) : 0;

    if (x->dtype == WF_F32)
        apply_f32((const float *)x->data + from, mask, (float *)y->data + from, (float)factor, n);
    else
        apply_f64((const double *)x->data + from, mask, (double *)y->data + from, factor, n);
}

typedef struct job {
    wf_rng_key key;
    const wf_tensor *x;
    const uint8_t *mask; /* of the gradient */
    wf_tensor *y, *drawn;
    double ratio;
} job;

static void draw_blocks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    float drawn[BLOCK];
    uint8_t mask[BLOCK];

    for (int64_t block = begin; block < end; block++) {
        int64_t at = block * BLOCK, count = WF_MIN(wf_elems(j->x) - at, (int64_t)BLOCK);

        wf_rng_fill_f32(j->key, (uint64_t)at, drawn, (size_t)count);
        for (int64_t i = 0; i < count; i++)
            mask[i] = drawn[i] >= (float)j->ratio;
        apply(j->x, mask, j->y, j->ratio, at, count);
        if (j->drawn)
            memcpy((uint8_t *)j->drawn->data + at, mask, (size_t)count);
    }
}

static wf_status dropout(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    bool training = in[2] && *(const uint8_t *)in[2]->data;
    job j = {.key = run->key, .x = in[0], .y = out[0], .drawn = out[1], .ratio = ratio_of(in[1])};
    int64_t n = wf_elems(in[0]);

    if (training && !(j.ratio >= 0 && j.ratio < 1))
        return wf_fail(err, WF_INVALID, NULL, "the ratio is %g; it must be at least 0 and below 1",
                       j.ratio);
    if (!training || j.ratio == 0) {
        wf_copy(out[0]->data, in[0]->data, wf_tensor_bytes(in[0]));
        if (out[1] && n)
            memset(out[1]->data, 1, (size_t)n);
        return WF_OK;
    }
    wf_pool_for(run->pool, (n + BLOCK - 1) / BLOCK, WF_GRAIN / BLOCK / 4, draw_blocks, &j);
    return WF_OK;
}

static void grad_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    apply(j->x, j->mask + begin, j->y, j->ratio, begin, end - begin);
}

static wf_status dropout_grad(const wf_run *run, const wf_tensor *const in[],
                              wf_tensor *const out[], wf_err *err)
{
    bool training = !in[3] || *(const uint8_t *)in[3]->data;
    job j = {.x = in[0], .mask = in[1]->data, .y = out[0], .ratio = ratio_of(in[2])};

    (void)err;
    if (!training)
        wf_copy(out[0]->data, in[0]->data, wf_tensor_bytes(in[0]));
    else
        wf_pool_for(run->pool, wf_elems(in[0]), WF_GRAIN, grad_range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_dropout[] = {
    WF_ROW("Dropout", WF_TYPES_FLOAT, dropout, .in_place = 1),
    WF_ROW("DropoutGrad", WF_TYPES_FLOAT, dropout_grad, .domain = WF_DOMAIN_WEFT, .in_place = 1),
    {0},
};
