/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/einsum.c - Einsum: packing, one matrix product per batch, and a walk to the
 * result (shape/einsum.h).
 */
#include "common/kernels/shape/einsum.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/product/blas.h"
#include "common/kernels/cpu/shape/move.h"

typedef struct plan {
    wf_einsum_plan e;
    size_t packed[WF_EINSUM_OPERANDS], product; /* byte offsets in the workspace */
} plan;

/* Takes `elems` elements of the workspace; false when that is more than there can be. */
static bool take_room(wf_prep *prep, int64_t elems, size_t size, size_t *at)
{
    size_t bytes;

    *at = wf_align_up(prep->workspace_bytes, WF_BUF_ALIGN);
    return wf_mul_size((size_t)elems, size, &bytes) &&
           wf_add_size(*at, bytes, &prep->workspace_bytes);
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    plan *p = wf_arena_alloc(prep->arena, sizeof *p);
    size_t size = wf_dtype_size(out[0]->dtype);
    bool fits = true;

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    WF_TRY(wf_einsum_plan_of(prep->node, in, out[0], &p->e, err));
    for (uint32_t i = 0; i < p->e.n_in; i++)
        fits = fits && take_room(prep, WF_MAX(p->e.in[i].walk.elems, p->e.in[i].elems), size,
                                 &p->packed[i]);
    fits = fits && take_room(prep, p->e.result.elems, size, &p->product);
    if (!fits)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "its parts are larger than weft multiplies");
    prep->state = p;
    return WF_OK;
}

#define SUM(T)                                                                                     \
    WF_MULTIVERSION static void sum_##T(T *x, int64_t elems, int64_t alone)                        \
    {                                                                                              \
        for (int64_t i = 0; i < elems; i++) {                                                      \
            double sum = 0;                                                                        \
                                                                                                   \
            for (int64_t k = 0; k < alone; k++)                                                    \
                sum += (double)x[i * alone + k];                                                   \
            x[i] = (T)sum;                                                                         \
        }                                                                                          \
    }
SUM(float)
SUM(double)

static void pack(const wf_packing *p, const wf_tensor *t, void *to)
{
    wf_gather_walk(&p->walk, wf_dtype_size(t->dtype), t->data, to);
    if (p->alone == 1)
        return;
    if (t->dtype == WF_F32)
        sum_float(to, p->elems, p->alone);
    else
        sum_double(to, p->elems, p->alone);
}

static wf_status einsum(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    const plan *p = run->state;
    size_t size = wf_dtype_size(out[0]->dtype);
    char *room[WF_EINSUM_OPERANDS], *product = (char *)run->workspace + p->product;

    (void)err;
    if (p->e.result.elems == 0)
        return WF_OK;
    for (uint32_t i = 0; i < run->node->n_in; i++) {
        room[i] = (char *)run->workspace + p->packed[i];
        pack(&p->e.in[i], in[i], room[i]);
    }
    if (run->node->n_in == 1)
        product = room[0];
    for (int64_t b = 0; run->node->n_in == 2 && b < p->e.batch; b++) {
        wf_product one = {.dtype = out[0]->dtype,
                          .m = p->e.m,
                          .n = p->e.n,
                          .k = p->e.k,
                          .alpha = 1,
                          .a = room[0] + (size_t)(b * p->e.m * p->e.k) * size,
                          .b = room[1] + (size_t)(b * p->e.k * p->e.n) * size,
                          .c = product + (size_t)(b * p->e.m * p->e.n) * size};

        wf_product_run(&one, run->pool);
    }
    wf_scatter_walk(&p->e.result, size, product, out[0]->data);
    return WF_OK;
}

const wf_kernel wf_kernels_einsum[] = {
    WF_ROW("Einsum", WF_TYPES_FLOAT, einsum, .prepare = prepare),
    {0},
};
