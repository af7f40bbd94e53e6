/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/pow.c - Pow: the result has the base's dtype, the exponent may
 * have another. Exponents 2, 3, 1/2 and -1 that are one number take short ways; the rest is libm's
 * pow. */
#include "common/kernels/cpu/elementwise/broadcast.h"
#include "common/kernels/shape/walk.h"

#include <math.h>

WF_UNARY(square_f32, float, float, x *x)
WF_UNARY(square_f64, double, double, x *x)
WF_UNARY(cube_f32, float, float, x *x *x)
WF_UNARY(cube_f64, double, double, x *x *x)
WF_UNARY(root_f32, float, float, sqrtf(x))
WF_UNARY(root_f64, double, double, sqrt(x))
WF_UNARY(inverse_f32, float, float, 1.0f / x)
WF_UNARY(inverse_f64, double, double, 1.0 / x)

typedef struct pow_job {
    const wf_tensor *a, *b;
    wf_tensor *out;
    const wf_walk *walk;
} pow_job;

static double element_pow(double x, double e, bool narrow)
{
    return narrow ? (double)powf((float)x, (float)e) : pow(x, e);
}

static void float_span(void *arg, const wf_span *s)
{
    const pow_job *j = arg;
    bool narrow = j->a->dtype == WF_F32 && j->b->dtype == WF_F32;

    for (int64_t i = 0; i < s->count; i++) {
        double x = wf_number_at(j->a, s->at[0] + i * s->step[0]);
        double y = element_pow(x, wf_number_at(j->b, s->at[1] + i * s->step[1]), narrow);

        if (j->a->dtype == WF_F32)
            ((float *)j->out->data)[s->first + i] = (float)y;
        else
            ((double *)j->out->data)[s->first + i] = y;
    }
}

/* Wraps like every integer product; x^-e is the quotient 1 / x^e, as numpy's would be. */
static int64_t int_pow(int64_t x, int64_t e)
{
    uint64_t r = 1, base = (uint64_t)x;

    if (e < 0)
        return x == 1 ? 1 : x == -1 ? (e & 1 ? -1 : 1) : 0;
    for (; e; e >>= 1, base *= base)
        if (e & 1)
            r *= base;
    return (int64_t)r;
}

/* Cut and saturated, as Cast does it. */
static int64_t int_of(double x)
{
    return isnan(x) ? 0 : x >= 0x1p63 ? INT64_MAX : x > -0x1p63 ? (int64_t)x : INT64_MIN;
}

static void int_span(void *arg, const wf_span *s)
{
    const pow_job *j = arg;

    for (int64_t i = 0; i < s->count; i++) {
        int64_t x = wf_int_at(j->a, s->at[0] + i * s->step[0]);
        double e = wf_number_at(j->b, s->at[1] + i * s->step[1]);
        int64_t y =
            e == floor(e) && fabs(e) < 1e9 ? int_pow(x, (int64_t)e) : int_of(pow((double)x, e));

        if (j->a->dtype == WF_I32)
            ((int32_t *)j->out->data)[s->first + i] = (int32_t)y;
        else
            ((int64_t *)j->out->data)[s->first + i] = y;
    }
}

static void pow_range(void *arg, int64_t begin, int64_t end)
{
    const pow_job *j = arg;

    wf_walk_range(j->walk, begin, end, wf_dtype_is_float(j->a->dtype) ? float_span : int_span, arg);
}

static wf_status run_pow(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    pow_job j = {in[0], in[1], out[0], run->state};

    if (wf_dtype_is_float(in[0]->dtype) && wf_elems(in[1]) == 1 &&
        wf_elems(in[0]) == wf_elems(out[0])) {
        double e = wf_number_at(in[1], 0);
        bool narrow = in[0]->dtype == WF_F32;

        if (e == 2)
            return narrow ? square_f32(run, in, out, err) : square_f64(run, in, out, err);
        if (e == 3)
            return narrow ? cube_f32(run, in, out, err) : cube_f64(run, in, out, err);
        if (e == 0.5)
            return narrow ? root_f32(run, in, out, err) : root_f64(run, in, out, err);
        if (e == -1)
            return narrow ? inverse_f32(run, in, out, err) : inverse_f64(run, in, out, err);
    }
    wf_pool_for(run->pool, j.walk->elems, WF_GRAIN / 16, pow_range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_pow[] = {
    WF_ROW("Pow", WF_TYPES_NUMBER, run_pow, .prepare = wf_binary_prepare),
    {0},
};
