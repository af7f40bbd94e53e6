/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/packed.c */
#include "common/kernels/cpu/product/packed.h"
#include "common/base/size.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/product/gemm_avx512.h"

#include <string.h>

enum { ALIGN = 64 };

struct wf_packed {
    wf_strided_product p;
    bool bias;
    int64_t share;
    bool own; /* or OpenBLAS, which packs for itself */
    wf_gemm gemm;
    size_t b_at, room_at, room; /* in the workspace; bytes of each part */
};

wf_status wf_packed_prepare(wf_prep *prep, const wf_strided_product *p, int64_t share, bool bias,
                            wf_packed **out, wf_err *err)
{
    wf_packed *w = wf_arena_alloc(prep->arena, sizeof *w);

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    *w = (wf_packed){.p = *p,
                     .bias = bias,
                     .share = share,
                     .own = p->dtype == WF_F32 && wf_gemm_is_here(),
                     .gemm = {.trans_a = p->trans_a,
                              .trans_b = p->trans_b,
                              .m = share,
                              .n = p->n,
                              .k = p->k,
                              .lda = p->lda,
                              .ldb = p->ldb,
                              .ldc = p->ldc}};
    *out = w;
    if (!w->own)
        return WF_OK;
    w->room = wf_align_up(wf_gemm_packed_room(&w->gemm), ALIGN);
    w->b_at = wf_align_up(prep->workspace_bytes, ALIGN);
    w->room_at = w->b_at + wf_align_up(wf_gemm_packed_floats(p->n, p->k) * sizeof(float), ALIGN);
    prep->workspace_bytes = w->room_at + (size_t)((p->m + share - 1) / share) * w->room;
    return WF_OK;
}

void wf_packed_load(const wf_packed *w, const wf_run *run, const void *b)
{
    if (w->own)
        wf_gemm_pack(&w->gemm, b, (float *)(void *)((char *)run->workspace + w->b_at));
}

/* The row vector into every row of C, for OpenBLAS to add to. */
static void spread(const wf_strided_product *p, const void *bias)
{
    size_t size = wf_dtype_size(p->dtype);

    for (int64_t i = 0; i < p->m; i++)
        memcpy((char *)p->c + (size_t)(i * p->ldc) * size, bias, (size_t)p->n * size);
}

void wf_packed_go(const wf_packed *w, const wf_run *run, int64_t part, const void *a, const void *b,
                  const void *bias, void *c)
{
    int64_t rows = WF_MIN(w->share, w->p.m - part * w->share);
    wf_strided_product p = w->p;
    char *workspace = run->workspace;
    wf_gemm g = w->gemm;

    if (w->own) {
        g.m = rows;
        wf_gemm_go_packed(&g, a, (const float *)(void *)(workspace + w->b_at),
                          w->bias ? bias : NULL, c,
                          workspace + w->room_at + (size_t)part * w->room);
        return;
    }
    p.m = rows;
    p.a = a;
    p.b = b;
    p.c = c;
    if (w->bias) {
        spread(&p, bias);
        p.beta = 1;
    }
    wf_product_strided(&p);
}
