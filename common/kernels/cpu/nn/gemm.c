/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/gemm.c - Gemm: Y = alpha A' B' + beta C. A row vector C is added by the
 * product itself; another is spread over Y first, so that the product adds to it in its one pass.
 * And Linear, where that pass also cuts results to 0, negative ones or those of a ReluGrad. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/product/product.h"
#include "common/kernels/cpu/shape/move.h"

#include <string.h>

typedef struct plan {
    wf_product_way *way;
    bool is_row, spreads; /* C */
    wf_walk spread;       /* of C over Y */
} plan;

static bool is_row(const wf_tensor *c, const wf_product *p)
{
    return p->beta == 1 && c->rank > 0 && wf_dim(c, -1) == p->n && wf_elems(c) == p->n;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    plan *s = wf_arena_alloc(prep->arena, sizeof *s);
    wf_product product = {0}, *p = &product;

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    wf_product_types(p, in[0], in[1], out[0]);
    p->trans_a = wf_node_int(prep->node, "transA", 0) != 0;
    p->trans_b = wf_node_int(prep->node, "transB", 0) != 0;
    p->m = out[0]->dims[0];
    p->n = out[0]->dims[1];
    p->k = in[0]->dims[p->trans_a ? 0 : 1];
    p->alpha = (double)wf_node_float(prep->node, "alpha", 1);
    p->beta = (double)wf_node_float(prep->node, "beta", 1);
    if (WF_MAX(WF_MAX(p->m, p->n), p->k) > INT32_MAX)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "an axis is longer than 2^31 - 1");
    s->is_row = in[2] && is_row(in[2], p);
    s->spreads = in[2] && p->beta != 0 && !s->is_row;
    if (s->spreads)
        wf_walk_broadcast(&s->spread, out[0], 1, &in[2]);
    else
        p->beta = 0;
    prep->state = s;
    prep->widens = in[2] && in[2]->dtype == WF_BF16;
    return wf_product_prepare(prep, p, s->is_row ? WF_PRODUCT_BIAS : 0, &s->way, err);
}

/* All rows of x, whatever its rank, are one matrix. */
static wf_status prepare_linear(wf_prep *prep, const wf_tensor *const in[],
                                const wf_tensor *const out[], wf_err *err)
{
    plan *s = wf_arena_alloc(prep->arena, sizeof *s);
    wf_product p = {.alpha = 1};
    uint32_t then = 0;

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    wf_product_types(&p, in[0], in[1], out[0]);
    p.trans_b = wf_node_int(prep->node, "transB", 0) != 0;
    p.n = wf_dim(out[0], -1);
    p.k = wf_dim(in[0], -1);
    p.m = 1;
    for (uint32_t i = 0; i + 1 < out[0]->rank; i++)
        p.m *= out[0]->dims[i];
    if (WF_MAX(WF_MAX(p.m, p.n), p.k) > INT32_MAX)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "it has more than 2^31 - 1 rows or columns");
    s->is_row = in[2] != NULL;
    if (in[2])
        then |= WF_PRODUCT_BIAS;
    if (strcmp(wf_node_string(prep->node, "activation", ""), "Relu") == 0)
        then |= WF_PRODUCT_RELU;
    if (in[3])
        then |= WF_PRODUCT_RELU_GRAD;
    p.y_is_bf16 = in[3] && in[3]->dtype == WF_BF16;
    prep->state = s;
    prep->widens = in[2] && in[2]->dtype == WF_BF16;
    return wf_product_prepare(prep, &p, then, &s->way, err);
}

static wf_status gemm(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    const plan *s = run->state;

    (void)err;
    if (s->spreads)
        wf_gather_walk(&s->spread, wf_dtype_size(out[0]->dtype), in[2]->data, out[0]->data);
    wf_product_go(s->way, run,
                  &(wf_product_operands){.a = in[0]->data,
                                         .b = in[1]->data,
                                         .bias = s->is_row ? in[2]->data : NULL,
                                         .y = in[3] ? in[3]->data : NULL,
                                         .c = out[0]->data});
    return WF_OK;
}

const wf_kernel wf_kernels_gemm[] = {
    WF_ROW("Gemm", WF_TYPES_FLOAT, gemm, .prepare = prepare, .is_narrow = true),
    WF_ROW("Linear", WF_TYPES_FLOAT, gemm, .domain = WF_DOMAIN_WEFT, .prepare = prepare_linear,
           .is_narrow = true),
    {0},
};
