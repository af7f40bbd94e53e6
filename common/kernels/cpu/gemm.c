/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/gemm.c - Gemm: Y = alpha A' B' + beta C. C is spread over Y first, so that
 * BLAS adds to it in its one pass. */
#include "common/kernels/cpu/blas.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/move.h"

typedef struct plan {
    wf_product product;
    bool has_c;
    wf_walk spread; /* of C over Y */
} plan;

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    plan *s = wf_arena_alloc(prep->arena, sizeof *s);
    wf_product *p;

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    p = &s->product;
    p->dtype = out[0]->dtype;
    p->trans_a = wf_node_int(prep->node, "transA", 0) != 0;
    p->trans_b = wf_node_int(prep->node, "transB", 0) != 0;
    p->m = out[0]->dims[0];
    p->n = out[0]->dims[1];
    p->k = in[0]->dims[p->trans_a ? 0 : 1];
    p->alpha = (double)wf_node_float(prep->node, "alpha", 1);
    p->beta = (double)wf_node_float(prep->node, "beta", 1);
    if (WF_MAX(WF_MAX(p->m, p->n), p->k) > INT32_MAX)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "an axis is longer than 2^31 - 1");
    s->has_c = in[2] && p->beta != 0;
    if (s->has_c)
        wf_walk_broadcast(&s->spread, out[0], 1, &in[2]);
    else
        p->beta = 0;
    prep->state = s;
    return WF_OK;
}

static wf_status gemm(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    const plan *s = run->state;
    wf_product p = s->product;

    (void)err;
    if (s->has_c)
        wf_gather_walk(&s->spread, wf_dtype_size(p.dtype), in[2]->data, out[0]->data);
    p.a = in[0]->data;
    p.b = in[1]->data;
    p.c = out[0]->data;
    wf_product_run(&p, run->pool);
    return WF_OK;
}

const wf_kernel wf_kernels_gemm[] = {
    WF_ROW("Gemm", WF_TYPES_FLOAT, gemm, .prepare = prepare),
    {0},
};
