/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/product/factors.h - products of tensors of float32 and of a narrow type.
 *
 * cuBLASLt takes factors of one type. If any tensor of a product is narrow, both factors are: one
 * of float32 (weights, mostly) is rounded into the workspace, as is the row that is added to narrow
 * results. */
#ifndef WF_KERNELS_CUDA_FACTORS_H
#define WF_KERNELS_CUDA_FACTORS_H

#include "common/kernels/cuda/memory.h"
#include "common/kernels/cuda/narrow.h"
extern "C" {
#include "common/kernels/cuda/product/product.h"
}

enum { WF_FACTOR_A, WF_FACTOR_B, WF_FACTOR_ROW, WF_FACTORS };

/* Which of them are rounded, and to where. */
struct wf_factors {
    bool rounded[WF_FACTORS];
    wf_dtype to[WF_FACTORS]; /* if rounded */
    size_t at[WF_FACTORS];   /* in the workspace, if rounded */
};

/* Sets the types of *g, of a product in f32 or f64 that reads `in` [WF_FACTORS], where a row that
 * is not added is NULL. */
static inline void wf_factors_of(const wf_prep *prep, const wf_tensor *const in[],
                                 const wf_tensor *out, wf_cuda_gemm *g, wf_factors *f)
{
    const wf_tensor *const made[WF_KERNEL_PORTS] = {out};
    const wf_dtype narrow = wf_narrow_of(prep->node, in, made);

    *f = wf_factors{};
    g->dtype = out->dtype == WF_F64 ? WF_F64 : WF_F32;
    if (narrow == WF_NONE)
        return;
    g->factors = narrow;
    g->result = out->dtype;
    for (int i = 0; i < WF_FACTORS; i++) {
        f->to[i] = i == WF_FACTOR_ROW ? g->result : narrow;
        f->rounded[i] = in[i] && in[i]->dtype != f->to[i];
    }
}

/* Room for them behind the workspace that was asked for before. Errors: WF_NOMEM. */
static inline wf_status wf_factors_take_room(wf_prep *prep, wf_factors *f,
                                             const wf_tensor *const in[], wf_err *err)
{
    for (int i = 0; i < WF_FACTORS; i++)
        if (f->rounded[i])
            WF_TRY(wf_take_room(prep, wf_elems(in[i]), wf_dtype_size(f->to[i]), &f->at[i], err));
    return WF_OK;
}

/* Rounds factor i where this is wanted; *data is what the product reads. */
static inline wf_status wf_factor_ready(const wf_factors *f, int i, const wf_run *run,
                                        const wf_tensor *t, const void **data, wf_err *err)
{
    void *room = wf_room<char>(run, f->at[i]);

    *data = t ? t->data : nullptr;
    if (!f->rounded[i])
        return WF_OK;
    *data = room;
    return wf_convert(run, t->dtype, t->data, f->to[i], room, wf_elems(t), err);
}

#endif
