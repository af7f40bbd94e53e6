/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/fused_attention.h - DotAttention and its gradient by cuDNN's kernels
 * (dnn/attention.h), where factors may be rounded to bfloat16 or float16. Tensors of that type are
 * read and written where they lie, but for a k that is turned; of others the workspace has copies
 * in it, with rows as far apart. So results are rounded to the type in any case. The gradient reads
 * y and the statistics of its rows, or makes them again.
 */
#ifndef WF_KERNELS_CUDA_FUSED_ATTENTION_H
#define WF_KERNELS_CUDA_FUSED_ATTENTION_H

#include "common/kernels/cuda/elementwise/each.h"
#include "common/kernels/cuda/memory.h"
extern "C" {
#include "common/kernels/cuda/dnn/attention.h"
#include "common/kernels/cuda/dnn/choose.h"
#include "common/kernels/cuda/dnn/way.h"
#include "common/kernels/shape/attention.h"
#include "common/tensor/half.h"
}

struct wf_fused_attention {
    wf_attention a;
    wf_dtype type; /* that cuDNN computes in: WF_BF16 or WF_F16 */
    int64_t some;  /* heads at a time; divides their number, and is a part or a multiple of the
                    * heads that lie side by side */
    bool sums;
    wf_walk mask;                      /* over [t, s]; n 0: there is none */
    bool used;                         /* cuDNN computes it */
    bool kept;                         /* y and the statistics are given to the gradient */
    wf_dnn_way *forward, *grad;        /* NULL: not wanted */
    size_t q, k, v, y, stats, mask_at; /* in the workspace */
    size_t dy, dq, dk, dv, room;
};

/* ---- planning ---- */

/* Whether one mask is for all heads. */
inline bool wf_is_of_all_heads(const wf_tensor *mask)
{
    for (uint32_t i = 0; i + 2 < mask->rank; i++)
        if (mask->dims[i] != 1)
            return false;
    return true;
}

inline void wf_lay_shared_mask(wf_fused_attention *f, const wf_tensor *mask)
{
    wf_tensor scores = {}, last = *mask;
    const wf_tensor *from = &last;

    scores.rank = 2;
    scores.dims[0] = f->a.t;
    scores.dims[1] = f->a.s;
    for (; last.rank > 2; last.rank--) /* the axes in front are ones */
        for (uint32_t i = 0; i + 1 < last.rank; i++)
            last.dims[i] = last.dims[i + 1];
    f->sums = mask->dtype != WF_BOOL;
    wf_walk_broadcast(&f->mask, &scores, 1, &from);
}

/* The most heads for which a gradient that keeps the slopes of the scores, in 16 bits, stays below
 * the most workspace; it rounds their extents up. */
inline int64_t wf_fused_heads(const wf_attention &a)
{
    const int64_t up = 128;
    const int64_t each = wf_ceil_div(a.t, up) * up * (wf_ceil_div(a.s, up) * up) * 2;
    const int64_t most = (int64_t)WF_DNN_MOST_WORKSPACE / 8 * 7 / each;
    int64_t some = WF_MIN(WF_MAX(most, (int64_t)1), a.heads);

    while (a.heads % some || (some % a.side && a.side % some))
        some--;
    return some;
}

/* Asks cuDNN, which may refuse: then *way is NULL. The workspace is for this way and those before.
 */
inline wf_status wf_ask_attention(wf_prep *prep, const wf_fused_attention *f, bool is_grad,
                                  wf_dnn_way **way, wf_err *err)
{
    const size_t before = prep->workspace_bytes;
    wf_dnn_attention c = {};
    wf_dnn_asked asked;

    c.is_grad = is_grad;
    c.dtype = f->type;
    c.side = f->a.side;
    c.groups = c.side > 1 ? WF_MAX(f->some / c.side, (int64_t)1) : 1;
    c.heads = f->some / c.groups;
    c.t = f->a.t;
    c.s = f->a.s;
    c.d = f->a.d;
    c.e = f->a.e;
    c.causal = f->a.causal;
    c.adds_mask = f->mask.n > 0;
    c.scale = f->a.scale;
    asked = wf_dnn_ask_attention(&c);
    if (wf_dnn_attention_fits(&c))
        WF_TRY(wf_dnn_way_new(prep, &asked, way, err));
    prep->workspace_bytes = WF_MAX(prep->workspace_bytes, before);
    return WF_OK;
}

/* Whether cuDNN takes heads as they lie in a tensor. */
inline bool wf_is_ready(const wf_fused_attention *f, const wf_tensor *t, bool turned)
{
    return t->dtype == f->type && !turned;
}

/* Room for a copy of heads of n elements each, where cuDNN takes them from there: of `some`, or
 * where these are a part of those side by side, of all of those. */
inline wf_status wf_take_heads(wf_prep *prep, const wf_fused_attention *f, const wf_tensor *t,
                               bool turned, int64_t n, size_t *at, wf_err *err)
{
    const int64_t heads = WF_MAX(f->some, f->a.side);

    if (wf_is_ready(f, t, turned))
        return WF_OK;
    return wf_take_room(prep, heads * n, sizeof(uint16_t), at, err);
}

/* in: q, k, v, mask, and of the gradient y and the statistics. dy and out are of the gradient; else
 * dy is NULL, and out is y and the statistics. */
inline wf_status wf_take_fused_room(wf_prep *prep, wf_fused_attention *f,
                                    const wf_tensor *const in[], const wf_tensor *dy,
                                    const wf_tensor *const out[], wf_err *err)
{
    const wf_attention &a = f->a;
    const int64_t q = a.t * a.d, k = a.s * a.d, v = a.s * a.e, y = a.t * a.e;
    const int64_t rows = f->some * a.t;

    WF_TRY(wf_take_heads(prep, f, in[0], false, q, &f->q, err));
    WF_TRY(wf_take_heads(prep, f, in[1], a.trans_k, k, &f->k, err));
    WF_TRY(wf_take_heads(prep, f, in[2], false, v, &f->v, err));
    if (f->grad ? !f->kept : !out[1])
        WF_TRY(wf_take_room(prep, rows, sizeof(float), &f->stats, err));
    if (f->mask.n > 0)
        WF_TRY(wf_take_room(prep, a.t * a.s, sizeof(float), &f->mask_at, err));
    if (!f->grad)
        return wf_take_heads(prep, f, out[0], false, y, &f->y, err);
    if (f->kept)
        WF_TRY(wf_take_heads(prep, f, in[4], false, y, &f->y, err));
    else
        WF_TRY(wf_take_room(prep, WF_MAX(f->some, a.side) * y, sizeof(uint16_t), &f->y, err));
    WF_TRY(wf_take_heads(prep, f, dy, false, y, &f->dy, err));
    WF_TRY(wf_take_heads(prep, f, out[0], false, q, &f->dq, err));
    WF_TRY(wf_take_heads(prep, f, out[1], a.trans_k, k, &f->dk, err));
    WF_TRY(wf_take_heads(prep, f, out[2], false, v, &f->dv, err));
    return wf_take_room(prep, rows, sizeof(float), &f->room, err);
}

inline void wf_fused_free(wf_fused_attention *f)
{
    wf_dnn_way_free(f->forward);
    wf_dnn_way_free(f->grad);
    f->forward = f->grad = nullptr;
}

/* Whether the gradient is given y and the statistics, and those of any heads that are computed
 * together begin where cuDNN may load 16 bytes. */
inline bool wf_are_kept(const wf_fused_attention *f, const wf_tensor *const in[])
{
    const int64_t rows = f->a.heads * f->a.t;

    return in[4] && in[5] && in[5]->dtype == WF_F32 && wf_elems(in[5]) == rows &&
           wf_elems(in[4]) == rows * f->a.e && (f->some == f->a.heads || f->some * f->a.t % 4 == 0);
}

/* Plans it for operands of which f->a tells the extents; f->used says whether cuDNN computes it.
 * in: q, k, v, mask, and of the gradient y and the statistics. dy: NULL without the gradient. Call
 * wf_fused_free in either case. */
inline wf_status wf_fused_new(wf_prep *prep, wf_fused_attention *f, const wf_tensor *const in[],
                              const wf_tensor *dy, const wf_tensor *const out[], wf_err *err)
{
    const size_t before = prep->workspace_bytes;
    const wf_tensor *mask = in[3];
    const bool is_grad = dy != nullptr;

    f->type = wf_compute_kept(prep->compute);
    if (f->type == WF_NONE || wf_is_narrow(mask) || (!is_grad && wf_is_narrow(out[1])) ||
        f->a.heads == 0 || f->a.t == 0 || f->a.s == 0 || (mask && !wf_is_of_all_heads(mask)))
        return WF_OK;
    if (mask)
        wf_lay_shared_mask(f, mask);
    f->some = is_grad ? wf_fused_heads(f->a) : f->a.heads;
    f->kept = is_grad && wf_are_kept(f, in);
    if (!f->kept)
        WF_TRY(wf_ask_attention(prep, f, false, &f->forward, err));
    if (is_grad && (f->kept || f->forward))
        WF_TRY(wf_ask_attention(prep, f, true, &f->grad, err));
    f->used = (is_grad ? f->grad : f->forward) != nullptr;
    if (f->used)
        return wf_take_fused_room(prep, f, in, dy, out, err);
    wf_fused_free(f);
    prep->workspace_bytes = before;
    return WF_OK;
}

/* ---- running ---- */

/* A copy of what lies [n, columns, rows], as [n, rows, columns]. */
static __global__ void wf_turn_heads(wf_narrow_from x, wf_narrow_to to, int64_t n, int64_t rows,
                                     int64_t columns)
{
    for (int64_t i = wf_first(); i < n * rows * columns; i += wf_all()) {
        const int64_t head = i / (rows * columns), in_head = i % (rows * columns);

        to[i] = x[head * rows * columns + in_head % columns * rows + in_head / columns];
    }
}

/* A copy of `rows` rows of n elements, `step` apart, to places that are as far apart. */
static __global__ void wf_copy_rows(wf_narrow_from x, wf_narrow_to to, int64_t rows, int64_t n,
                                    int64_t step)
{
    for (int64_t i = wf_first(); i < rows * n; i += wf_all())
        to[i / n * step + i % n] = x[i / n * step + i % n];
}

static __global__ void wf_spread_sums(const float *mask, wf_walk w, float *to)
{
    for (int64_t i = wf_first(); i < w.elems; i += wf_all())
        to[i] = mask[wf_at(w, 0, i)];
}

static __global__ void wf_spread_fill(const uint8_t *mask, wf_walk w, float fill, float *to)
{
    for (int64_t i = wf_first(); i < w.elems; i += wf_all())
        to[i] = mask[wf_at(w, 0, i)] ? fill : 0.0f;
}

/* `n` heads of a tensor from number `first` on, of [rows, columns] each, and where their copy lies
 * in the workspace. */
struct wf_heads {
    const wf_tensor *of;
    int64_t first, n, rows, columns;
    bool turned;
    size_t copy;
};

/* Where cuDNN reads or writes them. */
inline void *wf_heads_at(const wf_run *run, const wf_fused_attention *f, const wf_heads &h)
{
    if (!wf_is_ready(f, h.of, h.turned))
        return wf_room<uint16_t>(run, h.copy);
    return static_cast<uint16_t *>(h.of->data) +
           wf_attention_row(&f->a, h.first, 0, h.rows, h.columns);
}

/* Copies heads from x to y, which has them as rows and columns: x too, unless they are turned. */
inline wf_status wf_copy_heads(const wf_run *run, const wf_fused_attention *f, const wf_heads &h,
                               wf_narrow_from x, wf_narrow_to y, int64_t rows, int64_t columns,
                               wf_err *err)
{
    const int64_t n = h.n * rows * columns, side = f->a.side;

    if (h.turned)
        return wf_launch(run, "turn", wf_turn_heads, wf_blocks(run, n), err, x, y, h.n, rows,
                         columns);
    if (h.n % side)
        return wf_launch(run, "rows", wf_copy_rows, wf_blocks(run, n), err, x, y, rows,
                         h.n * columns, side * columns);
    return wf_convert(run, x.dtype, x.at, y.dtype, y.at, n, err);
}

/* Makes the copy, where it is read. */
inline wf_status wf_heads_in(const wf_run *run, const wf_fused_attention *f, const wf_heads &h,
                             wf_err *err)
{
    const int64_t first = wf_attention_row(&f->a, h.first, 0, h.rows, h.columns);

    if (wf_is_ready(f, h.of, h.turned))
        return WF_OK;
    return wf_copy_heads(run, f, h, wf_read<wf_narrow>(h.of) + first,
                         wf_narrow_to{wf_room<void>(run, h.copy), f->type}, h.rows, h.columns, err);
}

/* And takes it back, where it was written: a turned one is turned again. */
inline wf_status wf_heads_out(const wf_run *run, const wf_fused_attention *f, const wf_heads &h,
                              wf_err *err)
{
    const int64_t first = wf_attention_row(&f->a, h.first, 0, h.rows, h.columns);
    const wf_narrow_from made = {wf_room<void>(run, h.copy), f->type};

    if (wf_is_ready(f, h.of, h.turned))
        return WF_OK;
    return wf_copy_heads(run, f, h, made, wf_write<wf_narrow>(h.of) + first,
                         h.turned ? h.columns : h.rows, h.turned ? h.rows : h.columns, err);
}

inline wf_status wf_spread_mask(const wf_run *run, const wf_fused_attention *f,
                                const wf_tensor *mask, wf_err *err)
{
    const unsigned blocks = wf_blocks(run, f->a.t * f->a.s);
    float *to = wf_room<float>(run, f->mask_at);

    if (f->mask.n == 0)
        return WF_OK;
    if (f->sums)
        return wf_launch(run, "mask", wf_spread_sums, blocks, err, wf_in<float>(mask), f->mask, to);
    return wf_launch(run, "mask", wf_spread_fill, blocks, err, wf_in<uint8_t>(mask), f->mask,
                     (float)f->a.fill, to);
}

/* Queries, keys and values; likewise their gradients. */
struct wf_heads_of_three {
    wf_heads q, k, v;
};

inline wf_heads_of_three wf_three(const wf_fused_attention *f, const wf_tensor *const of[],
                                  int64_t head, size_t q, size_t k, size_t v)
{
    const wf_attention &a = f->a;

    return {{of[0], head, f->some, a.t, a.d, false, q},
            {of[1], head, f->some, a.s, a.d, a.trans_k, k},
            {of[2], head, f->some, a.s, a.e, false, v}};
}

inline wf_status wf_three_in(const wf_run *run, const wf_fused_attention *f,
                             const wf_heads_of_three &read, wf_err *err)
{
    WF_TRY(wf_heads_in(run, f, read.q, err));
    WF_TRY(wf_heads_in(run, f, read.k, err));
    return wf_heads_in(run, f, read.v, err);
}

/* Makes y and the statistics, at these places. */
inline wf_status wf_fused_forward(const wf_run *run, const wf_fused_attention *f,
                                  const wf_heads_of_three &read, void *y, float *stats, wf_err *err)
{
    const void *at[WF_DNN_MOST_TENSORS] = {};

    at[WF_DNN_ATT_Q] = wf_heads_at(run, f, read.q);
    at[WF_DNN_ATT_K] = wf_heads_at(run, f, read.k);
    at[WF_DNN_ATT_V] = wf_heads_at(run, f, read.v);
    at[WF_DNN_ATT_Y] = y;
    at[WF_DNN_ATT_STATS] = stats;
    at[WF_DNN_ATT_MASK] = wf_room<float>(run, f->mask_at);
    return wf_dnn_way_go(f->forward, run, at, err);
}

/* in: q, k, v, mask. out: y, and the statistics or NULL. */
inline wf_status wf_fused_attend(const wf_run *run, const wf_fused_attention *f,
                                 const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    const wf_heads made = {out[0], 0, f->some, f->a.t, f->a.e, false, f->y};
    const wf_heads_of_three read = wf_three(f, in, 0, f->q, f->k, f->v);
    float *stats = out[1] ? wf_out<float>(out[1]) : wf_room<float>(run, f->stats);

    WF_TRY(wf_spread_mask(run, f, in[3], err));
    WF_TRY(wf_three_in(run, f, read, err));
    WF_TRY(wf_fused_forward(run, f, read, wf_heads_at(run, f, made), stats, err));
    return wf_heads_out(run, f, made, err);
}

/* Finds y and the statistics that the gradient of heads reads, or makes them. in: q, k, v, mask, y,
 * statistics. */
inline wf_status wf_find_kept(const wf_run *run, const wf_fused_attention *f,
                              const wf_tensor *const in[], const wf_heads_of_three &read,
                              const void **y_at, const float **stats, wf_err *err)
{
    const int64_t head = read.q.first;
    const wf_heads y = {in[4], head, f->some, f->a.t, f->a.e, false, f->y};
    float *made = wf_room<float>(run, f->stats);

    if (f->kept) {
        *y_at = wf_heads_at(run, f, y);
        *stats = wf_in<float>(in[5]) + head * f->a.t;
        return wf_heads_in(run, f, y, err);
    }
    *y_at = wf_room<uint16_t>(run, f->y);
    *stats = made;
    return wf_fused_forward(run, f, read, wf_room<uint16_t>(run, f->y), made, err);
}

/* The gradient of the heads from number `head` on. in: dy, q, k, v, mask, y, statistics. */
inline wf_status wf_fused_grad_of(const wf_run *run, const wf_fused_attention *f,
                                  const wf_tensor *const in[], wf_tensor *const out[], int64_t head,
                                  wf_err *err)
{
    const wf_heads dy = {in[0], head, f->some, f->a.t, f->a.e, false, f->dy};
    const wf_heads_of_three read = wf_three(f, in + 1, head, f->q, f->k, f->v);
    const wf_heads_of_three made = wf_three(f, out, head, f->dq, f->dk, f->dv);
    const void *at[WF_DNN_MOST_TENSORS] = {}, *y;
    const float *stats;

    WF_TRY(wf_three_in(run, f, read, err));
    WF_TRY(wf_find_kept(run, f, in + 1, read, &y, &stats, err));
    WF_TRY(wf_heads_in(run, f, dy, err));
    at[WF_DNN_ATT_Q] = wf_heads_at(run, f, read.q);
    at[WF_DNN_ATT_K] = wf_heads_at(run, f, read.k);
    at[WF_DNN_ATT_V] = wf_heads_at(run, f, read.v);
    at[WF_DNN_ATT_Y] = y;
    at[WF_DNN_ATT_STATS] = stats;
    at[WF_DNN_ATT_DY] = wf_heads_at(run, f, dy);
    at[WF_DNN_ATT_DQ] = wf_heads_at(run, f, made.q);
    at[WF_DNN_ATT_DK] = wf_heads_at(run, f, made.k);
    at[WF_DNN_ATT_DV] = wf_heads_at(run, f, made.v);
    at[WF_DNN_ATT_ROOM] = wf_room<float>(run, f->room);
    at[WF_DNN_ATT_GRAD_MASK] = wf_room<float>(run, f->mask_at);
    WF_TRY(wf_dnn_way_go(f->grad, run, at, err));
    WF_TRY(wf_heads_out(run, f, made.q, err));
    WF_TRY(wf_heads_out(run, f, made.k, err));
    return wf_heads_out(run, f, made.v, err);
}

/* From dy, q, k, v, mask, and if they are kept y and the statistics: dq, dk, dv. */
inline wf_status wf_fused_grad(const wf_run *run, const wf_fused_attention *f,
                               const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    WF_TRY(wf_spread_mask(run, f, in[4], err));
    for (int64_t head = 0; head < f->a.heads; head += f->some)
        WF_TRY(wf_fused_grad_of(run, f, in, out, head, err));
    return WF_OK;
}

#endif
