/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/product/factors.h - products of tensors of float32 and of a narrow type.
 *
 * cuBLASLt takes factors of one type. If any tensor of a product is narrow, both factors are: one
 * of float32 (weights, mostly) is rounded into the workspace, as is the row that is added to narrow
 * results.
 *
 * Tensor cores are fed by 16 bytes at a time, so cuBLASLt has slow algorithms alone for rows of
 * another length: a narrow factor of such rows is copied too, with padded rows, where the product
 * is large enough, and one that is rounded is padded by the way. */
#ifndef WF_KERNELS_CUDA_FACTORS_H
#define WF_KERNELS_CUDA_FACTORS_H

#include "common/kernels/cuda/memory.h"
#include "common/kernels/cuda/narrow.h"
extern "C" {
#include "common/kernels/cuda/product/product.h"
}

enum { WF_FACTOR_A, WF_FACTOR_B, WF_FACTOR_ROW, WF_FACTORS };

/* Elements of a narrow type that a row is padded to a multiple of, in a product whose extents are
 * no less than the second. */
enum { WF_ROW_ELEMS = 8, WF_PADDED_EXTENT = 128 };

/* Which of them are copied: rounded, padded, or both. */
struct wf_factors {
    bool copied[WF_FACTORS], rounded[WF_FACTORS];
    wf_dtype to[WF_FACTORS];       /* of a copy */
    int64_t row_elems[WF_FACTORS]; /* of a copy's rows, with the padding; 0: there is none */
    size_t at[WF_FACTORS];         /* of a copy, in the workspace */
};

/* The elements of a padded row; 0: rows are fine as they are. */
static inline int64_t wf_padded(const wf_tensor *t)
{
    const int64_t columns = wf_dim(t, -1);

    return columns % WF_ROW_ELEMS ? wf_align_up(columns, (int64_t)WF_ROW_ELEMS) : 0;
}

/* Sets the types and rows of *g, of a product in f32 or f64 that reads `in` [WF_FACTORS], where a
 * row that is not added is NULL. single: it is one product of whole tensors. */
static inline void wf_factors_of(const wf_prep *prep, const wf_tensor *const in[],
                                 const wf_tensor *out, bool single, wf_cuda_gemm *g, wf_factors *f)
{
    const wf_tensor *const made[WF_KERNEL_PORTS] = {out};
    const wf_dtype narrow = wf_narrow_of(prep->node, in, made);
    const bool pads = single && WF_MIN(WF_MIN(g->m, g->n), g->k) >= WF_PADDED_EXTENT;

    *f = wf_factors{};
    g->dtype = out->dtype == WF_F64 ? WF_F64 : WF_F32;
    if (narrow == WF_NONE)
        return;
    g->factors = narrow;
    g->result = out->dtype;
    for (int i = 0; i < WF_FACTORS; i++) {
        f->to[i] = i == WF_FACTOR_ROW ? g->result : narrow;
        f->rounded[i] = in[i] && in[i]->dtype != f->to[i];
        if (pads && i != WF_FACTOR_ROW)
            g->row_elems[i] = f->row_elems[i] = wf_padded(in[i]);
        f->copied[i] = f->rounded[i] || f->row_elems[i];
    }
}

/* Room for them behind the workspace that was asked for before. Errors: WF_NOMEM. */
static inline wf_status wf_factors_take_room(wf_prep *prep, wf_factors *f,
                                             const wf_tensor *const in[], wf_err *err)
{
    for (int i = 0; i < WF_FACTORS; i++) {
        const int64_t elems = !f->copied[i] ? 0
                              : f->row_elems[i]
                                  ? wf_elems(in[i]) / wf_dim(in[i], -1) * f->row_elems[i]
                                  : wf_elems(in[i]);

        if (f->copied[i])
            WF_TRY(wf_take_room(prep, elems, wf_dtype_size(f->to[i]), &f->at[i], err));
    }
    return WF_OK;
}

/* Elements that are written at a time. */
struct alignas(16) wf_row_part {
    uint16_t of[WF_ROW_ELEMS];
};

/* Copies rows of `columns` elements to rows of so many parts; zeros follow them. */
static __global__ void wf_pad_rows(wf_narrow_from x, wf_narrow_to y, int64_t rows, int64_t columns,
                                   int64_t parts)
{
    for (int64_t e = wf_first(); e < rows * parts; e += wf_all()) {
        const int64_t r = e / parts, first = (e - r * parts) * WF_ROW_ELEMS;
        wf_row_part part;

        for (int64_t i = 0; i < WF_ROW_ELEMS; i++)
            wf_narrow_to{part.of, y.dtype}[i] =
                first + i < columns ? x[r * columns + first + i] : 0.0f;
        static_cast<wf_row_part *>(y.at)[e] = part;
    }
}

/* Copies factor i where this is wanted; *data is what the product reads. */
static inline wf_status wf_factor_ready(const wf_factors *f, int i, const wf_run *run,
                                        const wf_tensor *t, const void **data, wf_err *err)
{
    void *room = wf_room<char>(run, f->at[i]);
    int64_t columns, rows, parts;

    *data = t ? t->data : nullptr;
    if (!f->copied[i])
        return WF_OK;
    *data = room;
    if (!f->row_elems[i])
        return wf_convert(run, t->dtype, t->data, f->to[i], room, wf_elems(t), err);
    columns = wf_dim(t, -1);
    parts = f->row_elems[i] / WF_ROW_ELEMS;
    rows = wf_elems(t) / columns;
    return wf_launch(run, "pad rows", wf_pad_rows, wf_blocks(run, rows * parts), err,
                     wf_narrow_from{t->data, t->dtype}, wf_narrow_to{room, f->to[i]}, rows, columns,
                     parts);
}

#endif
