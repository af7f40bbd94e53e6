/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv.c - Conv, ConvTranspose and their gradients: which way each shape
 * takes.
 */
#include "common/kernels/cpu/nn/conv.h"
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/product/tiles.h"

#include <inttypes.h>
#include <string.h>

/* Channels below which oneDNN would mostly make zeros in gradients of images. */
enum { DATA_CHANNELS = 5 };

static const wf_conv_way *const ways[] = {
    &wf_conv_by_planes,        &wf_conv_by_stacks, &wf_conv_weights_by_stacks, &wf_conv_by_tiles,
    &wf_conv_weights_by_tiles, &wf_conv_by_onednn, &wf_conv_by_columns};

/* The first way of the list that computes a shape is the fastest on all that were measured, but for
 * these (bench/convolutions.c). A matter of shape, threads and processor alone: two runs of a job
 * give the same bits. */
static bool is_slower(const wf_conv_way *way, const wf_conv *v)
{
    return way == &wf_conv_by_onednn &&
           (v->pointwise || (v->pass == WF_CONV_DATA && v->c < DATA_CHANNELS));
}

#define SHIFT(T)                                                                                   \
    WF_MULTIVERSION static void shift_##T(T *y, T value, int64_t n)                                \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] += value;                                                                         \
    }
SHIFT(float)
SHIFT(double)

void wf_conv_add_bias(const wf_conv *v, const wf_conv_tensors *t, int64_t image, int64_t g)
{
    bool maps = v->pass == WF_CONV_FORWARD;
    int64_t planes = maps ? v->m : v->c, size = maps ? v->s.out_size : v->s.in_size;
    char *to = (maps ? t->y : t->x) + wf_conv_bytes(v, (image * v->groups + g) * planes * size);

    for (int64_t i = 0; t->bias && i < planes; i++, to += wf_conv_bytes(v, size)) {
        if (v->dtype == WF_F32)
            shift_float((float *)(void *)to, ((const float *)(const void *)t->bias)[g * planes + i],
                        size);
        else
            shift_double((double *)(void *)to,
                         ((const double *)(const void *)t->bias)[g * planes + i], size);
    }
}

static bool is_pointwise(const wf_spatial *s)
{
    for (uint32_t i = 0; i < WF_WINDOW_AXES; i++)
        if (s->w.kernel[i] != 1 || s->w.stride[i] != 1 || s->w.before[i] || s->w.after[i] ||
            s->in[i] != s->out[i])
            return false;
    return true;
}

static void release(void *state)
{
    const wf_conv *v = state;

    if (v && v->state && v->way->release)
        v->way->release(v->state);
}

static wf_status choose(wf_prep *prep, wf_conv *v, wf_err *err)
{
    for (size_t i = 0; i < WF_COUNT(ways) && !v->state; i++) {
        v->way = ways[i];
        if (!is_slower(v->way, v))
            WF_TRY(v->way->prepare(prep, v, &v->state, err));
    }
    wf_assert(v->state);
    return WF_OK;
}

/* Whether what is of bfloat16 is read beside the weights, by a way that takes it so. */
static bool takes(const wf_conv *v, const wf_tensor *w, const wf_tensor *bias)
{
    bool made = v->pass == WF_CONV_FORWARD ? v->y_is_bf16
                : v->pass == WF_CONV_DATA  ? v->x_is_bf16
                                           : w->dtype == WF_BF16;

    return !made && w->dtype != WF_BF16 && !(bias && bias->dtype == WF_BF16) &&
           ((!v->x_is_bf16 && !v->y_is_bf16) || v->way->takes_bf16);
}

/* x, w and y of the geometry; what of them is only a shape has no data. */
static wf_status make(wf_prep *prep, const wf_tensor *x, const wf_tensor *w, const wf_tensor *y,
                      const wf_tensor *bias, bool transposed, wf_conv_pass pass, wf_err *err)
{
    wf_conv *v = wf_arena_alloc(prep->arena, sizeof *v);
    wf_convolution g;
    int64_t row, columns;

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    WF_TRY(wf_convolution_of(prep->node, x, w, y, transposed, &g, err));
    *v = (wf_conv){.pass = pass,
                   .s = g.s,
                   .dtype = w->dtype,
                   .batch = g.batch,
                   .groups = g.groups,
                   .c = g.c,
                   .m = g.m,
                   .threads = WF_MAX(prep->threads, 1u)};
    v->bf16 = prep->compute == WF_COMPUTE_BF16 && wf_tiles_there();
    v->x_is_bf16 = x->dtype == WF_BF16;
    v->y_is_bf16 = y->dtype == WF_BF16;
    v->pointwise = is_pointwise(&v->s);
    if (!wf_mul_i64(v->c, v->s.taps, &row) || !wf_mul_i64(row, v->s.out[2], &columns) ||
        WF_MAX(WF_MAX(row, columns), WF_MAX(v->s.out_size, v->s.in_size)) > INT32_MAX / 16)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "one row of outputs takes %" PRId64 " channels times %" PRId64
                       " taps, more than weft can multiply at once",
                       v->c, v->s.taps);
    prep->state = v;
    prep->release = release;
    WF_TRY(choose(prep, v, err));
    prep->widens = !takes(v, w, bias);
    return WF_OK;
}

/* bias of the result, or NULL. */
static wf_status go(const wf_run *run, const wf_tensor *x, const wf_tensor *w, const wf_tensor *y,
                    const wf_tensor *bias)
{
    const wf_conv *v = run->state;
    const wf_tensor *made = v->pass == WF_CONV_FORWARD ? y : v->pass == WF_CONV_DATA ? x : w;
    wf_conv_tensors t = {x->data,      w->data,      y->data,
                         v->x_is_bf16, v->y_is_bf16, bias ? bias->data : NULL};

    if (!wf_elems(made))
        return WF_OK;
    if (!wf_elems(x) || !wf_elems(w) || !wf_elems(y))
        memset(made->data, 0, wf_tensor_bytes(made));
    else
        v->way->run(v, run, &t);
    return WF_OK;
}

/* The rows of the table: which of a node's tensors are x, w and y. */
#define KERNEL(name, x, w, y, bias, transposed, pass)                                              \
    static wf_status prepare_##name(wf_prep *prep, const wf_tensor *const in[],                    \
                                    const wf_tensor *const out[], wf_err *err)                     \
    {                                                                                              \
        return make(prep, x, w, y, bias, transposed, pass, err);                                   \
    }                                                                                              \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        (void)err;                                                                                 \
        return go(run, x, w, y, bias);                                                             \
    }
KERNEL(convolve, in[0], in[1], out[0], in[2], false, WF_CONV_FORWARD)
KERNEL(data_grad, out[0], in[1], in[0], NULL, false, WF_CONV_DATA)
KERNEL(weight_grad, in[1], out[0], in[0], NULL, false, WF_CONV_WEIGHTS)
KERNEL(transpose, out[0], in[1], in[0], in[2], true, WF_CONV_DATA)
KERNEL(transpose_data_grad, in[0], in[1], out[0], NULL, true, WF_CONV_FORWARD)
KERNEL(transpose_weight_grad, in[0], out[0], in[1], NULL, true, WF_CONV_WEIGHTS)

#define ROW(op, name, ...)                                                                         \
    WF_ROW(op, WF_TYPES_FLOAT, name, .prepare = prepare_##name, .is_narrow = true, __VA_ARGS__)

const wf_kernel wf_kernels_conv[] = {
    ROW("Conv", convolve),
    ROW("ConvDataGrad", data_grad, .domain = WF_DOMAIN_WEFT),
    ROW("ConvTranspose", transpose),
    ROW("ConvTransposeDataGrad", transpose_data_grad, .domain = WF_DOMAIN_WEFT),
    ROW("ConvTransposeWeightGrad", transpose_weight_grad, .domain = WF_DOMAIN_WEFT),
    ROW("ConvWeightGrad", weight_grad, .domain = WF_DOMAIN_WEFT),
    {0},
};
