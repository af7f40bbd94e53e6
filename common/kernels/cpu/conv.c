/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/conv.c - Conv, ConvTranspose and their gradients.
 *
 * All six are three computations on one geometry, from images x [batch, groups c, in...] through
 * weights w [groups m, c, taps...] to maps y [batch, groups m, out...]:
 *
 *   forward   y = w * x     Conv, ConvTransposeDataGrad
 *   data      x from y, w   ConvDataGrad, ConvTranspose
 *   weights   w from x, y   ConvWeightGrad, ConvTransposeWeightGrad
 *
 * by matrix products over columns.h, in blocks of output rows whose columns stay in the second
 * cache; without columns where each output reads one element of each channel (1x1); and directly
 * where each map reads one channel (depthwise). Work is split by images, for weights by channels or
 * maps, so that sums never depend on threads.
 *
 * On processors with AVX-512 f32 goes through oneDNN instead where it wins: a few images at a time,
 * so that changing layouts happens in cache.
 */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/blas.h"
#include "common/kernels/cpu/columns.h"
#include "common/kernels/cpu/conv_rows.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/onednn.h"
#include "common/kernels/cpu/onednn_conv.h"

#include <inttypes.h>
#include <string.h>

/* Bytes of columns that a block may have: half of a second cache. */
#define BLOCK_BYTES ((size_t)1 << 20)
/* Channels times maps below which the columns' way is as fast. */
enum { ONEDNN_LEAST = 32, MOST_SUMS = 16 };
/* Outputs along a map up to which bfloat16 goes by conv_rows.h; oneDNN 2.6 fills its tiles along
 * them, and its gradients of weights are the worst at that (bench/models.py --bf16). */
enum { ROWS_MOST = 4, ROWS_MOST_FOR_WEIGHTS = 16 };
/* Fewer channels than these would mostly be multiplied as zeros in bfloat16. */
enum { BF16_CHANNELS = 16 };

typedef struct conv {
    wf_spatial s;
    wf_dtype dtype;
    int64_t batch, groups, c, m; /* channels and maps of one group */
    int64_t rows;                /* of outputs in a block */
    int64_t parts;               /* that have room for columns of their own */
    size_t columns_bytes;        /* of one part, a multiple of 64 */
    bool pointwise, depthwise, bf16;
    wf_conv_rows *in_rows; /* bfloat16 and small maps; or NULL */
    /* Through oneDNN, a few images at a time: one convolution for each part, or NULL. */
    wf_onednn_conv **chunks; /* [parts] */
    int64_t chunk;           /* images at a time */
    size_t chunk_bytes;      /* workspace of one part */
    size_t packed_bytes;     /* of the weights, before the parts' workspace; for gradients of
                              * weights once for each chunk */
} conv;

typedef struct job {
    const conv *v;
    const char *x, *w, *y; /* what the computation reads */
    const char *bias;      /* [groups m], or NULL */
    char *out;             /* what it makes */
    char *columns;         /* of all parts */
    int64_t n;             /* what is split into parts */
    bool by_maps;          /* weights: n counts maps, not channels */
    wf_onednn_way way;
} job;

static size_t bytes_of(const conv *v, int64_t elems)
{
    return (size_t)elems * wf_dtype_size(v->dtype);
}

static void product(const conv *v, wf_strided_product p)
{
    p.dtype = v->dtype;
    wf_product_strided(&p);
}

#define DIRECT(T)                                                                                  \
    WF_MULTIVERSION static void fill_##T(T *y, T value, int64_t n)                                 \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = value;                                                                          \
    }                                                                                              \
    WF_MULTIVERSION static void shift_##T(T *y, T value, int64_t n)                                \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] += value;                                                                         \
    }                                                                                              \
    /* y[i] += w x[i step] */                                                                      \
    WF_MULTIVERSION static void gather_##T(T w, const T *x, int64_t step, T *y, int64_t n)         \
    {                                                                                              \
        if (step == 1)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] += w * x[i];                                                                  \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] += w * x[i * step];                                                           \
    }                                                                                              \
    /* x[i step] += w y[i] */                                                                      \
    WF_MULTIVERSION static void scatter_##T(T w, const T *y, T *x, int64_t step, int64_t n)        \
    {                                                                                              \
        if (step == 1)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i] += w * y[i];                                                                  \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i * step] += w * y[i];                                                           \
    }                                                                                              \
    WF_MULTIVERSION static T dot_##T(const T *x, int64_t step, const T *y, int64_t n)              \
    {                                                                                              \
        T lane[8] = {0}, sum = 0;                                                                  \
        int64_t i = 0;                                                                             \
                                                                                                   \
        if (step == 1)                                                                             \
            for (; i + 8 <= n; i += 8)                                                             \
                for (int k = 0; k < 8; k++)                                                        \
                    lane[k] += x[i + k] * y[i + k];                                                \
        for (; i < n; i++)                                                                         \
            sum += x[i * step] * y[i];                                                             \
        for (int k = 0; k < 8; k++)                                                                \
            sum += lane[k];                                                                        \
        return sum;                                                                                \
    }                                                                                              \
    static void depthwise_##T(const wf_spatial *s, const T *w, const T *in, T *out, int way)       \
    {                                                                                              \
        for (int64_t k = 0; k < s->taps; k++) {                                                    \
            int64_t kw = k % s->w.kernel[2], kh = k / s->w.kernel[2] % s->w.kernel[1];             \
            int64_t kd = k / s->w.kernel[2] / s->w.kernel[1], lo, hi, step = s->w.stride[2];       \
                                                                                                   \
            wf_spatial_inside(s, 2, kw, &lo, &hi);                                                 \
            for (int64_t r = 0; r < s->out[0] * s->out[1]; r++) {                                  \
                int64_t d = wf_spatial_at(s, 0, r / s->out[1], kd);                                \
                int64_t h = wf_spatial_at(s, 1, r % s->out[1], kh);                                \
                int64_t x, y = r * s->out[2] + lo;                                                 \
                                                                                                   \
                if (d < 0 || d >= s->in[0] || h < 0 || h >= s->in[1] || lo == hi)                  \
                    continue;                                                                      \
                x = (d * s->in[1] + h) * s->in[2] + wf_spatial_at(s, 2, lo, kw);                   \
                if (way == FORWARD)                                                                \
                    gather_##T(w[k], in + x, step, out + y, hi - lo);                              \
                else if (way == DATA)                                                              \
                    scatter_##T(w[k], in + y, out + x, step, hi - lo);                             \
                else /* in: x, w: y */                                                             \
                    out[k] += dot_##T(in + x, step, w + y, hi - lo);                               \
            }                                                                                      \
        }                                                                                          \
    }
enum { FORWARD, DATA, WEIGHTS };
DIRECT(float)
DIRECT(double)

/* One plane; way says what `a` and `in` are: the weights or, for WEIGHTS, the maps. */
static void depthwise(const conv *v, const char *a, const char *in, char *out, int way)
{
    if (v->dtype == WF_F32)
        depthwise_float(&v->s, (const float *)a, (const float *)in, (float *)out, way);
    else
        depthwise_double(&v->s, (const double *)a, (const double *)in, (double *)out, way);
}

/* Columns [first, first + n) of m maps from y + their bias. */
static void add_bias(const conv *v, const char *bias, int64_t g, char *y, int64_t n, bool fill)
{
    for (int64_t m = 0; m < v->m; m++, y += bytes_of(v, v->s.out_size)) {
        if (v->dtype == WF_F32)
            (fill ? fill_float : shift_float)((float *)y, ((const float *)bias)[g * v->m + m], n);
        else
            (fill ? fill_double : shift_double)((double *)y, ((const double *)bias)[g * v->m + m],
                                                n);
    }
}

static int64_t part_begin(const job *j, int64_t part)
{
    return j->n / j->v->parts * part + WF_MIN(j->n % j->v->parts, part);
}

/* Calls for each part its range of j->n. */
typedef void part_fn(const job *j, int64_t begin, int64_t end, char *columns);

static void forward_one(const job *j, int64_t image, int64_t g, char *columns)
{
    const conv *v = j->v;
    int64_t taps = v->c * v->s.taps, all = v->s.out[0] * v->s.out[1];
    const char *x = j->x + bytes_of(v, (image * v->groups + g) * v->c * v->s.in_size);
    const char *w = j->w + bytes_of(v, g * v->m * taps);
    char *y = j->out + bytes_of(v, (image * v->groups + g) * v->m * v->s.out_size);

    if (v->depthwise) {
        memset(y, 0, bytes_of(v, v->s.out_size));
        if (j->bias)
            add_bias(v, j->bias, g, y, v->s.out_size, true);
        depthwise(v, w, x, y, FORWARD);
        return;
    }
    for (int64_t r = 0; r < all; r += v->rows) {
        wf_columns c = {&v->s, v->dtype, v->c, r, WF_MIN(r + v->rows, all)};
        int64_t n = (c.last - r) * v->s.out[2], at = r * v->s.out[2];
        const char *b = v->pointwise ? x + bytes_of(v, at) : columns;

        if (!v->pointwise)
            wf_columns_of(&c, x, columns);
        product(v, (wf_strided_product){.m = v->m,
                                        .n = n,
                                        .k = taps,
                                        .a = w,
                                        .b = b,
                                        .c = y + bytes_of(v, at),
                                        .lda = taps,
                                        .ldb = v->pointwise ? v->s.in_size : n,
                                        .ldc = v->s.out_size});
        if (j->bias)
            add_bias(v, j->bias, g, y + bytes_of(v, at), n, false);
    }
}

static void forward_part(const job *j, int64_t begin, int64_t end, char *columns)
{
    for (int64_t i = begin; i < end; i++)
        forward_one(j, i / j->v->groups, i % j->v->groups, columns);
}

static void data_one(const job *j, int64_t image, int64_t g, char *columns)
{
    const conv *v = j->v;
    int64_t taps = v->c * v->s.taps, all = v->s.out[0] * v->s.out[1];
    const char *y = j->y + bytes_of(v, (image * v->groups + g) * v->m * v->s.out_size);
    const char *w = j->w + bytes_of(v, g * v->m * taps);
    char *x = j->out + bytes_of(v, (image * v->groups + g) * v->c * v->s.in_size);

    if (!v->pointwise || v->depthwise) /* these add to it */
        memset(x, 0, bytes_of(v, v->c * v->s.in_size));
    if (v->depthwise) {
        depthwise(v, w, y, x, DATA);
        return;
    }
    for (int64_t r = 0; r < all; r += v->rows) {
        wf_columns c = {&v->s, v->dtype, v->c, r, WF_MIN(r + v->rows, all)};
        int64_t n = (c.last - r) * v->s.out[2], at = r * v->s.out[2];

        product(v, (wf_strided_product){.trans_a = true,
                                        .m = taps,
                                        .n = n,
                                        .k = v->m,
                                        .a = w,
                                        .b = y + bytes_of(v, at),
                                        .c = v->pointwise ? x + bytes_of(v, at) : columns,
                                        .lda = taps,
                                        .ldb = v->s.out_size,
                                        .ldc = v->pointwise ? v->s.in_size : n});
        if (!v->pointwise)
            wf_columns_add(&c, columns, x);
    }
}

/* ConvTranspose: a bias for each channel of x. */
static void data_bias(const job *j, int64_t image, int64_t g)
{
    const conv *v = j->v;

    for (int64_t c = g * v->c; c < (g + 1) * v->c; c++) {
        char *x = j->out + bytes_of(v, (image * v->groups * v->c + c) * v->s.in_size);

        if (v->dtype == WF_F32)
            shift_float((float *)x, ((const float *)j->bias)[c], v->s.in_size);
        else
            shift_double((double *)x, ((const double *)j->bias)[c], v->s.in_size);
    }
}

static void data_part(const job *j, int64_t begin, int64_t end, char *columns)
{
    for (int64_t i = begin; i < end; i++) {
        data_one(j, i / j->v->groups, i % j->v->groups, columns);
        if (j->bias)
            data_bias(j, i / j->v->groups, i % j->v->groups);
    }
}

/* Maps [m0, m1) and channels [c0, c1) of group g. */
typedef struct patch {
    int64_t g, m0, m1, c0, c1;
} patch;

static void weights_block(const job *j, const patch *p, int64_t image, int64_t r, char *columns,
                          bool first)
{
    const conv *v = j->v;
    int64_t taps = v->c * v->s.taps, all = v->s.out[0] * v->s.out[1];
    wf_columns c = {&v->s, v->dtype, p->c1 - p->c0, r, WF_MIN(r + v->rows, all)};
    int64_t n = (c.last - r) * v->s.out[2], at = r * v->s.out[2];
    const char *x = j->x + bytes_of(v, ((image * v->groups + p->g) * v->c + p->c0) * v->s.in_size);
    const char *y =
        j->y + bytes_of(v, ((image * v->groups + p->g) * v->m + p->m0) * v->s.out_size + at);

    if (!v->pointwise)
        wf_columns_of(&c, x, columns);
    product(v, (wf_strided_product){
                   .trans_b = true,
                   .m = p->m1 - p->m0,
                   .n = c.channels * v->s.taps,
                   .k = n,
                   .a = y,
                   .b = v->pointwise ? x + bytes_of(v, at) : columns,
                   .c = j->out + bytes_of(v, (p->g * v->m + p->m0) * taps + p->c0 * v->s.taps),
                   .lda = v->s.out_size,
                   .ldb = v->pointwise ? v->s.in_size : n,
                   .ldc = taps,
                   .beta = first ? 0.0 : 1.0});
}

static void weights_patch(const job *j, const patch *p, char *columns)
{
    const conv *v = j->v;
    int64_t all = v->s.out[0] * v->s.out[1];

    for (int64_t image = 0; image < v->batch; image++)
        for (int64_t r = 0; r < all; r += v->rows)
            weights_block(j, p, image, r, columns, image == 0 && r == 0);
}

static void weights_part(const job *j, int64_t begin, int64_t end, char *columns)
{
    const conv *v = j->v;
    int64_t each = j->by_maps ? v->m : v->c;

    if (v->depthwise) {
        for (int64_t g = begin; g < end; g++) {
            char *w = j->out + bytes_of(v, g * v->s.taps);

            memset(w, 0, bytes_of(v, v->s.taps));
            for (int64_t i = 0; i < v->batch; i++)
                depthwise(v, j->y + bytes_of(v, (i * v->groups + g) * v->s.out_size),
                          j->x + bytes_of(v, (i * v->groups + g) * v->s.in_size), w, WEIGHTS);
        }
        return;
    }
    for (int64_t g = begin / WF_MAX(each, (int64_t)1); g < v->groups && g * each < end; g++) {
        int64_t from = WF_MAX(begin - g * each, (int64_t)0), to = WF_MIN(end - g * each, each);
        patch p = j->by_maps ? (patch){g, from, to, 0, v->c} : (patch){g, 0, v->m, from, to};

        weights_patch(j, &p, columns);
    }
}

#define RANGE(name)                                                                                \
    static void name##_range(void *arg, int64_t begin, int64_t end)                                \
    {                                                                                              \
        const job *j = arg;                                                                        \
                                                                                                   \
        for (int64_t p = begin; p < end; p++)                                                      \
            name##_part(j, part_begin(j, p), part_begin(j, p + 1),                                 \
                        j->columns + (size_t)p * j->v->columns_bytes);                             \
    }
RANGE(forward)
RANGE(data)
RANGE(weights)

static wf_status run_job(const wf_run *run, job *j, wf_pool_fn *fn)
{
    j->columns = run->workspace;
    wf_pool_for(run->pool, j->v->parts, 1, fn, j);
    return WF_OK;
}

/* Part p does its share of the chunks, each into its own place: what a chunk holds is a matter of
 * the shape, so sums do not depend on the parts. */
static void chunk_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const conv *v = j->v;

    for (int64_t p = begin; p < end; p++) {
        char *room = j->columns + v->packed_bytes + (size_t)p * v->chunk_bytes;

        for (int64_t k = part_begin(j, p); k < part_begin(j, p + 1); k++) {
            size_t x = bytes_of(v, k * v->chunk * v->c * v->s.in_size);
            size_t y = bytes_of(v, k * v->chunk * v->m * v->s.out_size);
            const char *images = j->way == WF_ONEDNN_DATA ? j->out : j->x;
            const char *maps = j->way == WF_ONEDNN_FORWARD ? j->out : j->y;
            char *packed = j->columns;

            if (j->way == WF_ONEDNN_WEIGHTS)
                packed += (size_t)k * wf_align_up(wf_onednn_conv_packed(v->chunks[p]), 64);
            wf_onednn_conv_run(v->chunks[p], (float *)(uintptr_t)(images + x), packed,
                               (float *)(uintptr_t)(maps + y), room);
            for (int64_t i = k * v->chunk;
                 j->way == WF_ONEDNN_FORWARD && j->bias && i < (k + 1) * v->chunk; i++)
                add_bias(v, j->bias, 0, j->out + bytes_of(v, i * v->m * v->s.out_size),
                         v->s.out_size, false);
            for (int64_t i = k * v->chunk;
                 j->way == WF_ONEDNN_DATA && j->bias && i < (k + 1) * v->chunk; i++)
                data_bias(j, i, 0);
        }
    }
}

WF_MULTIVERSION static void add_all(const float *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

/* Adds the chunks' weights [begin, end) up, in order. */
static void sum_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    size_t packed = wf_align_up(wf_onednn_conv_packed(j->v->chunks[0]), 64);

    for (int64_t k = 1; k < j->n; k++)
        add_all((const float *)(const void *)(j->columns + (size_t)k * packed) + begin,
                (float *)(void *)j->columns + begin, end - begin);
}

static wf_status run_chunks(const wf_run *run, job *j, wf_onednn_way way)
{
    const conv *v = j->v;

    j->way = way;
    j->columns = run->workspace;
    j->n = v->batch / v->chunk;
    if (way != WF_ONEDNN_WEIGHTS)
        wf_onednn_conv_pack(v->chunks[0], (const float *)(const void *)j->w, j->columns);
    wf_pool_for(run->pool, v->parts, 1, chunk_range, j);
    if (way == WF_ONEDNN_WEIGHTS) {
        int64_t n = (int64_t)(wf_onednn_conv_packed(v->chunks[0]) / sizeof(float));

        wf_pool_for(run->pool, n, WF_GRAIN, sum_range, j);
        wf_onednn_conv_unpack(v->chunks[0], j->columns, (float *)(void *)j->out);
    }
    return WF_OK;
}

static wf_status run_rows(const wf_run *run, const job *j, void *x, void *w, void *y)
{
    const conv *v = j->v;

    wf_conv_rows_go(v->in_rows, run, x, w, y);
    for (int64_t i = 0; j->bias && i < v->batch; i++) {
        if (j->out == y)
            add_bias(v, j->bias, 0, j->out + bytes_of(v, i * v->m * v->s.out_size), v->s.out_size,
                     false);
        else
            data_bias(j, i, 0);
    }
    return WF_OK;
}

static wf_status do_forward(const wf_run *run, const wf_tensor *x, const wf_tensor *w,
                            const wf_tensor *bias, wf_tensor *y)
{
    const conv *v = run->state;
    job j = {.v = v, .x = x->data, .w = w->data, .bias = bias ? bias->data : NULL, .out = y->data};

    j.n = v->batch * v->groups;
    if (v->in_rows)
        return run_rows(run, &j, x->data, w->data, y->data);
    if (v->chunks)
        return run_chunks(run, &j, WF_ONEDNN_FORWARD);
    return wf_elems(y) ? run_job(run, &j, forward_range) : WF_OK;
}

static wf_status do_data(const wf_run *run, const wf_tensor *y, const wf_tensor *w,
                         const wf_tensor *bias, wf_tensor *x)
{
    const conv *v = run->state;
    job j = {.v = v, .y = y->data, .w = w->data, .bias = bias ? bias->data : NULL, .out = x->data};

    j.n = v->batch * v->groups;
    if (v->in_rows)
        return run_rows(run, &j, x->data, w->data, y->data);
    if (v->chunks)
        return run_chunks(run, &j, WF_ONEDNN_DATA);
    return wf_elems(x) ? run_job(run, &j, data_range) : WF_OK;
}

static wf_status do_weights(const wf_run *run, const wf_tensor *y, const wf_tensor *x, wf_tensor *w)
{
    const conv *v = run->state;
    job j = {.v = v, .y = y->data, .x = x->data, .out = w->data};

    if (v->in_rows)
        return run_rows(run, &j, x->data, w->data, y->data);
    if (v->chunks)
        return run_chunks(run, &j, WF_ONEDNN_WEIGHTS);
    if (!wf_elems(w))
        return WF_OK;
    if (!wf_elems(x) || !wf_elems(y)) {
        memset(w->data, 0, wf_tensor_bytes(w));
        return WF_OK;
    }
    j.by_maps = v->groups * v->c < v->parts && v->c < v->m;
    j.n = v->groups * (j.by_maps ? v->m : v->c);
    return run_job(run, &j, weights_range);
}

static bool is_pointwise(const wf_spatial *s)
{
    for (uint32_t i = 0; i < WF_WINDOW_AXES; i++)
        if (s->w.kernel[i] != 1 || s->w.stride[i] != 1 || s->w.before[i] || s->w.after[i] ||
            s->in[i] != s->out[i])
            return false;
    return true;
}

/* A rule of shape and processor alone: two runs of a job give the same bits. */
static bool wants_onednn(const conv *v)
{
    return v->dtype == WF_F32 && v->groups == 1 && v->s.in[0] == 1 && v->s.out[0] == 1 &&
           v->s.w.kernel[0] == 1 && (!v->pointwise || v->bf16) && v->batch > 0 &&
           v->s.in_size > 0 && v->s.out_size > 0 && v->c > 0 && v->m > 0 &&
           v->c * v->m >= ONEDNN_LEAST && wf_onednn_has_f32();
}

/* The most images, of a number that divides the batch, whose data stay in the second cache; at most
 * a quarter of the batch, for there to be something to split. For gradients of weights, of which
 * each chunk has its own, an eighth or a quarter of the batch, by their size. */
static int64_t images_at_a_time(const conv *v, wf_onednn_way way)
{
    int64_t each = (int64_t)bytes_of(v, v->c * v->s.in_size + v->m * v->s.out_size);
    int64_t most = WF_MAX((int64_t)BLOCK_BYTES / WF_MAX(each, (int64_t)1), (int64_t)1), n;

    n = WF_MIN(most, WF_MAX(v->batch / 4, (int64_t)1));
    if (way == WF_ONEDNN_WEIGHTS)
        n = WF_MAX(v->batch / (bytes_of(v, v->m * v->c * v->s.taps) < BLOCK_BYTES ? 8 : 4),
                   (int64_t)1);
    while (v->batch % n)
        n--;
    return n;
}

static void drop_chunks(conv *v)
{
    for (int64_t p = 0; v->chunks && p < v->parts; p++)
        wf_onednn_conv_free(v->chunks[p]);
    v->chunks = NULL;
}

static void release(void *state)
{
    conv *v = state;

    if (!v)
        return;
    drop_chunks(v);
    wf_conv_rows_release(v->in_rows);
}

static wf_status prepare_onednn(wf_prep *prep, conv *v, wf_onednn_way way, wf_err *err)
{
    wf_onednn_conv_shape s = {.way = way, .c = v->c, .m = v->m, .bf16 = v->bf16};
    size_t packed, bytes;

    if (!wants_onednn(v))
        return WF_OK;
    for (int i = 0; i < 2; i++) {
        s.in[i] = v->s.in[i + 1];
        s.out[i] = v->s.out[i + 1];
        s.kernel[i] = v->s.w.kernel[i + 1];
        s.stride[i] = v->s.w.stride[i + 1];
        s.dilation[i] = v->s.w.dilation[i + 1];
        s.before[i] = v->s.w.before[i + 1];
    }
    prep->release = release;
    if (v->bf16 && s.out[1] <= (way == WF_ONEDNN_WEIGHTS ? ROWS_MOST_FOR_WEIGHTS : ROWS_MOST)) {
        s.images = v->batch;
        WF_TRY(wf_conv_rows_prepare(prep, &s, &v->in_rows, err));
        if (v->in_rows)
            return WF_OK;
    }
    s.images = v->chunk = images_at_a_time(v, way);
    if (way == WF_ONEDNN_WEIGHTS && v->batch / v->chunk > MOST_SUMS)
        return WF_OK; /* a batch that divides badly */
    v->chunks = wf_arena_array(prep->arena, (size_t)v->parts, sizeof v->chunks[0]);
    if (!v->chunks)
        return wf_fail_nomem(err, (size_t)v->parts * sizeof v->chunks[0]);
    memset(v->chunks, 0, (size_t)v->parts * sizeof v->chunks[0]);
    for (int64_t p = 0; p < v->parts; p++) {
        v->chunks[p] = wf_onednn_conv_new(&s);
        if (!v->chunks[p]) {
            drop_chunks(v);
            return WF_OK;
        }
    }
    packed = wf_align_up(wf_onednn_conv_packed(v->chunks[0]), 64);
    v->packed_bytes = way == WF_ONEDNN_WEIGHTS ? packed * (size_t)(v->batch / v->chunk) : packed;
    v->chunk_bytes = wf_onednn_conv_workspace(v->chunks[0]);
    bytes = v->packed_bytes + (size_t)v->parts * v->chunk_bytes;
    prep->workspace_bytes = bytes;
    return WF_OK;
}

/* x, w and y of the geometry; what of them is only a shape has no data. */
static wf_status make(wf_prep *prep, const wf_tensor *x, const wf_tensor *w, const wf_tensor *y,
                      bool transposed, wf_onednn_way way, wf_err *err)
{
    conv *v = wf_arena_alloc(prep->arena, sizeof *v);
    int64_t group = wf_node_int(prep->node, "group", 1), row, columns;
    size_t bytes;

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    memset(v, 0, sizeof *v);
    if (transposed)
        WF_TRY(wf_spatial_transposed(prep->node, y, x, w, &v->s, err));
    else
        WF_TRY(wf_spatial_of(prep->node, x, y, w, &v->s, err));
    v->dtype = w->dtype;
    v->batch = x->dims[0];
    v->groups = group;
    if (group < 1 || y->dims[0] != v->batch || w->dims[1] * group != x->dims[1] ||
        w->dims[0] != y->dims[1] || w->dims[0] % group)
        return wf_fail(err, WF_SHAPE, NULL, "data, weights and result do not fit each other");
    v->c = w->dims[1];
    v->m = w->dims[0] / group;
    v->bf16 = prep->bf16 && v->c >= BF16_CHANNELS && wf_onednn_has_bf16();
    if (!wf_mul_i64(v->c, v->s.taps, &row) || !wf_mul_i64(row, v->s.out[2], &columns) ||
        WF_MAX(WF_MAX(row, columns), WF_MAX(v->s.out_size, v->s.in_size)) > INT32_MAX / 16)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "one row of outputs takes %" PRId64 " channels times %" PRId64
                       " taps, more than weft can multiply at once",
                       v->c, v->s.taps);
    v->pointwise = is_pointwise(&v->s);
    v->depthwise = v->c == 1 && v->m == 1 && v->groups > 1;
    v->rows = WF_MAX((int64_t)(BLOCK_BYTES / WF_MAX(bytes_of(v, columns), (size_t)1)), (int64_t)1);
    v->rows = WF_MIN(v->rows, WF_MAX(v->s.out[0] * v->s.out[1], (int64_t)1));
    v->parts = WF_MAX(prep->threads, 1u);
    if (!v->pointwise && !v->depthwise)
        v->columns_bytes = wf_align_up(bytes_of(v, columns * v->rows), 64);
    if (!wf_mul_size(v->columns_bytes, (size_t)v->parts, &bytes))
        return wf_fail_nomem(err, SIZE_MAX);
    prep->workspace_bytes = bytes;
    prep->state = v;
    return prepare_onednn(prep, v, way, err);
}

/* The rows of the table: which of a node's tensors are x, w and y. */
#define KERNEL(name, x, w, y, transposed, way, call)                                               \
    static wf_status prepare_##name(wf_prep *prep, const wf_tensor *const in[],                    \
                                    const wf_tensor *const out[], wf_err *err)                     \
    {                                                                                              \
        return make(prep, x, w, y, transposed, way, err);                                          \
    }                                                                                              \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        (void)err;                                                                                 \
        return call;                                                                               \
    }
KERNEL(convolve, in[0], in[1], out[0], false, WF_ONEDNN_FORWARD,
       do_forward(run, in[0], in[1], in[2], out[0]))
KERNEL(data_grad, out[0], in[1], in[0], false, WF_ONEDNN_DATA,
       do_data(run, in[0], in[1], NULL, out[0]))
KERNEL(weight_grad, in[1], out[0], in[0], false, WF_ONEDNN_WEIGHTS,
       do_weights(run, in[0], in[1], out[0]))
KERNEL(transpose, out[0], in[1], in[0], true, WF_ONEDNN_DATA,
       do_data(run, in[0], in[1], in[2], out[0]))
KERNEL(transpose_data_grad, in[0], in[1], out[0], true, WF_ONEDNN_FORWARD,
       do_forward(run, in[0], in[1], NULL, out[0]))
KERNEL(transpose_weight_grad, in[0], out[0], in[1], true, WF_ONEDNN_WEIGHTS,
       do_weights(run, in[1], in[0], out[0]))

#define ROW(op, name, ...) WF_ROW(op, WF_TYPES_FLOAT, name, .prepare = prepare_##name, __VA_ARGS__)

const wf_kernel wf_kernels_conv[] = {
    ROW("Conv", convolve),
    ROW("ConvDataGrad", data_grad, .domain = WF_DOMAIN_WEFT),
    ROW("ConvTranspose", transpose),
    ROW("ConvTransposeDataGrad", transpose_data_grad, .domain = WF_DOMAIN_WEFT),
    ROW("ConvTransposeWeightGrad", transpose_weight_grad, .domain = WF_DOMAIN_WEFT),
    ROW("ConvWeightGrad", weight_grad, .domain = WF_DOMAIN_WEFT),
    {0},
};
