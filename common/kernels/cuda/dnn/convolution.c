/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/convolution.c */
#include "common/kernels/cuda/dnn/convolution.h"
#include "common/base/size.h"

enum { RANK = 2 + WF_WINDOW_AXES, SUM = -1 /* what a bias is added to */ };

_Static_assert(RANK <= (int)WF_DNN_MOST_RANK && (int)WF_DNN_TENSORS <= (int)WF_DNN_MOST_TENSORS &&
                   sizeof(wf_dnn_conv) <= WF_DNN_CASE_BYTES,
               "a graph has room for a convolution");

/* ---- cases ---- */

/* cuDNN has engines for two and for three spatial axes: a first axis without extent is left out. */
static uint32_t first_axis(const wf_spatial *s)
{
    return s->in[0] == 1 && s->out[0] == 1 && s->w.kernel[0] == 1 && s->w.before[0] == 0;
}

/* cuDNN derives the outputs from the paddings, and rounds down: several paddings behind lead to the
 * same outputs. That in front is preferred, since most engines want both to be equal. False: the
 * outputs end before the input does by more than a stride. */
static bool set_axis(wf_dnn_conv *c, const wf_spatial *s, uint32_t i, uint32_t to)
{
    int64_t before = s->w.before[i], reach = (s->w.kernel[i] - 1) * s->w.dilation[i] + 1;
    int64_t least = (s->out[i] - 1) * s->w.stride[i] + reach - s->in[i] - before;
    int64_t most = least + s->w.stride[i] - 1;

    c->in[to] = s->in[i];
    c->out[to] = s->out[i];
    c->kernel[to] = s->w.kernel[i];
    c->stride[to] = s->w.stride[i];
    c->dilation[to] = s->w.dilation[i];
    c->before[to] = before;
    c->after[to] = before >= least && before <= most ? before : WF_MAX(least, (int64_t)0);
    return before >= 0 && most >= 0;
}

bool wf_dnn_conv_of(const wf_convolution *v, wf_conv_pass pass, wf_dtype dtype, wf_compute compute,
                    bool adds_bias, wf_dnn_conv *out)
{
    const uint32_t first = first_axis(&v->s);

    *out = (wf_dnn_conv){.pass = pass,
                         .dtype = dtype,
                         .compute = dtype == WF_F32 ? compute : WF_COMPUTE_F32,
                         .adds_bias = adds_bias,
                         .batch = v->batch,
                         .groups = v->groups,
                         .c = v->c,
                         .m = v->m,
                         .axes = WF_WINDOW_AXES - first};
    if (v->batch == 0 || v->c == 0 || v->m == 0 || v->s.in_size == 0 || v->s.out_size == 0 ||
        v->s.taps == 0)
        return false;
    for (uint32_t i = first; i < WF_WINDOW_AXES; i++)
        if (!set_axis(out, &v->s, i, i - first))
            return false;
    return true;
}

/* ---- graphs ---- */

/* That of tensors. */
static int32_t type_of(const wf_dnn_conv *c)
{
    return wf_dnn_type_of((wf_dtype)c->dtype);
}

static int32_t type_of_sums(const wf_dnn_conv *c)
{
    return c->dtype == WF_F64 ? WF_DNN_F64 : WF_DNN_F32;
}

/* Of extents [n, channels, spatial...] without gaps, in the order of the case. */
static void set_strides(const wf_dnn_conv *c, const int64_t dims[RANK], int64_t strides[RANK])
{
    const int64_t rank = 2 + c->axes;
    int64_t stride = c->last ? dims[1] : 1;

    for (int64_t i = rank - 1; i >= 0; i--) {
        if (i == 1 && c->last) {
            strides[i] = 1;
            continue;
        }
        strides[i] = stride;
        stride *= dims[i];
    }
}

/* A tensor [n, channels, spatial...]; spatial NULL: of ones. */
static wf_cuda_descriptor *add_tensor(wf_dnn_builder *b, const wf_dnn_conv *c, int tensor,
                                      int64_t n, int64_t channels, const int64_t spatial[])
{
    const int64_t rank = 2 + c->axes;
    int64_t dims[RANK] = {n, channels}, strides[RANK];

    for (int64_t i = 2; i < rank; i++)
        dims[i] = spatial ? spatial[i - 2] : 1;
    set_strides(c, dims, strides);
    return tensor == SUM ? wf_dnn_inner(b, type_of(c), rank, dims, strides)
                         : wf_dnn_tensor(b, (unsigned)tensor, type_of(c), rank, dims, strides);
}

/* A tensor `as` of the extents of `part`: SUM is of those of the result. */
static wf_cuda_descriptor *add_part(wf_dnn_builder *b, const wf_dnn_conv *c, int part, int as)
{
    switch (part) {
    case WF_DNN_X:
        return add_tensor(b, c, as, c->batch, c->groups * c->c, c->in);
    case WF_DNN_W:
        return add_tensor(b, c, as, c->groups * c->m, c->c, c->kernel);
    default:
        return add_tensor(b, c, as, c->batch, c->groups * c->m, c->out);
    }
}

static wf_cuda_descriptor *add_window(wf_dnn_builder *b, const wf_dnn_conv *c)
{
    wf_cuda_descriptor *d = wf_dnn_make(b, WF_DNN_CONVOLUTION);
    const int32_t type = type_of_sums(c), mode = WF_DNN_CORRELATION;

    wf_dnn_set(b, d, WF_DNN_CONV_TYPE, WF_DNN_IS_DATA_TYPE, 1, &type);
    wf_dnn_set(b, d, WF_DNN_CONV_MODE, WF_DNN_IS_CONV_MODE, 1, &mode);
    wf_dnn_set(b, d, WF_DNN_CONV_AXES, WF_DNN_IS_INT64, 1, &c->axes);
    wf_dnn_set(b, d, WF_DNN_CONV_DILATIONS, WF_DNN_IS_INT64, c->axes, c->dilation);
    wf_dnn_set(b, d, WF_DNN_CONV_STRIDES, WF_DNN_IS_INT64, c->axes, c->stride);
    wf_dnn_set(b, d, WF_DNN_CONV_BEFORE, WF_DNN_IS_INT64, c->axes, c->before);
    wf_dnn_set(b, d, WF_DNN_CONV_AFTER, WF_DNN_IS_INT64, c->axes, c->after);
    wf_dnn_finish(b, d);
    return d;
}

/* The numbers of an operation's attributes. */
typedef struct numbers {
    int kind, alpha, beta, window, parts[3]; /* x, w, y */
    int made;                                /* which of the parts is */
} numbers;

static const numbers of_pass[] = {
    [WF_CONV_FORWARD] = {WF_DNN_DO_FORWARD,
                         WF_DNN_FORWARD_ALPHA,
                         WF_DNN_FORWARD_BETA,
                         WF_DNN_FORWARD_CONV,
                         {WF_DNN_FORWARD_X, WF_DNN_FORWARD_W, WF_DNN_FORWARD_Y},
                         WF_DNN_Y},
    [WF_CONV_DATA] = {WF_DNN_DO_DATA,
                      WF_DNN_DATA_ALPHA,
                      WF_DNN_DATA_BETA,
                      WF_DNN_DATA_CONV,
                      {WF_DNN_DATA_X, WF_DNN_DATA_W, WF_DNN_DATA_Y},
                      WF_DNN_X},
    [WF_CONV_WEIGHTS] = {WF_DNN_DO_WEIGHTS,
                         WF_DNN_WEIGHTS_ALPHA,
                         WF_DNN_WEIGHTS_BETA,
                         WF_DNN_WEIGHTS_CONV,
                         {WF_DNN_WEIGHTS_X, WF_DNN_WEIGHTS_W, WF_DNN_WEIGHTS_Y},
                         WF_DNN_W},
};

static void set_factor(wf_dnn_builder *b, const wf_dnn_conv *c, wf_cuda_descriptor *d,
                       int attribute, double value)
{
    const float f = (float)value;

    if (c->dtype != WF_F64)
        wf_dnn_set(b, d, attribute, WF_DNN_IS_FLOAT, 1, &f);
    else
        wf_dnn_set(b, d, attribute, WF_DNN_IS_DOUBLE, 1, &value);
}

static wf_cuda_descriptor *add_convolution(wf_dnn_builder *b, const wf_dnn_conv *c,
                                           wf_cuda_descriptor **made)
{
    const numbers *n = &of_pass[c->pass];
    wf_cuda_descriptor *parts[3], *window, *d;

    for (int i = 0; i < 3; i++)
        parts[i] = add_part(b, c, i, c->adds_bias && i == n->made ? SUM : i);
    window = add_window(b, c);
    d = wf_dnn_make(b, n->kind);
    for (int i = 0; i < 3; i++)
        wf_dnn_set_descriptor(b, d, n->parts[i], parts[i]);
    wf_dnn_set_descriptor(b, d, n->window, window);
    set_factor(b, c, d, n->alpha, 1);
    set_factor(b, c, d, n->beta, 0);
    wf_dnn_finish(b, d);
    *made = parts[n->made];
    return d;
}

static wf_cuda_descriptor *add_bias(wf_dnn_builder *b, const wf_dnn_conv *c,
                                    wf_cuda_descriptor *sum)
{
    const int part = of_pass[c->pass].made;
    const int32_t type = type_of_sums(c), mode = WF_DNN_ADD;
    const int64_t channels = c->groups * (part == WF_DNN_X ? c->c : c->m);
    wf_cuda_descriptor *bias = add_tensor(b, c, WF_DNN_BIAS, 1, channels, NULL);
    wf_cuda_descriptor *made = add_part(b, c, part, part);
    wf_cuda_descriptor *how = wf_dnn_make(b, WF_DNN_POINTWISE), *d;

    wf_dnn_set(b, how, WF_DNN_POINTWISE_MODE, WF_DNN_IS_POINTWISE_MODE, 1, &mode);
    wf_dnn_set(b, how, WF_DNN_POINTWISE_TYPE, WF_DNN_IS_DATA_TYPE, 1, &type);
    wf_dnn_finish(b, how);
    d = wf_dnn_make(b, WF_DNN_DO_POINTWISE);
    wf_dnn_set_descriptor(b, d, WF_DNN_EACH_POINTWISE, how);
    wf_dnn_set_descriptor(b, d, WF_DNN_EACH_X, sum);
    wf_dnn_set_descriptor(b, d, WF_DNN_EACH_B, bias);
    wf_dnn_set_descriptor(b, d, WF_DNN_EACH_Y, made);
    wf_dnn_finish(b, d);
    return d;
}

static int build(const wf_cuda_calls *calls, wf_cuda_dnn *dnn, const void *of, wf_dnn_graph *g)
{
    const wf_dnn_conv *c = of;
    wf_dnn_builder b = wf_dnn_build(calls, g);
    wf_cuda_descriptor *operations[2], *made;

    operations[0] = add_convolution(&b, c, &made);
    if (c->adds_bias)
        operations[1] = add_bias(&b, c, made);
    return wf_dnn_end(&b, dnn, c->adds_bias ? WF_DNN_TENSORS : WF_DNN_BIAS, 1 + c->adds_bias,
                      operations);
}

/* Narrow factors are multiplied by tensor cores; their sums are not rounded, as those of f32 are
 * not whose factors may be. */
wf_dnn_asked wf_dnn_ask_conv(const wf_dnn_conv *c)
{
    const wf_compute compute = c->dtype == WF_BF16  ? WF_COMPUTE_BF16
                               : c->dtype == WF_F16 ? WF_COMPUTE_F16
                                                    : (wf_compute)c->compute;

    return (wf_dnn_asked){.kind = "cuDNN convolution",
                          .of = c,
                          .bytes = sizeof *c,
                          .build = build,
                          .rounding = {c->dtype != WF_F64, compute},
                          .most_compiled = 1};
}
