/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/dot_attention.cu - DotAttention and its gradient, by products and rows of
 * softmax: the scores of some heads at a time lie in the workspace, and so do these heads' rows
 * where they lie apart. The gradient works the probabilities out again. Where factors may be 16
 * bits, cuDNN computes what it can. */
#include "common/kernels/cuda/elementwise/each.h"
#include "common/kernels/cuda/nn/fused_attention.h"
#include "common/kernels/cuda/nn/softmax.h"
#include "common/kernels/cuda/product/batch.h"
extern "C" {
#include "common/kernels/shape/attention.h"
}

namespace
{

/* Scores that lie in memory at a time, unless one head has more. */
const size_t SCORE_BYTES = (size_t)256 << 20;

/* The products: scores q k', their use p v, and the four of the way back. */
enum stage { SCORES, USE, DV, DP, DQ, DK, STAGES };

/* Tensors whose rows may lie apart. Y: or its gradient, of the way back. */
enum operand { OF_Q, OF_K, OF_V, OF_Y, OF_DQ, OF_DK, OF_DV, OPERANDS };

struct plan {
    wf_attention a;
    int64_t some; /* heads at a time; divides their number */
    size_t size;  /* bytes of an element */
    bool sums;    /* the mask is added; else it says where `fill` goes */
    wf_walk mask; /* over the scores of all heads; n 0: there is none */
    wf_batch products[STAGES];
    size_t scores, slopes;     /* in the workspace: [some, t, s] each */
    size_t together[OPERANDS]; /* likewise, of heads whose rows lie apart */
    wf_fused_attention fused;  /* with a forward pass: what is above is not used */
};

/* Masks the scores of `n` elements from number `first` on; T(0) for `fill` and no sums: slopes. */
template <class T>
__global__ void add_mask(const T *mask, wf_walk w, int64_t first, int64_t n, T *scores)
{
    for (int64_t i = wf_first(); i < n; i += wf_all())
        scores[i] += mask[wf_at(w, 0, first + i)];
}

template <class T>
__global__ void fill_masked(const uint8_t *mask, wf_walk w, int64_t first, int64_t n, T fill,
                            T *scores)
{
    for (int64_t i = wf_first(); i < n; i += wf_all())
        if (mask[wf_at(w, 0, first + i)])
            scores[i] = fill;
}

/* Hides columns past i of each row i of scores [heads, t, s]. */
template <class T> __global__ void hide_later(int64_t t, wf_around a, T *scores)
{
    for (int64_t row = blockIdx.x; row < a.outer; row += gridDim.x)
        for (int64_t i = row % t + 1 + threadIdx.x; i < a.axis; i += blockDim.x)
            scores[row * a.axis + i] = -T(INFINITY);
}

/* Of each row of scores: the logarithm of the sum of their exponentials. */
template <class T> __global__ void sum_rows(const T *scores, wf_around a, T *sums)
{
    const T least = -T(INFINITY);

    for (int64_t row = blockIdx.x; row < a.outer; row += gridDim.x) {
        const T *x = scores + row * a.axis;
        T top = least, total = 0;

        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x)
            top = wf_greater()(top, x[i]);
        top = wf_join_block(top, least, wf_greater());
        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x)
            total += std::exp(x[i] - top);
        total = wf_join_block(total, T(0), wf_plus());
        if (threadIdx.x == 0)
            sums[row] = top + std::log(total);
    }
}

/* `n` heads from number `first` of `side` on, of `rows` each, which lie apart. */
struct wf_apart {
    uint32_t n, first, side, rows;
    int64_t width;
};

/* Brings their rows together, [n, rows, width], or back: a warp to a row. */
template <class T> __global__ void bring_rows(const T *from, T *to, wf_apart a, bool back)
{
    const uint32_t warps = blockDim.x / WF_WARP;

    for (uint32_t i = blockIdx.x * warps + threadIdx.x / WF_WARP; i < a.n * a.rows;
         i += gridDim.x * warps) {
        const uint32_t head = a.first + i / a.rows, group = head / a.side;
        const int64_t row = (int64_t)group * a.rows + i % a.rows;
        const int64_t apart = (row * a.side + head % a.side) * a.width, here = i * a.width;

        for (int64_t k = threadIdx.x % WF_WARP; k < a.width; k += WF_WARP)
            to[(back ? apart : here) + k] = from[(back ? here : apart) + k];
    }
}

/* ds = p (dp - sum of p dp) scale, in dp's place. */
template <class T> __global__ void find_slopes(const T *p, T *dp, T scale, wf_around a)
{
    for (int64_t row = blockIdx.x; row < a.outer; row += gridDim.x) {
        const int64_t at = row * a.axis;
        T dot = 0;

        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x)
            dot += p[at + i] * dp[at + i];
        dot = wf_join_block(dot, T(0), wf_plus());
        for (int64_t i = threadIdx.x; i < a.axis; i += blockDim.x)
            dp[at + i] = p[at + i] * (dp[at + i] - dot) * scale;
    }
}

void release(void *state)
{
    plan *p = static_cast<plan *>(state);

    wf_fused_free(&p->fused);
    for (wf_batch &b : p->products)
        wf_batch_free(&b);
}

/* The most heads whose scores are not too many, and that divide all heads. */
int64_t heads_at_a_time(const plan *p)
{
    const int64_t each = WF_MAX(p->a.t * p->a.s * (int64_t)p->size, (int64_t)1);
    int64_t some = WF_MIN(WF_MAX((int64_t)SCORE_BYTES / each, (int64_t)1),
                          WF_MIN(p->a.heads, (int64_t)INT32_MAX));

    while (some > 1 && p->a.heads % some)
        some--;
    return some;
}

/* The product of a stage for `some` heads. */
wf_batch product_of(const plan *p, stage which, wf_dtype dtype)
{
    const wf_attention &a = p->a;

    switch (which) {
    case SCORES:
        return {dtype, false, !a.trans_k, p->some, a.t, a.s, a.d, a.scale, NULL};
    case USE:
        return {dtype, false, false, p->some, a.t, a.e, a.s, 1, NULL};
    case DV:
        return {dtype, true, false, p->some, a.s, a.e, a.t, 1, NULL};
    case DP:
        return {dtype, false, true, p->some, a.t, a.s, a.e, 1, NULL};
    case DQ:
        return {dtype, false, a.trans_k, p->some, a.t, a.d, a.s, 1, NULL};
    default:
        return a.trans_k ? wf_batch{dtype, true, false, p->some, a.d, a.s, a.t, 1, NULL}
                         : wf_batch{dtype, true, false, p->some, a.s, a.d, a.t, 1, NULL};
    }
}

void lay_mask(plan *p, const wf_tensor *q, const wf_tensor *mask)
{
    const wf_tensor scores = wf_attention_scores(&p->a, q);

    p->sums = mask->dtype != WF_BOOL;
    wf_walk_broadcast(&p->mask, &scores, 1, &mask);
}

/* Rows of a head, and their length. */
int64_t rows_in(const plan *p, operand which)
{
    return which == OF_Q || which == OF_DQ || which == OF_Y ? p->a.t : p->a.s;
}

int64_t width_of(const plan *p, operand which)
{
    return which == OF_V || which == OF_DV || which == OF_Y ? p->a.e : p->a.d;
}

/* Room for heads whose rows lie apart. */
wf_status take_together(wf_prep *prep, plan *p, bool is_grad, wf_err *err)
{
    for (int which = 0; p->a.side > 1 && which < (is_grad ? OPERANDS : OF_DQ); which++)
        WF_TRY(wf_take_room(prep,
                            p->some * rows_in(p, (operand)which) * width_of(p, (operand)which),
                            p->size, &p->together[which], err));
    return WF_OK;
}

/* in: q, k, v, mask. dy: NULL without the gradient. */
wf_status prepare_for(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *dy,
                      const wf_tensor *const out[], wf_err *err)
{
    const wf_dtype dtype = in[0]->dtype;
    const bool is_grad = dy != nullptr;
    int64_t scores;
    plan *p;

    WF_TRY(wf_new_plan(prep, &p, err));
    prep->release = release;
    WF_TRY(wf_attention_of(prep->node, in, &p->a, err));
    if (dtype != WF_F64) {
        p->fused.a = p->a;
        WF_TRY(wf_fused_new(prep, &p->fused, in, dy, out, err));
        prep->widens = !p->fused.used && (wf_is_narrow(dy) || wf_narrow_of(prep->node, in, out));
        if (p->fused.used || prep->widens)
            return WF_OK;
    }
    p->size = wf_dtype_size(dtype);
    if (!wf_mul_i64(p->a.t * p->a.s, (int64_t)p->size, &scores))
        return wf_fail_nomem(err, SIZE_MAX);
    p->some = heads_at_a_time(p);
    if (in[3])
        lay_mask(p, in[0], in[3]);
    for (int which = 0; which < (is_grad ? STAGES : DV); which++) {
        p->products[which] = product_of(p, (stage)which, dtype);
        if (!is_grad || which != USE)
            WF_TRY(wf_batch_new(prep, &p->products[which], err));
    }
    WF_TRY(take_together(prep, p, is_grad, err));
    scores = p->a.t * p->a.s * p->some;
    WF_TRY(wf_take_room(prep, scores, p->size, &p->scores, err));
    return is_grad ? wf_take_room(prep, scores, p->size, &p->slopes, err) : WF_OK;
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    return prepare_for(prep, in, nullptr, out, err);
}

wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    return prepare_for(prep, in + 1, in[0], out, err);
}

/* Where `some` heads of a tensor from number `head` on lie one behind the other: in their place, or
 * in the workspace. */
template <class T> T *heads_at(const wf_run *run, const wf_tensor *t, int64_t head, operand which)
{
    const plan *p = static_cast<const plan *>(run->state);

    if (p->a.side > 1)
        return wf_room<T>(run, p->together[which]);
    return static_cast<T *>(t->data) + head * rows_in(p, which) * width_of(p, which);
}

template <class T>
wf_status bring(const wf_run *run, const wf_tensor *t, int64_t head, operand which, bool back,
                wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const int64_t side = p->a.side, rows = rows_in(p, which), width = width_of(p, which);
    T *apart = static_cast<T *>(t->data) + head / side * side * rows * width;
    T *here = wf_room<T>(run, p->together[which]);
    const wf_apart a = {(uint32_t)p->some, (uint32_t)(head % side), (uint32_t)side, (uint32_t)rows,
                        width};

    if (side == 1 || rows * width == 0)
        return WF_OK;
    return wf_launch(run, "heads", bring_rows<T>, wf_blocks(run, p->some * rows * WF_WARP), err,
                     back ? here : apart, back ? apart : here, a, back);
}

/* Where they are read, with their rows together. */
template <class T>
wf_status read_heads(const wf_run *run, const wf_tensor *t, int64_t head, operand which,
                     const T **at, wf_err *err)
{
    *at = heads_at<T>(run, t, head, which);
    return bring<T>(run, t, head, which, false, err);
}

/* What is read of `some` heads. */
template <class T> struct factors {
    const T *q, *k, *v;
};

/* in: q, k, v. */
template <class T>
wf_status read_three(const wf_run *run, const wf_tensor *const in[], int64_t head, factors<T> *f,
                     wf_err *err)
{
    WF_TRY(read_heads<T>(run, in[0], head, OF_Q, &f->q, err));
    WF_TRY(read_heads<T>(run, in[1], head, OF_K, &f->k, err));
    return read_heads<T>(run, in[2], head, OF_V, &f->v, err);
}

wf_around rows_of(const plan *p)
{
    return {p->some * p->a.t, p->a.s, 1};
}

/* Puts a value where a bool mask is true. */
template <class T>
wf_status fill_where(const wf_run *run, const wf_tensor *mask, int64_t head, T value, T *scores,
                     wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const int64_t each = p->a.t * p->a.s, n = p->some * each;

    return wf_launch(run, "mask", fill_masked<T>, wf_blocks(run, n), err, wf_in<uint8_t>(mask),
                     p->mask, head * each, n, value, scores);
}

/* The probabilities of `some` heads from number `head` on, from the product to the softmax. sums:
 * of all heads, or NULL. */
template <class T>
wf_status find_probabilities(const wf_run *run, const factors<T> &f, const wf_tensor *mask,
                             int64_t head, const wf_tensor *sums, wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const int64_t each = p->a.t * p->a.s, n = p->some * each;
    T *scores = wf_room<T>(run, p->scores);

    WF_TRY(wf_batch_go(&p->products[SCORES], run, f.q, f.k, scores, err));
    if (p->a.causal)
        WF_TRY(wf_launch(run, "mask", hide_later<T>, wf_blocks_of_rows(run, rows_of(p)), err,
                         p->a.t, rows_of(p), scores));
    else if (p->mask.n && p->sums)
        WF_TRY(wf_launch(run, "mask", add_mask<T>, wf_blocks(run, n), err, wf_in<T>(mask), p->mask,
                         head * each, n, scores));
    else if (p->mask.n)
        WF_TRY(fill_where(run, mask, head, (T)p->a.fill, scores, err));
    if (sums)
        WF_TRY(wf_launch_meeting(run, "sums", sum_rows<T>, wf_blocks_of_rows(run, rows_of(p)),
                                 wf_threads(p->a.s), err, (const T *)scores, rows_of(p),
                                 wf_out<T>(sums) + head * p->a.t));
    return wf_softmax<T, false>(run, scores, scores, rows_of(p), err);
}

template <class T>
wf_status attend(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const wf_attention &a = p->a;

    if (a.heads * a.t == 0)
        return WF_OK;
    if (p->fused.used)
        return wf_fused_attend(run, &p->fused, in, out, err);
    for (int64_t h = 0; h < a.heads; h += p->some) {
        factors<T> f;

        WF_TRY(read_three<T>(run, in, h, &f, err));
        WF_TRY(find_probabilities<T>(run, f, in[3], h, out[1], err));
        WF_TRY(wf_batch_go(&p->products[USE], run, wf_room<T>(run, p->scores), f.v,
                           heads_at<T>(run, out[0], h, OF_Y), err));
        WF_TRY(bring<T>(run, out[0], h, OF_Y, true, err));
    }
    return WF_OK;
}

/* The slopes of the scores, in the workspace. */
template <class T>
wf_status slopes_of(const wf_run *run, const T *dy, const T *v, const wf_tensor *mask, int64_t head,
                    wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    T *slopes = wf_room<T>(run, p->slopes);
    const wf_around rows = rows_of(p);

    WF_TRY(wf_batch_go(&p->products[DP], run, dy, v, slopes, err));
    WF_TRY(wf_launch_meeting(run, "slopes", find_slopes<T>, wf_blocks_of_rows(run, rows),
                             wf_threads(rows.axis), err, wf_room<const T>(run, p->scores), slopes,
                             (T)p->a.scale, rows));
    return p->mask.n && !p->sums ? fill_where(run, mask, head, T(0), slopes, err) : WF_OK;
}

/* From dy, q, k, v, mask; what is kept beside is made again. */
template <class T>
wf_status attend_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const wf_attention &a = p->a;

    if (p->fused.used)
        return wf_fused_grad(run, &p->fused, in, out, err);
    for (int64_t h = 0; h < a.heads; h += p->some) {
        T *probabilities = wf_room<T>(run, p->scores), *slopes = wf_room<T>(run, p->slopes);
        T *dk = heads_at<T>(run, out[1], h, OF_DK);
        factors<T> f;
        const T *dy;

        WF_TRY(read_three<T>(run, in + 1, h, &f, err));
        WF_TRY(read_heads<T>(run, in[0], h, OF_Y, &dy, err));
        if (a.t > 0) {
            WF_TRY(find_probabilities<T>(run, f, in[4], h, nullptr, err));
            WF_TRY(slopes_of(run, dy, f.v, in[4], h, err));
        }
        WF_TRY(wf_batch_go(&p->products[DV], run, probabilities, dy,
                           heads_at<T>(run, out[2], h, OF_DV), err));
        WF_TRY(wf_batch_go(&p->products[DQ], run, slopes, f.k, heads_at<T>(run, out[0], h, OF_DQ),
                           err));
        WF_TRY(a.trans_k ? wf_batch_go(&p->products[DK], run, f.q, slopes, dk, err)
                         : wf_batch_go(&p->products[DK], run, slopes, f.q, dk, err));
        for (int i = 0; i < 3; i++)
            WF_TRY(bring<T>(run, out[i], h, (operand)(OF_DQ + i), true, err));
    }
    return WF_OK;
}

} // namespace

#define ROW(name, dtype, prepare_, fn)                                                             \
    {                                                                                              \
        .op = name, .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype),                            \
        .is_narrow = dtype == WF_F32, .prepare = prepare_, .run = fn                               \
    }

WF_CUDA_ROWS(dot_attention){
    ROW("DotAttention", WF_F32, prepare, attend<float>),
    ROW("DotAttention", WF_F64, prepare, attend<double>),
    ROW("DotAttentionGrad", WF_F32, prepare_grad, attend_grad<float>),
    ROW("DotAttentionGrad", WF_F64, prepare_grad, attend_grad<double>),
    {},
};
