/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/norm/batch_norm.cu - BatchNormalization in both forms, weft's own training
 * form, and the gradient of all; the cpu's file of that name has the formulas.
 *
 * A channel's elements are summed in pieces, and the pieces are joined in their order by one thread
 * a channel, which leaves the factors of a line; then every element is put on its channel's line. A
 * block sums a piece, whose elements lie together; where images are a few elements, or one, a
 * thread does, so that neighbours read neighbouring channels.
 *
 * In training cuDNN computes where it can, of tensors of one type, float32 or a narrow one, beside
 * statistics of float32; the gradient's are made here, as the graph does not keep those of the
 * forward pass. Where only some are narrow the kernels here compute, which read and write any.
 * Images with their channels last are computed by batch_last.h. */
#include "common/kernels/cuda/norm/batch_last.h"
#include "common/kernels/cuda/norm/moments.h"
extern "C" {
#include "common/kernels/cuda/dnn/norm.h"
#include "common/kernels/cuda/dnn/way.h"
#include "common/kernels/shape/norm.h"
}

namespace
{

/* Blocks that sum at a time, and elements that are worth one; the same of threads, which sum where
 * an image has fewer elements than FEW. */
enum {
    MOST_IN = 5,
    PIECES = 1024,
    PIECE_ELEMS = 2048,
    THREADS = 1 << 16,
    THREAD_ELEMS = 32,
    FEW = 16
};

/* y = a x + c of a channel; backwards dx = a dy + b x + c. */
struct line {
    double a, b, c;
};

struct plan {
    wf_batch_norm v;
    int64_t count, pieces, piece_elems; /* of a channel */
    size_t sums, moments, lines; /* in the workspace: [pieces, channels], [channels], [channels] */
    wf_dnn_way *way;             /* nullptr: by what is here alone */
    size_t mean, inverse;        /* in the workspace, with a way: float [channels] */
    by_rows last; /* where channels are last; all between v and here is unused then */
};

/* Where element i of a channel lies. */
WF_CODE int64_t place_of(const plan &p, int64_t channel, int64_t i)
{
    return (i / p.v.inner * p.v.channels + channel) * p.v.inner + i % p.v.inner;
}

/* What a channel's sums are taken about. */
template <class X> WF_CODE double shift_of(const plan &p, X x, int64_t channel)
{
    return p.count ? (double)x[channel * p.v.inner] : 0;
}

/* What is summed of an element: x and its square, about the channel's first. */
template <class T> struct of_moments {
    wf_from<T> x;

    WF_CODE wf_two add(const plan &p, wf_two all, int64_t channel, int64_t i) const
    {
        return wf_add_moment(all, (double)x[place_of(p, channel, i)], shift_of(p, x, channel));
    }
};

/* dy, and dy (x - mean). */
template <class T> struct of_grads {
    wf_from<T> dy, x;
    const wf_two *moments;

    WF_CODE wf_two add(const plan &p, wf_two all, int64_t channel, int64_t i) const
    {
        int64_t at = place_of(p, channel, i);

        all.a += (double)dy[at];
        all.b += (double)dy[at] * ((double)x[at] - moments[channel].a);
        return all;
    }
};

/* The end of a piece that begins at element `from` of a channel. */
WF_CODE int64_t end_of(const plan &p, int64_t from)
{
    return from + p.piece_elems < p.count ? from + p.piece_elems : p.count;
}

/* A block for each piece. */
template <class F> __global__ void sum_by_blocks(plan p, F what, wf_two *sums)
{
    for (int64_t b = blockIdx.x; b < p.v.channels * p.pieces; b += gridDim.x) {
        const int64_t channel = b % p.v.channels, from = b / p.v.channels * p.piece_elems;
        const int64_t to = end_of(p, from);
        wf_two all = {0, 0};

        for (int64_t i = from + threadIdx.x; i < to; i += blockDim.x)
            all = what.add(p, all, channel, i);
        all = wf_join_two(all);
        if (threadIdx.x == 0)
            sums[b] = all;
    }
}

/* A thread for each piece. */
template <class F> __global__ void sum_by_threads(plan p, F what, wf_two *sums)
{
    for (int64_t e = wf_first(); e < p.v.channels * p.pieces; e += wf_all()) {
        const int64_t channel = e % p.v.channels, from = e / p.v.channels * p.piece_elems;
        const int64_t to = end_of(p, from);
        wf_two all = {0, 0};

        for (int64_t i = from; i < to; i++)
            all = what.add(p, all, channel, i);
        sums[e] = all;
    }
}

WF_CODE wf_two join_pieces(const plan &p, const wf_two *sums, int64_t channel)
{
    wf_two all = {0, 0};

    for (int64_t i = 0; i < p.pieces; i++) {
        all.a += sums[i * p.v.channels + channel].a;
        all.b += sums[i * p.v.channels + channel].b;
    }
    return all;
}

/* Mean and variance of each channel: those that are given, or else the batch's. */
template <class T>
__global__ void find_moments(plan p, wf_from<T> x, wf_from<T> mean, wf_from<T> variance,
                             const wf_two *sums, wf_two *moments)
{
    for (int64_t c = wf_first(); c < p.v.channels; c += wf_all())
        moments[c] = mean ? wf_two{(double)mean[c], (double)variance[c]}
                          : wf_moments_end(join_pieces(p, sums, c), shift_of(p, x, c), p.count);
}

/* The running value after a batch; with momentum 0 it is the batch's, whatever it was. */
template <class T> WF_CODE wf_number<T> moved(const plan &p, wf_from<T> old, int64_t c, double now)
{
    double m = p.v.momentum;

    return (wf_number<T>)(m == 0 ? now : (double)old[c] * m + now * (1 - m));
}

/* The moments as cuDNN has them, of float32 alone, and back. */
__global__ void hand_moments(plan p, const wf_two *moments, float *mean, float *inverse)
{
    for (int64_t c = wf_first(); c < p.v.channels; c += wf_all()) {
        mean[c] = (float)moments[c].a;
        inverse[c] = (float)(1 / std::sqrt(moments[c].b + p.v.epsilon));
    }
}

__global__ void take_moments(plan p, const float *mean, const float *inverse, wf_two *moments)
{
    for (int64_t c = wf_first(); c < p.v.channels; c += wf_all()) {
        double variance = 1 / ((double)inverse[c] * (double)inverse[c]) - p.v.epsilon;

        moments[c] = {(double)mean[c], variance > 0 ? variance : 0};
    }
}

template <class T>
__global__ void find_lines(plan p, wf_from<T> scale, wf_from<T> bias, const wf_two *moments,
                           line *lines)
{
    for (int64_t c = wf_first(); c < p.v.channels; c += wf_all()) {
        double slope = (double)scale[c] / std::sqrt(moments[c].b + p.v.epsilon);

        lines[c] = {slope, 0, (double)bias[c] - moments[c].a * slope};
    }
}

template <class T>
__global__ void move_running(plan p, wf_from<T> mean, wf_from<T> variance, const wf_two *moments,
                             wf_to<T> means, wf_to<T> variances)
{
    for (int64_t c = wf_first(); c < p.v.channels; c += wf_all()) {
        if (means)
            means[c] = moved<T>(p, mean, c, moments[c].a);
        if (variances)
            variances[c] = moved<T>(p, variance, c, moments[c].b);
    }
}

template <class T>
__global__ void find_grad_lines(plan p, wf_from<T> scale, const wf_two *moments, const wf_two *sums,
                                line *lines, wf_to<T> dscale, wf_to<T> dbias)
{
    using N = wf_number<T>;

    for (int64_t c = wf_first(); c < p.v.channels; c += wf_all()) {
        wf_two all = join_pieces(p, sums, c);
        double inv = 1 / std::sqrt(moments[c].b + p.v.epsilon), slope = (double)scale[c] * inv;
        double back = p.v.training ? -slope * inv * inv * all.b / (double)p.count : 0;

        if (dscale)
            dscale[c] = (N)(all.b * inv);
        if (dbias)
            dbias[c] = (N)all.a;
        lines[c] = {slope, back,
                    p.v.training ? -slope * all.a / (double)p.count - back * moments[c].a : 0};
    }
}

template <class T>
__global__ void put_on_lines(plan p, wf_from<T> dy, wf_from<T> x, const line *lines, wf_to<T> out)
{
    using N = wf_number<T>;

    for (int64_t i = wf_first(); i < p.count * p.v.channels; i += wf_all()) {
        line l = lines[i / p.v.inner % p.v.channels];

        out[i] = dy ? (N)l.a * dy[i] + (N)l.b * x[i] + (N)l.c : (N)l.a * x[i] + (N)l.c;
    }
}

void release(void *state)
{
    wf_dnn_way_free(static_cast<plan *>(state)->way);
}

/* A single element has no variance to divide by. dtype: of all that is as large as x. */
wf_status ask_cudnn(wf_prep *prep, plan *p, wf_dtype dtype, bool is_grad, wf_err *err)
{
    wf_dnn_norm n = {};
    wf_dnn_asked asked;

    if (!p->v.training || p->v.batch * p->v.inner < 2 || p->v.channels == 0)
        return WF_OK;
    n.dtype = dtype;
    n.is_grad = is_grad;
    n.batch = p->v.batch;
    n.channels = p->v.channels;
    n.inner = p->v.inner;
    n.epsilon = p->v.epsilon;
    asked = wf_dnn_ask_norm(&n);
    WF_TRY(wf_dnn_way_new(prep, &asked, &p->way, err));
    if (!p->way)
        return WF_OK;
    WF_TRY(wf_take_room(prep, n.channels, sizeof(float), &p->mean, err));
    return wf_take_room(prep, n.channels, sizeof(float), &p->inverse, err);
}

/* Whether tensors from `first` on are of float32, as cuDNN wants all that has a number a channel.
 */
bool are_f32(const wf_tensor *const tensors[], uint32_t first, uint32_t n)
{
    for (uint32_t i = first; i < n; i++)
        if (tensors[i] && tensors[i]->dtype != WF_F32)
            return false;
    return true;
}

wf_status finish(wf_prep *prep, plan *p, wf_err *err)
{
    const bool few = p->v.inner < FEW;

    p->count = p->v.batch * p->v.inner;
    p->pieces = WF_MIN(wf_ceil_div(p->count, few ? THREAD_ELEMS : PIECE_ELEMS),
                       wf_ceil_div(few ? THREADS : PIECES, WF_MAX(p->v.channels, (int64_t)1)));
    p->piece_elems = wf_ceil_div(p->count, WF_MAX(p->pieces, (int64_t)1));
    WF_TRY(wf_take_room(prep, p->v.channels * p->pieces, sizeof(wf_two), &p->sums, err));
    WF_TRY(wf_take_room(prep, p->v.channels, sizeof(wf_two), &p->moments, err));
    return wf_take_room(prep, p->v.channels, sizeof(line), &p->lines, err);
}

/* The geometry of a node whose first n_images inputs have their channels last. */
wf_status geometry_last(const wf_node *n, uint32_t n_images, const wf_tensor *const in[],
                        wf_batch_norm *v, wf_err *err)
{
    const wf_tensor *of[MOST_IN] = {};
    wf_tensor images[2];

    for (uint32_t i = 0; i < MOST_IN; i++)
        of[i] = in[i];
    for (uint32_t i = 0; i < n_images; i++) {
        images[i] = wf_channels_second(in[i]);
        of[i] = &images[i];
    }
    return n_images == 1 ? wf_batch_norm_of(n, of, v, err) : wf_batch_norm_grad_of(n, of, v, err);
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    plan *p;

    WF_TRY(wf_new_plan(prep, &p, err));
    prep->release = release;
    if (wf_has_channels_last(prep->node)) {
        WF_TRY(geometry_last(prep->node, 1, in, &p->v, err));
        return plan_rows(prep, p->v, in[0]->dtype, OF_DY, &p->last, err);
    }
    WF_TRY(wf_batch_norm_of(prep->node, in, &p->v, err));
    if (in[0]->dtype != WF_F64 && out[0] && out[0]->dtype == in[0]->dtype &&
        are_f32(in, 1, prep->node->n_in) && are_f32(out, 1, prep->node->n_out))
        WF_TRY(ask_cudnn(prep, p, in[0]->dtype, false, err));
    return finish(prep, p, err);
}

wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    plan *p;

    WF_TRY(wf_new_plan(prep, &p, err));
    prep->release = release;
    if (wf_has_channels_last(prep->node)) {
        WF_TRY(geometry_last(prep->node, 2, in, &p->v, err));
        return plan_rows(prep, p->v, in[0]->dtype, LAST_SUMS, &p->last, err);
    }
    WF_TRY(wf_batch_norm_grad_of(prep->node, in, &p->v, err));
    if (in[0]->dtype != WF_F64 && out[0] && out[1] && out[2] && in[1]->dtype == in[0]->dtype &&
        out[0]->dtype == in[0]->dtype && are_f32(in, 2, prep->node->n_in) &&
        are_f32(out, 1, prep->node->n_out))
        WF_TRY(ask_cudnn(prep, p, in[0]->dtype, true, err));
    return finish(prep, p, err);
}

/* The sums of `what`, in the workspace. */
template <class F> wf_status sum(const wf_run *run, F what, wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const int64_t n = p->v.channels * p->pieces;
    wf_two *sums = wf_room<wf_two>(run, p->sums);

    if (p->v.inner < FEW)
        return wf_launch(run, "sums", sum_by_threads<F>, wf_blocks(run, n), err, *p, what, sums);
    return wf_launch_meeting(run, "sums", sum_by_blocks<F>, wf_blocks(run, n * WF_BLOCK),
                             wf_threads(p->piece_elems), err, *p, what, sums);
}

/* The moments of x in the workspace; mean and variance: nullptr to take the batch's. */
template <class T>
wf_status moments_of(const wf_run *run, wf_from<T> x, wf_from<T> mean, wf_from<T> variance,
                     wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);

    if (!mean)
        WF_TRY(sum(run, of_moments<T>{x}, err));
    return wf_launch(run, "channels", find_moments<T>, wf_blocks(run, p->v.channels), err, *p, x,
                     mean, variance, wf_room<const wf_two>(run, p->sums),
                     wf_room<wf_two>(run, p->moments));
}

template <class T>
wf_status put(const wf_run *run, wf_from<T> dy, wf_from<T> x, wf_to<T> out, wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);

    return out ? wf_launch(run, run->node->op->name, put_on_lines<T>,
                           wf_blocks(run, p->count * p->v.channels), err, *p, dy, x,
                           wf_room<const line>(run, p->lines), out)
               : WF_OK;
}

/* y and the moments of the batch. */
wf_status forward_by_cudnn(const wf_run *run, const wf_tensor *const in[], wf_tensor *y,
                           wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const void *at[WF_DNN_BN_TENSORS] = {};

    at[WF_DNN_BN_X] = in[0]->data;
    at[WF_DNN_BN_SCALE] = in[1]->data;
    at[WF_DNN_BN_MEAN] = wf_room<float>(run, p->mean);
    at[WF_DNN_BN_INVERSE] = wf_room<float>(run, p->inverse);
    at[WF_DNN_BN_BIAS] = in[2]->data;
    at[WF_DNN_BN_Y] = y->data;
    WF_TRY(wf_dnn_way_go(p->way, run, at, err));
    return wf_launch(run, "channels", take_moments, wf_blocks(run, p->v.channels), err, *p,
                     wf_room<const float>(run, p->mean), wf_room<const float>(run, p->inverse),
                     wf_room<wf_two>(run, p->moments));
}

/* From the moments. */
wf_status backward_by_cudnn(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const void *at[WF_DNN_BN_GRAD_TENSORS] = {};

    WF_TRY(wf_launch(run, "channels", hand_moments, wf_blocks(run, p->v.channels), err, *p,
                     wf_room<const wf_two>(run, p->moments), wf_room<float>(run, p->mean),
                     wf_room<float>(run, p->inverse)));
    at[WF_DNN_BN_X] = in[1]->data;
    at[WF_DNN_BN_SCALE] = in[2]->data;
    at[WF_DNN_BN_MEAN] = wf_room<float>(run, p->mean);
    at[WF_DNN_BN_INVERSE] = wf_room<float>(run, p->inverse);
    at[WF_DNN_BN_DY] = in[0]->data;
    at[WF_DNN_BN_DX] = out[0]->data;
    at[WF_DNN_BN_DSCALE] = out[1]->data;
    at[WF_DNN_BN_DBIAS] = out[2]->data;
    return wf_dnn_way_go(p->way, run, at, err);
}

template <class T>
wf_status forward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const wf_from<T> x = wf_read<T>(in[0]);
    const wf_from<T> mean = wf_read<T>(in[3]), variance = wf_read<T>(in[4]);
    const wf_two *moments = wf_room<const wf_two>(run, p->moments);

    if (p->last.on)
        return p->last.type == WF_BF16 ? forward_of_type<WF_BF16>(run, p->last, p->v, in, out, err)
                                       : forward_of_type<WF_F16>(run, p->last, p->v, in, out, err);
    if (p->way)
        WF_TRY(forward_by_cudnn(run, in, out[0], err));
    else
        WF_TRY(moments_of<T>(run, x, p->v.training ? wf_read<T>(nullptr) : mean, variance, err));
    if (p->v.training && (out[1] || out[2]))
        WF_TRY(wf_launch(run, "running", move_running<T>, wf_blocks(run, p->v.channels), err, *p,
                         mean, variance, moments, wf_write<T>(out[1]), wf_write<T>(out[2])));
    if (p->way)
        return WF_OK;
    WF_TRY(wf_launch(run, "lines", find_lines<T>, wf_blocks(run, p->v.channels), err, *p,
                     wf_read<T>(in[1]), wf_read<T>(in[2]), moments, wf_room<line>(run, p->lines)));
    return put<T>(run, wf_read<T>(nullptr), x, wf_write<T>(out[0]), err);
}

template <class T>
wf_status backward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const wf_from<T> dy = wf_read<T>(in[0]), x = wf_read<T>(in[1]);
    const wf_two *moments = wf_room<const wf_two>(run, p->moments);

    if (p->last.on)
        return p->last.type == WF_BF16 ? backward_of_type<WF_BF16>(run, p->last, p->v, in, out, err)
                                       : backward_of_type<WF_F16>(run, p->last, p->v, in, out, err);
    WF_TRY(moments_of<T>(run, x, wf_read<T>(in[3]), wf_read<T>(in[4]), err));
    if (p->way)
        return backward_by_cudnn(run, in, out, err);
    WF_TRY(sum(run, of_grads<T>{dy, x, moments}, err));
    WF_TRY(wf_launch(run, "lines", find_grad_lines<T>, wf_blocks(run, p->v.channels), err, *p,
                     wf_read<T>(in[2]), moments, wf_room<const wf_two>(run, p->sums),
                     wf_room<line>(run, p->lines), wf_write<T>(out[1]), wf_write<T>(out[2])));
    return put<T>(run, dy, x, wf_write<T>(out[0]), err);
}

} // namespace

#define ROWS(name, domain_, prepare_, fn)                                                          \
    {.op = name,                                                                                   \
     .domain = domain_,                                                                            \
     .dtypes = WF_TYPE(WF_F32),                                                                    \
     .is_narrow = true,                                                                            \
     .prepare = prepare_,                                                                          \
     .run = wf_wide_or_narrow<fn<float>, fn<wf_narrow>>},                                          \
    {                                                                                              \
        .op = name, .domain = domain_, .dtypes = WF_TYPE(WF_F64), .prepare = prepare_,             \
        .run = fn<double>                                                                          \
    }

WF_CUDA_ROWS(batch_norm){
    ROWS("BatchNormalization", nullptr, prepare, forward),
    ROWS("BatchNormalizationTrain", WF_DOMAIN_WEFT, prepare, forward),
    ROWS("BatchNormalizationGrad", WF_DOMAIN_WEFT, prepare_grad, backward),
    {},
};
