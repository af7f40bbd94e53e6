/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/conv.cu - Conv, ConvTranspose and their gradients: by cuDNN where it is
 * and computes the case, else by kernels that take every shape: a thread adds up one element of the
 * maps or of the images, or one weight over some of the rows of outputs; these pieces are joined in
 * their order. shape/convolution.h has the geometry.
 *
 * Where a tensor is narrow cuDNN computes in tensors of its type alone, and makes results of it:
 * those of float32 are rounded into the workspace first, or come out of it. Without an engine for
 * that all is widened around what computes float32.
 */
#include "common/kernels/cuda/nn/window.h"
extern "C" {
#include "common/kernels/cuda/dnn/convolution.h"
#include "common/kernels/cuda/dnn/way.h"
#include "common/kernels/shape/convolution.h"
}

namespace
{

/* Sums of weights: threads that add at a time, and rows of outputs that are worth one. */
enum { WEIGHT_THREADS = 1 << 18, PIECE_ROWS = 16 };

/* The parts of a pass, as WF_DNN_X, WF_DNN_W and WF_DNN_Y count them. */
enum { PARTS = 3 };

struct plan {
    wf_convolution v;
    wf_dnn_way *way;    /* nullptr: the kernels here compute, and what follows is of them */
    bool bias_after;    /* the way does not add the bias */
    wf_dtype narrow;    /* of all tensors of the way; WF_NONE: they are those of the node */
    bool copies[PARTS]; /* parts of another type, which have a copy in the workspace */
    size_t at[PARTS];   /* there */
    int64_t weights, rows, pieces, piece_rows; /* rows: of outputs, in all images */
    size_t sums;                               /* in the workspace: [pieces, weights] */
};

template <class T>
__global__ void make_maps(wf_convolution v, const T *x, const T *w, const T *bias, T *y)
{
    const int64_t maps = v.groups * v.m;

    for (int64_t e = wf_first(); e < v.batch * maps * v.s.out_size; e += wf_all()) {
        int64_t map = e / v.s.out_size % maps, image = e / v.s.out_size / maps;
        const T *from = x + (image * v.groups + map / v.m) * v.c * v.s.in_size;
        const T *weights = w + map * v.c * v.s.taps;
        double all = bias ? (double)bias[map] : 0;

        /* Channels within taps: where a tap reads is worked out once for all of them. */
        wf_each_input(v.s, e % v.s.out_size, [&](int64_t at, int64_t tap) {
            T sum = 0;

            for (int64_t c = 0; c < v.c; c++)
                sum += from[c * v.s.in_size + at] * weights[c * v.s.taps + tap];
            all += (double)sum;
            return false;
        });
        y[e] = (T)all;
    }
}

template <class T>
__global__ void make_images(wf_convolution v, const T *w, const T *y, const T *bias, T *x)
{
    const int64_t channels = v.groups * v.c, row = v.c * v.s.taps;

    for (int64_t e = wf_first(); e < v.batch * channels * v.s.in_size; e += wf_all()) {
        int64_t channel = e / v.s.in_size % channels, image = e / v.s.in_size / channels;
        int64_t group = channel / v.c;
        const T *from = y + (image * v.groups + group) * v.m * v.s.out_size;
        const T *weights = w + group * v.m * row + channel % v.c * v.s.taps;
        double all = bias ? (double)bias[channel] : 0;

        wf_each_output(v.s, e % v.s.in_size, [&](int64_t o, int64_t tap) {
            T sum = 0;

            for (int64_t m = 0; m < v.m; m++)
                sum += from[m * v.s.out_size + o] * weights[m * row + tap];
            all += (double)sum;
        });
        x[e] = (T)all;
    }
}

/* One weight's share in output row r of all images. */
template <class T>
WF_CODE double sum_of_row(const wf_convolution &v, const T *x, const T *y, int64_t weight,
                          int64_t r)
{
    const wf_spatial &s = v.s;
    const int64_t tap = weight % s.taps, map = weight / s.taps / v.c;
    const int64_t channel = map / v.m * v.c + weight / s.taps % v.c;
    const int64_t kw = tap % s.w.kernel[2], kh = tap / s.w.kernel[2] % s.w.kernel[1];
    const int64_t oh = r % s.out[1], od = r / s.out[1] % s.out[0], image = r / s.out[1] / s.out[0];
    const int64_t d = wf_reads_at(s, 0, od, tap / s.w.kernel[2] / s.w.kernel[1]);
    const int64_t h = wf_reads_at(s, 1, oh, kh), first = wf_reads_at(s, 2, 0, kw);
    const wf_range inside = wf_inside(s, 2, kw);
    const T *from = x + ((image * v.groups * v.c + channel) * s.in[0] + d) * s.in[1] * s.in[2] +
                    h * s.in[2] + first;
    const T *with =
        y + (image * v.groups * v.m + map) * s.out_size + (od * s.out[1] + oh) * s.out[2];
    T sum = 0;

    if (d < 0 || d >= s.in[0] || h < 0 || h >= s.in[1])
        return 0;
    for (int64_t ow = inside.lo; ow < inside.hi; ow++)
        sum += from[ow * s.w.stride[2]] * with[ow];
    return (double)sum;
}

template <class T> __global__ void sum_pieces(plan p, const T *x, const T *y, double *sums)
{
    for (int64_t e = wf_first(); e < p.pieces * p.weights; e += wf_all()) {
        int64_t from = e / p.weights * p.piece_rows, to = from + p.piece_rows;
        double all = 0;

        for (int64_t r = from; r < to && r < p.rows; r++)
            all += sum_of_row(p.v, x, y, e % p.weights, r);
        sums[e] = all;
    }
}

template <class T> __global__ void join_pieces(plan p, const double *sums, T *w)
{
    for (int64_t i = wf_first(); i < p.weights; i += wf_all()) {
        double all = 0;

        for (int64_t piece = 0; piece < p.pieces; piece++)
            all += sums[piece * p.weights + i];
        w[i] = (T)all;
    }
}

/* values = sums + bias: [batch, channels, size]; sums may lie there already. */
template <class T>
__global__ void add_bias(wf_from<T> sums, wf_to<T> values, wf_from<T> bias, int64_t channels,
                         int64_t size, int64_t n)
{
    for (int64_t i = wf_first(); i < n; i += wf_all())
        values[i] = sums[i] + bias[i / size % channels];
}

/* Which of a node's tensors are x, w and y: a pass makes output 0 of what it reads. */
struct roles {
    const wf_tensor *x, *w, *y;

    const wf_tensor *part(int i) const
    {
        return i == WF_DNN_X ? x : i == WF_DNN_W ? w : y;
    }
};

roles roles_of(wf_conv_pass pass, bool transposed, const wf_tensor *const in[],
               const wf_tensor *made)
{
    if (pass == WF_CONV_FORWARD)
        return {in[0], in[1], made};
    if (pass == WF_CONV_DATA)
        return {made, in[1], in[0]};
    return transposed ? roles{in[0], made, in[1]} : roles{in[1], made, in[0]};
}

void release(void *state)
{
    wf_dnn_way_free(static_cast<plan *>(state)->way);
}

/* Few engines add the bias without rounding f32 factors: a kernel behind them does otherwise. */
wf_status ask_cudnn(wf_prep *prep, plan *p, wf_conv_pass pass, wf_dtype dtype, bool bias,
                    wf_err *err)
{
    wf_dnn_conv c;
    wf_dnn_asked asked;

    if (!wf_dnn_conv_of(&p->v, pass, dtype, prep->compute, bias, &c))
        return WF_OK;
    asked = wf_dnn_ask_conv(&c);
    WF_TRY(wf_dnn_way_new(prep, &asked, &p->way, err));
    if (p->way || !bias)
        return WF_OK;
    c.adds_bias = false;
    p->bias_after = true;
    return wf_dnn_way_new(prep, &asked, &p->way, err);
}

/* In narrow tensors. A kernel behind the way adds the bias: few engines do. */
wf_status ask_narrow(wf_prep *prep, plan *p, wf_conv_pass pass, const roles &r, bool bias,
                     wf_err *err)
{
    wf_dnn_conv c;
    wf_dnn_asked asked;

    if (wf_compute_kept(prep->compute) != p->narrow ||
        !wf_dnn_conv_of(&p->v, pass, p->narrow, WF_COMPUTE_F32, false, &c))
        return WF_OK;
    asked = wf_dnn_ask_conv(&c);
    WF_TRY(wf_dnn_way_new(prep, &asked, &p->way, err));
    p->bias_after = bias;
    for (int i = 0; p->way && i < PARTS; i++) {
        p->copies[i] = r.part(i)->dtype != p->narrow;
        if (p->copies[i])
            WF_TRY(wf_take_room(prep, wf_elems(r.part(i)), sizeof(uint16_t), &p->at[i], err));
    }
    return WF_OK;
}

template <wf_conv_pass PASS, bool TRANSPOSED, bool BIAS>
wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    roles r = roles_of(PASS, TRANSPOSED, in, out[0]);
    plan *p;

    WF_TRY(wf_new_plan(prep, &p, err));
    prep->release = release;
    WF_TRY(wf_convolution_of(prep->node, r.x, r.w, r.y, TRANSPOSED, &p->v, err));
    p->narrow = wf_narrow_of(prep->node, in, out);
    if (p->narrow != WF_NONE) {
        WF_TRY(ask_narrow(prep, p, PASS, r, BIAS && in[2], err));
        prep->widens = !p->way;
        return WF_OK;
    }
    WF_TRY(ask_cudnn(prep, p, PASS, out[0]->dtype, BIAS && in[2], err));
    if (p->way || PASS != WF_CONV_WEIGHTS)
        return WF_OK;
    p->weights = wf_elems(r.w);
    p->rows = p->v.batch * p->v.s.out[0] * p->v.s.out[1];
    p->pieces = WF_MIN(wf_ceil_div(WEIGHT_THREADS, WF_MAX(p->weights, (int64_t)1)),
                       wf_ceil_div(p->rows, PIECE_ROWS));
    p->piece_rows = wf_ceil_div(p->rows, WF_MAX(p->pieces, (int64_t)1));
    return wf_take_room(prep, p->pieces * p->weights, sizeof(double), &p->sums, err);
}

template <class T>
wf_status make_weights(const wf_run *run, const plan *p, const T *x, const T *y, T *w, wf_err *err)
{
    double *sums = wf_room<double>(run, p->sums);

    WF_TRY(wf_launch(run, "pieces", sum_pieces<T>, wf_blocks(run, p->pieces * p->weights), err, *p,
                     x, y, sums));
    return wf_launch(run, run->node->op->name, join_pieces<T>, wf_blocks(run, p->weights), err, *p,
                     static_cast<const double *>(sums), w);
}

template <class T>
wf_status make_by_cudnn(const wf_run *run, const roles &r, const wf_tensor *bias, wf_tensor *made,
                        wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const void *tensors[WF_DNN_TENSORS] = {};

    tensors[WF_DNN_X] = r.x->data;
    tensors[WF_DNN_W] = r.w->data;
    tensors[WF_DNN_Y] = r.y->data;
    tensors[WF_DNN_BIAS] = wf_in<T>(bias);
    WF_TRY(wf_dnn_way_go(p->way, run, tensors, err));
    if (!p->bias_after)
        return WF_OK;
    return wf_launch(run, "bias", add_bias<T>, wf_blocks(run, wf_elems(made)), err,
                     wf_read<T>(made), wf_write<T>(made), wf_read<T>(bias), made->dims[1],
                     wf_elems(made) / (made->dims[0] * made->dims[1]), wf_elems(made));
}

/* Where some are narrow. */
wf_status make_narrow(const wf_run *run, const roles &r, const wf_tensor *bias, wf_tensor *made,
                      wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const void *tensors[WF_DNN_TENSORS] = {};
    wf_narrow_from sums = {nullptr, p->narrow};

    for (int i = 0; i < PARTS; i++) {
        const wf_tensor *t = r.part(i);

        tensors[i] = p->copies[i] ? wf_room<void>(run, p->at[i]) : t->data;
        if (t == made)
            sums.at = tensors[i];
        else if (p->copies[i])
            WF_TRY(wf_convert(run, t->dtype, t->data, p->narrow, wf_room<void>(run, p->at[i]),
                              wf_elems(t), err));
    }
    WF_TRY(wf_dnn_way_go(p->way, run, tensors, err));
    if (sums.at == made->data && !bias)
        return WF_OK;
    if (!bias)
        return wf_convert(run, p->narrow, sums.at, made->dtype, made->data, wf_elems(made), err);
    return wf_launch(run, "bias", add_bias<wf_narrow>, wf_blocks(run, wf_elems(made)), err, sums,
                     wf_write<wf_narrow>(made), wf_read<wf_narrow>(bias), made->dims[1],
                     wf_elems(made) / (made->dims[0] * made->dims[1]), wf_elems(made));
}

template <class T>
wf_status make(const wf_run *run, wf_conv_pass pass, const roles &r, const wf_tensor *bias,
               wf_tensor *made, wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const char *name = run->node->op->name;
    const unsigned blocks = wf_blocks(run, wf_elems(made));
    const T *x = wf_in<T>(r.x), *w = wf_in<T>(r.w), *y = wf_in<T>(r.y), *b = wf_in<T>(bias);
    T *to = wf_out<T>(made);

    switch (pass) {
    case WF_CONV_FORWARD:
        return wf_launch(run, name, make_maps<T>, blocks, err, p->v, x, w, b, to);
    case WF_CONV_DATA:
        return wf_launch(run, name, make_images<T>, blocks, err, p->v, w, y, b, to);
    default:
        return make_weights(run, p, x, y, to, err);
    }
}

template <class T, wf_conv_pass PASS, bool TRANSPOSED, bool BIAS>
wf_status convolve(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    roles r = roles_of(PASS, TRANSPOSED, in, out[0]);

    if (wf_elems(out[0]) == 0)
        return WF_OK;
    if (wf_elems(r.x) == 0 || wf_elems(r.w) == 0 || wf_elems(r.y) == 0)
        return wf_stream_fill(run->stream, out[0]->data, 0, wf_tensor_bytes(out[0]), err);
    if (static_cast<const plan *>(run->state)->narrow != WF_NONE)
        return make_narrow(run, r, BIAS ? in[2] : nullptr, out[0], err);
    if (static_cast<const plan *>(run->state)->way)
        return make_by_cudnn<T>(run, r, BIAS ? in[2] : nullptr, out[0], err);
    return make<T>(run, PASS, r, BIAS ? in[2] : nullptr, out[0], err);
}

} // namespace

#define ROW(name, domain_, dtype, T, pass, transposed, bias)                                       \
    {                                                                                              \
        .op = name, .domain = domain_, .dtypes = WF_TYPE(dtype), .is_narrow = dtype == WF_F32,     \
        .prepare = prepare<pass, transposed, bias>, .run = convolve<T, pass, transposed, bias>     \
    }
#define ROWS(name, domain, ...)                                                                    \
    ROW(name, domain, WF_F32, float, __VA_ARGS__), ROW(name, domain, WF_F64, double, __VA_ARGS__)

WF_CUDA_ROWS(conv){
    ROWS("Conv", NULL, WF_CONV_FORWARD, false, true),
    ROWS("ConvDataGrad", WF_DOMAIN_WEFT, WF_CONV_DATA, false, false),
    ROWS("ConvTranspose", NULL, WF_CONV_DATA, true, true),
    ROWS("ConvTransposeDataGrad", WF_DOMAIN_WEFT, WF_CONV_FORWARD, true, false),
    ROWS("ConvTransposeWeightGrad", WF_DOMAIN_WEFT, WF_CONV_WEIGHTS, true, false),
    ROWS("ConvWeightGrad", WF_DOMAIN_WEFT, WF_CONV_WEIGHTS, false, false),
    {},
};
