/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/conv.cu - Conv, ConvTranspose and their gradients: by cuDNN where it is
 * and computes the case, else by kernels that take every shape: a thread adds up one element of the
 * maps or of the images, or one weight over some of the rows of outputs; these pieces are joined in
 * their order. shape/convolution.h has the geometry.
 *
 * Where a tensor is narrow cuDNN computes in tensors of its type alone, and makes results of it:
 * those of float32 are rounded into the workspace first, or come out of it. Without an engine for
 * that all is widened around what computes float32.
 *
 * Where images have their channels last (common/graph/channels_last.h) all tensors of cuDNN's have,
 * weights too: what the node has in the other order is copied, in the pass that rounds it.
 */
#include "common/kernels/cuda/nn/window.h"
extern "C" {
#include "common/graph/channels_last.h"
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
    wf_dtype type;      /* of all tensors of the way; WF_NONE: they are those of the node */
    bool copies[PARTS]; /* parts of another type or order, which have a copy in the workspace */
    bool turns[PARTS];  /* of those, the ones of another order */
    size_t at[PARTS];   /* there */
    bool last[PARTS];   /* of x and y: the node's have their channels last */
    int64_t weights, rows, pieces, piece_rows; /* rows: of outputs, in all images */
    size_t sums;                               /* in the workspace: [pieces, weights] */
};

/* Where an element of an image lies: of [images, channels, places], or with the channels last. */
struct order {
    int64_t channels, places;
    bool last;

    WF_CODE int64_t at(int64_t image, int64_t channel, int64_t place) const
    {
        return last ? (image * places + place) * channels + channel
                    : (image * channels + channel) * places + place;
    }
    /* From a channel to the next. */
    WF_CODE int64_t step(void) const
    {
        return last ? 1 : places;
    }
};

WF_CODE order order_of_x(const plan &p)
{
    return {p.v.groups * p.v.c, p.v.s.in_size, p.last[WF_DNN_X]};
}

WF_CODE order order_of_y(const plan &p)
{
    return {p.v.groups * p.v.m, p.v.s.out_size, p.last[WF_DNN_Y]};
}

template <class T> __global__ void make_maps(plan p, const T *x, const T *w, const T *bias, T *y)
{
    const wf_convolution &v = p.v;
    const order ox = order_of_x(p), oy = order_of_y(p);
    const int64_t maps = v.groups * v.m;

    for (int64_t e = wf_first(); e < v.batch * maps * v.s.out_size; e += wf_all()) {
        int64_t map = e / v.s.out_size % maps, image = e / v.s.out_size / maps;
        const T *weights = w + map * v.c * v.s.taps;
        double all = bias ? (double)bias[map] : 0;

        /* Channels within taps: where a tap reads is worked out once for all of them. */
        wf_each_input(v.s, e % v.s.out_size, [&](int64_t at, int64_t tap) {
            const T *from = x + ox.at(image, map / v.m * v.c, at);
            T sum = 0;

            for (int64_t c = 0; c < v.c; c++)
                sum += from[c * ox.step()] * weights[c * v.s.taps + tap];
            all += (double)sum;
            return false;
        });
        y[oy.at(image, map, e % v.s.out_size)] = (T)all;
    }
}

template <class T> __global__ void make_images(plan p, const T *w, const T *y, const T *bias, T *x)
{
    const wf_convolution &v = p.v;
    const order ox = order_of_x(p), oy = order_of_y(p);
    const int64_t channels = v.groups * v.c, row = v.c * v.s.taps;

    for (int64_t e = wf_first(); e < v.batch * channels * v.s.in_size; e += wf_all()) {
        int64_t channel = e / v.s.in_size % channels, image = e / v.s.in_size / channels;
        int64_t group = channel / v.c;
        const T *weights = w + group * v.m * row + channel % v.c * v.s.taps;
        double all = bias ? (double)bias[channel] : 0;

        wf_each_output(v.s, e % v.s.in_size, [&](int64_t o, int64_t tap) {
            const T *from = y + oy.at(image, group * v.m, o);
            T sum = 0;

            for (int64_t m = 0; m < v.m; m++)
                sum += from[m * oy.step()] * weights[m * row + tap];
            all += (double)sum;
        });
        x[ox.at(image, channel, e % v.s.in_size)] = (T)all;
    }
}

/* One weight's share in output row r of all images. */
template <class T>
WF_CODE double sum_of_row(const plan &p, const T *x, const T *y, int64_t weight, int64_t r)
{
    const wf_convolution &v = p.v;
    const wf_spatial &s = v.s;
    const order ox = order_of_x(p), oy = order_of_y(p);
    const int64_t tap = weight % s.taps, map = weight / s.taps / v.c;
    const int64_t channel = map / v.m * v.c + weight / s.taps % v.c;
    const int64_t kw = tap % s.w.kernel[2], kh = tap / s.w.kernel[2] % s.w.kernel[1];
    const int64_t oh = r % s.out[1], od = r / s.out[1] % s.out[0], image = r / s.out[1] / s.out[0];
    const int64_t d = wf_reads_at(s, 0, od, tap / s.w.kernel[2] / s.w.kernel[1]);
    const int64_t h = wf_reads_at(s, 1, oh, kh), first = wf_reads_at(s, 2, 0, kw);
    const wf_range inside = wf_inside(s, 2, kw);
    const int64_t from = (d * s.in[1] + h) * s.in[2] + first;
    const int64_t with = (od * s.out[1] + oh) * s.out[2];
    T sum = 0;

    if (d < 0 || d >= s.in[0] || h < 0 || h >= s.in[1])
        return 0;
    for (int64_t ow = inside.lo; ow < inside.hi; ow++)
        sum +=
            x[ox.at(image, channel, from + ow * s.w.stride[2])] * y[oy.at(image, map, with + ow)];
    return (double)sum;
}

template <class T> __global__ void sum_pieces(plan p, const T *x, const T *y, double *sums)
{
    for (int64_t e = wf_first(); e < p.pieces * p.weights; e += wf_all()) {
        int64_t from = e / p.weights * p.piece_rows, to = from + p.piece_rows;
        double all = 0;

        for (int64_t r = from; r < to && r < p.rows; r++)
            all += sum_of_row(p, x, y, e % p.weights, r);
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

/* y[a][j][i] = x[a][i][j] in another type: of n items [rows, columns] each. A thread goes along the
 * shorter side, so that its neighbours read, or write, what lies side by side along the longer. */
__global__ void turn(wf_narrow_from x, wf_narrow_to y, int64_t n, int64_t rows, int64_t columns)
{
    const int64_t most = rows < columns ? columns : rows, least = rows < columns ? rows : columns;
    const int64_t from_long = rows < columns ? 1 : columns, to_long = rows < columns ? rows : 1;
    const int64_t from_short = rows < columns ? columns : 1, to_short = rows < columns ? 1 : rows;

    for (int64_t e = wf_first(); e < n * most; e += wf_all()) {
        const int64_t item = e / most * rows * columns, i = e % most;

        for (int64_t k = 0; k < least; k++)
            y[item + i * to_long + k * to_short] = x[item + i * from_long + k * from_short];
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

/* A tensor as the geometry wants it. */
const wf_tensor *in_order(const wf_tensor *t, bool last, wf_tensor *room)
{
    if (!last)
        return t;
    *room = wf_channels_second(t);
    return room;
}

/* Which of x and y the node has with their channels last. */
void find_order(const wf_node *n, wf_conv_pass pass, bool transposed, plan *p)
{
    const bool first = wf_in_is_channels_last(n, 0), second = wf_in_is_channels_last(n, 1);
    const bool made = wf_out_is_channels_last(n, 0);

    p->last[WF_DNN_X] = pass == WF_CONV_FORWARD ? first
                        : pass == WF_CONV_DATA  ? made
                        : transposed            ? first
                                                : second;
    p->last[WF_DNN_Y] = pass == WF_CONV_FORWARD ? made
                        : pass == WF_CONV_DATA  ? first
                        : transposed            ? second
                                                : first;
}

/* Elements of part i that lie side by side where its channels are last, and places of each. */
void sides_of(const plan *p, int i, int64_t *channels, int64_t *places)
{
    const wf_convolution &v = p->v;

    *channels = i == WF_DNN_X ? v.groups * v.c : i == WF_DNN_W ? v.c : v.groups * v.m;
    *places = i == WF_DNN_X ? v.s.in_size : i == WF_DNN_W ? v.s.taps : v.s.out_size;
}

/* In tensors of p->type. A kernel behind the way adds the bias: few engines do. */
wf_status ask_copied(wf_prep *prep, plan *p, wf_conv_pass pass, const roles &r, bool bias,
                     wf_err *err)
{
    const bool last = wf_has_channels_last(prep->node);
    wf_dnn_conv c;
    wf_dnn_asked asked;

    if ((p->type != WF_F32 && wf_compute_kept(prep->compute) != p->type) ||
        !wf_dnn_conv_of(&p->v, pass, p->type, p->type == WF_F32 ? prep->compute : WF_COMPUTE_F32,
                        false, &c))
        return WF_OK;
    c.last = last;
    asked = wf_dnn_ask_conv(&c);
    WF_TRY(wf_dnn_way_new(prep, &asked, &p->way, err));
    p->bias_after = bias;
    for (int i = 0; p->way && i < PARTS; i++) {
        int64_t channels, places;

        sides_of(p, i, &channels, &places);
        p->turns[i] = last && !p->last[i] && channels > 1 && places > 1;
        p->copies[i] = p->turns[i] || r.part(i)->dtype != p->type;
        if (p->copies[i])
            WF_TRY(wf_take_room(prep, wf_elems(r.part(i)), wf_dtype_size(p->type), &p->at[i], err));
    }
    return WF_OK;
}

template <wf_conv_pass PASS, bool TRANSPOSED, bool BIAS>
wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    roles r = roles_of(PASS, TRANSPOSED, in, out[0]);
    const wf_dtype narrow = wf_narrow_of(prep->node, in, out);
    wf_tensor x, y;
    plan *p;

    WF_TRY(wf_new_plan(prep, &p, err));
    prep->release = release;
    find_order(prep->node, PASS, TRANSPOSED, p);
    WF_TRY(wf_convolution_of(prep->node, in_order(r.x, p->last[WF_DNN_X], &x), r.w,
                             in_order(r.y, p->last[WF_DNN_Y], &y), TRANSPOSED, &p->v, err));
    p->type = narrow != WF_NONE || !wf_has_channels_last(prep->node) ? narrow : WF_F32;
    if (p->type != WF_NONE)
        WF_TRY(ask_copied(prep, p, PASS, r, BIAS && in[2], err));
    else
        WF_TRY(ask_cudnn(prep, p, PASS, out[0]->dtype, BIAS && in[2], err));
    prep->widens = !p->way && narrow != WF_NONE;
    if (p->way || prep->widens || PASS != WF_CONV_WEIGHTS)
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

/* Part i in another type, and in the order of the way or, if `back`, in that of the node. */
wf_status copy_part(const wf_run *run, int i, wf_narrow_from from, wf_narrow_to to, int64_t elems,
                    bool back, wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    int64_t channels, places, n;

    if (!p->turns[i])
        return wf_convert(run, from.dtype, from.at, to.dtype, to.at, elems, err);
    sides_of(p, i, &channels, &places);
    n = elems / channels / places;
    return wf_launch(run, "convert", turn, wf_blocks(run, n * WF_MAX(channels, places)), err, from,
                     to, n, back ? places : channels, back ? channels : places);
}

/* made = sums, which lie in the workspace or there, + bias. */
wf_status finish_sums(const wf_run *run, int part, wf_narrow_from sums, const wf_tensor *bias,
                      wf_tensor *made, wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const int64_t n = wf_elems(made);
    int64_t channels, places;

    if (sums.at != made->data && (!bias || p->turns[part])) {
        WF_TRY(copy_part(run, part, sums, wf_write<wf_narrow>(made), n, true, err));
        sums = wf_read<wf_narrow>(made);
    }
    if (!bias)
        return WF_OK;
    sides_of(p, part, &channels, &places);
    return wf_launch(run, "bias", add_bias<wf_narrow>, wf_blocks(run, n), err, sums,
                     wf_write<wf_narrow>(made), wf_read<wf_narrow>(bias), channels,
                     p->last[part] ? (int64_t)1 : places, n);
}

/* Where parts are copied for the way. */
wf_status make_copied(const wf_run *run, const roles &r, const wf_tensor *bias, wf_tensor *made,
                      wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const void *tensors[WF_DNN_TENSORS] = {};
    int part = 0;

    for (int i = 0; i < PARTS; i++) {
        const wf_tensor *t = r.part(i);

        tensors[i] = p->copies[i] ? wf_room<void>(run, p->at[i]) : t->data;
        if (t == made)
            part = i;
        else if (p->copies[i])
            WF_TRY(copy_part(run, i, wf_read<wf_narrow>(t),
                             wf_narrow_to{wf_room<void>(run, p->at[i]), p->type}, wf_elems(t),
                             false, err));
    }
    WF_TRY(wf_dnn_way_go(p->way, run, tensors, err));
    return finish_sums(run, part, {tensors[part], p->type}, bias, made, err);
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
        return wf_launch(run, name, make_maps<T>, blocks, err, *p, x, w, b, to);
    case WF_CONV_DATA:
        return wf_launch(run, name, make_images<T>, blocks, err, *p, w, y, b, to);
    default:
        return make_weights(run, p, x, y, to, err);
    }
}

template <class T, wf_conv_pass PASS, bool TRANSPOSED, bool BIAS>
wf_status convolve(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    roles r = roles_of(PASS, TRANSPOSED, in, out[0]);
    const plan *p = static_cast<const plan *>(run->state);

    if (wf_elems(out[0]) == 0)
        return WF_OK;
    if (wf_elems(r.x) == 0 || wf_elems(r.w) == 0 || wf_elems(r.y) == 0)
        return wf_stream_fill(run->stream, out[0]->data, 0, wf_tensor_bytes(out[0]), err);
    if (p->way && p->type != WF_NONE)
        return make_copied(run, r, BIAS ? in[2] : nullptr, out[0], err);
    if (p->way)
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
