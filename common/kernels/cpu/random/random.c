/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/random/random.c - RandomNormal, RandomUniform, their Like forms, and
 * Bernoulli.
 *
 * Element i is made from numbers of the run's random key that only i says, a block of elements at a
 * time, so that neither order nor threads change it. Normal ones come in pairs from two uniform
 * ones (Box and Muller 1958): sqrt(-2 ln u) times cos and sin of 2 pi v.
 */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/vmath.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024 }; /* even: pairs stay together */

typedef struct job {
    wf_rng_key key;
    const wf_tensor *in; /* probabilities, or NULL */
    wf_tensor *out;
    double a, b;
    bool is_normal;
} job;

static wf_rng_key key_of(const wf_run *run)
{
    const wf_attr *seed = wf_node_attr(run->node, "seed");
    wf_rng_key key = run->key;

    if (seed)
        key.stream = wf_rng_fold(key.stream, wf_bits_of(seed->f));
    return key;
}

WF_MULTIVERSION static void radii(float *u, int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++)
        u[2 * i] = sqrtf(-2.0f * wf_log_f32(1.0f - u[2 * i]));
}

static void normal_f32(const job *j, int64_t at, int64_t n)
{
    float u[BLOCK], *y = (float *)j->out->data + at;

    wf_rng_fill_f32(j->key, (uint64_t)at, u, BLOCK);
    radii(u, (n + 1) / 2);
    for (int64_t i = 0; i < n; i++) {
        float turn = 6.28318531f * u[i | 1];

        y[i] =
            (float)(j->a + j->b * (double)(u[i & ~(int64_t)1] * (i & 1 ? sinf(turn) : cosf(turn))));
    }
}

static void normal_f64(const job *j, int64_t at, int64_t n)
{
    double *y = (double *)j->out->data + at;

    for (int64_t i = 0; i < n; i++) {
        uint64_t pair = (uint64_t)(at + i) & ~(uint64_t)1;
        double radius = sqrt(-2 * log(1 - wf_rng_f64(j->key, pair)));
        double turn = 6.283185307179586 * wf_rng_f64(j->key, pair + 1);

        y[i] = j->a + j->b * radius * (i & 1 ? sin(turn) : cos(turn));
    }
}

static void uniform_f32(const job *j, int64_t at, int64_t n)
{
    float u[BLOCK], *y = (float *)j->out->data + at;

    wf_rng_fill_f32(j->key, (uint64_t)at, u, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(j->a + (j->b - j->a) * (double)u[i]);
}

static void uniform_f64(const job *j, int64_t at, int64_t n)
{
    double *y = (double *)j->out->data + at;

    for (int64_t i = 0; i < n; i++)
        y[i] = j->a + (j->b - j->a) * wf_rng_f64(j->key, (uint64_t)(at + i));
}

static void draw_blocks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t block = begin; block < end; block++) {
        int64_t at = block * BLOCK, n = WF_MIN(wf_elems(j->out) - at, (int64_t)BLOCK);

        if (j->out->dtype == WF_F32)
            (j->is_normal ? normal_f32 : uniform_f32)(j, at, n);
        else
            (j->is_normal ? normal_f64 : uniform_f64)(j, at, n);
    }
}

static void store_int(wf_tensor *t, int64_t i, int64_t value)
{
    switch (t->dtype) {
    case WF_F32:
        ((float *)t->data)[i] = (float)value;
        break;
    case WF_F64:
        ((double *)t->data)[i] = (double)value;
        break;
    case WF_I32:
        ((int32_t *)t->data)[i] = (int32_t)value;
        break;
    case WF_I64:
        ((int64_t *)t->data)[i] = value;
        break;
    default:
        ((uint8_t *)t->data)[i] = (uint8_t)value;
    }
}

static void toss_blocks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    float u[BLOCK];

    for (int64_t block = begin; block < end; block++) {
        int64_t at = block * BLOCK, n = WF_MIN(wf_elems(j->out) - at, (int64_t)BLOCK);

        wf_rng_fill_f32(j->key, (uint64_t)at, u, (size_t)n);
        for (int64_t i = 0; i < n; i++)
            store_int(j->out, at + i, (double)u[i] < wf_number_at(j->in, at + i));
    }
}

static void over_blocks(const wf_run *run, job *j, wf_pool_fn *fn)
{
    wf_pool_for(run->pool, (wf_elems(j->out) + BLOCK - 1) / BLOCK, 4, fn, j);
}

static wf_status random_normal(const wf_run *run, const wf_tensor *const in[],
                               wf_tensor *const out[], wf_err *err)
{
    job j = {.key = key_of(run),
             .out = out[0],
             .a = (double)wf_node_float(run->node, "mean", 0.0f),
             .b = (double)wf_node_float(run->node, "scale", 1.0f),
             .is_normal = true};

    (void)in, (void)err;
    over_blocks(run, &j, draw_blocks);
    return WF_OK;
}

static wf_status random_uniform(const wf_run *run, const wf_tensor *const in[],
                                wf_tensor *const out[], wf_err *err)
{
    job j = {.key = key_of(run),
             .out = out[0],
             .a = (double)wf_node_float(run->node, "low", 0.0f),
             .b = (double)wf_node_float(run->node, "high", 1.0f)};

    (void)in, (void)err;
    over_blocks(run, &j, draw_blocks);
    return WF_OK;
}

static wf_status bernoulli(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                           wf_err *err)
{
    job j = {.key = key_of(run), .in = in[0], .out = out[0]};

    (void)err;
    over_blocks(run, &j, toss_blocks);
    return WF_OK;
}

#define ROW(op, fn) WF_ROW(op, WF_TYPES_FLOAT, fn, .typed_by = WF_TYPED_BY_OUTPUT)

const wf_kernel wf_kernels_random[] = {
    ROW("RandomNormal", random_normal),
    ROW("RandomNormalLike", random_normal),
    ROW("RandomUniform", random_uniform),
    ROW("RandomUniformLike", random_uniform),
    WF_ROW("Bernoulli", WF_TYPES_FLOAT, bernoulli),
    {0},
};
