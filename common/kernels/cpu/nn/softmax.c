/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/softmax.c - Softmax, LogSoftmax and their gradients.
 *
 * Rows of classes that lie together (inner 1) are done a block of rows at a time, so that exp()
 * runs over the whole block and vectorises even for 10 classes. For other axes a tile of neighbours
 * is done together, class by class.
 */
#include "common/kernels/cpu/nn/softmax.h"
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

/* Outer places [begin, end) of rows that lie together. */
static void softmax_rows(const float *x, float *y, int64_t rows, int64_t n, form f)
{
    if (n <= BLOCK)
        rows_f32(x, y, rows, n, f);
    else
        for (int64_t r = 0; r < rows; r++)
            long_row(x + r * n, y + r * n, n, f);
}

static void strip_f64(const double *x, double *y, int64_t classes, int64_t inner, int64_t count,
                      form f)
{
    for (int64_t i = 0; i < count; i++) {
        double top = -(double)INFINITY, sum = 0;

        for (int64_t k = 0; k < classes; k++)
            top = x[k * inner + i] > top ? x[k * inner + i] : top;
        for (int64_t k = 0; k < classes; k++) {
            double d = x[k * inner + i] - top;

            sum += exp(d);
            y[k * inner + i] = f == LOGARITHM ? d : exp(d);
        }
        for (int64_t k = 0; k < classes; k++)
            y[k * inner + i] =
                f == LOGARITHM ? y[k * inner + i] - log(sum) : y[k * inner + i] / sum;
    }
}

/* PROBABILITY: dx = y (dy - sum(dy y)).  LOGARITHM: dx = dy - exp(y) sum(dy). */
#define GRAD(name, T, exponential)                                                                 \
    WF_MULTIVERSION static void name##_row(const T *dy, const T *y, T *dx, int64_t n, form f)      \
    {                                                                                              \
        T lane[LANES] = {0}, sum = 0;                                                              \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++)                                                        \
                lane[k] += f == LOGARITHM ? dy[i + k] : dy[i + k] * y[i + k];                      \
        for (; i < n; i++)                                                                         \
            sum += f == LOGARITHM ? dy[i] : dy[i] * y[i];                                          \
        for (int width = LANES / 2; width > 0; width /= 2)                                         \
            for (int k = 0; k < width; k++)                                                        \
                lane[k] += lane[k + width];                                                        \
        sum += lane[0];                                                                            \
        WF_NO_OVERLAP                                                                              \
        for (i = 0; i < n; i++)                                                                    \
            dx[i] = f == LOGARITHM ? dy[i] - exponential(y[i]) * sum : y[i] * (dy[i] - sum);       \
    }                                                                                              \
    WF_MULTIVERSION static void name##_tile(const T *dy, const T *y, T *dx, int64_t classes,       \
                                            int64_t inner, int64_t count, form f)                  \
    {                                                                                              \
        T sum[TILE] = {0};                                                                         \
                                                                                                   \
        for (int64_t k = 0; k < classes; k++)                                                      \
            for (int64_t i = 0; i < count; i++)                                                    \
                sum[i] +=                                                                          \
                    f == LOGARITHM ? dy[k * inner + i] : dy[k * inner + i] * y[k * inner + i];     \
        for (int64_t k = 0; k < classes; k++) {                                                    \
            WF_NO_OVERLAP                                                                          \
            for (int64_t i = 0; i < count; i++) {                                                  \
                T d = dy[k * inner + i], v = y[k * inner + i];                                     \
                                                                                                   \
                dx[k * inner + i] =                                                                \
                    f == LOGARITHM ? d - exponential(v) * sum[i] : v * (d - sum[i]);               \
            }                                                                                      \
        }                                                                                          \
    }
GRAD(grad_f32, float, wf_exp_f32)
GRAD(grad_f64, double, exp)

typedef struct job {
    const char *in[2]; /* x, or dy and y */
    char *out;
    bool is_f32, is_grad;
    wf_around around;
    form form;
} job;

/* `count` neighbours (at most TILE) from element `at` on. */
static void tile(const job *j, int64_t at, int64_t count)
{
    int64_t n = j->around.axis, inner = j->around.inner;
    const float *a = (const float *)j->in[0] + at, *b = (const float *)j->in[1] + at;
    const double *c = (const double *)j->in[0] + at, *d = (const double *)j->in[1] + at;
    float *to = (float *)j->out + at;
    double *wide_to = (double *)j->out + at;

    if (j->is_f32 && j->is_grad)
        grad_f32_tile(a, b, to, n, inner, count, j->form);
    else if (j->is_f32)
        tile_f32(a, to, n, inner, count, j->form);
    else if (j->is_grad)
        grad_f64_tile(c, d, wide_to, n, inner, count, j->form);
    else
        strip_f64(c, wide_to, n, inner, count, j->form);
}

/* Places [begin, end) of [outer, inner]. */
static void tiles_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_around a = j->around;

    while (begin < end) {
        int64_t i = begin % a.inner, at = begin / a.inner * a.axis * a.inner + i;
        int64_t count = WF_MIN(WF_MIN(a.inner - i, end - begin), (int64_t)TILE);

        tile(j, at, count);
        begin += count;
    }
}

/* Rows [begin, end), where inner is 1. */
static void rows_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t n = j->around.axis, at = begin * n;

    if (j->is_f32 && !j->is_grad) {
        softmax_rows((const float *)j->in[0] + at, (float *)j->out + at, end - begin, n, j->form);
        return;
    }
    for (int64_t r = begin; r < end; r++, at += n) {
        if (j->is_f32)
            grad_f32_row((const float *)j->in[0] + at, (const float *)j->in[1] + at,
                         (float *)j->out + at, n, j->form);
        else if (j->is_grad)
            grad_f64_row((const double *)j->in[0] + at, (const double *)j->in[1] + at,
                         (double *)j->out + at, n, j->form);
        else
            strip_f64((const double *)j->in[0] + at, (double *)j->out + at, n, 1, 1, j->form);
    }
}

static void run_job(wf_pool *pool, job *j)
{
    wf_around a = j->around;

    if (a.axis == 0)
        return;
    wf_pool_for(pool, a.outer * a.inner, WF_GRAIN / 8 / a.axis + 1,
                a.inner == 1 ? rows_range : tiles_range, j);
}

void wf_log_softmax(wf_pool *pool, const wf_tensor *x, void *y, wf_around a)
{
    job j = {.in = {x->data, x->data},
             .out = y,
             .is_f32 = x->dtype == WF_F32,
             .around = a,
             .form = LOGARITHM};

    run_job(pool, &j);
}

#define KERNEL(name, form_, is_grad_)                                                              \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        job j = {.in = {in[0]->data, in[is_grad_]->data},                                          \
                 .out = out[0]->data,                                                              \
                 .is_f32 = out[0]->dtype == WF_F32,                                                \
                 .is_grad = is_grad_,                                                              \
                 .around = wf_around_axis(in[0], wf_node_int(run->node, "axis", -1)),              \
                 .form = form_};                                                                   \
                                                                                                   \
        (void)err;                                                                                 \
        run_job(run->pool, &j);                                                                    \
        return WF_OK;                                                                              \
    }
KERNEL(softmax, PROBABILITY, 0)
KERNEL(log_softmax, LOGARITHM, 0)
KERNEL(softmax_grad, PROBABILITY, 1)
KERNEL(log_softmax_grad, LOGARITHM, 1)

const wf_kernel wf_kernels_softmax[] = {
    WF_ROW("Softmax", WF_TYPES_FLOAT, softmax, .in_place = 1),
    WF_ROW("LogSoftmax", WF_TYPES_FLOAT, log_softmax, .in_place = 1),
    WF_ROW("SoftmaxGrad", WF_TYPES_FLOAT, softmax_grad, .domain = WF_DOMAIN_WEFT, .in_place = 3),
    WF_ROW("LogSoftmaxGrad", WF_TYPES_FLOAT, log_softmax_grad, .domain = WF_DOMAIN_WEFT,
           .in_place = 3),
    {0},
};
