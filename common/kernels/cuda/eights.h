/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/eights.h - eight neighbouring elements of a narrow type at a time: the 16
 * bytes that one access moves. For images with their channels last (common/graph/channels_last.h),
 * whose channels a thread takes so. */
#ifndef WF_KERNELS_CUDA_EIGHTS_H
#define WF_KERNELS_CUDA_EIGHTS_H

#include "common/kernels/cuda/narrow.h"
extern "C" {
#include "common/graph/channels_last.h"
#include "common/tensor/half.h"
}

enum { WF_EIGHT = WF_CHANNELS_TOGETHER };

struct alignas(16) wf_eight {
    uint32_t of[WF_EIGHT / 2]; /* the first element is in the lower bits */
};

/* In the type that a kernel computes in. */
struct wf_wide_eight {
    float v[WF_EIGHT];
};

template <wf_dtype TYPE> WF_CODE float wf_widen(uint16_t h)
{
    return TYPE == WF_BF16 ? wf_bf16_to_f32_inline(h) : wf_f16_to_f32_inline(h);
}

template <wf_dtype TYPE> WF_CODE uint32_t wf_narrow_bits(float f)
{
    return TYPE == WF_BF16 ? wf_f32_to_bf16_inline(f) : wf_f32_to_f16_inline(f);
}

template <wf_dtype TYPE> WF_CODE wf_wide_eight wf_widen_eight(wf_eight e)
{
    wf_wide_eight w;

    for (int i = 0; i < WF_EIGHT / 2; i++) {
        w.v[2 * i] = wf_widen<TYPE>((uint16_t)(e.of[i] & 0xFFFFu));
        w.v[2 * i + 1] = wf_widen<TYPE>((uint16_t)(e.of[i] >> 16));
    }
    return w;
}

template <wf_dtype TYPE> WF_CODE wf_eight wf_narrow_eight(const wf_wide_eight &w)
{
    wf_eight e;

    for (int i = 0; i < WF_EIGHT / 2; i++)
        e.of[i] = wf_narrow_bits<TYPE>(w.v[2 * i]) | wf_narrow_bits<TYPE>(w.v[2 * i + 1]) << 16;
    return e;
}

/* Four in float32. */
struct alignas(16) wf_eight_half {
    float v[WF_EIGHT / 2];
};

/* Eight `i` of elements that are of the type or of float32. */
template <wf_dtype TYPE> WF_CODE wf_wide_eight wf_load_eight(wf_narrow_from x, int64_t i)
{
    wf_wide_eight w;

    if (x.dtype != WF_F32)
        return wf_widen_eight<TYPE>(static_cast<const wf_eight *>(x.at)[i]);
    for (int k = 0; k < 2; k++) {
        const wf_eight_half h = static_cast<const wf_eight_half *>(x.at)[2 * i + k];

        for (int j = 0; j < WF_EIGHT / 2; j++)
            w.v[k * WF_EIGHT / 2 + j] = h.v[j];
    }
    return w;
}

template <wf_dtype TYPE>
WF_CODE void wf_store_eight(wf_narrow_to y, int64_t i, const wf_wide_eight &w)
{
    if (y.dtype != WF_F32) {
        static_cast<wf_eight *>(y.at)[i] = wf_narrow_eight<TYPE>(w);
        return;
    }
    for (int k = 0; k < 2; k++) {
        wf_eight_half h;

        for (int j = 0; j < WF_EIGHT / 2; j++)
            h.v[j] = w.v[k * WF_EIGHT / 2 + j];
        static_cast<wf_eight_half *>(y.at)[2 * i + k] = h;
    }
}

static inline const wf_eight *wf_eights_in(const wf_tensor *t)
{
    return t ? static_cast<const wf_eight *>(t->data) : nullptr;
}

static inline wf_eight *wf_eights_out(const wf_tensor *t)
{
    return t ? static_cast<wf_eight *>(t->data) : nullptr;
}

/* FIRST of a node whose images have their channels second, and LAST of one where they are last. */
template <auto *FIRST, auto *LAST, class A, class I, class O>
wf_status wf_by_order(const wf_node *n, A *a, I in, O out, wf_err *err)
{
    return wf_has_channels_last(n) ? LAST(a, in, out, err) : FIRST(a, in, out, err);
}

template <auto *FIRST, auto *LAST>
wf_status wf_prepare_by_order(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    return wf_by_order<FIRST, LAST>(prep->node, prep, in, out, err);
}

template <wf_run_fn *FIRST, wf_run_fn *LAST>
wf_status wf_run_by_order(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    return wf_by_order<FIRST, LAST>(run->node, run, in, out, err);
}

#endif
