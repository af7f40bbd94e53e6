/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/softmax.c - Softmax, LogSoftmax and their gradients.
 *
 * Rows of classes that lie together (inner 1) are done a block of rows at a time, so that exp()
 * runs over the whole block and vectorises even for 10 classes. For other axes a tile of neighbours
 * is done together, class by class.
 */
#include "common/kernels/cpu/softmax.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/vmath.h"

#include <math.h>

enum { BLOCK = 2048, LANES = 16, TILE = 256 };

/* What becomes of x once its row's maximum and the sum of exp(x - max) are known. */
typedef enum form { PROBABILITY, LOGARITHM } form;

WF_MULTIVERSION static void exp_all(const float *x, float *y, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        y[i] = wf_exp_f32(x[i]);
}

WF_MULTIVERSION static float row_max(const float *x, int64_t n)
{
    float lane[LANES], top = x[0];
    int64_t i = 0;

    if (n >= LANES) {
        for (int k = 0; k < LANES; k++)
            lane[k] = x[k];
        for (i = LANES; i + LANES <= n; i += LANES)
            for (int k = 0; k < LANES; k++)
                lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
        for (int k = 0; k < LANES; k++)
            top = lane[k] > top ? lane[k] : top;
    }
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

WF_MULTIVERSION static float row_sum(const float *x, int64_t n)
{
    float lane[LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += x[i + k];
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int k = 0; k < width; k++)
            lane[k] += lane[k + width];
    for (; i < n; i++)
        sum += x[i];
    return lane[0] + sum;
}

WF_MULTIVERSION static void row_finish(float *y, const float *e, int64_t n, float sum, form f)
{
    float factor = f == LOGARITHM ? logf(sum) : 1.0f / sum;

    if (f == LOGARITHM)
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] - factor;
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = e[i] * factor;
}

/* A row longer than a block, in three passes over it. */
static void long_row(const float *x, float *y, int64_t n, form f)
{
    float e[BLOCK], top = row_max(x, n);
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - top;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t count = WF_MIN(n - at, (int64_t)BLOCK);

        exp_all(y + at, f == LOGARITHM ? e : y + at, count);
        sum += (double)row_sum(f == LOGARITHM ? e : y + at, count);
    }
    row_finish(y, y, n, (float)sum, f);
}

static void rows_f32(const float *x, float *y, int64_t rows, int64_t n, form f)
{
    float e[BLOCK];
    int64_t at_once = BLOCK / n;

    for (int64_t r = 0; r < rows; r += at_once) {
        int64_t count = WF_MIN(rows - r, at_once);

        for (int64_t i = r; i < r + count; i++) {
            float top = row_max(x + i * n, n);

            for (int64_t k = 0; k < n; k++)
                y[i * n + k] = x[i * n + k] - top;
        }
        exp_all(y + r * n, e, count * n);
        for (int64_t i = 0; i < count; i++)
            row_finish(y + (r + i) * n, e + i * n, n, row_sum(e + i * n, n), f);
    }
}

/* `count` neighbours (at most TILE) along the inner axis, class by class. */
WF_MULTIVERSION static void tile_f32(const float *x, float *y, int64_t classes, int64_t inner,
                                     int64_t count, form f)
{
    float top[TILE], sum[TILE];

    for (int64_t i = 0; i < count; i++) {
        top[i] = x[i];
        sum[i] = 0;
    }
    for (int64_t k = 1; k < classes; k++)
        for (int64_t i = 0; i < count; i++)
            top[i] = x[k * inner + i] > top[i] ? x[k * inner + i] : top[i];
    for (int64_t k = 0; k < classes; k++) {
        WF_NO_OVERLAP
        for (int64_t i = 0; i < count; i++) {
            float d = x[k * inner + i] - top[i], e = wf_exp_f32(d);

            sum[i] += e;
            y[k * inner + i] = f == LOGARITHM ? d : e;
        }
    }
    for (int64_t i = 0; i < count; i++)
        sum[i] = f == LOGARITHM ? logf(sum[i]) : 1.0f / sum[i];
    for (int64_t k = 0; k < classes; k++)
        for (int64_t i = 0; i < count; i++)
            y[k * inner + i] =
                f == LOGARITHM ? y[k * inner + i] - sum[i] : y[k * inner + i] * sum[i];
}

static void softmax_f32(const float *x, float *y, wf_around a, form f)
{
    if (a.axis == 0 || a.inner == 0)
        return;
    if (a.inner == 1 && a.axis <= BLOCK) {
        rows_f32(x, y, a.outer, a.axis, f);
        return;
    }
    for (int64_t o = 0; o < a.outer; o++, x += a.axis * a.inner, y += a.axis * a.inner) {
        if (a.inner == 1)
            long_row(x, y, a.axis, f);
        else
            for (int64_t i = 0; i < a.inner; i += TILE)
                tile_f32(x + i, y + i, a.axis, a.inner, WF_MIN(a.inner - i, (int64_t)TILE), f);
    }
}

static void softmax_f64(const double *x, double *y, wf_around a, form f)
{
    for (int64_t o = 0; o < a.outer; o++, x += a.axis * a.inner, y += a.axis * a.inner)
        for (int64_t i = 0; i < a.inner; i++) {
            double top = -(double)INFINITY, sum = 0;

            for (int64_t k = 0; k < a.axis; k++)
                top = x[k * a.inner + i] > top ? x[k * a.inner + i] : top;
            for (int64_t k = 0; k < a.axis; k++) {
                double d = x[k * a.inner + i] - top;

                sum += exp(d);
                y[k * a.inner + i] = f == LOGARITHM ? d : exp(d);
            }
            for (int64_t k = 0; k < a.axis; k++)
                y[k * a.inner + i] =
                    f == LOGARITHM ? y[k * a.inner + i] - log(sum) : y[k * a.inner + i] / sum;
        }
}

void wf_log_softmax_f32(const float *x, float *y, wf_around a)
{
    softmax_f32(x, y, a, LOGARITHM);
}

void wf_log_softmax_f64(const double *x, double *y, wf_around a)
{
    softmax_f64(x, y, a, LOGARITHM);
}

typedef struct job {
    const wf_tensor *in[2];
    wf_tensor *out;
    wf_around around;
    form form;
} job;

static void forward_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_around a = j->around;
    size_t from = (size_t)(begin * a.axis * a.inner);

    a.outer = end - begin;
    if (j->out->dtype == WF_F32)
        softmax_f32((const float *)j->in[0]->data + from, (float *)j->out->data + from, a, j->form);
    else
        softmax_f64((const double *)j->in[0]->data + from, (double *)j->out->data + from, a,
                    j->form);
}

/* PROBABILITY: dx = y (dy - sum(dy y)).  LOGARITHM: dx = dy - exp(y) sum(dy). */
#define GRAD(name, T, exponential)                                                                 \
    WF_MULTIVERSION static void name(const T *dy, const T *y, T *dx, wf_around a, form f)          \
    {                                                                                              \
        for (int64_t o = 0; o < a.outer; o++)                                                      \
            for (int64_t i = 0; i < a.inner; i++) {                                                \
                int64_t at = o * a.axis * a.inner + i;                                             \
                T sum = 0;                                                                         \
                                                                                                   \
                for (int64_t k = 0; k < a.axis; k++)                                               \
                    sum += f == LOGARITHM ? dy[at + k * a.inner]                                   \
                                          : dy[at + k * a.inner] * y[at + k * a.inner];            \
                WF_NO_OVERLAP                                                                      \
                for (int64_t k = 0; k < a.axis; k++) {                                             \
                    T d = dy[at + k * a.inner], v = y[at + k * a.inner];                           \
                                                                                                   \
                    dx[at + k * a.inner] =                                                         \
                        f == LOGARITHM ? d - exponential(v) * sum : v * (d - sum);                 \
                }                                                                                  \
            }                                                                                      \
    }
GRAD(grad_f32, float, wf_exp_f32)
GRAD(grad_f64, double, exp)

static void grad_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_around a = j->around;
    size_t from = (size_t)(begin * a.axis * a.inner);

    a.outer = end - begin;
    if (j->out->dtype == WF_F32)
        grad_f32((const float *)j->in[0]->data + from, (const float *)j->in[1]->data + from,
                 (float *)j->out->data + from, a, j->form);
    else
        grad_f64((const double *)j->in[0]->data + from, (const double *)j->in[1]->data + from,
                 (double *)j->out->data + from, a, j->form);
}

static void run_job(const wf_run *run, const wf_tensor *const in[], wf_tensor *out, form f,
                    wf_pool_fn *fn)
{
    job j = {{in[0], in[1]}, out, wf_around_axis(in[0], wf_node_int(run->node, "axis", -1)), f};
    int64_t row = WF_MAX(j.around.axis * j.around.inner, (int64_t)1);

    wf_pool_for(run->pool, j.around.outer, WF_GRAIN / 8 / row + 1, fn, &j);
}

#define KERNEL(name, form, range)                                                                  \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        (void)err;                                                                                 \
        run_job(run, in, out[0], form, range);                                                     \
        return WF_OK;                                                                              \
    }
KERNEL(softmax, PROBABILITY, forward_range)
KERNEL(log_softmax, LOGARITHM, forward_range)
KERNEL(softmax_grad, PROBABILITY, grad_range)
KERNEL(log_softmax_grad, LOGARITHM, grad_range)

const wf_kernel wf_kernels_softmax[] = {
    WF_ROW("Softmax", WF_TYPES_FLOAT, softmax, .in_place = 1),
    WF_ROW("LogSoftmax", WF_TYPES_FLOAT, log_softmax, .in_place = 1),
    WF_ROW("SoftmaxGrad", WF_TYPES_FLOAT, softmax_grad, .domain = WF_DOMAIN_WEFT, .in_place = 3),
    WF_ROW("LogSoftmaxGrad", WF_TYPES_FLOAT, log_softmax_grad, .domain = WF_DOMAIN_WEFT,
           .in_place = 3),
    {0},
};
