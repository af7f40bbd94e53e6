/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/packed.c */
#include "common/kernels/cpu/packed.h"
#include "common/base/size.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/onednn.h"

#include <string.h>

/* Below it the call of oneDNN, about 1 us, outweighs what it gains. */
#define ONEDNN_LEAST INT64_C(20000)
enum { ALIGN = 64 };

struct wf_packed {
    wf_strided_product p;
    bool bias;
    int64_t share, n_parts;
    wf_onednn_product **parts;        /* [n_parts]; NULL: OpenBLAS */
    size_t b_at, scratch_at, scratch; /* in the workspace; bytes of each part */
};

static bool wants_onednn(const wf_packed *w)
{
    return w->p.dtype == WF_F32 && wf_onednn_has_f32() &&
           WF_MIN(w->share, w->p.m) * w->p.n * w->p.k >= ONEDNN_LEAST;
}

static void drop_parts(wf_packed *w)
{
    for (int64_t i = 0; w->parts && i < w->n_parts; i++)
        wf_onednn_product_free(w->parts[i]);
    w->parts = NULL;
}

static int64_t rows_of(const wf_packed *w, int64_t part)
{
    return WF_MIN(w->share, w->p.m - part * w->share);
}

/* False: oneDNN has no way. */
static bool make_parts(wf_packed *w)
{
    for (int64_t i = 0; i < w->n_parts; i++) {
        const wf_onednn_shape s = {.trans_a = w->p.trans_a,
                                   .trans_b = w->p.trans_b,
                                   .m = rows_of(w, i),
                                   .n = w->p.n,
                                   .k = w->p.k,
                                   .lda = w->p.lda,
                                   .ldb = w->p.ldb,
                                   .ldc = w->p.ldc,
                                   .bias = w->bias,
                                   .packed = true,
                                   .packed_as = i ? w->parts[0] : NULL};

        w->parts[i] = wf_onednn_product_new(&s);
        if (!w->parts[i])
            return false;
        w->scratch =
            WF_MAX(w->scratch, wf_align_up(wf_onednn_product_workspace(w->parts[i]), ALIGN));
    }
    return true;
}

wf_status wf_packed_prepare(wf_prep *prep, const wf_strided_product *p, int64_t share, bool bias,
                            wf_packed **out, wf_err *err)
{
    wf_packed *w = wf_arena_alloc(prep->arena, sizeof *w);

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    *w = (wf_packed){.p = *p, .bias = bias, .share = share, .n_parts = (p->m + share - 1) / share};
    *out = w;
    if (!wants_onednn(w))
        return WF_OK;
    w->parts = wf_arena_array(prep->arena, (size_t)w->n_parts, sizeof(wf_onednn_product *));
    if (!w->parts)
        return wf_fail_nomem(err, (size_t)w->n_parts * sizeof(wf_onednn_product *));
    for (int64_t i = 0; i < w->n_parts; i++)
        w->parts[i] = NULL;
    if (!make_parts(w)) {
        drop_parts(w);
        return WF_OK;
    }
    w->b_at = wf_align_up(prep->workspace_bytes, ALIGN);
    w->scratch_at = w->b_at + wf_align_up(wf_onednn_product_packed_bytes(w->parts[0]), ALIGN);
    prep->workspace_bytes = w->scratch_at + (size_t)w->n_parts * w->scratch;
    return WF_OK;
}

void wf_packed_release(wf_packed *w)
{
    if (w)
        drop_parts(w);
}

void wf_packed_load(const wf_packed *w, const wf_run *run, const void *b)
{
    if (w->parts)
        wf_onednn_product_pack(w->parts[0], b, (char *)run->workspace + w->b_at);
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
    wf_strided_product p = w->p;
    char *workspace = run->workspace;

    if (w->parts) {
        wf_onednn_product_run(w->parts[part], a, workspace + w->b_at, bias, c,
                              workspace + w->scratch_at + (size_t)part * w->scratch);
        return;
    }
    p.m = rows_of(w, part);
    p.a = a;
    p.b = b;
    p.c = c;
    if (w->bias) {
        spread(&p, bias);
        p.beta = 1;
    }
    wf_product_strided(&p);
}
