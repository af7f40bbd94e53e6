/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/product/factors.h - products of tensors of float32 and of a narrow type.
 *
 * cuBLASLt takes factors of one type. If any tensor of a product is narrow, both factors are: one
 * of float32 (weights, mostly) is rounded into the workspace, as is the row that is added to narrow
 * results.
 *
 * cuBLASLt has fast algorithms for narrow factors where the extents along rows are a multiple of 16
 * bytes: on an H200 a product of 8192 x 768 x 50257 took five times as long as one of 50264. So a
 * large product of other extents is computed of copies that zeros fill up, and its result is copied
 * back where its rows are longer than wanted.
 */
#ifndef WF_KERNELS_CUDA_FACTORS_H
#define WF_KERNELS_CUDA_FACTORS_H

#include "common/kernels/cuda/memory.h"
#include "common/kernels/cuda/narrow.h"
extern "C" {
#include "common/kernels/cuda/product/product.h"
}

enum { WF_FACTOR_A, WF_FACTOR_B, WF_FACTOR_ROW, WF_FACTORS };

/* Elements of a narrow type that extents are filled up to a multiple of, in products that have no
 * extent below the second. Copying the result costs as much as the product gains where k is below
 * the third. */
enum { WF_EXTENT_UNIT = 8, WF_LARGE_EXTENT = 128, WF_LARGE_DEPTH = 256 };
/* Elements of a row that a thread reads before it writes them. */
enum { WF_CUT_AHEAD = 8 };

/* A copy of [rows, columns] in the workspace. */
struct wf_factor {
    bool copied, rounded;
    wf_dtype to;
    int64_t rows, columns;         /* of the tensor */
    int64_t all_rows, all_columns; /* of the copy */
    size_t at;
};

/* Which of them are copied, and whether the result is made in the workspace. */
struct wf_factors {
    wf_factor of[WF_FACTORS];
    bool result_copied;
    int64_t m, n, all_n; /* of the result, and the columns of the one in the workspace */
    size_t result_at;
};

static inline int64_t wf_filled_up(int64_t extent)
{
    return wf_align_up(extent, (int64_t)WF_EXTENT_UNIT);
}

/* Fills up n and k of a large product with narrow factors. */
static inline void wf_fill_up(wf_cuda_gemm *g, wf_factors *f)
{
    const int64_t n = g->k >= WF_LARGE_DEPTH ? wf_filled_up(g->n) : g->n;
    const int64_t k = !g->trans_a || g->trans_b ? wf_filled_up(g->k) : g->k;
    wf_factor *a = &f->of[WF_FACTOR_A], *b = &f->of[WF_FACTOR_B], *row = &f->of[WF_FACTOR_ROW];

    if (WF_MIN(WF_MIN(g->m, g->n), g->k) < WF_LARGE_EXTENT || g->beta != 0)
        return;
    *(g->trans_a ? &a->all_rows : &a->all_columns) = k;
    *(g->trans_b ? &b->all_columns : &b->all_rows) = k;
    *(g->trans_b ? &b->all_rows : &b->all_columns) = n;
    row->all_columns = n;
    f->result_copied = n != g->n;
    f->all_n = g->n = n;
    g->k = k;
}

/* Sets the types of *g, of a product in f32 or f64 that reads `in` [WF_FACTORS], where a row that
 * is not added is NULL, and its extents for copies of them. single: it is one product of whole
 * tensors, whose extents *g has. */
static inline void wf_factors_of(const wf_tensor *const in[], const wf_tensor *out, bool single,
                                 wf_cuda_gemm *g, wf_factors *f)
{
    wf_dtype narrow = wf_is_narrow(out) ? out->dtype : WF_NONE;

    for (int i = 0; i < WF_FACTORS; i++)
        narrow = wf_is_narrow(in[i]) ? in[i]->dtype : narrow;
    *f = wf_factors{};
    g->dtype = out->dtype == WF_F64 ? WF_F64 : WF_F32;
    if (narrow == WF_NONE)
        return;
    g->factors = narrow;
    g->result = out->dtype;
    f->m = g->m;
    f->n = f->all_n = g->n;
    for (int i = 0; i < WF_FACTORS; i++) {
        wf_factor *one = &f->of[i];

        if (!in[i])
            continue;
        one->to = i == WF_FACTOR_ROW ? g->result : narrow;
        one->rounded = in[i]->dtype != one->to;
        one->columns = one->all_columns = wf_dim(in[i], -1);
        one->rows = one->all_rows = one->columns ? wf_elems(in[i]) / one->columns : 0;
    }
    if (single)
        wf_fill_up(g, f);
    for (int i = 0; i < WF_FACTORS; i++) {
        wf_factor *one = &f->of[i];

        one->copied = in[i] && (one->rounded || one->all_columns != one->columns ||
                                one->all_rows != one->rows);
    }
}

/* Room for them behind the workspace that was asked for before. Errors: WF_NOMEM. */
static inline wf_status wf_factors_take_room(wf_prep *prep, wf_factors *f, wf_err *err)
{
    for (wf_factor &one : f->of)
        if (one.copied)
            WF_TRY(wf_take_room(prep, one.all_rows * one.all_columns, wf_dtype_size(one.to),
                                &one.at, err));
    if (!f->result_copied)
        return WF_OK;
    return wf_take_room(prep, f->m * f->all_n, sizeof(float), &f->result_at, err);
}

/* N elements that are written at a time. */
template <int N> struct alignas(2 * N) wf_row_part {
    uint16_t of[N];
};

/* y [all rows, parts of N elements]: x [rows, columns], and zeros. */
template <int N>
__global__ void wf_fill_rows(wf_narrow_from x, wf_narrow_to y, int64_t rows, int64_t columns,
                             int64_t all_rows, int64_t parts)
{
    for (int64_t e = wf_first(); e < all_rows * parts; e += wf_all()) {
        const int64_t r = e / parts, first = (e - r * parts) * N;
        wf_row_part<N> part;

        WF_UNROLL
        for (int i = 0; i < N; i++) {
            const float v = r < rows && first + i < columns ? x[r * columns + first + i] : 0.0f;

            part.of[i] = y.dtype == WF_BF16 ? wf_f32_to_bf16_inline(v) : wf_f32_to_f16_inline(v);
        }
        static_cast<wf_row_part<N> *>(y.at)[e] = part;
    }
}

template <int N>
wf_status wf_queue_filling(const wf_run *run, const wf_factor *f, const wf_tensor *t, void *to,
                           wf_err *err)
{
    const int64_t parts = f->all_columns / N;

    return wf_launch(run, "fill rows", wf_fill_rows<N>, wf_blocks(run, f->all_rows * parts), err,
                     wf_narrow_from{t->data, t->dtype}, wf_narrow_to{to, f->to}, f->rows,
                     f->columns, f->all_rows, parts);
}

/* y [rows, columns]: the front of each row of x [rows, all]. Several reads of a thread are on their
 * way at a time. */
template <class T>
__global__ void wf_cut_rows(const T *x, T *y, int64_t rows, int64_t columns, int64_t all)
{
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x)
        for (int64_t first = threadIdx.x; first < columns; first += WF_CUT_AHEAD * blockDim.x) {
            T read[WF_CUT_AHEAD];

            WF_UNROLL
            for (int i = 0; i < WF_CUT_AHEAD; i++)
                if (first + i * blockDim.x < columns)
                    read[i] = x[r * all + first + i * blockDim.x];
            WF_UNROLL
            for (int i = 0; i < WF_CUT_AHEAD; i++)
                if (first + i * blockDim.x < columns)
                    y[r * columns + first + i * blockDim.x] = read[i];
        }
}

/* Copies factor i where this is wanted; *data is what the product reads. */
static inline wf_status wf_factor_ready(const wf_factors *f, int i, const wf_run *run,
                                        const wf_tensor *t, const void **data, wf_err *err)
{
    const wf_factor *one = &f->of[i];
    void *room = wf_room<char>(run, one->at);

    *data = t ? t->data : nullptr;
    if (!one->copied)
        return WF_OK;
    *data = room;
    if (one->all_columns == one->columns && one->all_rows == one->rows)
        return wf_convert(run, t->dtype, t->data, one->to, room, wf_elems(t), err);
    if (one->to == WF_F32) /* a row, which is added to a result of float32 */
        WF_TRY(wf_stream_copy(run->stream, WF_COPY_WITHIN, room, t->data, wf_tensor_bytes(t), err));
    if (one->to == WF_F32)
        return wf_stream_fill(run->stream, static_cast<float *>(room) + one->columns, 0,
                              (size_t)(one->all_columns - one->columns) * sizeof(float), err);
    return one->all_columns % WF_EXTENT_UNIT
               ? wf_queue_filling<1>(run, one, t, room, err)
               : wf_queue_filling<WF_EXTENT_UNIT>(run, one, t, room, err);
}

/* Where the product writes. */
static inline void *wf_factors_result(const wf_factors *f, const wf_run *run, const wf_tensor *out)
{
    return f->result_copied ? wf_room<void>(run, f->result_at) : out->data;
}

/* Brings the result from there to its place. */
static inline wf_status wf_factors_finish(const wf_factors *f, const wf_run *run,
                                          const wf_tensor *out, wf_err *err)
{
    const unsigned blocks = wf_blocks(run, wf_elems(out));

    if (!f->result_copied)
        return WF_OK;
    if (out->dtype == WF_F32)
        return wf_launch(run, "cut rows", wf_cut_rows<float>, blocks, err,
                         wf_room<const float>(run, f->result_at), wf_out<float>(out), f->m, f->n,
                         f->all_n);
    return wf_launch(run, "cut rows", wf_cut_rows<uint16_t>, blocks, err,
                     wf_room<const uint16_t>(run, f->result_at), wf_out<uint16_t>(out), f->m, f->n,
                     f->all_n);
}

#endif
